//! `geoclaim janitor`.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use geoclaim_common::store::{self, Bucket, LocalDirectory};
use geoclaim_producer::sweep::{Janitor, JanitorReport, Leftover};

use crate::{
    args::{ReportArgs, StoreArgs},
    console,
    failure::Failure,
    progress::Progress,
    signals, time,
};

#[derive(Debug, Args)]
pub(crate) struct JanitorArgs {
    /// Remove them; without it, they are only listed
    #[arg(long)]
    delete: bool,
    /// Younger leftovers may belong to something that is still at work
    #[arg(long, value_name = "TIME", value_parser = time::duration, default_value = "1d")]
    older_than: Duration,
    /// Also forget jobs that were done under a lease so long ago; longer than anything can ask for them again
    #[arg(long, value_name = "TIME", value_parser = time::duration)]
    leases_older_than: Option<Duration>,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    report: ReportArgs,
}

pub(crate) async fn run(args: JanitorArgs) -> Result<ExitCode, Failure> {
    let store = store::open(&args.store.store, LocalDirectory::Expect)?;
    store::check(&store).await?;
    let janitor = Janitor {
        store,
        bucket: Bucket::open(&args.store.store)?,
        older_than: args.older_than,
        leases_older_than: args.leases_older_than,
        delete: args.delete,
    };
    let progress = Progress::of_work();
    let told = |leftover: &Leftover| progress.say(|| console::line(&console::printable(&described(leftover))));
    let report = tokio::select! {
        done = progress.during(janitor.run(told), |_| ()) => done?,
        () = signals::shutdown() => return Err(Failure::wrong("stopped; what was removed is gone, and the rest is where it was")),
    };
    if args.report.is_json() {
        console::json(&report)?;
    } else {
        tell(&args, &report);
    }
    Ok(ExitCode::SUCCESS)
}

fn described(leftover: &Leftover) -> String {
    match leftover {
        Leftover::Staging(path, bytes) => format!("{}  {}  of a write that was killed", path.display(), console::bytes(*bytes)),
        Leftover::Upload(upload) => format!("{}  upload {} was never completed", upload.key, upload.id),
        Leftover::Check(path, _) => format!("{path}  of a check or a clock"),
        Leftover::Lease(path, _) => format!("{path}  of a lease"),
    }
}

fn tell(args: &JanitorArgs, report: &JanitorReport) {
    let JanitorReport { staging_files, uploads, checks, leases, bytes, deleted } = report;
    console::line(&format!(
        "{staging_files} staging files, {uploads} uploads, {checks} objects of checks, {leases} of leases ({} without the uploads)",
        console::bytes(*bytes)
    ));
    let found = staging_files + uploads + checks + leases;
    if args.delete {
        console::line(&format!("removed {}", console::strong(deleted)));
    } else if found > 0 {
        console::line("--delete removes them");
    }
}
