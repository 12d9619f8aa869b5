//! Which letters.

use std::collections::BTreeSet;

use geoclaim_common::Timestamp;

use crate::dead_letter::Letter;

/// Chooses letters; what is empty chooses all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Those with one of these reasons.
    pub reasons: BTreeSet<String>,
    /// Those of these features.
    pub features: BTreeSet<String>,
    /// Those set aside at this time or later.
    pub since: Option<Timestamp>,
    /// Those set aside before this time.
    pub until: Option<Timestamp>,
}

impl Choice {
    /// Tells whether a letter is chosen.
    pub fn takes(&self, letter: &Letter) -> bool {
        let key = letter.record().key.as_deref().and_then(|key| std::str::from_utf8(key).ok());
        (self.reasons.is_empty() || self.reasons.contains(&letter.reason))
            && (self.features.is_empty() || key.is_some_and(|feature| self.features.contains(feature)))
            && self.since.is_none_or(|since| letter.set_aside.is_some_and(|moment| moment >= since))
            && self.until.is_none_or(|until| letter.set_aside.is_some_and(|moment| moment < until))
    }
}
