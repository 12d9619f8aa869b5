//! The boundary as the sweep says it to publishers, in the store that they share.
//!
//! A sweep announces its boundary before it plans, and deletes a grace later; publishers read it again and again, sooner than
//! that. So both go by one value, although neither knows the other, and where no sweep was ever run nobody waits for one.

use std::time::Duration;

use object_store::{ObjectStoreExt as _, path::Path};
use serde::{Deserialize, Serialize};

use super::Timing;
use crate::{
    Fault, FaultKind,
    store::{Store, fault_of, read},
};

/// Where it lies.
const PLACE: &str = "sweep/boundary.json";

/// Most that is read of it.
const MOST_BYTES: u64 = 4_096;

/// What a sweep goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// Bodies that are older may be deleted.
    pub boundary_seconds: u64,
    /// The times of the protocol.
    pub timing: Timing,
}

impl Announcement {
    /// Returns the boundary.
    pub fn boundary(&self) -> Duration {
        Duration::from_secs(self.boundary_seconds)
    }

    /// Says it to publishers.
    ///
    /// # Errors
    /// The store's.
    pub async fn announce(&self, store: &Store) -> Result<(), Fault> {
        let text = serde_json::to_vec(self).map_err(|error| Fault::configuration(error.to_string()))?;
        store.put(&Path::from(PLACE), text.into()).await.map(drop).map_err(|error| fault_of(&error))
    }

    /// Returns what the last sweep has announced; `None` where there was none.
    ///
    /// # Errors
    /// The store's, or what lies there is no announcement: nothing is known then.
    pub async fn read(store: &Store) -> Result<Option<Self>, Fault> {
        let Some(text) = read(store, &Path::from(PLACE), MOST_BYTES).await? else { return Ok(None) };
        let told = |error: serde_json::Error| Fault::new(FaultKind::Configuration, format!("{PLACE} in the store: {error}"));
        serde_json::from_slice(&text).map(Some).map_err(told)
    }
}
