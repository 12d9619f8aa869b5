//! What is written for a change.

use bytes::Bytes;
use geoclaim_common::{
    Envelope,
    envelope::{Content, DEFAULT_CRS, InlineBody, InlineMember},
    extent::{MeasureOptions, measure},
    geojson::ScanOptions,
    limits,
    stream::OutgoingRecord,
};

use uuid::Uuid;

use super::ledger::{Entry, HEADER};
use crate::{
    resolve::BodyBytes,
    sink::{
        Change, ChangeKind, Effect, State,
        stdout::{exit_line, line_of},
    },
};

/// What of a short record is left for the ledger's header.
const LEDGER_BYTES: usize = 512;

/// What a record of the output is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emit {
    /// An envelope with the areas that the feature meets, in a member `areas`.
    #[default]
    Envelope,
    /// A GeoJSON feature, as [`crate::sink::stdout`] writes it, and the areas in a header `geoclaim.areas`.
    Feature,
}

/// Makes records.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) consumer: String,
    pub(super) emit: Emit,
    pub(super) most_bytes: usize,
}

impl Writer {
    /// Returns the record of a change with this effect; `None` when there is nothing to write. What takes away a feature that
    /// is not held is written, too: no older state comes in after it.
    ///
    /// # Errors
    /// Why the topic does not take it.
    pub(super) fn record(&self, change: &Change, (effect, is_again): (&Effect, bool)) -> Result<Option<OutgoingRecord>, String> {
        if !matches!(effect, Effect::Applied | Effect::Left | Effect::NotHeld) {
            return Ok(None);
        }
        let value = match self.emit {
            Emit::Envelope => encoded(told(envelope(change)?, is_again)),
            Emit::Feature => feature(change),
        };
        // An entry is strings and numbers.
        let entry = serde_json::to_vec(&Entry::of(change, &self.consumer)).unwrap_or_default();
        let mut headers = vec![(HEADER.to_owned(), Some(Bytes::from(entry)))];
        if let (Emit::Feature, Some(state)) = (self.emit, change.state()) {
            headers.push(("geoclaim.areas".to_owned(), Some(areas(state).into())));
        }
        let key = Some(Bytes::from(change.feature_id.clone()));
        let record = OutgoingRecord { key, value: Some(value.into()), headers };
        let bytes = record.bytes();
        if bytes > self.most_bytes {
            let advice = "raise its max.message.bytes, or write envelopes, which leave a stored body where it is";
            return Err(format!("a record of {bytes} bytes, and the topic takes {}: {advice}", self.most_bytes));
        }
        Ok(Some(record))
    }
}

/// Returns an envelope as one who reads on must see it: an event that has another effect because the areas are others is
/// another event there, and stands where it comes.
fn told(envelope: Envelope, is_again: bool) -> Envelope {
    match is_again {
        true => Envelope { event_id: Uuid::now_v7().simple().to_string(), version: None, ..envelope },
        false => envelope,
    }
}

/// Encodes an envelope; with a claim check without its cells where it would be longer than such a one may be.
fn encoded(envelope: Envelope) -> Vec<u8> {
    let value = envelope.encode();
    let is_long = matches!(envelope.content, Content::Claim(_)) && value.len() > limits::CLAIM_RECORD_BYTES - LEDGER_BYTES;
    if is_long { Envelope { cells: None, ..envelope }.encode() } else { value }
}

fn feature(change: &Change) -> Vec<u8> {
    let mut line = match &change.kind {
        ChangeKind::Hold(state) => line_of(&change.feature_id, state),
        ChangeKind::Leave => exit_line(&change.feature_id, "left"),
        ChangeKind::Delete => exit_line(&change.feature_id, "deleted"),
    };
    line.truncate(line.trim_ascii_end().len());
    line
}

fn envelope(change: &Change) -> Result<Envelope, String> {
    let Change { feature_id, event_id, version, occurred_at, .. } = change.clone();
    let gone = Envelope {
        feature_id,
        event_id,
        version,
        occurred_at,
        crs: DEFAULT_CRS.to_owned(),
        bbox: None,
        cells: None,
        vertex_count: None,
        suspect: false,
        content: Content::Deleted,
        others: Default::default(),
    };
    let ChangeKind::Hold(state) = &change.kind else { return Ok(gone) };
    let scan = ScanOptions { crs: state.crs, ..ScanOptions::default() };
    // Once more, for the cover: who reads on filters by it.
    let options = MeasureOptions { scan, cover_bytes: limits::COVER_BYTES, ..MeasureOptions::default() };
    let (extent, _) = measure(state.body.bytes(), &options).map_err(|error| error.to_string())?;
    Ok(Envelope {
        crs: state.crs_name(),
        bbox: extent.bbox,
        cells: extent.cells,
        vertex_count: Some(extent.vertex_count),
        suspect: extent.suspect,
        content: match &state.body {
            BodyBytes::Fetched(_) => state.body.claim().map_or(Content::Deleted, Content::Claim),
            BodyBytes::Inline(bytes) => {
                Content::Inline(InlineBody { member: InlineMember::of(state.outline.kind), bytes: bytes.clone() })
            }
        },
        others: [("areas".to_owned(), areas(state))].into(),
        ..gone
    })
}

/// Returns the areas as JSON.
fn areas(state: &State) -> String {
    serde_json::to_string(&state.areas.iter().map(|area| &**area).collect::<Vec<_>>()).unwrap_or_default()
}
