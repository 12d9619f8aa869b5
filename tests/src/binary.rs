//! Runs the real `geoclaim` binary as a child process.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::components;

/// How long any run may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Builds the binary once, in the profile of the tests, and returns where it is.
///
/// # Panics
/// It does not build.
pub fn path() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built("--bin", "geoclaim", !cfg!(debug_assertions)))
}

/// As [`path`], of the consumer that dies where it is told to: `tests/examples/dies-at.rs`.
///
/// # Panics
/// It does not build.
pub fn dies_at() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built("--example", "dies-at", !cfg!(debug_assertions)))
}

/// As [`path`], of the work whose instructions are counted, optimised: `tests/examples/instructions.rs`.
///
/// # Panics
/// It does not build.
pub fn instructions() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built("--example", "instructions", true))
}

fn built(kind: &str, name: &str, is_optimised: bool) -> PathBuf {
    let mut cargo = Command::new(option_env!("CARGO").unwrap_or("cargo"));
    cargo.args(["build", "--workspace", kind, name, "--message-format=json"]).current_dir(components::workspace());
    if is_optimised {
        cargo.arg("--release");
    }
    let output = cargo.stderr(Stdio::inherit()).output().expect("cargo runs");
    assert!(output.status.success(), "{name} builds");
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut executables = found
        .filter(|message| message["target"]["name"] == name)
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    executables.next().expect("cargo names the executable")
}

/// A run that has ended.
#[derive(Debug)]
pub struct Run {
    /// How it exited.
    pub status: ExitStatus,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
    /// The most anonymous memory that was seen, looked at a hundred times a second: what is not page cache.
    pub peak_bytes: u64,
}

impl Run {
    /// Returns the exit status.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or(-1)
    }

    /// Returns the last line of standard output as JSON.
    ///
    /// # Panics
    /// It is none.
    pub fn report(&self) -> Value {
        let last = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("no report: {error}\n{}\n{}", self.stdout, self.stderr))
    }

    /// Returns each line of standard output as JSON.
    ///
    /// # Panics
    /// One is none.
    pub fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}

/// A run that goes on.
#[derive(Debug)]
pub struct Running {
    child: Child,
    out: PathBuf,
    err: PathBuf,
    peak_bytes: u64,
    _folder: tempfile::TempDir,
}

/// Starts the binary with these arguments and environment variables, in `folder` when given.
///
/// # Panics
/// It does not start.
pub fn start(args: &[&str], env: &[(String, String)], folder: Option<&Path>) -> Running {
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let (out, err) = (scratch.path().join("out"), scratch.path().join("err"));
    let mut command = Command::new(path());
    command.args(args).envs(env.iter().cloned()).stdin(Stdio::piped());
    command.stdout(fs::File::create(&out).expect("a file")).stderr(fs::File::create(&err).expect("a file"));
    command.current_dir(folder.unwrap_or(scratch.path()));
    let child = command.spawn().expect("the binary starts");
    Running { child, out, err, peak_bytes: 0, _folder: scratch }
}

/// Runs the binary to its end.
///
/// # Panics
/// It does not start, or takes longer than ten minutes.
pub fn run(args: &[&str], env: &[(String, String)], input: &[u8]) -> Run {
    run_in(args, env, input, None)
}

/// Runs the binary to its end in a folder.
///
/// # Panics
/// It does not start, or takes longer than ten minutes.
pub fn run_in(args: &[&str], env: &[(String, String)], input: &[u8], folder: Option<&Path>) -> Run {
    let mut running = start(args, env, folder);
    let mut stdin = running.child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let run = running.wait();
    writer.join().expect("the input is written or refused");
    run
}

impl Running {
    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes to standard input, which stays open.
    ///
    /// # Panics
    /// The process does not take it.
    pub fn write(&mut self, input: &[u8]) {
        let stdin = self.child.stdin.as_mut().expect("a pipe");
        stdin.write_all(input).and_then(|()| stdin.flush()).expect("the input is taken");
    }

    /// Sends a signal by name.
    ///
    /// # Panics
    /// There is no `kill`.
    pub fn signal(&self, name: &str) {
        Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status().expect("kill runs");
    }

    /// Returns what has been written to standard error so far.
    pub fn stderr(&self) -> String {
        fs::read_to_string(&self.err).unwrap_or_default()
    }

    /// Returns what has been written to standard output so far.
    pub fn stdout(&self) -> String {
        fs::read_to_string(&self.out).unwrap_or_default()
    }

    /// Waits for the end, and for the most memory that was held.
    ///
    /// # Panics
    /// It takes longer than ten minutes.
    pub fn wait(&mut self) -> Run {
        let started = Instant::now();
        let status = loop {
            self.look_at_memory();
            match self.child.try_wait().expect("a child") {
                Some(status) => break status,
                None if started.elapsed() > PATIENCE => {
                    let _ = self.child.kill();
                    panic!("still running after {PATIENCE:?}\n{}", self.stderr());
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        Run { status, stdout: self.stdout(), stderr: self.stderr(), peak_bytes: self.peak_bytes }
    }

    fn look_at_memory(&mut self) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let anonymous = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"))
            .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        self.peak_bytes = self.peak_bytes.max(anonymous.unwrap_or(0) * 1024);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
