//! A batch as columns of arrays, which is how many rows go in one statement.

use std::{borrow::Cow, collections::BTreeMap};

use geoclaim_common::Timestamp;

use super::decide::Row;
use crate::sink::{
    Change, State,
    order::Standing,
    wkb::{self, Wkb},
};

/// PostgreSQL holds at most a gigabyte in a value, and makes a geometry beside the bytes that it comes in.
const MOST_GEOMETRY_BYTES: usize = 500_000_000;

/// Returns a text as PostgreSQL can hold it: it has no NUL, and the sign for one stands in its place.
pub(super) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{2400}")) } else { Cow::Borrowed(text) }
}

/// What stands for features, as columns.
#[derive(Default)]
pub(super) struct Kept<'a> {
    pub(super) features: Vec<Cow<'a, str>>,
    pub(super) events: Vec<Cow<'a, str>>,
    pub(super) versions: Vec<Option<i64>>,
    pub(super) held: Vec<bool>,
    pub(super) partitions: Vec<i32>,
    pub(super) offsets: Vec<i64>,
    pub(super) times: Vec<Option<i64>>,
}

impl<'a> Kept<'a> {
    pub(super) fn of(standings: &BTreeMap<&'a str, (Standing, &'a str)>) -> Self {
        let mut kept = Self::default();
        for (feature, (standing, event)) in standings {
            kept.features.push(storable(feature));
            kept.events.push(storable(event));
            kept.versions.push(standing.version);
            kept.held.push(standing.is_held);
            kept.partitions.push(standing.position.partition);
            kept.offsets.push(standing.position.offset);
            kept.times.push(standing.position.timestamp.map(Timestamp::as_millis));
        }
        kept
    }
}

/// A batch with its geometries encoded, once each.
pub(super) struct Written<'a> {
    batch: &'a [Change],
    wkbs: Vec<Option<Wkb>>,
}

/// Rows of features, as columns.
#[derive(Default)]
pub(super) struct Columns<'a> {
    pub(super) features: Vec<Cow<'a, str>>,
    pub(super) wkbs: Vec<Option<&'a [u8]>>,
    pub(super) has_z: Vec<bool>,
    pub(super) properties: Vec<Option<&'a str>>,
    pub(super) areas: Vec<String>,
    pub(super) events: Vec<Cow<'a, str>>,
    pub(super) versions: Vec<Option<i64>>,
    pub(super) occurred: Vec<Option<i64>>,
    pub(super) digests: Vec<Option<String>>,
    pub(super) left: Vec<bool>,
    pub(super) removed: Vec<Cow<'a, str>>,
    pub(super) marked: Vec<Cow<'a, str>>,
    pub(super) renewed: Vec<Cow<'a, str>>,
    pub(super) renewed_areas: Vec<String>,
}

impl<'b> Written<'b> {
    pub(super) fn prepare(batch: &'b [Change]) -> Self {
        let wkbs = batch.iter().map(|change| change.state().and_then(|state| wkb::encode(state, 0))).collect();
        Self { batch, wkbs }
    }

    /// Says why PostgreSQL or PostGIS would refuse the state at a place, as far as that can be told beforehand.
    pub(super) fn flaw(&self, place: usize) -> Option<String> {
        let wkb = self.wkbs[place].as_ref();
        if let Some(flaw) = wkb.and_then(|wkb| wkb.flaw) {
            return Some(format!("PostGIS holds no geometry with {flaw}"));
        }
        if wkb.is_some_and(|wkb| wkb.bytes.len() > MOST_GEOMETRY_BYTES) {
            return Some(format!(
                "its geometry takes more than the {MOST_GEOMETRY_BYTES} bytes that PostgreSQL is given at once"
            ));
        }
        let properties = self.batch[place].state().and_then(State::properties).unwrap_or_default();
        has_nul(properties).then(|| "PostgreSQL's jsonb holds no \\u0000, which its properties have".to_owned())
    }

    pub(super) fn columns<'a>(&'a self, rows: &BTreeMap<&'a str, Row<'a>>) -> Columns<'a> {
        let mut columns = Columns::default();
        for (feature, row) in rows {
            if row.is_removed {
                columns.removed.push(storable(feature));
            }
            match (row.state, row.areas) {
                (Some((place, state)), _) => self.add(&mut columns, (place, state), row.has_left),
                (None, _) if row.has_left => columns.marked.push(storable(feature)),
                (None, Some(state)) => {
                    columns.renewed.push(storable(feature));
                    columns.renewed_areas.push(areas_of(state));
                }
                (None, None) => {}
            }
        }
        columns
    }

    fn add<'a>(&'a self, columns: &mut Columns<'a>, (place, state): (usize, &'a State), has_left: bool) {
        let change = &self.batch[place];
        columns.features.push(storable(&change.feature_id));
        columns.wkbs.push(self.wkbs[place].as_ref().map(|wkb| &*wkb.bytes));
        columns.has_z.push(state.extent.has_z);
        columns.properties.push(state.properties());
        columns.areas.push(areas_of(state));
        columns.events.push(storable(&change.event_id));
        columns.versions.push(change.version);
        columns.occurred.push(change.occurred_at.map(Timestamp::as_millis));
        columns.digests.push(state.body.claim().map(|claim| claim.digest.to_string()));
        columns.left.push(has_left);
    }
}

/// Tells whether JSON text has an escaped NUL: `\u0000` after an even number of backslashes.
fn has_nul(json: &str) -> bool {
    json.match_indices("\\u0000").any(|(at, _)| {
        let before = json.as_bytes()[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
        before.is_multiple_of(2)
    })
}

fn areas_of(state: &State) -> String {
    let areas: Vec<_> = state.areas.iter().map(|id| storable(id)).collect();
    serde_json::to_string(&areas).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escaped_nul_is_seen_and_an_escaped_backslash_before_its_letters_is_none() {
        assert!(has_nul(r#"{"a":"\u0000"}"#));
        assert!(has_nul(r#"{"a":"\\\u0000"}"#));
        assert!(!has_nul(r#"{"a":"\\u0000"}"#));
        assert_eq!(storable("a\0b"), "a\u{2400}b");
    }
}
