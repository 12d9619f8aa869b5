//! `geoclaim redrive`.

use std::{ops::ControlFlow, process::ExitCode, sync::Arc, time::Duration};

use clap::Args;
use geoclaim_common::{
    Fault, Timestamp,
    clock::SystemClock,
    kafka::{KafkaSettings, KafkaSink, StoredRecord, topic_facts},
};
use geoclaim_consumer::redrive::{Choice, Latest, Redrive, RedriveReport, RedriveSettings, Verdict};
use tokio::sync::mpsc;

use crate::{
    args::{KafkaArgs, ReportArgs, StoreArgs},
    console,
    failure::{Failure, status},
    progress::Progress,
    records, signals, time,
    topics::{SECONDS_A_DAY, USUAL_MESSAGE_BYTES, dead_letters_of},
};

/// How many records are on their way at once.
const IN_FLIGHT: usize = 500;

#[derive(Debug, Args)]
pub(crate) struct RedriveArgs {
    /// Send; without it, the letters are only judged and counted
    #[arg(long)]
    send: bool,
    /// Only letters with one of these reasons, such as body_missing
    #[arg(long, value_name = "REASON", value_delimiter = ',')]
    reason: Vec<String>,
    /// Only letters of these features
    #[arg(long, value_name = "ID")]
    feature: Vec<String>,
    /// Only letters set aside at this time or later: RFC 3339, or an age such as 2h or 7d
    #[arg(long, value_name = "TIME", value_parser = time::moment)]
    since: Option<Timestamp>,
    /// Only letters set aside before this time
    #[arg(long, value_name = "TIME", value_parser = time::moment)]
    until: Option<Timestamp>,
    /// Letters that have been redriven so often stay
    #[arg(long, value_name = "N", default_value_t = 5)]
    max_redrives: u32,
    /// How long the consumers' ledgers keep an event; older letters stay [default: for ever]
    #[arg(long, value_name = "DAYS", env = "GEOCLAIM_LEDGER_RETENTION")]
    ledger_retention: Option<u64>,
    /// The topic of the dead letters [default: TOPIC.dead-letters]
    #[arg(long, env = "GEOCLAIM_DEAD_LETTER_TOPIC", value_name = "TOPIC")]
    dead_letter_topic: Option<String>,
    #[command(flatten)]
    kafka: KafkaArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    report: ReportArgs,
}

pub(crate) async fn run(args: RedriveArgs) -> Result<ExitCode, Failure> {
    let kafka = args.kafka.settings()?;
    let letters = args.dead_letter_topic.clone().unwrap_or_else(|| dead_letters_of(&args.kafka.topic));
    let redrive = redrive(&args, &kafka).await?;
    let mut latest = Latest::default();
    let progress = Progress::of_work();
    let work = async {
        let mut first = read(&kafka, &letters);
        while let Some(record) = first.recv().await {
            latest.note(&record?);
        }
        let mut report = RedriveReport::default();
        let ended = send(&redrive, &latest, read(&kafka, &letters), &mut report).await;
        Ok::<_, Failure>((report, ended))
    };
    let (report, ended) = tokio::select! {
        done = progress.during(work, |_| ()) => done?,
        () = signals::shutdown() => return Err(Failure::wrong("stopped; what was sent is sent, and may be sent again")),
    };
    if args.report.is_json() {
        console::json(&report)?;
    } else {
        tell(&args, &report);
    }
    ended.map(|()| status(report.kept() > 0)).map_err(Failure::from)
}

async fn redrive(args: &RedriveArgs, kafka: &KafkaSettings) -> Result<Redrive, Failure> {
    let resolver = records::resolver(&args.store.store).await?;
    let topic = args.kafka.topic.clone();
    let (asked, of) = (kafka.clone(), topic.clone());
    let facts = tokio::task::spawn_blocking(move || topic_facts(&asked, &of));
    let facts = facts.await.map_err(|error| Failure::wrong(error.to_string()))??;
    let missing = || Failure::misuse(format!("topic {topic} does not exist at {}", kafka.brokers));
    let bytes = facts.ok_or_else(missing)?.max_message_bytes.unwrap_or(USUAL_MESSAGE_BYTES);
    let choice = Choice {
        reasons: args.reason.iter().cloned().collect(),
        features: args.feature.iter().cloned().collect(),
        since: args.since,
        until: args.until,
    };
    let ledger_retention = args.ledger_retention.map(|days| Duration::from_secs(days.saturating_mul(SECONDS_A_DAY)));
    let sink = if args.send { Some(Arc::new(KafkaSink::open(kafka, &topic, bytes)?) as _) } else { None };
    let settings = RedriveSettings { choice, topic, most_redrives: args.max_redrives, ledger_retention };
    Ok(Redrive { settings, resolver, sink, clock: Arc::new(SystemClock) })
}

/// Reads the letters.
fn read(kafka: &KafkaSettings, letters: &str) -> mpsc::Receiver<Result<StoredRecord, Fault>> {
    records::read(kafka, letters, |_| ControlFlow::Continue(true))
}

async fn send(
    redrive: &Redrive,
    latest: &Latest,
    mut records: mpsc::Receiver<Result<StoredRecord, Fault>>,
    report: &mut RedriveReport,
) -> Result<(), Fault> {
    let mut on_their_way = std::collections::VecDeque::new();
    while let Some(record) = records.recv().await {
        let record = record?;
        let place = format!("{}/{}", record.partition, record.offset);
        let feature = String::from_utf8_lossy(record.key.as_deref().unwrap_or_default()).into_owned();
        match redrive.letter(record, latest, report).await? {
            Verdict::Sent(receipt) => on_their_way.push_back(receipt),
            Verdict::Fit | Verdict::Passed => {}
            Verdict::Kept(fault) => {
                let line = format!("{place} {feature}: stays: {}: {}", fault.kind.reason(), fault.one_line());
                console::line(&console::printable(&line));
            }
        }
        while on_their_way.len() > IN_FLIGHT {
            arrive(redrive, &mut on_their_way, report).await?;
        }
    }
    while !on_their_way.is_empty() {
        arrive(redrive, &mut on_their_way, report).await?;
    }
    Ok(())
}

async fn arrive(
    redrive: &Redrive,
    on_their_way: &mut std::collections::VecDeque<geoclaim_common::stream::Receipt>,
    report: &mut RedriveReport,
) -> Result<(), Fault> {
    match on_their_way.pop_front() {
        Some(receipt) => redrive.arrived(receipt, report).await,
        None => Ok(()),
    }
}

fn tell(args: &RedriveArgs, report: &RedriveReport) {
    let RedriveReport { letters, sent, would_send, .. } = report;
    if args.send {
        console::line(&format!("{letters} dead letters: {} sent again to {}", console::strong(sent), args.kafka.topic));
    } else {
        let hint = if *would_send > 0 { "; --send sends them" } else { "" };
        console::line(&format!("{letters} dead letters: {} would be sent again{hint}", console::strong(would_send)));
    }
    let others = [
        (report.not_chosen, "not chosen"),
        (report.superseded, "with a later letter of the same event"),
        (report.unreadable, "unreadable"),
        (report.body_missing, "whose body is missing"),
        (report.body_wrong, "whose body is not the one"),
        (report.too_old, "older than the ledger's retention"),
        (report.too_often, "redriven too often"),
        (report.of_another_topic, "of another topic"),
    ];
    let others: Vec<String> =
        others.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if !others.is_empty() {
        console::line(&format!("left where they are: {}", others.join(", ")));
    }
}
