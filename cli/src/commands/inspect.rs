//! `geoclaim inspect`.

use std::{ops::ControlFlow, process::ExitCode, time::Duration};

use clap::Args;
use geoclaim_common::{ClaimCheck, Envelope, Fault, envelope::Content, kafka::StoredRecord, store::Bucket};
use geoclaim_consumer::resolve::Resolver;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::{
    args::{KafkaArgs, ReportArgs},
    console,
    failure::{Failure, status},
    records,
};

/// How long a URL of --urls is good for.
const URL_LASTS: Duration = Duration::from_secs(900);

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Fetch and verify each body
    #[arg(long, requires = "store")]
    resolve: bool,
    /// Print a URL by which anyone can fetch each body for fifteen minutes
    #[arg(long, requires = "store")]
    urls: bool,
    /// Only envelopes of this feature
    #[arg(long, value_name = "ID")]
    feature: Option<String>,
    /// At most this many
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<u64>,
    /// Print each envelope as JSON, as it lies in the topic
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    kafka: KafkaArgs,
    /// Where large bodies are, for --resolve
    #[arg(long, env = "GEOCLAIM_STORE", value_name = "URL")]
    store: Option<String>,
    #[command(flatten)]
    report: ReportArgs,
}

#[derive(Debug, Default, Serialize)]
struct Report {
    envelopes: u64,
    inline: u64,
    stored: u64,
    deleted: u64,
    undecodable: u64,
    verified: u64,
    wrong: u64,
}

pub(crate) async fn run(args: InspectArgs) -> Result<ExitCode, Failure> {
    let resolver = match args.store.as_deref().filter(|_| args.resolve) {
        Some(url) => Some(records::resolver(url).await?),
        None => None,
    };
    let bucket = args.store.as_deref().filter(|_| args.urls).map(Bucket::open).transpose()?;
    let mut records = read(&args)?;
    let mut report = Report::default();
    while let Some(record) = records.recv().await {
        show(&args, &record?, (resolver.as_ref(), bucket.as_ref()), &mut report).await?;
    }
    if args.report.is_json() {
        console::json(&report)?;
    }
    Ok(status(report.undecodable + report.wrong > 0))
}

/// Reads what is to be shown.
fn read(args: &InspectArgs) -> Result<mpsc::Receiver<Result<StoredRecord, Fault>>, Failure> {
    let (kafka, topic, feature) = (args.kafka.settings()?, args.kafka.topic.clone(), args.feature.clone());
    let limit = args.limit.unwrap_or(u64::MAX);
    let mut shown = 0;
    Ok(records::read(&kafka, &topic, move |record| {
        if shown == limit {
            return ControlFlow::Break(());
        }
        let is_wanted = feature.as_ref().is_none_or(|feature| record.key.as_deref() == Some(feature.as_bytes()));
        shown += u64::from(is_wanted);
        ControlFlow::Continue(is_wanted)
    }))
}

async fn show(
    args: &InspectArgs,
    record: &StoredRecord,
    (resolver, bucket): (Option<&Resolver>, Option<&Bucket>),
    report: &mut Report,
) -> Result<(), Failure> {
    report.envelopes += 1;
    let place = format!("{}/{}", record.partition, record.offset);
    let Some(value) = record.value.as_deref() else {
        report.deleted += 1;
        let key = String::from_utf8_lossy(record.key.as_deref().unwrap_or_default());
        return console::out(&format!("{place}  tombstone of {}\n", console::printable(&key)));
    };
    let envelope = match Envelope::decode(value) {
        Ok(envelope) => envelope,
        Err(fault) => {
            report.undecodable += 1;
            return console::out(&format!("{place}  no envelope: {}\n", fault.one_line()));
        }
    };
    let checked = match (&envelope.content, resolver) {
        (Content::Claim(claim), Some(resolver)) => check(*claim, resolver, report).await,
        _ => String::new(),
    };
    let url = match (&envelope.content, bucket) {
        (Content::Claim(claim), Some(bucket)) => format!("\n  {}", bucket.presign(&claim.key(), URL_LASTS).await?),
        _ => String::new(),
    };
    match envelope.content {
        Content::Inline(_) => report.inline += 1,
        Content::Claim(_) => report.stored += 1,
        Content::Deleted => report.deleted += 1,
    }
    if args.json {
        let text = String::from_utf8_lossy(value).replace(['\n', '\r'], " ");
        return console::out(&format!("{text}\n"));
    }
    let described = console::printable(&described(&envelope, record)).replace('\n', "\\n");
    console::out(&format!("{place}  {described}{checked}{url}\n"))
}

async fn check(claim: ClaimCheck, resolver: &Resolver, report: &mut Report) -> String {
    match resolver.look(claim).await {
        Ok(()) => {
            report.verified += 1;
            "  verified".to_owned()
        }
        Err(fault) => {
            report.wrong += 1;
            format!("  {}: {}", fault.kind.reason(), fault.one_line())
        }
    }
}

fn described(envelope: &Envelope, record: &StoredRecord) -> String {
    let time = record.timestamp.map(|time| time.to_rfc3339()).unwrap_or_default();
    let bbox = envelope.bbox.map_or_else(|| "no place".to_owned(), |bbox| bbox.to_string());
    let vertices = envelope.vertex_count.map_or_else(String::new, |count| format!("  {count} vertices"));
    let suspect = if envelope.suspect { "  suspect" } else { "" };
    let version = envelope.version.map_or_else(String::new, |version| format!(" v{version}"));
    let content = match &envelope.content {
        Content::Inline(inline) => format!("inline {} of {}", inline.member.name(), console::bytes(inline.bytes.len() as u64)),
        Content::Deleted => "deleted".to_owned(),
        Content::Claim(claim) => format!("stored {} as {}", console::bytes(claim.length), claim.digest),
    };
    format!("{time}  {}{version}  {bbox}{suspect}{vertices}  {content}  event {}", envelope.feature_id, envelope.event_id)
}
