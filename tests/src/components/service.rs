//! One component as a test sees it: started until it answers, stopped, frozen, started again.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::Unavailable;
use super::ports;
use super::process::{Process, Signal};

/// Many times what a start takes on an idle machine, for one that is busy compiling.
const START_DEADLINE: Duration = Duration::from_secs(90);
const POLL_INTERVAL: Duration = Duration::from_millis(25);
const LOG_LINES_SHOWN: usize = 6;

/// Holds a command line that can be run more than once, each time on the same files and ports.
#[derive(Debug)]
pub(super) struct Service {
    name: &'static str,
    command: Command,
    log: PathBuf,
    scratch: Vec<PathBuf>,
    process: Option<Process>,
}

impl Service {
    /// Describes a component; nothing runs yet. `scratch` goes when the component goes.
    pub(super) fn new(name: &'static str, command: Command, log: PathBuf, scratch: Vec<PathBuf>) -> Self {
        Self { name, command, log, scratch, process: None }
    }

    /// Starts the component, killing it first if it runs, and waits until it is `ready`.
    ///
    /// # Errors
    ///
    /// When it ends or the deadline passes before it is ready: it does not run then, and the error
    /// ends with the last lines of its log.
    pub(super) fn start(&mut self, ready: impl Fn() -> bool) -> Result<(), Unavailable> {
        self.stop_hard();
        let process = Process::spawn(&self.command, &self.log, &self.scratch)
            .map_err(|error| Unavailable::because(&format!("{}: cannot start", self.name), &error))?;
        let deadline = Instant::now() + START_DEADLINE;
        while !ready() {
            if !process.is_alive() || Instant::now() > deadline {
                let fate = if process.is_alive() { "was not ready in time" } else { "ended while starting" };
                let log = self.log_tail();
                return Err(Unavailable(format!("{} {fate}; its log ends: {log}", self.name)));
            }
            thread::sleep(POLL_INTERVAL);
        }
        self.process = Some(process);
        Ok(())
    }

    /// Runs another command to its end under the same guard as the component.
    pub(super) fn run_once(&self, command: &Command) -> Result<(), Unavailable> {
        let process = Process::spawn(command, &self.log, &self.scratch)
            .map_err(|error| Unavailable::because(&format!("{}: cannot prepare", self.name), &error))?;
        let deadline = Instant::now() + START_DEADLINE;
        while process.is_alive() && Instant::now() < deadline {
            thread::sleep(POLL_INTERVAL);
        }
        process.kill_and_keep_files();
        Ok(())
    }

    pub(super) fn stop_hard(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill_and_keep_files();
        }
    }

    pub(super) fn signal(&mut self, signal: Signal) -> io::Result<()> {
        let stopped = || io::Error::other(format!("{} does not run", self.name));
        self.process.as_mut().ok_or_else(stopped)?.signal(signal)
    }

    /// Waits until the component has ended by itself.
    pub(super) fn wait_until_gone(&self, within: Duration) -> io::Result<()> {
        let deadline = Instant::now() + within;
        while self.process.as_ref().is_some_and(Process::is_alive) {
            if Instant::now() > deadline {
                return Err(io::Error::other(format!("{} has not ended within {within:?}", self.name)));
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    pub(super) fn log(&self) -> &PathBuf {
        &self.log
    }

    /// Returns the last lines that say something; where in Java it was said does not.
    pub(super) fn log_tail(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines = text.lines().map(str::trim);
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty() && !line.starts_with("at ")).collect();
        lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join(" | ")
    }
}

/// Starts a component, and once more when another process took one of its ports meanwhile.
pub(super) fn start_on_free_ports<T>(start: impl Fn() -> Result<T, Unavailable>) -> Result<T, Unavailable> {
    start().or_else(|reason| {
        let port_taken = reason.0.to_lowercase().contains("address already in use");
        if port_taken { start() } else { Err(reason) }
    })
}

/// A component that keeps everything in memory, listens on one port, and is never stopped by a test.
#[derive(Debug)]
pub(super) struct Emulator {
    // Before the folder, so that it is dead when the folder goes.
    _service: Service,
    _folder: TempDir,
    pub(super) address: String,
}

impl Emulator {
    /// Starts the command that is made for an address, in a folder of its own, and waits until it is `ready` there.
    pub(super) fn start(
        name: &'static str,
        command: impl Fn(&str) -> Command,
        ready: impl Fn(&str) -> bool,
    ) -> Result<Self, Unavailable> {
        let because = |error: io::Error| Unavailable::because(name, &error);
        start_on_free_ports(|| {
            let folder = tempfile::Builder::new().prefix(&format!("geoclaim-{name}-")).tempdir().map_err(because)?;
            let address = format!("127.0.0.1:{}", ports::free(1).map_err(because)?[0]);
            let mut command = command(&address);
            command.current_dir(folder.path());
            let mut service = Service::new(name, command, folder.path().join("log"), Vec::new());
            service.start(|| ready(&address))?;
            Ok(Self { _service: service, _folder: folder, address })
        })
    }
}
