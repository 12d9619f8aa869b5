//! What has been discarded, as long as it matters and as far as there is room.
//!
//! A feature may enter the areas after events of it have been discarded. When such an event comes again, it is a
//! repetition and no exit; when an older version comes late, it is not the state to hold. For the first the event is
//! remembered, for the second the version. Both are few bytes, and the oldest are forgotten first.

use std::collections::{HashMap, VecDeque};

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

/// Misses are written down in their order, which costs next to nothing; they are looked up rarely, and only then indexed.
#[derive(Debug, Default)]
pub(super) struct Misses {
    capacity: usize,
    order: VecDeque<Miss>,
    /// How many have been forgotten: the number of the first in order.
    forgotten: u64,
    /// The number of the first that is not in the index.
    unindexed: u64,
    /// The last number of each event.
    events: HashMap<u64, u64, ByHash>,
    /// The highest version of each feature, and its last number.
    newest: HashMap<u64, (i64, u64), ByHash>,
    note: Vec<u8>,
}

impl Misses {
    pub(super) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
    }

    /// Tells whether an event without a version has been discarded.
    pub(super) fn has(&mut self, event: u64) -> bool {
        self.index();
        self.events.contains_key(&event)
    }

    /// Returns the highest version of a feature that has been discarded.
    pub(super) fn newest(&mut self, feature: u64) -> Option<i64> {
        self.index();
        self.newest.get(&feature).map(|(version, _)| *version)
    }

    /// Remembers a miss and notes it.
    pub(super) fn add(&mut self, miss: Miss) {
        self.push(miss);
        if self.note.len() < self.capacity.saturating_mul(MISS_BYTES) {
            encode(miss, &mut self.note);
        }
    }

    /// Remembers what a note says. A note of another version, or a torn one, is forgotten.
    pub(super) fn recall(&mut self, note: &[u8]) {
        let mut rest = note;
        while let Some((miss, after)) = decode(rest) {
            self.push(miss);
            rest = after;
        }
    }

    pub(super) fn take_note(&mut self) -> Option<Vec<u8>> {
        (!self.note.is_empty()).then(|| std::mem::take(&mut self.note))
    }

    pub(super) fn most_note_bytes(&self) -> u64 {
        (self.capacity as u64).saturating_mul(MISS_BYTES as u64)
    }

    fn push(&mut self, miss: Miss) {
        self.order.push_back(miss);
        if self.order.len() > self.capacity {
            self.forget_oldest();
        }
    }

    /// Indexes what has come since the last look.
    fn index(&mut self) {
        let indexed = self.unindexed.saturating_sub(self.forgotten) as usize;
        for (number, miss) in (self.unindexed.max(self.forgotten)..).zip(self.order.range(indexed..)) {
            match *miss {
                Miss::Event(event) => drop(self.events.insert(event, number)),
                Miss::Version { feature, version } => {
                    let newest = self.newest.entry(feature).or_insert((version, number));
                    *newest = (*newest).max((version, number));
                }
            }
        }
        self.unindexed = self.forgotten + self.order.len() as u64;
    }

    fn forget_oldest(&mut self) {
        let number = self.forgotten;
        let Some(oldest) = self.order.pop_front() else { return };
        self.forgotten += 1;
        if number >= self.unindexed {
            return;
        }
        // Unless it has come again since.
        match oldest {
            Miss::Event(event) if self.events.get(&event) == Some(&number) => drop(self.events.remove(&event)),
            Miss::Version { feature, .. } if self.newest.get(&feature).is_some_and(|newest| newest.1 == number) => {
                self.newest.remove(&feature);
            }
            Miss::Event(_) | Miss::Version { .. } => {}
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
        misses.set_capacity(4);
        misses.add(Miss::Version { feature: 1, version: 1 });
        misses.add(Miss::Event(7));
        misses.add(Miss::Version { feature: 1, version: 2 });
        misses.add(Miss::Event(8));
        assert_eq!((misses.newest(1), misses.has(7), misses.has(8)), (Some(2), true, true));
        misses.add(Miss::Event(7));
        misses.add(Miss::Event(9));
        assert_eq!((misses.newest(1), misses.has(7), misses.has(9)), (Some(2), true, true), "it has come again");
        (10..14).for_each(|event| misses.add(Miss::Event(event)));
        assert_eq!((misses.newest(1), misses.has(7), misses.has(10), misses.has(13)), (None, false, true, true));
        assert_eq!((misses.order.len(), misses.events.len(), misses.newest.len()), (4, 4, 0));
    }

    #[test]
    fn a_look_after_more_than_there_is_room_for_finds_what_is_left() {
        let mut misses = Misses::default();
        misses.set_capacity(2);
        assert!(!misses.has(1));
        (0..10).for_each(|event| misses.add(Miss::Event(event)));
        assert_eq!([7, 8, 9].map(|event| misses.has(event)), [false, true, true]);
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
