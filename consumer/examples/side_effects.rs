//! A side effect outside any transaction, once: parcels that meet an area are reported to an office, which gives each
//! report a number. The office is a file here, and somebody else's service elsewhere.
//!
//! The first worker dies after the office has the report and before it could record that. The one that comes after it
//! finds the intent, looks, and reports only the rest.
//!
//! ```sh
//! cargo run -p geoclaim-consumer --example side_effects
//! ```
#![allow(clippy::print_stdout, reason = "it shows what happens")]

use std::{
    error::Error,
    io::Write as _,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use geoclaim_common::{
    Fault, Timestamp,
    clock::SystemClock,
    store,
    stream::{
        OutgoingRecord,
        memory::{MemorySink, MemorySource},
    },
};
use geoclaim_consumer::{
    ConsumeReport, ConsumeSettings, Consumer, DeadLetters,
    aoi::{AreaSet, LiveAreas, parse_areas},
    lease::{Intents, SqliteLeases},
    sink::{
        Change, ChangeKind,
        side_effect::{Seen, SideEffect, SideEffectSink, sweep},
    },
};

/// The office: a line for each report. It takes the same report twice, if one is careless.
#[derive(Debug)]
struct Office {
    reports: PathBuf,
    /// After so many reports the worker dies, before it can say that the last one is done.
    dies_after: Option<u32>,
    sent: AtomicU32,
}

impl Office {
    fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(&self.reports).unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

#[async_trait]
impl SideEffect for Office {
    /// What the business calls it: never the event's id, for a correction of the delivery has another.
    fn key(&self, change: &Change) -> Option<String> {
        matches!(change.kind, ChangeKind::Hold(_)).then(|| format!("report of parcel {}", change.feature_id))
    }

    async fn perform(&self, key: &str, _: &Change) -> Result<String, Fault> {
        let wrong = |error: std::io::Error| Fault::unavailable(format!("the office does not answer: {error}"));
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&self.reports).map_err(wrong)?;
        writeln!(file, "{key}").map_err(wrong)?;
        if self.dies_after == Some(self.sent.fetch_add(1, Ordering::Relaxed) + 1) {
            // As good as dead: it never comes back from here.
            std::future::pending::<()>().await;
        }
        Ok(format!("number {}", self.lines().len()))
    }

    /// The office can be asked by the key. One that cannot would answer `Seen::Unknown`, and a person would ask.
    async fn look(&self, key: &str) -> Result<Seen, Fault> {
        let place = self.lines().iter().position(|line| line == key);
        Ok(place.map_or(Seen::NotDone, |place| Seen::Done(format!("number {}", place + 1))))
    }
}

fn records() -> Vec<OutgoingRecord> {
    let envelope = |feature: &str, event: &str| {
        format!(
            r#"{{"feature_id":"{feature}","event_id":"{event}","bbox":[8.5,47.4,8.5,47.4],"geometry":{{"type":"Point","coordinates":[8.5,47.4]}}}}"#
        )
    };
    // The first parcel comes twice.
    let values = [envelope("1", "a"), envelope("2", "b"), envelope("1", "a"), envelope("3", "c")];
    values.into_iter().map(|value| OutgoingRecord { value: Some(value.into()), ..OutgoingRecord::default() }).collect()
}

fn worker(office: &Arc<Office>, intents: &Arc<dyn Intents>) -> Result<Consumer, Box<dyn Error>> {
    Ok(Consumer {
        settings: ConsumeSettings::default(),
        areas: Arc::new(LiveAreas::new(AreaSet::new(parse_areas(b"[8,47,9,48]")?))),
        holdings: Arc::default(),
        store: store::open("memory://", store::LocalDirectory::Expect)?,
        sink: Arc::new(SideEffectSink::new(Arc::clone(office) as _, Arc::clone(intents))),
        dead_letters: DeadLetters::new(Arc::new(MemorySink::default())),
        clock: Arc::new(SystemClock),
        counters: Arc::default(),
    })
}

async fn consume(
    office: &Arc<Office>,
    intents: &Arc<dyn Intents>,
    longest: Duration,
) -> Result<Option<ConsumeReport>, Box<dyn Error>> {
    let worker = worker(office, intents)?;
    let source = MemorySource::new(records(), Timestamp::from_millis(0), worker.gate().await?);
    Ok(tokio::time::timeout(longest, worker.run(source, std::future::pending())).await.ok().transpose()?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("geoclaim-side-effects-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let lasts = Duration::from_secs(1);
    let intents: Arc<dyn Intents> = Arc::new(SqliteLeases::open(folder.join("intents.db"), "office", lasts)?);
    let office = |dies_after| Arc::new(Office { reports: folder.join("reports.txt"), dies_after, sent: AtomicU32::new(0) });

    let first = office(Some(2));
    assert!(consume(&first, &intents, Duration::from_millis(300)).await?.is_none());
    println!("the first worker died; the office has {:?}", first.lines());

    tokio::time::sleep(2 * lasts).await;
    let hanging = intents.hanging(Duration::ZERO, 10).await?;
    println!("hanging: {:?}", hanging.iter().map(|intent| &intent.about).collect::<Vec<_>>());

    let second = office(None);
    let report = consume(&second, &intents, Duration::from_secs(30)).await?.ok_or("it takes too long")?;
    println!("the second: {} applied, {} duplicate; the office has {:?}", report.applied, report.duplicate, second.lines());
    let swept = sweep(&*second, &intents, Duration::ZERO, 10).await?;
    println!("hanging after it: {}", swept.recorded.len() + swept.undone.len() + swept.unknown.len());

    let lines = second.lines();
    std::fs::remove_dir_all(&folder)?;
    assert_eq!(lines, ["report of parcel 1", "report of parcel 2", "report of parcel 3"], "each once");
    assert_eq!((report.applied, report.duplicate), (2, 2));
    Ok(())
}
