//! `geoclaim audit`.

use std::{process::ExitCode, sync::atomic::Ordering, time::Duration};

use bytesize::ByteSize;
use clap::Args;
use geoclaim_common::{
    limits,
    store::{self, LocalDirectory},
};
use geoclaim_producer::audit::{Audit, AuditSettings, Choice, Finding, Status};
use serde::Serialize;

use crate::{
    args::{KafkaArgs, ReportArgs, StoreArgs},
    console,
    failure::{Failure, status},
    progress::Progress,
    referrers::ReferrerArgs,
    signals, time,
    time::TimingArgs,
    topics::SECONDS_A_DAY,
};

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Fetch and verify the bodies of so many of the oldest envelopes of each partition
    #[arg(long, value_name = "N", default_value_t = 3)]
    oldest: usize,
    /// Also of so many envelopes by chance; reads the topics to their ends
    #[arg(long, value_name = "N", conflicts_with = "all")]
    sample: Option<usize>,
    /// Of all envelopes
    #[arg(long)]
    all: bool,
    /// The largest whole record that carries its body, as publishers have it
    #[arg(long, value_name = "BYTES", env = "GEOCLAIM_INLINE_LIMIT_BYTES", default_value_t = ByteSize(limits::INLINE_RECORD_BYTES as u64))]
    inline_limit: ByteSize,
    /// How long consumers' ledgers keep an event [default: for ever]
    #[arg(long, value_name = "DAYS", env = "GEOCLAIM_LEDGER_RETENTION")]
    ledger_retention: Option<u64>,
    /// By how much clocks may differ
    #[arg(long, value_name = "TIME", value_parser = time::duration, default_value = "30s")]
    clock_tolerance: Duration,
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

#[derive(Debug, Serialize)]
struct Report {
    findings: Vec<Finding>,
}

pub(crate) async fn run(args: AuditArgs) -> Result<ExitCode, Failure> {
    let kafka = args.kafka.settings()?;
    let timing = args.timing.timing();
    timing.validate()?;
    let store = store::open(&args.store.store, LocalDirectory::Expect)?;
    store::check(&store).await?;
    let topics = args.referrers.topics(&kafka, &args.kafka.topic).await?;
    let settings = AuditSettings {
        inline_limit_bytes: usize::try_from(args.inline_limit.as_u64()).unwrap_or(usize::MAX),
        ledger_retention: args.ledger_retention.map(|days| Duration::from_secs(days.saturating_mul(SECONDS_A_DAY))),
        choice: match (args.all, args.sample) {
            (true, _) => Choice::All,
            (false, Some(sample)) => Choice::Sample(args.oldest, sample),
            (false, None) => Choice::Oldest(args.oldest),
        },
        clock_tolerance: args.clock_tolerance,
        timing,
        ..AuditSettings::new(kafka, topics)
    };
    let lifecycle = args.referrers.lifecycle(&args.store.store).await?;
    let audit = Audit { settings, store, lifecycle, counters: std::sync::Arc::default() };
    let look = |bar: &indicatif::ProgressBar| {
        bar.set_message(format!("{} bodies fetched and verified", audit.counters.verified.load(Ordering::Relaxed)));
    };
    let progress = Progress::of_work();
    let findings = tokio::select! {
        findings = progress.during(audit.run(), look) => findings,
        () = signals::shutdown() => return Err(Failure::wrong("stopped before all checks were made")),
    };
    let is_wrong = findings.iter().any(|finding| finding.status != Status::Ok);
    if args.report.is_json() {
        console::json(&Report { findings })?;
    } else {
        tell(&findings)?;
    }
    Ok(status(is_wrong))
}

fn tell(findings: &[Finding]) -> Result<(), Failure> {
    let width = findings.iter().map(|finding| finding.check.len()).max().unwrap_or(0);
    for Finding { check, status, detail } in findings {
        let status = match status {
            Status::Ok => "ok     ",
            Status::Wrong => "WRONG  ",
            Status::Unknown => "unknown",
        };
        console::out(&format!("{status}  {check:width$}  {}\n", console::printable(detail).replace('\n', " ")))?;
    }
    let count = |wanted: Status| findings.iter().filter(|finding| finding.status == wanted).count();
    let (ok, wrong, unknown) = (count(Status::Ok), count(Status::Wrong), count(Status::Unknown));
    console::line(&format!("{} checks: {ok} ok, {} wrong, {unknown} unknown", findings.len(), console::strong(wrong)));
    Ok(())
}
