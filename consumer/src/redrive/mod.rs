//! Sending dead letters again.
//!
//! A letter is sent only when that can help and cannot harm: the body is there and its digest holds, the event keeps its
//! id, so that a consumer which has applied it meanwhile does nothing, and its ledger still knows that it has. It is read
//! as if it stood where it stood at first, so a newer state that came since is not undone. Letters stay in their topic.

mod choice;

use std::{collections::HashMap, sync::Arc, time::Duration};

use geoclaim_common::{
    Clock, Envelope, Fault, FaultKind,
    envelope::Content,
    kafka::StoredRecord,
    stream::{EnvelopeSink, Receipt},
};
use serde::Serialize;

pub use choice::Choice;

use crate::{
    dead_letter::{Letter, redriven},
    holdings::hash,
    resolve::Resolver,
};

/// How to redrive.
#[derive(Clone, Debug, Default)]
pub struct RedriveSettings {
    /// Which letters.
    pub choice: Choice,
    /// The topic that they are sent to. Letters of other topics stay.
    pub topic: String,
    /// Letters that have been redriven so often stay.
    pub most_redrives: u32,
    /// How long consumers' ledgers keep an event; `None`: for ever. Older letters stay: where the ledger has forgotten
    /// that an event was applied, it would be applied again.
    pub ledger_retention: Option<Duration>,
}

/// Redrives letters.
#[derive(Debug)]
pub struct Redrive {
    /// How to.
    pub settings: RedriveSettings,
    /// Checks bodies.
    pub resolver: Resolver,
    /// Where records go; `None` to look only.
    pub sink: Option<Arc<dyn EnvelopeSink>>,
    /// Judges the age of letters.
    pub clock: Arc<dyn Clock>,
}

/// What became of letters. All but the first two add up to `letters`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RedriveReport {
    /// Records in the dead-letter topic.
    pub letters: u64,
    /// Letters that are fit to be sent.
    pub fit: u64,
    /// Letters that were sent and acknowledged.
    pub sent: u64,
    /// Letters that would be sent.
    pub would_send: u64,
    /// Letters that were not chosen.
    pub not_chosen: u64,
    /// Letters of which the same event has a later one.
    pub superseded: u64,
    /// Records that are no letter with an envelope that can be read.
    pub unreadable: u64,
    /// Letters whose body is not there.
    pub body_missing: u64,
    /// Letters whose body is there and is not the one.
    pub body_wrong: u64,
    /// Letters older than the ledger's retention.
    pub too_old: u64,
    /// Letters that have been redriven too often.
    pub too_often: u64,
    /// Letters of another topic.
    pub of_another_topic: u64,
}

impl RedriveReport {
    /// Returns how many letters were chosen and stay nevertheless.
    pub fn kept(&self) -> u64 {
        self.unreadable + self.body_missing + self.body_wrong + self.too_old + self.too_often + self.of_another_topic
    }
}

/// Which letter of each event is the latest, by the hashes of their ids.
#[derive(Debug, Default)]
pub struct Latest(HashMap<u64, (i32, i64)>);

impl Latest {
    /// Takes note of a letter; to be given all of them, in order.
    pub fn note(&mut self, record: &StoredRecord) {
        if let Some(envelope) = record.value.as_deref().and_then(|value| Envelope::decode(value).ok()) {
            self.0.insert(hash(&envelope.event_id), (record.partition, record.offset));
        }
    }

    fn is(&self, event_id: &str, record: &StoredRecord) -> bool {
        self.0.get(&hash(event_id)).is_none_or(|latest| *latest == (record.partition, record.offset))
    }
}

/// What becomes of one letter.
#[derive(Debug)]
pub enum Verdict {
    /// It is on its way; the receipt says when it is there.
    Sent(Receipt),
    /// It would be sent.
    Fit,
    /// It was not chosen, or a later letter of the same event stands for it.
    Passed,
    /// It stays, for this reason.
    Kept(Fault),
}

impl Redrive {
    /// Judges a letter, checks its body, and sends it where that is wanted. `report` counts; a record on its way is
    /// counted as sent by [`Redrive::arrived`].
    ///
    /// # Errors
    /// The store cannot be asked: nothing is known of the letter.
    pub async fn letter(&self, record: StoredRecord, latest: &Latest, report: &mut RedriveReport) -> Result<Verdict, Fault> {
        report.letters += 1;
        let Some(letter) = Letter::read(record) else {
            report.unreadable += 1;
            return Ok(Verdict::Kept(Fault::malformed("the record is no dead letter of geoclaim")));
        };
        if !self.settings.choice.takes(&letter) {
            report.not_chosen += 1;
            return Ok(Verdict::Passed);
        }
        let envelope = match Envelope::decode(letter.record().value.as_deref().unwrap_or_default()) {
            Ok(envelope) => envelope,
            Err(fault) => {
                report.unreadable += 1;
                return Ok(Verdict::Kept(fault));
            }
        };
        if !latest.is(&envelope.event_id, letter.record()) {
            report.superseded += 1;
            return Ok(Verdict::Passed);
        }
        if let Some(fault) = self.refuses(&letter, report) {
            return Ok(Verdict::Kept(fault));
        }
        if let Some(fault) = self.looks_for(&envelope, report).await? {
            return Ok(Verdict::Kept(fault));
        }
        report.fit += 1;
        match &self.sink {
            Some(sink) => Ok(Verdict::Sent(sink.send(redriven(&letter)).await)),
            None => {
                report.would_send += 1;
                Ok(Verdict::Fit)
            }
        }
    }

    /// Waits until a record that was sent is durable, and counts it.
    ///
    /// # Errors
    /// It may or may not have been written; sending it again is right.
    pub async fn arrived(&self, receipt: Receipt, report: &mut RedriveReport) -> Result<(), Fault> {
        receipt.acknowledged().await?;
        report.sent += 1;
        Ok(())
    }

    /// Says why a letter cannot be sent, whatever its body.
    fn refuses(&self, letter: &Letter, report: &mut RedriveReport) -> Option<Fault> {
        let RedriveSettings { topic, most_redrives, ledger_retention, .. } = &self.settings;
        if letter.topic != *topic {
            report.of_another_topic += 1;
            return Some(Fault::configuration(format!("it came from topic {}: redrive it with --topic {0}", letter.topic)));
        }
        if letter.redrives >= *most_redrives {
            report.too_often += 1;
            return Some(Fault::new(FaultKind::Rejected, format!("it has been redriven {} times", letter.redrives)));
        }
        let retention = (*ledger_retention)?;
        // A letter without a time is as old as can be.
        let age = letter.stood.timestamp.map_or(Duration::MAX, |stood| self.clock.now().since(stood));
        if age > retention {
            report.too_old += 1;
            let detail = format!("its record is older than the {} days that ledgers keep", retention.as_secs() / 86_400);
            return Some(Fault::new(FaultKind::Rejected, detail));
        }
        None
    }

    /// Says what is wrong with the body of an envelope, if it has one elsewhere.
    async fn looks_for(&self, envelope: &Envelope, report: &mut RedriveReport) -> Result<Option<Fault>, Fault> {
        let Content::Claim(claim) = envelope.content else { return Ok(None) };
        match self.resolver.look(claim).await {
            Ok(()) => Ok(None),
            Err(fault) if matches!(fault.kind, FaultKind::Unavailable | FaultKind::Configuration) => Err(fault),
            Err(fault) => {
                match fault.kind {
                    FaultKind::Missing => report.body_missing += 1,
                    _ => report.body_wrong += 1,
                }
                Ok(Some(fault))
            }
        }
    }
}
