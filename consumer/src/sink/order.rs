//! Which of two states of a feature stands. One decision for every sink.

use geoclaim_common::stream::Position;

use super::{Change, ChangeKind, Effect};
use crate::holdings::hash;

/// What a sink knows of a feature: the last change that it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    /// The change, hashed.
    pub(super) event: u64,
    /// The highest version so far.
    pub(super) version: Option<i64>,
    /// Where the change stands in the topic.
    pub(super) position: Position,
    /// Whether the feature is held.
    pub(super) is_held: bool,
}

/// What to do with a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Do what it says.
    Apply,
    /// Nothing: it had been applied before.
    Duplicate,
    /// It had been applied before and is the state that stands; the areas that it meets may be others by now.
    Renew,
    /// Nothing: a newer state stands.
    Stale,
}

/// Judges a change by what stands. `is_recorded`: the ledger has its event.
///
/// Of two versions the higher one stands. Without versions the order of the partition decides, and records of
/// different partitions, which have no order, stand as they come. An event is judged again only while it is the
/// feature's last one and the areas have changed in between: a feature then enters or leaves by the same event.
pub(super) fn judge(change: &Change, standing: Option<&Standing>, is_recorded: bool) -> Verdict {
    let Some(standing) = standing else { return if is_recorded { Verdict::Duplicate } else { Verdict::Apply } };
    if is_recorded {
        let is_last = standing.event == hash(&change.event_id);
        return match (&change.kind, standing.is_held) {
            (ChangeKind::Hold(_), true) if is_last => Verdict::Renew,
            (ChangeKind::Hold(_), false) | (ChangeKind::Leave, true) if is_last => Verdict::Apply,
            _ => Verdict::Duplicate,
        };
    }
    let is_stale = match (change.version, standing.version) {
        (Some(version), Some(newest)) => version <= newest,
        _ => change.position.is_before(&standing.position),
    };
    if is_stale { Verdict::Stale } else { Verdict::Apply }
}

/// Returns the effect of a change in a sink that writes each state once and does not keep it.
pub(super) fn effect_of(change: &Change, standing: Option<&Standing>, is_recorded: bool) -> Effect {
    match (judge(change, standing, is_recorded), &change.kind) {
        // The areas that it meets may be others by now, but the event is the same.
        (Verdict::Duplicate | Verdict::Renew, _) => Effect::Duplicate,
        (Verdict::Stale, _) => Effect::Stale,
        (Verdict::Apply, ChangeKind::Hold(_)) => Effect::Applied,
        (Verdict::Apply, _) if standing.is_some_and(|standing| standing.is_held) => Effect::Left,
        (Verdict::Apply, _) => Effect::NotHeld,
    }
}

impl Standing {
    /// Returns what stands once a change has been applied.
    pub(super) fn after(change: &Change, before: Option<&Self>) -> Self {
        Self {
            event: hash(&change.event_id),
            version: change.version.max(before.and_then(|before| before.version)),
            position: change.position,
            is_held: change.state().is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leave(event: &str, version: Option<i64>, offset: i64) -> Change {
        let position = Position { partition: 0, offset, timestamp: None };
        let (feature_id, event_id) = ("f".to_owned(), event.to_owned());
        Change { feature_id, event_id, version, occurred_at: None, position, kind: ChangeKind::Leave }
    }

    #[test]
    fn versions_decide_and_without_them_the_partition() {
        let last = Standing::after(&leave("last", Some(5), 10), None);
        let verdict = |change: Change, is_recorded| judge(&change, Some(&last), is_recorded);
        assert_eq!(judge(&leave("e", None, 0), None, false), Verdict::Apply);
        assert_eq!(judge(&leave("e", None, 0), None, true), Verdict::Duplicate);
        assert_eq!(
            verdict(leave("e", Some(6), 1), false),
            Verdict::Apply,
            "a higher version, though delivered again from before"
        );
        assert_eq!(verdict(leave("e", Some(5), 11), false), Verdict::Stale);
        assert_eq!(verdict(leave("e", None, 9), false), Verdict::Stale);
        assert_eq!(verdict(leave("e", None, 11), false), Verdict::Apply);
        assert_eq!(verdict(leave("last", Some(5), 10), true), Verdict::Duplicate);
        assert_eq!(verdict(leave("e", Some(6), 12), true), Verdict::Duplicate);
    }

    #[test]
    fn a_change_without_a_version_keeps_the_highest_that_was_seen() {
        let versioned = Standing::after(&leave("a", Some(5), 1), None);
        let plain = Standing::after(&leave("b", None, 2), Some(&versioned));
        assert_eq!(plain.version, Some(5));
        assert_eq!(judge(&leave("c", Some(4), 3), Some(&plain), false), Verdict::Stale);
    }

    #[test]
    fn the_last_event_is_judged_again_when_the_areas_have_changed() {
        let held = Standing { is_held: true, ..Standing::after(&leave("last", None, 10), None) };
        assert_eq!(judge(&leave("last", None, 10), Some(&held), true), Verdict::Apply, "it meets no area any more");
        assert_eq!(judge(&leave("older", None, 9), Some(&held), true), Verdict::Duplicate);
    }
}
