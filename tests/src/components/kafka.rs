//! Apache Kafka: one node that is broker and controller (KRaft), from the jars in the cache.
//!
//! It is set up as a test wants it: topics exist only when created, a group forms without waiting,
//! internal topics are small. Everything else is as Kafka ships it, message timestamps included.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::broker::{CLUSTER_ID, java_command, write_settings};
use super::process::Signal;
use super::service::{Service, start_on_free_ports};
use super::{Unavailable, cache, wire};

/// Owns a running broker. Dropping it, or the end of the process, kills it and removes its data.
#[derive(Debug)]
pub struct Kafka {
    // Before the folder, so that it is dead when the folder goes.
    service: Service,
    folder: TempDir,
    bootstrap: String,
}

impl Kafka {
    /// Returns the one broker that all tests of this process share, started at first use.
    ///
    /// A test keeps to topics and groups with names of its own.
    ///
    /// # Errors
    ///
    /// When Java or the jars are missing, or the broker does not start. The answer, good or bad,
    /// stays the same for the life of the process.
    pub fn shared() -> Result<&'static Self, Unavailable> {
        static SHARED: OnceLock<Result<Kafka, Unavailable>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref().map_err(Clone::clone)
    }

    /// Starts a broker for one test, which may stop it.
    ///
    /// # Errors
    ///
    /// As [`Kafka::shared`].
    pub fn start() -> Result<Self, Unavailable> {
        Self::start_with(&[])
    }

    /// Starts a broker for one test with broker settings that add to the usual ones or replace them.
    ///
    /// # Errors
    ///
    /// As [`Kafka::shared`].
    pub fn start_with(settings: &[(&str, &str)]) -> Result<Self, Unavailable> {
        start_on_free_ports(|| Self::try_start(settings))
    }

    fn try_start(settings: &[(&str, &str)]) -> Result<Self, Unavailable> {
        let (java, jars) = (cache::java()?, cache::kafka_jars()?);
        let folder = tempfile::Builder::new().prefix("geoclaim-kafka-").tempdir();
        let folder = folder.map_err(|error| Unavailable::because("kafka: no folder", &error))?;
        let path = folder.path();
        let bootstrap =
            write_settings(path, settings).map_err(|error| Unavailable::because("kafka: cannot write its settings", &error))?;

        let log = path.join("server.log");
        let mut command = java_command(&java, &jars, path);
        command.arg("kafka.Kafka").arg(path.join("server.properties"));
        let mut service = Service::new("kafka", command, log, vec![path.to_owned()]);

        let mut format = java_command(&java, &jars, path);
        format.args(["kafka.tools.StorageTool", "format", "--standalone", "-t", CLUSTER_ID, "-c"]);
        service.run_once(format.arg(path.join("server.properties")))?;
        if !path.join("data/meta.properties").exists() {
            let log = service.log_tail();
            return Err(Unavailable(format!("kafka: cannot format its storage: {log}")));
        }
        service.start(|| wire::answers(&bootstrap))?;
        Ok(Self { service, folder, bootstrap })
    }

    /// Returns `127.0.0.1:PORT`, the same across restarts.
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// Returns the file with all that the broker has logged, across restarts.
    pub fn log(&self) -> &Path {
        self.service.log()
    }

    /// Returns the folder with the broker's data, a folder for each partition in it.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Creates a topic and waits until every partition has a leader, so that a client finds it at once.
    ///
    /// `configs` are the topic's own, such as `("retention.ms", "60000")`.
    ///
    /// # Errors
    ///
    /// When the broker refuses, with its reason: the topic exists, a config is unknown.
    pub fn create_topic(&self, name: &str, partitions: usize, configs: &[(&str, &str)]) -> io::Result<()> {
        let count = i32::try_from(partitions).map_err(io::Error::other)?;
        wire::create_topic(&self.bootstrap, name, count, configs)?;
        let deadline = Instant::now() + Duration::from_secs(10);
        while wire::partitions_with_leader(&self.bootstrap, name)? < partitions {
            if Instant::now() > deadline {
                return Err(io::Error::other(format!("topic {name} has no leaders")));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Kills the broker (SIGKILL) and keeps its data. Does nothing when it is stopped.
    pub fn stop_hard(&mut self) {
        self.service.stop_hard();
    }

    /// Starts the broker again on the same data and port, killing it first if it runs, and waits
    /// until it answers.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub fn restart(&mut self) -> Result<(), Unavailable> {
        self.service.start(|| wire::answers(&self.bootstrap))
    }

    /// Freezes the broker (SIGSTOP): connections stay open and nothing answers.
    ///
    /// # Errors
    ///
    /// When it is stopped.
    pub fn pause(&mut self) -> io::Result<()> {
        self.service.signal(Signal::Stop)
    }

    /// Lets a frozen broker go on (SIGCONT).
    ///
    /// # Errors
    ///
    /// When it is stopped.
    pub fn resume(&mut self) -> io::Result<()> {
        self.service.signal(Signal::Continue)
    }
}
