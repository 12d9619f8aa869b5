//! The command line of geoclaim: it parses, builds, calls one library function, prints, and exits.
//!
//! Results go to standard output and everything else to standard error. Exit status 0: all done; 1: something was
//! rejected, dead-lettered, failed or found wrong; 2: the command line or the settings are wrong. SIGINT and SIGTERM
//! finish what is in flight, commit, and leave.
//!
//! ```console
//! $ geoclaim demo
//! Published 80 real and synthetic multipolygons (3.0 MB): 73 travel inside their envelope, 7 were too large and lie in …
//! $ echo '{"type":"Point","coordinates":[8.5,47.4]}' | geoclaim extent
//! {"feature_id":null,"kind":"Point","bbox":[8.5,47.4,8.5,47.4],"vertex_count":1,"bytes":41}
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is the crate that prints")]

mod allocator;
mod areas;
mod args;
mod commands;
mod console;
mod failure;
mod input;
mod progress;
mod records;
mod referrers;
mod signals;
mod sinks;
mod telemetry;
mod time;
mod topics;

use std::{process::ExitCode, time::Duration};

use clap::Parser;

use args::Cli;
use failure::Failure;

fn main() -> ExitCode {
    allocator::give_large_blocks_back();
    let cli = Cli::parse();
    telemetry::subscribe(&cli.log);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::wrong(format!("no runtime: {error}")).tell(),
    };
    let ended = runtime.block_on(commands::run(cli.command));
    // A thread may still wait for standard input; nobody waits for it.
    runtime.shutdown_timeout(Duration::from_millis(200));
    ended.unwrap_or_else(|failure| failure.tell())
}
