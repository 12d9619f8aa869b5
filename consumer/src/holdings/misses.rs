//! What has been discarded, as long as it matters and as far as there is room.
//!
//! A feature may enter the areas after events of it have been discarded. When such an event comes again, it is a
//! repetition and no exit; when an older version comes late, it is not the state to hold. For the first the event is
//! remembered, for the second the version. Both are few bytes, and the oldest are forgotten first.

use std::collections::{HashMap, HashSet, VecDeque};

use super::ByHash;

/// A trace of a discarded event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Miss {
    /// An event without a version.
    Event(u64),
    /// The version of an event, and its feature.
    Version { feature: u64, version: i64 },
}

/// Longest encoding of a miss: a tag, a hash and a version.
const MISS_BYTES: usize = 1 + 8 + 8;

const EVENT: u8 = 0;
const VERSION: u8 = 1;

#[derive(Debug, Default)]
pub(super) struct Misses {
    capacity: usize,
    order: VecDeque<Miss>,
    events: HashSet<u64, ByHash>,
    newest: HashMap<u64, i64, ByHash>,
    note: Vec<u8>,
}

impl Misses {
    pub(super) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
    }

    /// Tells whether an event without a version has been discarded.
    pub(super) fn has(&self, event: u64) -> bool {
        self.events.contains(&event)
    }

    /// Returns the highest version of a feature that has been discarded.
    pub(super) fn newest(&self, feature: u64) -> Option<i64> {
        self.newest.get(&feature).copied()
    }

    /// Remembers a miss and notes it.
    pub(super) fn add(&mut self, miss: Miss) {
        if self.insert(miss) && self.note.len() < self.capacity.saturating_mul(MISS_BYTES) {
            encode(miss, &mut self.note);
        }
    }

    /// Remembers what a note says. A note of another version, or a torn one, is forgotten.
    pub(super) fn recall(&mut self, note: &[u8]) {
        let mut rest = note;
        while let Some((miss, after)) = decode(rest) {
            self.insert(miss);
            rest = after;
        }
    }

    pub(super) fn take_note(&mut self) -> Option<Vec<u8>> {
        (!self.note.is_empty()).then(|| std::mem::take(&mut self.note))
    }

    pub(super) fn most_note_bytes(&self) -> u64 {
        (self.capacity as u64).saturating_mul(MISS_BYTES as u64)
    }

    /// Tells whether it says anything new.
    fn insert(&mut self, miss: Miss) -> bool {
        let is_new = match miss {
            Miss::Event(event) => self.events.insert(event),
            Miss::Version { feature, version } => {
                let newest = self.newest.entry(feature).or_insert(i64::MIN);
                let is_new = version > *newest;
                *newest = version.max(*newest);
                is_new
            }
        };
        if is_new {
            self.order.push_back(miss);
            if self.order.len() > self.capacity {
                self.forget_oldest();
            }
        }
        is_new
    }

    fn forget_oldest(&mut self) {
        match self.order.pop_front() {
            Some(Miss::Event(event)) => drop(self.events.remove(&event)),
            // A higher version has come since, and stands further back.
            Some(Miss::Version { feature, version }) if self.newest.get(&feature) == Some(&version) => {
                self.newest.remove(&feature);
            }
            Some(Miss::Version { .. }) | None => {}
        }
    }
}

fn encode(miss: Miss, note: &mut Vec<u8>) {
    match miss {
        Miss::Event(event) => {
            note.push(EVENT);
            note.extend_from_slice(&event.to_le_bytes());
        }
        Miss::Version { feature, version } => {
            note.push(VERSION);
            note.extend_from_slice(&feature.to_le_bytes());
            note.extend_from_slice(&version.to_le_bytes());
        }
    }
}

fn decode(note: &[u8]) -> Option<(Miss, &[u8])> {
    let (tag, rest) = note.split_first()?;
    let (hash, rest) = rest.split_first_chunk()?;
    let hash = u64::from_le_bytes(*hash);
    match *tag {
        EVENT => Some((Miss::Event(hash), rest)),
        VERSION => {
            let (version, rest) = rest.split_first_chunk()?;
            Some((Miss::Version { feature: hash, version: i64::from_le_bytes(*version) }, rest))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_first() {
        let mut misses = Misses::default();
        misses.set_capacity(3);
        misses.add(Miss::Version { feature: 1, version: 1 });
        misses.add(Miss::Event(7));
        misses.add(Miss::Version { feature: 1, version: 2 });
        misses.add(Miss::Version { feature: 1, version: 2 });
        misses.add(Miss::Event(8));
        assert_eq!((misses.newest(1), misses.has(7), misses.order.len()), (Some(2), true, 3));
        misses.add(Miss::Event(9));
        misses.add(Miss::Event(10));
        assert_eq!((misses.newest(1), misses.has(7), misses.has(9)), (None, false, true));
    }

    #[test]
    fn a_note_is_read_as_far_as_it_goes() {
        let mut misses = Misses::default();
        misses.set_capacity(10);
        misses.add(Miss::Version { feature: u64::MAX, version: -5 });
        misses.add(Miss::Event(u64::MAX));
        let mut note = misses.take_note().unwrap();
        assert_eq!(misses.take_note(), None);
        note.extend_from_slice(&[VERSION, 1, 2, 3]);
        let mut read = Misses::default();
        read.set_capacity(10);
        read.recall(&note);
        assert_eq!((read.newest(u64::MAX), read.has(u64::MAX), read.order.len()), (Some(-5), true, 2));
    }
}
