//! What a store lets us do, and what time it has.

use std::time::Duration;

use futures::StreamExt as _;
use geoclaim_common::{
    Clock as _, Fault, FaultKind,
    clock::SystemClock,
    store::{SELF_TESTS, Store, StoreClock, check_creates, fault_of},
};
use object_store::{ObjectStore as _, ObjectStoreExt as _, path::Path};

use super::Finding;

/// Puts, looks at, fetches, lists and deletes a small object.
pub(super) async fn permissions(store: &Store) -> Vec<Finding> {
    let key = Path::from(format!("{SELF_TESTS}/{}", crate::identity::new_run()));
    let is_listed = async || {
        let mut listing = store.list(Some(&Path::from(SELF_TESTS)));
        while let Some(object) = listing.next().await {
            if object?.location == key {
                return Ok(());
            }
        }
        Err(object_store::Error::NotFound { path: key.to_string(), source: "it was just put".into() })
    };
    vec![
        finding("permission to put", store.put(&key, "geoclaim".into()).await.map(drop)),
        finding("permission to head", store.head(&key).await.map(drop)),
        finding("permission to get", store.get(&key).await.map(drop)),
        finding("permission to list", is_listed().await),
        finding("permission to delete", store.delete(&key).await),
    ]
}

fn finding(check: &'static str, done: object_store::Result<()>) -> Finding {
    match done.map_err(|error| fault_of(&error)) {
        Ok(()) => Finding::ok(check, "the store lets us"),
        Err(fault) => Finding::of(check, &Fault::new(fault.kind, format!("the store does not let us: {}", fault.one_line()))),
    }
}

/// Checks that a create is refused where something is.
pub(super) async fn creates(store: &Store) -> Finding {
    let check = "conditional create";
    match check_creates(store).await {
        Ok(()) => Finding::ok(check, "the store refuses to create what is there"),
        Err(fault) => Finding::of(check, &fault),
    }
}

/// Compares the store's clock with ours.
pub(super) async fn clock(clock: &StoreClock, tolerance: Duration) -> Finding {
    let check = "clock of the store";
    let (before, told, after) = (SystemClock.now(), clock.ask().await, SystemClock.now());
    let told = match told {
        Ok(told) => told,
        Err(fault) => return Finding::of(check, &Fault::new(FaultKind::Unavailable, fault.detail)),
    };
    let off = before.since(told).max(told.since(after));
    // Many stores tell time in whole seconds, rounded down.
    let off = off.saturating_sub(Duration::from_secs(1));
    let detail = format!("it and this machine's differ by {:.1} s", off.as_secs_f64());
    if off <= tolerance {
        return Finding::ok(check, detail);
    }
    Finding::wrong(check, format!("{detail}, more than {} s: set both by the network's time", tolerance.as_secs()))
}
