//! What a publisher goes by, so that no sweep deletes what it relies on.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use geoclaim_common::{
    Fault,
    clock::Moment,
    retention::{Announcement, Timing},
    store::Store,
};

/// The ages of bodies that a publisher relies on, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Agreed {
    /// Older bodies may be deleted by a sweep at any time.
    pub(super) boundary: Duration,
    /// How old a body that another has written must be; zero where no sweep deletes.
    pub(super) settle: Duration,
    /// How long after a body was seen its record must have been acknowledged.
    pub(super) publish_deadline: Duration,
}

impl Agreed {
    /// Older bodies are written again before they are relied on.
    pub(super) fn half(&self) -> Duration {
        self.boundary / 2
    }
}

/// Reads what sweeps announce, again and again.
#[derive(Debug)]
pub(super) struct Agreement {
    own: Agreed,
    read: Mutex<Option<(Agreed, Moment)>>,
}

impl Agreement {
    /// Goes by its own times until a sweep announces others.
    pub(super) fn new(boundary: Duration, timing: Timing) -> Self {
        let own = Agreed { boundary, settle: Duration::ZERO, publish_deadline: timing.publish_deadline() };
        Self { own, read: Mutex::default() }
    }

    /// Returns what holds now. Read anew within half a publish deadline, which is sooner than a sweep acts on it.
    pub(super) async fn now(&self, store: &Store) -> Result<Agreed, Fault> {
        // Not held while the store is asked: who holds it might not be polled while another waits for it.
        let read = *self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((agreed, since)) = read
            && since.elapsed() < agreed.publish_deadline / 2
        {
            return Ok(agreed);
        }
        let before = Moment::now();
        let agreed = match Announcement::read(store).await? {
            Some(announced) => self.with(&announced),
            None => self.own,
        };
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = Some((agreed, before));
        Ok(agreed)
    }

    /// The safer of both, and the settle time of the one who deletes.
    fn with(&self, announced: &Announcement) -> Agreed {
        Agreed {
            boundary: self.own.boundary.min(announced.boundary()),
            settle: Duration::from_secs(announced.timing.settle_seconds),
            publish_deadline: self.own.publish_deadline.min(announced.timing.publish_deadline()),
        }
    }
}
