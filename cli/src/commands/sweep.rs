//! `geoclaim sweep`.

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use clap::Args;
use geoclaim_common::store::{self, LocalDirectory};
use geoclaim_producer::sweep::{Sweep, SweepReport, SweepSettings};

use crate::{
    args::{KafkaArgs, ReportArgs, StoreArgs},
    console,
    failure::{Failure, status},
    progress::Progress,
    referrers::ReferrerArgs,
    signals,
    time::{self, TimingArgs},
};

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Delete what was a candidate in an earlier run already, at least a grace ago; without it, only plan
    #[arg(long)]
    delete: bool,
    /// Most of the bodies that one run may delete; if more would go, none does
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u8).range(0..=100))]
    max_share: u8,
    /// Most requests to the store a second
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// A record that cannot be decoded and that you have looked at, as the message names it: what looks like a digest in it
    /// still counts as a reference
    #[arg(long, value_name = "TOPIC/PARTITION/OFFSET")]
    looked_at: Vec<String>,
    /// How long a sweep that was killed keeps others from sweeping
    #[arg(long, value_name = "TIME", value_parser = time::duration, default_value = "1m", hide = true)]
    lease: Duration,
    /// Where lists are spilled: 48 bytes a body and 8 a reference [default: the folder for temporary files]
    #[arg(long, value_name = "DIRECTORY")]
    spill: Option<PathBuf>,
    #[command(flatten)]
    referrers: ReferrerArgs,
    #[command(flatten)]
    timing: TimingArgs,
    #[command(flatten)]
    kafka: KafkaArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    report: ReportArgs,
}

pub(crate) async fn run(args: SweepArgs) -> Result<ExitCode, Failure> {
    let kafka = args.kafka.settings()?;
    let settings = SweepSettings {
        delete: args.delete,
        timing: args.timing.timing(),
        most_share_percent: args.max_share,
        requests_per_second: args.rate,
        lease_seconds: args.lease.as_secs(),
        looked_at: args.looked_at.iter().cloned().collect(),
        ..SweepSettings::default()
    };
    settings.validate()?;
    let store = store::open(&args.store.store, LocalDirectory::Expect)?;
    store::check(&store).await?;
    // The lease and the plan stand on it.
    store::check_creates(&store).await?;
    let sweep = Sweep {
        settings,
        deleter: store::open_without_retries(&args.store.store)?,
        store,
        lifecycle: args.referrers.lifecycle(&args.store.store).await?,
        logs: args.referrers.logs(&kafka, &args.kafka.topic).await?,
        spill: args.spill.clone(),
        counters: Arc::default(),
    };
    let counters = Arc::clone(&sweep.counters);
    let look = |bar: &indicatif::ProgressBar| {
        let SweepReport { listed, references, candidates, ripe, deleted, .. } = counters.report(0.0);
        bar.set_message(format!(
            "{listed} bodies listed, {references} references read, {candidates} candidates; {deleted} of {ripe} deleted"
        ));
    };
    let report = Progress::of_work().during(sweep.run(signals::shutdown()), look).await?;
    if args.report.is_json() {
        console::json(&report)?;
    } else {
        tell(&args, &report);
    }
    if let Some(refused) = &report.refused {
        let deleted =
            if report.deleted == 0 { "nothing was deleted".to_owned() } else { format!("{} were deleted", report.deleted) };
        console::error(&format!("{deleted}: {refused}"));
    }
    Ok(status(report.refused.is_some()))
}

fn tell(args: &SweepArgs, report: &SweepReport) {
    let SweepReport { boundary_seconds, listed, referenced, young, candidates, ripe, deleted, spared, unanswered, .. } = report;
    if *boundary_seconds > 0 {
        let days = *boundary_seconds as f64 / 86_400.0;
        console::line(&format!("a body can be needed for {days:.2} days ({boundary_seconds} s): the retention boundary"));
    }
    console::line(&format!(
        "{listed} bodies ({}): {referenced} referred to, {young} not and younger than the boundary, {} candidates ({})",
        console::bytes(report.bytes_listed),
        console::strong(candidates),
        console::bytes(report.bytes_candidates),
    ));
    if args.delete {
        console::line(&format!("deleted {} ({})", console::strong(deleted), console::bytes(report.bytes_deleted)));
    } else if *ripe > 0 {
        console::line(&format!("{ripe} of them can be deleted now: --delete deletes them"));
    }
    if candidates > ripe && report.refused.is_none() {
        let grace = args.timing.timing().grace_seconds;
        console::line(&format!("{} of them are planned for a run in {grace} s or later", candidates - ripe));
    }
    let others = [
        (report.ignored, "objects are no bodies and were left alone"),
        (*spared, "bodies had been written again and were spared"),
        (*unanswered, "deletes got no answer; the next run looks"),
    ];
    for (count, what) in others.iter().filter(|(count, _)| *count > 0) {
        console::line(&format!("{count} {what}"));
    }
}
