//! What every grantor of leases must do, and every keeper of intents.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use geoclaim_common::{Digest, Fault, FaultKind};
use geoclaim_consumer::lease::{Claim, Intents, Lease, Leases, batch, while_renewed};

/// How much longer than a lease one waits for it to have lapsed: stores tell time in seconds.
const SLACK: Duration = Duration::from_millis(1_500);

async fn won<L: Leases + ?Sized>(leases: &Arc<L>, job: Digest) -> Lease {
    match leases.claim(job).await.expect("it can be claimed") {
        Claim::Won(lease) => lease,
        other => panic!("{other:?}"),
    }
}

/// Leases must let one of many do a job, keep a job that is committed from being done again, and fence one that stood still
/// past its lease. `open` opens the same, empty at first, as another worker has it.
///
/// # Panics
/// They break the contract.
pub async fn leases<F: Future<Output = Arc<dyn Leases>>>(open: impl Fn() -> F) {
    many_want_one_job(&open).await;
    tokio::join!(one_that_stood_still_is_fenced(&open), long_work_keeps_its_lease(&open));
}

/// Sixty-four workers want one job, each with leases of its own. One does it.
async fn many_want_one_job<F: Future<Output = Arc<dyn Leases>>>(open: &impl Fn() -> F) {
    let job = Digest::of(b"many");
    let done = Arc::new(AtomicUsize::new(0));
    let mut workers = Vec::new();
    for _ in 0..64 {
        let (leases, done) = (open().await, Arc::clone(&done));
        workers.push(tokio::spawn(async move {
            match leases.claim(job).await.expect("it can be claimed") {
                Claim::Won(lease) => {
                    done.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    leases.commit(lease).await.expect("it is still ours");
                    "won"
                }
                Claim::Held => "held",
                Claim::Committed => "committed",
            }
        }));
    }
    let ended = futures::future::join_all(workers).await;
    let ended: Vec<&str> = ended.into_iter().map(|worker| worker.expect("a worker ends")).collect();
    assert_eq!((ended.iter().filter(|end| **end == "won").count(), done.load(Ordering::SeqCst)), (1, 1), "{ended:?}");
    let again = open().await.claim(job).await.expect("it can be asked for");
    assert!(matches!(again, Claim::Committed), "what is committed is never done again");
}

/// A worker stands still past its lease; another does the job; the first finds itself fenced.
async fn one_that_stood_still_is_fenced<F: Future<Output = Arc<dyn Leases>>>(open: &impl Fn() -> F) {
    let job = batch(&[Digest::of(b"a"), Digest::of(b"b")]);
    let (first, second) = (open().await, open().await);
    let still = won(&first, job).await;
    assert!(matches!(second.claim(job).await.expect("it can be asked for"), Claim::Held));
    tokio::time::sleep(first.lasts() + SLACK).await;
    let taken = won(&second, job).await;
    assert!(taken.fence() > still.fence());
    assert_eq!(first.renew(&still).await.expect_err("it is lost").kind, FaultKind::Fenced);
    let late = first.commit(still).await.expect_err("it is lost");
    assert_eq!(late.kind, FaultKind::Fenced, "before the other has committed, too");
    second.commit(taken).await.expect("it is ours");
}

/// Work that takes longer than its lease keeps it by renewing, and ends at once when it is lost.
async fn long_work_keeps_its_lease<F: Future<Output = Arc<dyn Leases>>>(open: &impl Fn() -> F) {
    let job = Digest::of(b"long");
    let (first, second) = (open().await, open().await);
    let lease = won(&first, job).await;
    let work = async {
        tokio::time::sleep(2 * first.lasts()).await;
        Ok::<_, Fault>(matches!(second.claim(job).await?, Claim::Held))
    };
    assert!(while_renewed(&first, &lease, work).await.expect("it is not lost"), "it was renewed");
    first.commit(lease).await.expect("it is still ours");
}

/// Intents must say what was begun and has no end, and keep the result of what has one. To be called on the same after
/// [`leases`] has passed.
///
/// # Panics
/// They break the contract.
pub async fn intents<F: Future<Output = Arc<dyn Intents>>>(open: impl Fn() -> F) {
    let (first, second) = (open().await, open().await);
    let job = Digest::of(b"intended");
    let Claim::Won(lease) = first.intend(job, "an effect").await.expect("it can be intended") else { panic!("it is not new") };
    assert_eq!(lease.fence(), 1, "nobody has intended it before");
    assert!(first.hanging(Duration::ZERO, 10).await.expect("it can be asked").is_empty(), "it is under way");
    first.release(lease).await.expect("it is given back");
    let hanging = second.hanging(Duration::ZERO, 10).await.expect("it can be asked");
    assert_eq!(
        hanging.iter().map(|hanging| (hanging.job, &*hanging.about, hanging.fence)).collect::<Vec<_>>(),
        [(job, "an effect", 1)]
    );
    let Claim::Won(lease) = second.intend(job, "an effect").await.expect("it can be intended") else {
        panic!("it was given back")
    };
    assert_eq!((lease.fence(), second.result(job).await.expect("it can be asked")), (2, None));
    second.commit_with(lease, "done").await.expect("it is ours");
    assert!(matches!(first.intend(job, "an effect").await.expect("it can be intended"), Claim::Committed));
    assert_eq!(first.result(job).await.expect("it can be asked").as_deref(), Some("done"));
    assert!(first.hanging(Duration::ZERO, 10).await.expect("it can be asked").is_empty());
    assert_eq!(first.forget(Duration::from_secs(3_600), 10).await.expect("they can be forgotten"), 0, "all are young");
    let forgotten = [first.forget(Duration::ZERO, 2).await, first.forget(Duration::ZERO, 10).await];
    assert_eq!(forgotten.map(|forgotten| forgotten.expect("they can be forgotten")), [2, 2]);
    assert!(matches!(first.claim(job).await.expect("it can be claimed"), Claim::Won(_)), "it is not known any more");
}
