//! The second cycle: a last look, and one request.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use geoclaim_common::{
    Fault, Timestamp,
    clock::Moment,
    key,
    store::{StoreClock, fault_of, found},
};
use object_store::{Error, ObjectStoreExt as _};

use super::{
    Sweep,
    pace::Pace,
    spill::{Body, BodyList},
};

/// Deletes what is ripe. After `shutdown` no further delete is begun; those on their way are waited for, since whoever sweeps
/// next relies on that none is.
pub(super) async fn delete(
    sweep: &Sweep,
    ripe: BodyList,
    (clock, boundary): (&StoreClock, Duration),
    pace: &Pace,
    shutdown: impl Future<Output = ()>,
) -> Result<(), Fault> {
    let deletes = stream::iter(ripe.bodies()?).take_until(shutdown);
    deletes
        .map(|body| async move { one(sweep, &body?, (clock, boundary), pace).await })
        .buffer_unordered(sweep.settings.concurrency)
        .try_for_each(|()| std::future::ready(Ok(())))
        .await
}

async fn one(sweep: &Sweep, body: &Body, (clock, boundary): (&StoreClock, Duration), pace: &Pace) -> Result<(), Fault> {
    let Sweep { store, deleter, settings, counters, .. } = sweep;
    let path = key::encoded(&body.digest, body.encoding);
    // Of both requests, so that nothing comes between them.
    pace.wait().await;
    pace.wait().await;
    let now = clock.now().await?;
    let seen = Moment::now();
    let Some(meta) = found(store.head(&path).await)? else { return Ok(()) };
    let modified = Timestamp::from_millis(meta.last_modified.timestamp_millis());
    if modified != body.modified || meta.size != body.size || now.since(modified) <= boundary {
        counters.spared();
        return Ok(());
    }
    let deadline = Duration::from_secs(settings.timing.delete_deadline_seconds);
    match within(deadline, seen, deleter.delete(&path)).await {
        Some(Ok(()) | Err(Error::NotFound { .. })) => counters.deleted(body.size),
        Some(Err(error)) => return Err(fault_of(&error)),
        // It may have been done, or may be done by the deadline, but not later.
        None => counters.unanswered(),
    }
    Ok(())
}

/// Goes on with a request only until the deadline: a process that was stopped meanwhile does not begin it when it wakes up.
async fn within<T>(deadline: Duration, seen: Moment, request: impl Future<Output = T>) -> Option<T> {
    let mut request = pin!(request);
    let checked = poll_fn(|context| match seen.elapsed() < deadline {
        true => request.as_mut().poll(context).map(Some),
        false => Poll::Ready(None),
    });
    tokio::time::timeout(deadline.saturating_sub(seen.elapsed()), checked).await.ok().flatten()
}
