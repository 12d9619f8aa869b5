//! Runs a component as a child that cannot outlive the test process.
//!
//! A value in a `static` is never dropped, and a test process may be killed before it drops
//! anything. So each child is started by a watchdog, a few lines of `sh` that read orders from a
//! pipe of which the test process holds the only other end. When that end closes, because the value
//! is dropped or because the process is gone, however it went, the watchdog kills the child and
//! removes its files. It is the child's parent, so the process id that it signals cannot have been
//! given to another process meanwhile; and it leads a process group of its own, so that an
//! interrupt typed at the terminal leaves it to do its work.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The traps come after the child has started, for a child inherits what its parent ignores.
const WATCHDOG: &str = r#"
log=$1; shift
"$@" </dev/null >>"$log" 2>&1 &
child=$!
trap '' PIPE HUP INT TERM
echo "$child"
set --
while read -r order path; do
  case $order in
    remove) set -- "$@" "$path" ;;
    keep) set -- ;;
    *) kill -s "$order" "$child"; echo done ;;
  esac
done
kill -s KILL "$child"
wait "$child"
[ $# -eq 0 ] || rm -rf -- "$@"
"#;

/// Longer than a kill takes, removal of the files included.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

/// Names what [`Process::signal`] sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Freezes the child: its connections stay open and answer nothing.
    Stop,
    /// Lets a frozen child go on.
    Continue,
    /// Ends the child at once; it cannot flush or say goodbye.
    Kill,
    /// Asks the child to end; for PostgreSQL, without a checkpoint.
    Quit,
}

/// Owns a running child and its watchdog. Dropping it kills the child and removes its files.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    watchdog: Child,
    orders: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
}

impl Process {
    /// Starts `command`: its program, arguments, environment and folder; its output is appended to
    /// `log`, its input is empty.
    ///
    /// `scratch` names the files and folders that go when the child goes.
    ///
    /// # Errors
    ///
    /// When there is no `sh`, or no process can be started. That the program itself is missing
    /// shows only in the log, and in [`Process::is_alive`].
    pub fn spawn(command: &Command, log: &Path, scratch: &[PathBuf]) -> io::Result<Self> {
        let mut watchdog = Command::new("sh");
        watchdog.args(["-c", WATCHDOG, "watchdog"]).arg(log);
        watchdog.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => watchdog.env(name, value),
                None => watchdog.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            watchdog.current_dir(folder);
        }
        watchdog.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut watchdog = watchdog.process_group(0).spawn()?;
        let (Some(orders), Some(replies)) = (watchdog.stdin.take(), watchdog.stdout.take()) else {
            return Err(io::Error::other("the watchdog has no pipes"));
        };
        let mut process = Self { pid: 0, watchdog, orders: Some(orders), replies: BufReader::new(replies) };
        process.pid = process.reply()?.parse().map_err(io::Error::other)?;
        for path in scratch {
            process.order(&format!("remove {}", path.display()))?;
        }
        Ok(process)
    }

    /// Returns the child's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Tells whether the child still runs, frozen or not.
    ///
    /// Without a `/proc` nothing can be told, and the answer is yes.
    pub fn is_alive(&self) -> bool {
        let Ok(stat) = fs::read_to_string(format!("/proc/{}/stat", self.pid)) else {
            return !Path::new("/proc/self/stat").exists();
        };
        // The state follows the name, which is in parentheses and may hold some itself.
        let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
        !matches!(state, None | Some('Z' | 'X'))
    }

    /// Sends a signal to the child and returns once it is sent.
    ///
    /// # Errors
    ///
    /// When the watchdog is gone.
    pub fn signal(&mut self, signal: Signal) -> io::Result<()> {
        self.order(match signal {
            Signal::Stop => "STOP",
            Signal::Continue => "CONT",
            Signal::Kill => "KILL",
            Signal::Quit => "QUIT",
        })?;
        self.reply().map(drop)
    }

    /// Kills the child and leaves its files, for another to start from.
    pub fn kill_and_keep_files(mut self) {
        let _ = self.order("keep");
    }

    fn order(&mut self, order: &str) -> io::Result<()> {
        let orders = self.orders.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        orders.write_all(format!("{order}\n").as_bytes())
    }

    fn reply(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.replies.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.orders.take());
        let deadline = Instant::now() + STOP_DEADLINE;
        while matches!(self.watchdog.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A child that ignores every polite signal, with the folder that is its only file.
    fn stubborn(folder: &Path) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' HUP INT TERM; echo up; while :; do sleep 1; done"]);
        let process = Process::spawn(&command, &folder.join("log"), &[folder.to_owned()]).unwrap();
        while fs::read_to_string(folder.join("log")).unwrap_or_default() != "up\n" {
            thread::sleep(Duration::from_millis(1));
        }
        process
    }

    fn is_running(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn a_child_and_its_files_go_when_the_owner_goes() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = stubborn(folder.path());
        let pid = process.pid();
        process.signal(Signal::Stop).unwrap();
        assert!(process.is_alive() && is_running(pid), "a frozen child is alive");
        drop(process);
        assert!(!is_running(pid) && !folder.path().exists());
    }

    #[test]
    fn a_killed_child_is_noticed_and_its_files_can_be_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = stubborn(folder.path());
        process.signal(Signal::Kill).unwrap();
        while process.is_alive() {
            thread::sleep(Duration::from_millis(1));
        }
        process.kill_and_keep_files();
        assert!(folder.path().join("log").exists());
    }
}
