//! What every sink must do that keeps what is made of a body and has no ledger.

use std::{future::Future, sync::Arc};

use geoclaim_consumer::sink::{ChangeKind, Effect, Sink};

use super::{change, of_kind, one_of_many};

/// A sink without a ledger must make of a body what it makes of it once: within a batch, across batches, from many tasks
/// at once, and after it was closed and opened. `open` opens the same, empty at first; it keeps what meets an area named
/// `area`, which holds all points with longitudes from 1 to 60, at 1° north.
///
/// # Panics
/// The sink breaks the contract.
pub async fn write_once<F: Future<Output = Arc<dyn Sink>>>(open: impl Fn() -> F) {
    use Effect::{Applied, Duplicate, NotHeld};
    let apply = async |sink: &Arc<dyn Sink>, changes| sink.apply(Arc::new(changes)).await.expect("the sink takes the batch");
    let first = open().await;
    assert_eq!(apply(&first, vec![]).await, []);
    let batch = || vec![change("f", "e1", None, 10), change("f", "e1", None, 10), change("g", "e2", Some(5), 20)];
    assert_eq!(apply(&first, batch()).await, [Applied, Duplicate, Applied]);
    assert_eq!(apply(&first, batch()).await, [Duplicate, Duplicate, Duplicate]);
    let older = vec![change("g", "e3", Some(4), 21), of_kind("g", "e4", None, ChangeKind::Leave)];
    assert_eq!(apply(&first, older).await, [Applied, NotHeld], "states stand beside each other, and nothing is taken away");
    first.close().await.expect("it closes");
    let (again, beside) = (open().await, open().await);
    assert_eq!(apply(&again, batch()).await, [Duplicate, Duplicate, Duplicate]);
    for x in 30..35 {
        one_of_many(&[Arc::clone(&again), Arc::clone(&beside)], || change("h", &format!("h{x}"), None, x)).await;
    }
    let known = again.features(0).await.expect("it says what it holds");
    assert!(known.is_empty(), "it takes nothing away, so that it need not know");
}
