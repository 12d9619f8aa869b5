//! No more than so many requests a second.

use std::time::Duration;

use tokio::{
    sync::Mutex,
    time::{Interval, MissedTickBehavior, interval},
};

/// Lets requests through one by one.
#[derive(Debug)]
pub(super) struct Pace(Mutex<Interval>);

impl Pace {
    pub(super) fn new(per_second: u32) -> Self {
        let mut ticks = interval(Duration::from_secs(1) / per_second.max(1));
        // Nothing is saved up while requests take their time.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self(Mutex::new(ticks))
    }

    /// Waits for the turn of one request.
    pub(super) async fn wait(&self) {
        self.0.lock().await.tick().await;
    }
}
