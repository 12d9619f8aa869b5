//! How a command fails.

use std::process::ExitCode;

use geoclaim_common::{Fault, FaultKind};

use crate::console;

/// Something was rejected, dead-lettered, failed or found wrong, and the report says what.
pub(crate) const SOMETHING_WRONG: u8 = 1;

/// The command line or the settings are wrong.
pub(crate) const MISUSED: u8 = 2;

/// A failure: what to say and how to exit.
#[derive(Debug)]
pub(crate) struct Failure {
    status: u8,
    message: String,
}

impl Failure {
    /// The work could not be done.
    pub(crate) fn wrong(message: impl Into<String>) -> Self {
        Self { status: SOMETHING_WRONG, message: message.into() }
    }

    /// The command line or the settings are wrong.
    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Self { status: MISUSED, message: message.into() }
    }

    /// Says what failed and returns the exit status.
    pub(crate) fn tell(&self) -> ExitCode {
        console::error(&self.message);
        ExitCode::from(self.status)
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault.kind {
            FaultKind::Configuration => Self::misuse(fault.detail),
            _ => Self::wrong(fault.detail),
        }
    }
}

/// The exit status of a command that has done its work: whether anything on the way was wrong.
pub(crate) fn status(anything_wrong: bool) -> ExitCode {
    if anything_wrong { ExitCode::from(SOMETHING_WRONG) } else { ExitCode::SUCCESS }
}
