//! Leases on an object store: one of many does the job, and one that stood still cannot say that it did.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use geoclaim_common::{
    Digest, Fault, FaultKind,
    store::{self, LocalDirectory, Store},
};
use geoclaim_consumer::lease::{Claim, Lease, Leases, StoreLeases, batch, while_renewed};
use geoclaim_tests::faulty::{Act, FaultyStore, Op};

use crate::support::{Real, memory, s3};

/// Stores tell time in seconds.
const LASTS: Duration = Duration::from_secs(2);

fn leases(store: &Store) -> Arc<dyn Leases> {
    Arc::new(StoreLeases::new(Arc::clone(store), LASTS))
}

async fn won(leases: &Arc<dyn Leases>, job: Digest) -> Lease {
    match leases.claim(job).await.unwrap() {
        Claim::Won(lease) => lease,
        other => panic!("{other:?}"),
    }
}

/// Sixty-four workers want one job, each with leases of its own. One does it.
async fn many_want_one_job(store: &Store) {
    let job = Digest::of(b"many");
    let done = Arc::new(AtomicUsize::new(0));
    let workers = (0..64).map(|_| {
        let (leases, done) = (leases(store), Arc::clone(&done));
        tokio::spawn(async move {
            match leases.claim(job).await.unwrap() {
                Claim::Won(lease) => {
                    done.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    leases.commit(lease).await.unwrap();
                    "won"
                }
                Claim::Held => "held",
                Claim::Committed => "committed",
            }
        })
    });
    let ended: Vec<&str> = futures::future::join_all(workers).await.into_iter().map(Result::unwrap).collect();
    assert_eq!((ended.iter().filter(|end| **end == "won").count(), done.load(Ordering::SeqCst)), (1, 1), "{ended:?}");
    assert!(matches!(leases(store).claim(job).await.unwrap(), Claim::Committed), "what is committed is never done again");
}

/// A worker stands still past its lease; another does the job; the first finds itself fenced.
async fn one_that_stood_still_is_fenced(store: &Store) {
    let job = batch(&[Digest::of(b"a"), Digest::of(b"b")]);
    let (first, second) = (leases(store), leases(store));
    let still = won(&first, job).await;
    assert!(matches!(second.claim(job).await.unwrap(), Claim::Held));
    tokio::time::sleep(LASTS + Duration::from_millis(1_500)).await;
    let taken = won(&second, job).await;
    assert!(taken.fence() > still.fence());
    assert_eq!(first.renew(&still).await.unwrap_err().kind, FaultKind::Fenced);
    assert_eq!(first.commit(still).await.unwrap_err().kind, FaultKind::Fenced, "before the other has committed, too");
    second.commit(taken).await.unwrap();
}

/// Work that takes longer than its lease keeps it by renewing, and ends at once when it is lost.
async fn long_work_keeps_its_lease(store: &Store) {
    let job = Digest::of(b"long");
    let (first, second) = (leases(store), leases(store));
    let lease = won(&first, job).await;
    let work = async {
        tokio::time::sleep(2 * LASTS).await;
        Ok::<_, Fault>(matches!(second.claim(job).await?, Claim::Held))
    };
    assert!(while_renewed(&first, &lease, work).await.unwrap(), "it was renewed");
    first.commit(lease).await.unwrap();
}

async fn contract(store: Store) {
    many_want_one_job(&store).await;
    tokio::join!(one_that_stood_still_is_fenced(&store), long_work_keeps_its_lease(&store));
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_on_a_store_keep_their_contract() {
    let folder = tempfile::tempdir().unwrap();
    let local = store::open(folder.path().to_str().unwrap(), LocalDirectory::Create).unwrap();
    tokio::join!(contract(memory()), contract(local));
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_on_seaweedfs_keep_their_contract() {
    let Some(real) = Real::get() else { return };
    contract(s3(&real, &real.place("leases", 1).name)).await;
}

/// A conflict with nothing there, and an answer lost after the create was done: neither loses a lease or a commit.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_says_nothing_decides_nothing() {
    for act in [Act::Conflict, Act::DoneButLost] {
        let is_lease = |key: &str| key.ends_with(".claim") || key.ends_with(".end");
        let first = act.clone();
        let script =
            move |op, key: &str, before| if op == Op::Create && is_lease(key) && before == 0 { first.clone() } else { Act::Pass };
        let store: Store = Arc::new(FaultyStore::new(memory(), script));
        let (leases, job) = (leases(&store), Digest::of(b"job"));
        let lease = won(&leases, job).await;
        leases.commit(lease).await.unwrap();
        assert!(matches!(leases.claim(job).await.unwrap(), Claim::Committed), "{act:?}");
    }
}
