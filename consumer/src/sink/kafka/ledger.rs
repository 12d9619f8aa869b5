//! What the topic says has been done, in memory.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    hash::Hasher as _,
};

use geoclaim_common::{
    Timestamp,
    kafka::StoredRecord,
    stream::{Header, Position},
};
use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hasher128 as _, SipHasher13};

use crate::{
    holdings::hash,
    sink::{
        Change, Effect, Features,
        order::{Standing, effect_of},
    },
};

/// The header of each record that the sink writes.
pub(super) const HEADER: &str = "geoclaim.ledger";

/// What the header says, as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) consumer: String,
    pub(super) feature: String,
    pub(super) event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<i64>,
    is_held: bool,
    partition: i32,
    offset: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<i64>,
}

impl Entry {
    pub(super) fn of(change: &Change, consumer: &str) -> Self {
        let Position { partition, offset, timestamp } = change.position;
        Self {
            consumer: consumer.to_owned(),
            feature: change.feature_id.clone(),
            event: change.event_id.clone(),
            version: change.version,
            is_held: change.state().is_some(),
            partition,
            offset,
            time: timestamp.map(Timestamp::as_millis),
        }
    }

    fn read(headers: &[Header]) -> Option<Self> {
        let (_, value) = headers.iter().find(|(name, _)| name == HEADER)?;
        serde_json::from_slice(value.as_deref()?).ok()
    }

    fn standing(&self, before: Option<&Standing>) -> Standing {
        let timestamp = self.time.map(Timestamp::from_millis);
        Standing {
            event: hash(&self.event),
            version: self.version.max(before.and_then(|before| before.version)),
            position: Position { partition: self.partition, offset: self.offset, timestamp },
            is_held: self.is_held,
        }
    }
}

/// An identity in 16 bytes: so many that no two of all events that a topic can hold share one.
type Id = u128;

fn id(text: &str) -> Id {
    let mut hasher = SipHasher13::new();
    hasher.write(text.as_bytes());
    hasher.finish128().as_u128()
}

/// The events that had their effect, and what stands of each feature.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Where the topic has each event, once that has been read.
    events: HashMap<Id, Option<(i32, i64)>>,
    /// The first offset of each partition, when it was last asked for.
    starts: BTreeMap<i32, i64>,
    standings: HashMap<Id, Standing>,
    /// The features in the order in which they came.
    features: Vec<u64>,
}

impl Ledger {
    /// Takes note of a record of the topic. One that this consumer did not write is none of its own.
    pub(super) fn read(&mut self, record: &StoredRecord, consumer: &str) {
        let Some(entry) = Entry::read(&record.headers).filter(|entry| entry.consumer == consumer) else { return };
        let feature = id(&entry.feature);
        // Records of one feature are in order, for they are in one partition.
        let standing = entry.standing(self.standings.get(&feature));
        self.note(feature, hash(&entry.feature), standing);
        self.events.insert(id(&entry.event), Some((record.partition, record.offset)));
    }

    /// Forgets the events that the topic does not have any more.
    pub(super) fn forget(&mut self, starts: BTreeMap<i32, i64>) {
        if self.starts != starts {
            let is_gone = |(partition, offset): (i32, i64)| starts.get(&partition).is_some_and(|start| offset < *start);
            self.events.retain(|_, place| !place.is_some_and(is_gone));
            self.starts = starts;
        }
    }

    fn note(&mut self, feature: Id, short: u64, standing: Standing) {
        if self.standings.insert(feature, standing).is_none() {
            self.features.push(short);
        }
    }

    /// Enters what a committed transaction has changed.
    pub(super) fn enter(&mut self, entries: Entries) {
        for (feature, (short, standing)) in entries.standings {
            self.note(feature, short, standing);
        }
        self.events.extend(entries.events.into_iter().map(|event| (event, None)));
    }

    pub(super) fn features(&self, mark: u64) -> Features {
        let since = usize::try_from(mark).unwrap_or(usize::MAX).min(self.features.len());
        Features::of(self.features[since..].to_vec(), self.features.len() as u64)
    }
}

/// What a batch is going to change, and must not before its transaction is committed.
pub(super) struct Draft<'a> {
    ledger: &'a Ledger,
    entries: Entries,
}

#[derive(Default)]
pub(super) struct Entries {
    events: HashSet<Id>,
    standings: HashMap<Id, (u64, Standing)>,
}

impl<'a> Draft<'a> {
    pub(super) fn of(ledger: &'a Ledger) -> Self {
        Self { ledger, entries: Entries::default() }
    }

    fn standing(&self, feature: Id) -> Option<Standing> {
        let drafted = self.entries.standings.get(&feature).map(|(_, standing)| *standing);
        drafted.or_else(|| self.ledger.standings.get(&feature).copied())
    }

    /// Returns the effect that a change is to have, and whether its event had one before: under other areas, and not this.
    pub(super) fn judge(&self, change: &Change) -> (Effect, bool) {
        let event = id(&change.event_id);
        let standing = self.standing(id(&change.feature_id));
        let is_recorded = self.entries.events.contains(&event) || self.ledger.events.contains_key(&event);
        (effect_of(change, standing.as_ref(), is_recorded), is_recorded)
    }

    /// Takes note of a change that is to be written.
    pub(super) fn take(&mut self, change: &Change) {
        let feature = id(&change.feature_id);
        let standing = Standing::after(change, self.standing(feature).as_ref());
        self.entries.standings.insert(feature, (hash(&change.feature_id), standing));
        self.entries.events.insert(id(&change.event_id));
    }

    pub(super) fn entries(self) -> Entries {
        self.entries
    }
}
