//! PostgreSQL with PostGIS: a private cluster of Debian's packages, on loopback and with no password.
//!
//! `postgres` refuses to run as root, so as root it runs as the user that its package has made.

use std::{
    fs,
    io::{self, Read as _},
    net::TcpStream,
    os::unix::fs::{MetadataExt as _, chown},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tempfile::TempDir;

use super::{
    Unavailable, ports,
    process::Signal,
    service::{Service, start_on_free_ports},
};

/// The user that owns the cluster when the tests run as root.
const OWNER: &str = "postgres";

/// Small, and as durable as it ships: a test stops it in the middle of its work.
const SETTINGS: &str = "
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
shared_buffers = 128MB
max_connections = 120
max_wal_size = 1GB
log_min_messages = warning
";

/// Owns a running cluster. Dropping it, or the end of the process, kills it and removes its data.
#[derive(Debug)]
pub struct Postgres {
    // Before the folder, so that it is dead when the folder goes.
    service: Service,
    _folder: TempDir,
    port: u16,
}

impl Postgres {
    /// Returns the one cluster that all tests of this process share, started at first use. A test keeps to a database
    /// of its own.
    ///
    /// # Errors
    /// PostgreSQL or PostGIS is missing, or does not start. The answer stays the same for the life of the process.
    pub fn shared() -> Result<&'static Self, Unavailable> {
        static SHARED: OnceLock<Result<Postgres, Unavailable>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref().map_err(Clone::clone)
    }

    /// Starts a cluster for one test, which may stop it.
    ///
    /// # Errors
    /// As [`Postgres::shared`].
    pub fn start() -> Result<Self, Unavailable> {
        start_on_free_ports(Self::try_start)
    }

    fn try_start() -> Result<Self, Unavailable> {
        let programs = programs()?;
        let because = |step: &str| {
            let step = format!("postgres: {step}");
            move |error: io::Error| Unavailable::because(&step, &error)
        };
        let folder = tempfile::Builder::new().prefix("geoclaim-postgres-").tempdir().map_err(because("no folder"))?;
        let port = ports::free(1).map_err(because("no port"))?[0];
        let (path, data) = (folder.path(), folder.path().join("data"));
        hand_over(path).map_err(because("cannot give its folder to its user"))?;

        let mut command = as_owner(path, &programs.join("postgres"));
        command.arg("-D").arg(&data).arg(format!("--port={port}"));
        let mut service = Service::new("postgres", command, path.join("server.log"), vec![path.to_owned()]);
        let mut initialise = as_owner(path, &programs.join("initdb"));
        initialise.arg("-D").arg(&data).args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale"]);
        service.run_once(&initialise)?;
        let settings = data.join("postgresql.conf");
        let written = fs::read_to_string(&settings).and_then(|text| fs::write(&settings, text + SETTINGS));
        written.map_err(|error| Unavailable(format!("postgres: no cluster ({error}); its log ends: {}", service.log_tail())))?;
        service.start(|| answers(port))?;
        Ok(Self { service, _folder: folder, port })
    }

    /// Returns the port, the same across restarts.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Makes an empty database of a fresh name and returns its name.
    ///
    /// # Errors
    /// The cluster refuses, with its reason.
    pub fn create_database(&self) -> io::Result<String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        self.query("postgres", &format!("CREATE DATABASE {name}"))?;
        Ok(name)
    }

    /// Asks by `psql`, which owes nothing to this project: one line a row, its columns separated by `|`.
    ///
    /// # Errors
    /// What `psql` says.
    pub fn query(&self, database: &str, sql: &str) -> io::Result<String> {
        let mut psql = Command::new("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql]).arg(self.url(database));
        let output = psql.output()?;
        if !output.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// Stops the cluster as an administrator in a hurry does (`immediate`): no checkpoint, no goodbye.
    ///
    /// # Errors
    /// It does not run, or does not stop within ten seconds.
    pub fn stop_immediately(&mut self) -> io::Result<()> {
        self.service.signal(Signal::Quit)?;
        self.service.wait_until_gone(Duration::from_secs(10))
    }

    /// Starts the cluster again on the same data and port and waits until it answers.
    ///
    /// # Errors
    /// It does not start.
    pub fn restart(&mut self) -> Result<(), Unavailable> {
        let port = self.port;
        self.service.start(|| answers(port))
    }
}

/// Begins a command that runs in a folder as the folder's owner.
fn as_owner(folder: &Path, program: &Path) -> Command {
    let mut command = if runs_as_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", OWNER, "--regid", OWNER, "--init-groups"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    command.current_dir(folder).env("LC_ALL", "C");
    command
}

fn runs_as_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn hand_over(folder: &Path) -> io::Result<()> {
    if !runs_as_root() {
        return Ok(());
    }
    let id = |flag: &str| -> io::Result<u32> {
        let output = Command::new("id").args([flag, OWNER]).output()?;
        String::from_utf8_lossy(&output.stdout).trim().parse().map_err(|_| io::Error::other(format!("no user {OWNER}")))
    };
    chown(folder, Some(id("-u")?), Some(id("-g")?))
}

/// Tells whether the server takes connections: it answers a start-up packet with an authentication message once it does.
fn answers(port: u16) -> bool {
    let ask = || -> io::Result<bool> {
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
        let mut connection = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        connection.set_read_timeout(Some(Duration::from_secs(1)))?;
        // A start-up packet of protocol 3.0 for the user and database that every cluster has.
        let words = b"user\0postgres\0database\0postgres\0\0";
        let length = u32::try_from(8 + words.len()).map_err(io::Error::other)?;
        let packet = [&length.to_be_bytes()[..], &196_608_u32.to_be_bytes(), words].concat();
        io::Write::write_all(&mut connection, &packet)?;
        let mut kind = [0];
        connection.read_exact(&mut kind)?;
        // An authentication message; while it starts up it answers with an error.
        Ok(kind == *b"R")
    };
    ask().unwrap_or(false)
}

/// Finds the folder with the server's programs.
fn programs() -> Result<PathBuf, Unavailable> {
    let missing = || Unavailable("PostgreSQL 15 with PostGIS: apt-get install postgresql-15-postgis-3".into());
    let folder = PathBuf::from("/usr/lib/postgresql/15/bin");
    let has_postgis = Path::new("/usr/share/postgresql/15/extension/postgis.control").exists();
    if folder.join("postgres").exists() && has_postgis { Ok(folder) } else { Err(missing()) }
}
