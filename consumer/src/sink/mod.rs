//! Where effects go.
//!
//! A [`Sink`] applies a batch of changes and says what became of each. The contract: an event that the sink has
//! recorded is never applied again; the record and the change become durable together or not at all; of two versions
//! of a feature the higher one stands.

pub mod gpkg;
pub mod stdout;

use std::sync::Arc;

use async_trait::async_trait;
use geoclaim_common::{Fault, Timestamp, extent::Extent, geojson::Outline};

use crate::{report::Outcome, resolve::BodyBytes};

/// One change that meets an area.
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
    /// The areas that it meets.
    pub areas: Vec<Arc<str>>,
    /// The verified body.
    pub body: BodyBytes,
    /// What the body's bytes say about where it lies.
    pub extent: Extent,
    /// Where the members of the body's outermost object lie.
    pub outline: Outline,
}

/// What became of one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is in the sink.
    Applied,
    /// It had been applied before.
    Duplicate,
    /// A newer version of the feature is there.
    Stale,
    /// The sink refused it for this reason, and recorded that it did.
    Rejected(String),
}

impl Effect {
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Applied => Outcome::Applied,
            Self::Duplicate => Outcome::Duplicate,
            Self::Stale => Outcome::Stale,
            Self::Rejected(_) => Outcome::Rejected,
        }
    }
}

/// Applies changes once.
#[async_trait]
pub trait Sink: Send + Sync + std::fmt::Debug {
    /// Applies a batch in order, all of it in one transaction where the sink has them, and returns the effect of each
    /// change once they are durable.
    ///
    /// # Errors
    /// Nothing of the batch counts as applied. [`geoclaim_common::FaultKind::Unavailable`] is tried again.
    async fn apply(&self, batch: Arc<Vec<Change>>) -> Result<Vec<Effect>, Fault>;

    /// Closes the sink; nothing is applied afterwards.
    ///
    /// # Errors
    /// What was applied is durable all the same.
    async fn close(&self) -> Result<(), Fault>;
}
