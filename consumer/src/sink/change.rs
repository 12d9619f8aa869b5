//! What a sink is given, and what it answers.

use std::sync::Arc;

use geoclaim_common::{
    Timestamp,
    envelope::DEFAULT_CRS,
    extent::Extent,
    geojson::{CrsMember, Outline},
    stream::Position,
};

use crate::{report::Outcome, resolve::BodyBytes};

/// One change of a feature.
#[derive(Clone, Debug)]
pub struct Change {
    /// The thing that changed.
    pub feature_id: String,
    /// The change itself.
    pub event_id: String,
    /// Orders two states of a feature, where given.
    pub version: Option<i64>,
    /// When it happened.
    pub occurred_at: Option<Timestamp>,
    /// Where it stands in the topic; the order of two states where there are no versions.
    pub position: Position,
    /// What it comes to.
    pub kind: ChangeKind,
}

/// What a change comes to for a sink.
#[derive(Clone, Debug)]
pub enum ChangeKind {
    /// The feature meets areas: this is its state.
    Hold(Box<State>),
    /// The feature meets no area any more, if it ever did.
    Leave,
    /// The feature is gone.
    Delete,
}

/// A state of a feature that meets an area.
#[derive(Clone, Debug)]
pub struct State {
    /// The areas that it meets.
    pub areas: Vec<Arc<str>>,
    /// The reference system that the body is in; the extent is in WGS 84 whatever it is.
    pub crs: CrsMember,
    /// The verified body.
    pub body: BodyBytes,
    /// What the body's bytes say about where it lies.
    pub extent: Extent,
    /// Where the members of the body's outermost object lie.
    pub outline: Outline,
}

impl State {
    /// Returns the name of the reference system that the body is in.
    pub(super) fn crs_name(&self) -> String {
        match self.crs {
            CrsMember::Is(epsg) => epsg.to_string(),
            CrsMember::Refuse | CrsMember::Ignore => DEFAULT_CRS.to_owned(),
        }
    }

    /// Returns the body's properties, as JSON text.
    pub(super) fn properties(&self) -> Option<&str> {
        let range = self.outline.properties.clone()?;
        std::str::from_utf8(&self.body.bytes()[range]).ok()
    }
}

impl Change {
    /// Returns the state that is to be held, if any.
    pub fn state(&self) -> Option<&State> {
        match &self.kind {
            ChangeKind::Hold(state) => Some(state),
            ChangeKind::Leave | ChangeKind::Delete => None,
        }
    }

    /// Returns the length of the body that it brings.
    pub fn body_bytes(&self) -> u64 {
        self.state().map_or(0, |state| state.body.bytes().len() as u64)
    }
}

/// What became of one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is in the sink.
    Applied,
    /// It had been applied before.
    Duplicate,
    /// A newer state of the feature is known.
    Stale,
    /// The sink refused it for this reason, and recorded that it did.
    Rejected(String),
    /// The feature was held and is held no more.
    Left,
    /// It takes away a feature that was not held, which is recorded: no older state comes in after it.
    NotHeld,
}

impl Effect {
    /// Returns what the ledger says of an event with this effect; `None` where it has said so before.
    pub(super) fn recorded_as(&self) -> Option<&'static str> {
        match self {
            Self::Applied => Some("applied"),
            Self::Stale => Some("stale"),
            Self::Rejected(_) => Some("rejected"),
            Self::Left => Some("left"),
            Self::NotHeld => Some("discarded"),
            Self::Duplicate => None,
        }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Applied => Outcome::Applied,
            Self::Duplicate => Outcome::Duplicate,
            Self::Stale => Outcome::Stale,
            Self::Rejected(_) => Outcome::Rejected,
            Self::Left => Outcome::Left,
            Self::NotHeld => Outcome::Discarded,
        }
    }
}

/// What a sink does with a feature that has left the areas. One that is deleted is always removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLeft {
    /// Remove it.
    #[default]
    Remove,
    /// Keep its last state, with the time at which it left.
    Mark,
}
