//! The check that matters: what envelopes refer to is there, and is what they say.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use futures::{StreamExt as _, stream};
use geoclaim_common::{
    ClaimCheck, Envelope, Fault, FaultKind, Timestamp,
    envelope::Content,
    fetch::{Keeping, fetch},
    kafka::{KafkaSettings, StoredRecord, read_everything, topic_facts},
};
use tokio::sync::mpsc;

use super::{Audit, Finding};
use crate::sizes::{SizeReport, Sizes};

/// How many bodies are fetched at once.
const CONCURRENCY: usize = 4;

/// How many bodies are measured.
const MEASURED: u64 = 1_000_000;

/// How many of the bodies that are not as they must be are told one by one.
const TOLD: usize = 5;

/// Which bodies are fetched and verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Those of the oldest envelopes of each partition, so many; the topic is read until they are found.
    Oldest(usize),
    /// Those, so many of each partition, and so many of all others by chance; the topic is read to its end.
    Sample(usize, usize),
    /// All.
    All,
}

/// Counts bodies while they are verified.
#[derive(Debug, Default)]
pub struct BodyCounters {
    /// How many have been.
    pub verified: AtomicU64,
}

/// An envelope whose body is verified.
#[derive(Clone, Debug)]
struct Chosen {
    place: String,
    timestamp: Option<Timestamp>,
    claim: ClaimCheck,
}

/// What a topic was found to hold.
#[derive(Debug, Default)]
struct Found {
    sizes: Sizes,
    undecodable: u64,
    first_undecodable: Option<String>,
    newest: Option<Timestamp>,
    records: u64,
}

/// What became of the bodies that were chosen.
#[derive(Debug, Default)]
struct Verified {
    count: u64,
    bad: u64,
    /// Whether one of them is not as it must be; otherwise the store did not answer.
    is_wrong: bool,
    told: Vec<String>,
}

/// Reads each topic and verifies the bodies that are chosen while it reads.
pub(super) async fn findings(audit: &Audit, now: Option<Timestamp>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for topic in &audit.settings.topics {
        let (kafka, name, choice) = (audit.settings.kafka.clone(), topic.clone(), audit.settings.choice);
        let (chosen, receiver) = mpsc::channel(64);
        let looking = tokio::task::spawn_blocking(move || look(&kafka, &name, choice, &chosen));
        let verified = verified(audit, receiver).await;
        match looking.await.map_err(|error| Fault::unavailable(error.to_string())).and_then(|found| found) {
            Ok(found) => findings.extend(found.findings(audit, topic, now)),
            Err(fault) => findings.push(Finding::of("envelopes", &fault)),
        }
        findings.push(verified.finding(topic));
    }
    findings
}

/// Verifies bodies as they come.
async fn verified(audit: &Audit, chosen: mpsc::Receiver<Chosen>) -> Verified {
    let chosen = stream::unfold(chosen, |mut chosen| async move { chosen.recv().await.map(|next| (next, chosen)) });
    let outcomes = chosen
        .map(async |chosen: Chosen| (fetch(&audit.store, chosen.claim, Keeping::Nothing).await, chosen))
        .buffered(CONCURRENCY);
    let mut outcomes = std::pin::pin!(outcomes);
    let mut verified = Verified::default();
    while let Some((outcome, chosen)) = outcomes.next().await {
        audit.counters.verified.fetch_add(1, Relaxed);
        verified.count += 1;
        let Err(fault) = outcome else { continue };
        verified.bad += 1;
        verified.is_wrong |= fault.kind != FaultKind::Unavailable;
        if verified.told.len() < TOLD {
            verified.told.push(told(&chosen, &fault));
        }
    }
    verified
}

impl Verified {
    fn finding(&self, topic: &str) -> Finding {
        let (Self { count, bad, .. }, check) = (self, "bodies");
        if *bad == 0 {
            return Finding::ok(check, format!("{topic}: {count} fetched and verified"));
        }
        let detail = format!("{topic}: {bad} of {count} are not as their envelopes say: {}", self.told.join("; "));
        if self.is_wrong { Finding::wrong(check, detail) } else { Finding::unknown(check, detail) }
    }
}

fn told(Chosen { place, timestamp, claim }: &Chosen, fault: &Fault) -> String {
    let time = timestamp.map_or(String::new(), |time| format!(" of {}", time.to_rfc3339()));
    format!("{place}{time}: {} ({})", fault.kind.reason(), claim.key())
}

/// Reads a topic as far as the choice wants, and gives what is chosen. Blocks.
fn look(kafka: &KafkaSettings, topic: &str, choice: Choice, chosen: &mpsc::Sender<Chosen>) -> Result<Found, Fault> {
    let partitions = topic_facts(kafka, topic)?.map_or(0, |facts| facts.partitions);
    let (mut found, mut oldest, mut chance) = (Found::default(), BTreeMap::<i32, usize>::new(), Chance::default());
    // Nobody listens any more only when the audit has been dropped.
    let give = |next: Chosen| match chosen.blocking_send(next) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    };
    read_everything(kafka, topic, |record| {
        let Some(claim) = found.note(topic, &record) else { return ControlFlow::Continue(()) };
        let next = Chosen { place: place(topic, &record), timestamp: record.timestamp, claim };
        let seen = oldest.entry(record.partition).or_default();
        *seen += 1;
        match choice {
            Choice::All => give(next),
            Choice::Oldest(most) | Choice::Sample(most, _) if *seen <= most => give(next),
            Choice::Sample(_, most) => {
                chance.offer(next, most);
                ControlFlow::Continue(())
            }
            Choice::Oldest(most) if oldest.len() == partitions && oldest.values().all(|seen| *seen >= most) => {
                ControlFlow::Break(())
            }
            Choice::Oldest(_) => ControlFlow::Continue(()),
        }
    })?;
    let _ = chance.kept.into_iter().try_for_each(give);
    Ok(found)
}

fn place(topic: &str, record: &StoredRecord) -> String {
    format!("{topic}/{}/{}", record.partition, record.offset)
}

impl Found {
    /// Takes note of a record; returns what it refers to.
    fn note(&mut self, topic: &str, record: &StoredRecord) -> Option<ClaimCheck> {
        self.records += 1;
        self.newest = self.newest.max(record.timestamp);
        let value = record.value.as_deref()?;
        match Envelope::decode(value).map(|envelope| envelope.content) {
            Ok(Content::Claim(claim)) => {
                self.measure(claim.length, claim.length.saturating_add(value.len() as u64));
                Some(claim)
            }
            Ok(Content::Inline(inline)) => {
                self.measure(inline.bytes.len() as u64, value.len() as u64);
                None
            }
            Ok(Content::Deleted) => None,
            Err(_) => {
                self.undecodable += 1;
                self.first_undecodable.get_or_insert_with(|| place(topic, record));
                None
            }
        }
    }

    fn measure(&mut self, body_bytes: u64, record_bytes: u64) {
        if self.sizes.count() < MEASURED {
            self.sizes.add(body_bytes, record_bytes);
        }
    }

    fn findings(&self, audit: &Audit, topic: &str, now: Option<Timestamp>) -> Vec<Finding> {
        let records = self.records;
        let mut findings = vec![match &self.first_undecodable {
            None => Finding::ok("envelopes", format!("{topic}: all of {records} records that were read are envelopes")),
            Some(first) => {
                Finding::wrong("envelopes", format!("{topic}: {} of {records} records are none, {first} first", self.undecodable))
            }
        }];
        if let (Some(newest), Some(now)) = (self.newest, now) {
            let (ahead, check) = (newest.since(now), "clock of the records");
            findings.push(if ahead <= audit.settings.clock_tolerance {
                Finding::ok(check, format!("{topic}: no record is dated after the store's time"))
            } else {
                Finding::wrong(check, format!("{topic}: a record is dated {:.0} s after the store's time", ahead.as_secs_f64()))
            });
        }
        if self.sizes.count() > 0 {
            let (SizeReport { count, p99, inline_limit, .. }, limit) = (self.sizes.report(), audit.settings.inline_limit_bytes);
            let detail =
                format!("{topic}: 99 in 100 of {count} bodies have at most {p99} bytes, which takes a limit of {inline_limit}");
            findings.push(Finding::ok("inline limit", format!("{detail}; it is {limit}")));
        }
        findings
    }
}

/// Keeps some of many, each with the same chance (reservoir sampling, Vitter's algorithm R).
#[derive(Debug, Default)]
struct Chance {
    kept: Vec<Chosen>,
    offered: u64,
}

impl Chance {
    fn offer(&mut self, chosen: Chosen, most: usize) {
        self.offered += 1;
        if self.kept.len() < most {
            self.kept.push(chosen);
            return;
        }
        let place = usize::try_from(uuid::Uuid::new_v4().as_u128() % u128::from(self.offered)).unwrap_or(usize::MAX);
        if let Some(kept) = self.kept.get_mut(place) {
            *kept = chosen;
        }
    }
}
