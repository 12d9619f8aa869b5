//! SeaweedFS: an S3 store in one process, `weed server -filer -s3`, from the cache.
//!
//! It honours `If-None-Match: *` and `If-Match`, and asks for no credentials: a signed request with
//! any key passes, and so does a plain one. Its report of itself to its makers is switched off.

use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

use super::process::Signal;
use super::service::{Service, start_on_free_ports};
use super::{Unavailable, cache, http, ports};

/// One process, so no peers to vote with; volumes small, many, and grown one at a time, because
/// every bucket has its own.
const ARGUMENTS: [&str; 15] = [
    "-logtostderr=true",
    "server",
    "-filer",
    "-s3",
    "-ip=127.0.0.1",
    "-ip.bind=127.0.0.1",
    "-master.peers=none",
    "-master.telemetry=false",
    "-master.volumeSizeLimitMB=64",
    "-volume.max=200",
    "-volume.minFreeSpace=1",
    "-volume.preStopSeconds=0",
    "-s3.iam=false",
    "-s3.port.iceberg=0",
    "-s3.port.lance=0",
];

/// Each also listens for gRPC, and on a socket file named by that port.
const PARTS: [&str; 4] = ["master", "volume", "filer", "s3"];

/// Holds the object that tells whether the store can write; no test looks at it.
const PROBE_BUCKET: &str = "geoclaim-probe";

/// Owns a running store. Dropping it, or the end of the process, kills it and removes its data.
#[derive(Debug)]
pub struct SeaweedFs {
    // Before the folder, so that it is dead when the folder goes.
    service: Service,
    _folder: TempDir,
    address: String,
}

impl SeaweedFs {
    /// Returns the one store that all tests of this process share, started at first use.
    ///
    /// A test keeps to a bucket of its own.
    ///
    /// # Errors
    ///
    /// When the program is missing or does not start. The answer, good or bad, stays the same for
    /// the life of the process.
    pub fn shared() -> Result<&'static Self, Unavailable> {
        static SHARED: OnceLock<Result<SeaweedFs, Unavailable>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref().map_err(Clone::clone)
    }

    /// Starts a store for one test, which may stop it.
    ///
    /// # Errors
    ///
    /// As [`SeaweedFs::shared`].
    pub fn start() -> Result<Self, Unavailable> {
        start_on_free_ports(Self::try_start)
    }

    fn try_start() -> Result<Self, Unavailable> {
        let weed = cache::weed()?;
        let folder = tempfile::Builder::new().prefix("geoclaim-seaweedfs-").tempdir();
        let folder = folder.map_err(|error| Unavailable::because("seaweedfs: no folder", &error))?;
        let ports = ports::free(2 * PARTS.len()).map_err(|error| Unavailable::because("seaweedfs", &error))?;

        let path = folder.path();
        let mut command = weed_command(&weed, path);
        let mut scratch = vec![path.to_owned()];
        for (part, pair) in PARTS.iter().zip(ports.chunks_exact(2)) {
            command.arg(format!("-{part}.port={}", pair[0]));
            command.arg(format!("-{part}.port.grpc={}", pair[1]));
            scratch.push(format!("/tmp/seaweedfs-{part}-grpc-{}.sock", pair[1]).into());
        }
        let address = format!("127.0.0.1:{}", ports[2 * PARTS.len() - 2]);
        let mut service = Service::new("seaweedfs", command, path.join("weed.log"), scratch);
        service.start(|| can_write(&address))?;
        Ok(Self { service, _folder: folder, address })
    }

    /// Returns `http://127.0.0.1:PORT`, the same across restarts.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the variables by which `object_store`, and so `geoclaim`, finds this store.
    ///
    /// The key is made up: the store asks for none, but a client may insist on signing.
    pub fn env(&self) -> Vec<(String, String)> {
        let endpoint = self.endpoint();
        let variables = [
            ("AWS_ENDPOINT", endpoint.as_str()),
            ("AWS_ACCESS_KEY_ID", "geoclaim"),
            ("AWS_SECRET_ACCESS_KEY", "geoclaim-tests"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ALLOW_HTTP", "true"),
        ];
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    }

    /// Returns the file with all that the store has logged, across restarts.
    pub fn log(&self) -> &Path {
        self.service.log()
    }

    /// Creates a bucket: three or more lowercase letters, digits and hyphens.
    ///
    /// # Errors
    ///
    /// When the store refuses, with the HTTP status: 400 for a bad name, 409 when it exists.
    pub fn create_bucket(&self, name: &str) -> io::Result<()> {
        match self.put(&format!("/{name}"), &[], b"")? {
            200 => Ok(()),
            status => Err(io::Error::other(format!("cannot create bucket {name}: HTTP {status}"))),
        }
    }

    /// Sends one unsigned PUT of `/BUCKET/KEY` with further headers, and returns the HTTP status.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub fn put(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<u16> {
        http::put(&self.address, path, headers, body, Duration::from_secs(30))
    }

    /// Sends one unsigned request of any method, and returns the HTTP status and what the reply carries.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub fn ask(&self, method: &str, path: &str, body: &[u8]) -> io::Result<(u16, String)> {
        http::exchange(method, &self.address, path, &[], body, Duration::from_secs(30))
    }

    /// Kills the store (SIGKILL) and keeps its data. Does nothing when it is stopped.
    pub fn stop_hard(&mut self) {
        self.service.stop_hard();
    }

    /// Starts the store again on the same data and ports, killing it first if it runs, and waits
    /// until it can write.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub fn restart(&mut self) -> Result<(), Unavailable> {
        self.service.start(|| can_write(&self.address))
    }

    /// Freezes the store (SIGSTOP): connections stay open and nothing answers.
    ///
    /// # Errors
    ///
    /// When it is stopped.
    pub fn pause(&mut self) -> io::Result<()> {
        self.service.signal(Signal::Stop)
    }

    /// Lets a frozen store go on (SIGCONT).
    ///
    /// # Errors
    ///
    /// When it is stopped.
    pub fn resume(&mut self) -> io::Result<()> {
        self.service.signal(Signal::Continue)
    }
}

/// A store of its own configuration: none from the home directory, no identity from the environment.
fn weed_command(weed: &Path, folder: &Path) -> Command {
    let mut command = Command::new(weed);
    command.args(ARGUMENTS).current_dir(folder);
    command.arg(format!("-dir={}", folder.display()));
    command.arg(format!("-s3.localSocket={}", folder.join("s3.sock").display()));
    command.arg(format!("-filer.localSocket={}", folder.join("filer.sock").display()));
    command.env("HOME", folder).env("WEED_MASTER_VOLUME_GROWTH_COPY_1", "1");
    command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    command
}

/// Listening is not enough: the volume server joins the master later, and a write waits for it.
fn can_write(address: &str) -> bool {
    let send = |path: &str| http::put(address, path, &[], b"probe", Duration::from_secs(5)).unwrap_or_default();
    matches!(send(&format!("/{PROBE_BUCKET}")), 200 | 409) && send(&format!("/{PROBE_BUCKET}/x")) == 200
}
