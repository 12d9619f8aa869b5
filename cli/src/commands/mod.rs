//! The commands. Each builds its components from its flags, calls one library function, and prints.

pub(crate) mod audit;
pub(crate) mod consume;
pub(crate) mod demo;
pub(crate) mod extent;
pub(crate) mod inspect;
pub(crate) mod janitor;
pub(crate) mod plan;
pub(crate) mod publish;
pub(crate) mod redrive;
pub(crate) mod sweep;
pub(crate) mod url;

use std::process::ExitCode;

use crate::{args::Command, failure::Failure};

/// Runs a command and returns its exit status.
pub(crate) async fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Demo(args) => demo::run(args).await,
        Command::Publish(args) => publish::run(args).await,
        Command::Consume(args) => consume::run(args).await,
        Command::Extent(args) => extent::run(args).await,
        Command::Plan(args) => plan::run(args).await,
        Command::Inspect(args) => inspect::run(args).await,
        Command::Redrive(args) => redrive::run(args).await,
        Command::Sweep(args) => sweep::run(args).await,
        Command::Janitor(args) => janitor::run(args).await,
        Command::Audit(args) => audit::run(args).await,
        Command::Url(args) => url::run(args).await,
    }
}
