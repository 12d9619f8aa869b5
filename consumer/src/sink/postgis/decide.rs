//! What a batch comes to, by what the database says of its events and features. Pure.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::sink::{
    Change, ChangeKind, Effect, OnLeft, State,
    order::{Standing, Verdict, judge},
};

/// What becomes of the row of a feature.
#[derive(Debug, Default)]
pub(super) struct Row<'a> {
    /// The state to write, with the place of the change that brings it.
    pub(super) state: Option<(usize, &'a State)>,
    /// The areas by now, where the state stays.
    pub(super) areas: Option<&'a State>,
    /// It is removed, before anything is written.
    pub(super) is_removed: bool,
    /// It has left, and is kept.
    pub(super) has_left: bool,
}

/// What a batch comes to.
#[derive(Debug, Default)]
pub(super) struct Decision<'a> {
    /// The effect of each change.
    pub(super) effects: Vec<Effect>,
    /// Of each feature that changes, its row.
    pub(super) rows: BTreeMap<&'a str, Row<'a>>,
    /// Of each feature that a change took effect on, what stands and the event that made it.
    pub(super) standings: BTreeMap<&'a str, (Standing, &'a str)>,
    /// Outcomes of events, where they are not what the ledger has of them.
    pub(super) outcomes: BTreeMap<&'a str, &'static str>,
}

/// Judges the changes of a batch in order. `flaw` says why the sink cannot hold the state at a place of the batch.
pub(super) fn decide<'a>(
    batch: &'a [Change],
    on_left: OnLeft,
    (mut recorded, mut standings): (HashSet<String>, HashMap<String, Standing>),
    flaw: impl Fn(usize) -> Option<String>,
) -> Decision<'a> {
    let mut decision = Decision::default();
    for (place, change) in batch.iter().enumerate() {
        let before = standings.get(&change.feature_id).copied();
        let is_recorded = recorded.contains(&change.event_id);
        let effect = match judge(change, before.as_ref(), is_recorded) {
            Verdict::Duplicate => Effect::Duplicate,
            Verdict::Renew => {
                decision.renew(change);
                Effect::Duplicate
            }
            Verdict::Stale => Effect::Stale,
            Verdict::Apply => match change.state().and_then(|_| flaw(place)) {
                Some(why) => Effect::Rejected(why),
                None => decision.take_effect((place, change), on_left, before.is_some_and(|before| before.is_held)),
            },
        };
        let takes_effect = matches!(effect, Effect::Applied | Effect::Left | Effect::NotHeld);
        if takes_effect {
            let after = Standing::after(change, before.as_ref());
            standings.insert(change.feature_id.clone(), after);
            decision.standings.insert(&change.feature_id, (after, &change.event_id));
        }
        if let Some(outcome) = effect.recorded_as()
            && (outcome != CLAIMED || is_recorded)
        {
            decision.outcomes.insert(&change.event_id, outcome);
        }
        recorded.insert(change.event_id.clone());
        decision.effects.push(effect);
    }
    decision
}

/// The outcome that an event is claimed with.
pub(super) const CLAIMED: &str = "applied";

impl<'a> Decision<'a> {
    fn take_effect(&mut self, (place, change): (usize, &'a Change), on_left: OnLeft, was_held: bool) -> Effect {
        let row = self.rows.entry(&change.feature_id).or_default();
        match (&change.kind, on_left) {
            (ChangeKind::Hold(state), _) => {
                *row = Row { state: Some((place, state)), is_removed: row.is_removed, ..Row::default() };
                return Effect::Applied;
            }
            (ChangeKind::Leave, OnLeft::Mark) => row.has_left = true,
            (ChangeKind::Leave, OnLeft::Remove) | (ChangeKind::Delete, _) => *row = Row { is_removed: true, ..Row::default() },
        }
        if was_held { Effect::Left } else { Effect::NotHeld }
    }

    fn renew(&mut self, change: &'a Change) {
        let row = self.rows.entry(&change.feature_id).or_default();
        row.areas = change.state();
        if let (Some((_, written)), Some(state)) = (&mut row.state, change.state()) {
            *written = state;
        }
    }
}

#[cfg(test)]
mod tests {
    use geoclaim_common::stream::Position;

    use super::*;

    fn change(event: &str, offset: i64, kind: ChangeKind) -> Change {
        let position = Position { partition: 0, offset, timestamp: None };
        Change { feature_id: "f".into(), event_id: event.into(), version: None, occurred_at: None, position, kind }
    }

    fn hold() -> ChangeKind {
        let body = br#"{"type":"Point","coordinates":[1,2]}"#.as_slice();
        let (extent, outline) = geoclaim_common::extent::measure(body, &Default::default()).unwrap();
        let body = crate::resolve::BodyBytes::Inline(body.into());
        let crs = geoclaim_common::geojson::CrsMember::Refuse;
        ChangeKind::Hold(Box::new(State { areas: vec![], crs, body, extent, outline }))
    }

    #[test]
    fn a_feature_that_comes_and_goes_within_a_batch_ends_as_its_last_change_says() {
        let batch = [change("a", 0, hold()), change("b", 1, ChangeKind::Leave), change("a", 2, hold())];
        let decided = |on_left| decide(&batch, on_left, Default::default(), |_| None);
        let removed = decided(OnLeft::Remove);
        assert_eq!(removed.effects, [Effect::Applied, Effect::Left, Effect::Duplicate]);
        assert!(removed.rows["f"].is_removed && removed.rows["f"].state.is_none());
        assert_eq!(removed.outcomes, BTreeMap::from([("b", "left")]));
        let marked = decided(OnLeft::Mark);
        assert!(marked.rows["f"].has_left && marked.rows["f"].state.is_some());
        let returned = [change("b", 1, ChangeKind::Leave), change("c", 2, hold())];
        let row = &decide(&returned, OnLeft::Mark, Default::default(), |_| None).rows["f"];
        assert!(!row.has_left && row.state.is_some());
    }

    #[test]
    fn what_the_sink_cannot_hold_is_recorded_and_leaves_the_state_before() {
        let batch = [change("a", 0, hold())];
        let decision = decide(&batch, OnLeft::Remove, Default::default(), |_| Some("no".into()));
        assert_eq!(decision.effects, [Effect::Rejected("no".into())]);
        assert!(decision.rows.is_empty() && decision.standings.is_empty());
        assert_eq!(decision.outcomes, BTreeMap::from([("a", "rejected")]));
    }
}
