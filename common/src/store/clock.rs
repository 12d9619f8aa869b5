//! The time by a store's clock, which ages of its objects are told by.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use object_store::{ObjectStoreExt as _, path::Path};
use uuid::Uuid;

use super::{Store, fault_of};
use crate::{Fault, Timestamp, clock::Moment};

/// For how long the answer of a store is reckoned on from.
const KEPT: Duration = Duration::from_secs(300);

/// Folder of the objects that are written to be told the time.
pub const CLOCKS: &str = "clock";

/// Tells a store's time: that of an object that is written now.
#[derive(Debug)]
pub struct StoreClock {
    store: Store,
    told: Mutex<Option<(Timestamp, Moment)>>,
}

impl StoreClock {
    /// Makes a clock.
    pub fn new(store: Store) -> Self {
        Self { store, told: Mutex::default() }
    }

    /// Asks the store. Many stores tell time in whole seconds, rounded down.
    ///
    /// # Errors
    /// The store's.
    pub async fn ask(&self) -> Result<Timestamp, Fault> {
        // Of its own, since many may ask at once.
        let key = Path::from(format!("{CLOCKS}/{}", Uuid::now_v7()));
        self.store.put(&key, Bytes::new().into()).await.map_err(|error| fault_of(&error))?;
        let meta = self.store.head(&key).await.map_err(|error| fault_of(&error))?;
        // What is left of it hurts nobody.
        let _ = self.store.delete(&key).await;
        Ok(Timestamp::from_millis(meta.last_modified.timestamp_millis()))
    }

    /// Returns the time as reckoned from an answer of the last five minutes, and asks when there is none.
    ///
    /// # Errors
    /// The store's.
    pub async fn now(&self) -> Result<Timestamp, Fault> {
        // Not held while the store is asked: who holds it might not be polled while another waits for it.
        let told = *self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((time, since)) = told
            && since.elapsed() < KEPT
        {
            return Ok(time.after(since.elapsed()));
        }
        let before = Moment::now();
        let time = self.ask().await?;
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some((time, before));
        Ok(time.after(before.elapsed()))
    }
}
