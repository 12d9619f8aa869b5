//! Starts the real components that a test needs: a Kafka broker, an S3 store, a PostGIS, real data.
//!
//! `tests/setup` installs them into a [`cache`]; the code here only finds and starts what is
//! there, and says [`Unavailable`] otherwise, so that a machine without Java still runs the rest:
//!
//! ```no_run
//! use geoclaim_tests::components::{Kafka, require};
//!
//! let Some(kafka) = require("kafka", Kafka::shared()) else { return };
//! kafka.create_topic("places", 4, &[("retention.ms", "60000")]).expect("a topic");
//! ```
//!
//! Everything listens on loopback, keeps its files in a folder of its own, and ends with the test
//! process however that ends: see [`process`].

pub mod azurite;
mod broker;
pub mod cache;
pub mod datasets;
pub mod fake_gcs;
mod http;
pub mod kafka;
pub mod ports;
pub mod postgres;
pub mod process;
pub mod seaweedfs;
mod service;
mod wire;

use std::env;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use azurite::Azurite;
pub use fake_gcs::FakeGcs;
pub use kafka::Kafka;
pub use postgres::Postgres;
pub use seaweedfs::SeaweedFs;

/// Turns a missing component into a failure when it is set to `1`.
pub const REQUIRE_VARIABLE: &str = "GEOCLAIM_REQUIRE_COMPONENTS";

/// Names the file that lists what could not be had.
pub const LOG_VARIABLE: &str = "GEOCLAIM_UNAVAILABLE_LOG";

/// Says why a component cannot be had, and where possible what would bring it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable(pub String);

impl Unavailable {
    /// Explains a failed step, named by what was attempted.
    pub(crate) fn because(step: &str, error: &io::Error) -> Self {
        Self(format!("{step}: {error}"))
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unavailable {}

/// Hands over a component, or records why a test goes without it.
///
/// The reason goes to standard error, past the capture of the test runner, and as one line
/// `NAME: reason` to the file that [`LOG_VARIABLE`] names; `tests/run` prints that file last.
///
/// # Panics
///
/// When the component is missing and [`REQUIRE_VARIABLE`] is `1`, as it is in continuous
/// integration: there a test that silently did nothing would be a lie.
pub fn require<T>(name: &str, component: Result<T, Unavailable>) -> Option<T> {
    match component {
        Ok(component) => Some(component),
        Err(reason) => {
            let required = env::var(REQUIRE_VARIABLE).is_ok_and(|value| value == "1");
            report(name, &reason);
            refuse_if(required, name, &reason);
            None
        }
    }
}

/// Returns the root of the workspace, where `Cargo.lock` and `target` are.
pub fn workspace() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests)
}

fn log_file() -> PathBuf {
    let default = || workspace().join("target/unavailable-components.txt");
    env::var_os(LOG_VARIABLE).map_or_else(default, PathBuf::from)
}

/// Writes the reason to both places; one that cannot be written leaves the other.
fn report(name: &str, reason: &Unavailable) {
    let reason = reason.0.lines().collect::<Vec<_>>().join(" | ");
    let line = format!("{name}: {reason}\n");
    let _ = io::stderr().write_all(line.as_bytes());
    let _ = append(&log_file(), &line);
}

/// Appends a line in one write, so that those of several test processes do not mix.
fn append(file: &Path, line: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut log = OpenOptions::new().create(true).append(true).open(file)?;
    log.write_all(line.as_bytes())
}

#[expect(clippy::panic, reason = "a required component that is missing fails the test")]
fn refuse_if(required: bool, name: &str, reason: &Unavailable) {
    if required {
        panic!("{name} is required here but cannot be had: {reason}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_gather_in_a_file_that_need_not_exist() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("not/there/yet.txt");
        append(&file, "kafka: no java\n").unwrap();
        append(&file, "seaweedfs: gone\n").unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, "kafka: no java\nseaweedfs: gone\n");
    }

    #[test]
    #[should_panic(expected = "kafka is required here but cannot be had: no java")]
    fn a_required_component_that_is_missing_fails() {
        refuse_if(true, "kafka", &Unavailable("no java".into()));
    }
}
