//! Where effects go.
//!
//! A [`Sink`] applies a batch of changes and says what became of each. The contract: an event that the sink has
//! recorded is never applied again; the record and the change become durable together or not at all; of two states of
//! a feature the newer one stands, by version where both have one and else by their place in the partition, and what
//! has left or is deleted is not brought back by an older state.

mod change;
pub mod gpkg;
pub mod kafka;
pub mod object;
mod order;
pub mod postgis;
pub mod side_effect;
pub mod stdout;
mod wkb;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use geoclaim_common::{Fault, kafka::Progress};

pub use change::{Change, ChangeKind, Effect, OnLeft, State};

use crate::holdings::hash;

/// Longest encoding of a vertex on the way to a sink: a point of its own with a header and three ordinates.
const ENCODED_VERTEX_BYTES: u64 = 5 + 3 * 8;

/// Features that a sink knows of.
#[derive(Clone, Debug, Default)]
pub struct Features {
    ids: Vec<u64>,
    /// Where to go on: the mark for [`Sink::features`].
    pub mark: u64,
}

impl Features {
    /// Adds a feature.
    pub fn add(&mut self, feature_id: &str) {
        self.ids.push(hash(feature_id));
    }

    pub(crate) fn of(ids: Vec<u64>, mark: u64) -> Self {
        Self { ids, mark }
    }

    /// Returns how many features these are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(crate) fn into_ids(self) -> Vec<u64> {
        self.ids
    }
}

fn encoded_twice(length: u64, vertex_count: Option<u64>) -> u64 {
    // Coordinates of ten digits or more are longer as text than encoded; of others, the declared vertices tell.
    let encoded = vertex_count.unwrap_or(0).saturating_mul(ENCODED_VERTEX_BYTES).min(length.saturating_mul(5));
    length.max(encoded).saturating_mul(2)
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

    /// As [`Sink::apply`], for a sink that can make the progress of the input durable together with the effects: everything
    /// before `progress` is done once this batch is. Others need not look at it; the source commits its progress later.
    ///
    /// # Errors
    /// As [`Sink::apply`].
    async fn apply_with_progress(&self, batch: Arc<Vec<Change>>, _progress: Vec<Progress>) -> Result<Vec<Effect>, Fault> {
        self.apply(batch).await
    }

    /// Returns how many bytes of memory it needs to apply a fetched body of this length, beside the body; none when it reads
    /// the body and writes as it reads. By default that is the geometry twice: once encoded, once in a database's hands.
    fn memory_for(&self, length: u64, vertex_count: Option<u64>) -> u64 {
        encoded_twice(length, vertex_count)
    }

    /// Returns the features that it holds or has ever held, those since a mark that it gave before; 0 is the
    /// beginning. Of all other features, an envelope that meets no area need not come to the sink.
    ///
    /// # Errors
    /// [`geoclaim_common::FaultKind::Unavailable`] is tried again.
    async fn features(&self, mark: u64) -> Result<Features, Fault>;

    /// Keeps a note for [`Sink::recall`], and of all notes the latest ones, up to a number of bytes.
    ///
    /// # Errors
    /// The note may be lost.
    async fn remember(&self, _note: Vec<u8>, _most_bytes: u64) -> Result<(), Fault> {
        Ok(())
    }

    /// Returns the notes that are kept, oldest first.
    ///
    /// # Errors
    /// [`geoclaim_common::FaultKind::Unavailable`] is tried again.
    async fn recall(&self) -> Result<Vec<Vec<u8>>, Fault> {
        Ok(Vec::new())
    }

    /// Forgets events of the ledger that were recorded longer ago than this, by the sink's own clock, and at most so many
    /// of them. Returns how many it has forgotten; fewer than that many, and there are no more.
    ///
    /// # Errors
    /// Nothing was forgotten; the next time has its chance.
    async fn forget(&self, _older_than: Duration, _most: u32) -> Result<u64, Fault> {
        Ok(0)
    }

    /// Closes the sink; nothing is applied afterwards.
    ///
    /// # Errors
    /// What was applied is durable all the same.
    async fn close(&self) -> Result<(), Fault>;
}
