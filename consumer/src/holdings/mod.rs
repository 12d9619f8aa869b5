//! What a consumer knows of features without asking the sink: which it may hold, and what it has discarded.
//!
//! An envelope that meets no area is done, unless its feature may be held: then the feature has left. So the features
//! of the sink are known here by their hashes, together with those on their way to it. A hash that two features share
//! costs a look into the sink and nothing else.
//!
//! What is discarded leaves a trace in [`misses`], for a feature that enters later.

mod misses;

use std::{
    collections::HashSet,
    hash::{BuildHasherDefault, Hasher},
    sync::{Mutex, MutexGuard, PoisonError},
};

use siphasher::sip::SipHasher13;

use misses::{Miss, Misses};

use crate::sink::Features;

/// Hashes an identity; the same in every run, for hashes are kept in the sink.
pub(crate) fn hash(id: impl AsRef<[u8]>) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(id.as_ref());
    hasher.finish()
}

/// Hashes of hashes are the hashes themselves.
#[derive(Debug, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

type ByHash = BuildHasherDefault<AsItIs>;

/// Shared by the thread that polls, which asks, and the tasks that learn.
#[derive(Debug, Default)]
pub struct Holdings {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    known: HashSet<u64, ByHash>,
    mark: u64,
    /// How many times the sink has still to be asked before it is certain what it holds.
    doubts: usize,
    misses: Misses,
}

impl Holdings {
    /// Sets how many discarded events are remembered.
    pub(crate) fn remember_at_most(&self, events: usize) {
        self.inner().misses.set_capacity(events);
    }

    /// Takes hold of what is known, to judge many events at once.
    pub(crate) fn known(&self) -> Known<'_> {
        Known(self.inner())
    }

    /// Tells whether a newer version of a feature has been discarded: it is elsewhere by now.
    pub(crate) fn is_outdated(&self, feature_id: &str, version: Option<i64>) -> bool {
        let Some(version) = version else { return false };
        self.inner().misses.newest(hash(feature_id)).is_some_and(|newest| version < newest)
    }

    /// Begins a time in which nothing is discarded, for it is not certain what the sink holds.
    pub(crate) fn doubt(&self) {
        self.inner().doubts += 1;
    }

    /// Ends what [`Holdings::doubt`] has begun.
    pub(crate) fn trust(&self) {
        let mut inner = self.inner();
        inner.doubts = inner.doubts.saturating_sub(1);
    }

    /// Returns from where on the sink is to be asked for its features.
    pub(crate) fn mark(&self) -> u64 {
        self.inner().mark
    }

    /// Learns features of the sink.
    pub(crate) fn learn(&self, features: Features) {
        let mut inner = self.inner();
        inner.mark = inner.mark.max(features.mark);
        inner.known.extend(features.into_ids());
    }

    /// Learns from a note of an earlier run or of another member.
    pub(crate) fn recall(&self, note: &[u8]) {
        self.inner().misses.recall(note);
    }

    /// Takes the note of what has been discarded since the last one; `None` when there is nothing to note.
    pub(crate) fn note(&self) -> Option<Vec<u8>> {
        self.inner().misses.take_note()
    }

    /// Returns how many bytes of notes are worth keeping.
    pub(crate) fn most_note_bytes(&self) -> u64 {
        self.inner().misses.most_note_bytes()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is known while events are judged; nothing is learnt meanwhile.
pub(crate) struct Known<'a>(MutexGuard<'a, Inner>);

impl Known<'_> {
    /// Takes note of features on their way to the sink.
    pub(crate) fn enter<'a>(&mut self, features: impl IntoIterator<Item = &'a [u8]>) {
        self.0.known.extend(features.into_iter().map(hash));
    }

    /// Judges an event that meets no area. Tells whether it is to be discarded, which is remembered: none of its
    /// features is known, or it had been discarded before.
    pub(crate) fn discards<'a>(
        &mut self,
        features: impl IntoIterator<Item = &'a [u8]>,
        event_id: &[u8],
        version: Option<i64>,
    ) -> bool {
        let inner = &mut *self.0;
        let (mut last, mut may_be_held) = (0, inner.doubts > 0);
        for feature in features {
            last = hash(feature);
            may_be_held |= inner.known.contains(&last);
        }
        let event = hash(event_id);
        if may_be_held {
            return version.is_none() && inner.misses.has(event);
        }
        inner.misses.add(match version {
            Some(version) => Miss::Version { feature: last, version },
            None => Miss::Event(event),
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_be_held_is_let_through() {
        let holdings = Holdings::default();
        holdings.remember_at_most(10);
        assert!(holdings.known().discards([&b"f"[..]], b"e1", None));
        holdings.known().enter([&b"f"[..]]);
        assert!(holdings.known().discards([&b"f"[..]], b"e1", None), "a repetition of what was discarded is no exit");
        assert!(!holdings.known().discards([&b"f"[..]], b"e2", None));
        assert!(holdings.known().discards([&b"g"[..]], b"e3", None));
        holdings.doubt();
        assert!(!holdings.known().discards([&b"h"[..]], b"e4", None), "while it is not certain what is held");
        holdings.trust();
        assert!(holdings.known().discards([&b"h"[..]], b"e4", None));
    }

    #[test]
    fn an_older_version_than_one_that_was_discarded_is_outdated() {
        let holdings = Holdings::default();
        holdings.remember_at_most(10);
        assert!(holdings.known().discards([&b"f"[..]], b"e3", Some(3)));
        assert!(holdings.is_outdated("f", Some(2)));
        assert!(!holdings.is_outdated("f", Some(3)), "it may be the same event, under other areas");
        assert!(!holdings.is_outdated("f", None));
        assert!(!holdings.is_outdated("g", Some(1)));
        let later = Holdings::default();
        later.remember_at_most(10);
        later.recall(&holdings.note().unwrap());
        assert!(later.is_outdated("f", Some(2)), "after a restart, too");
        assert_eq!(later.note(), None, "what was recalled is noted already");
    }
}
