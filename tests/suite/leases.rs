//! Leases: one of many does the job, and one that stood still cannot say that it did.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use geoclaim_common::{
    Digest, Fault, FaultKind,
    store::{self, LocalDirectory, Store},
};
use geoclaim_consumer::lease::{Claim, Intents, Leases, PostgresLeases, SqliteLeases, StoreLeases, while_renewed};
use geoclaim_tests::{
    components::{Postgres, require},
    contract,
    faulty::{Act, FaultyStore, Op},
};

use crate::support::{Real, azure, gcs, memory, s3};

/// Stores tell time in seconds.
const LASTS: Duration = Duration::from_secs(2);

fn leases(store: &Store) -> Arc<dyn Leases> {
    Arc::new(StoreLeases::new(Arc::clone(store), LASTS))
}

async fn on_a_store(store: Store) {
    contract::leases(|| async { leases(&store) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_on_a_store_keep_their_contract() {
    let folder = tempfile::tempdir().unwrap();
    let local = store::open(folder.path().to_str().unwrap(), LocalDirectory::Create).unwrap();
    tokio::join!(on_a_store(memory()), on_a_store(local));
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_on_seaweedfs_keep_their_contract() {
    let Some(real) = Real::get() else { return };
    on_a_store(s3(&real, &real.place("leases", 1).name)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_on_azurite_keep_their_contract() {
    let Some(store) = azure("leases") else { return };
    on_a_store(store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_on_fake_gcs_server_where_puts_go_by_its_json_api_keep_their_contract() {
    let Some(store) = gcs("leases") else { return };
    on_a_store(store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_in_a_sqlite_file_keep_their_contract_and_intents_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let open = || SqliteLeases::open(folder.path().join("f.gpkg"), "c", LASTS).unwrap();
    contract::leases(|| async { Arc::new(open()) as Arc<dyn Leases> }).await;
    contract::intents(|| async { Arc::new(open()) as Arc<dyn Intents> }).await;
    let other = SqliteLeases::open(folder.path().join("f.gpkg"), "other", LASTS).unwrap();
    assert!(matches!(other.claim(Digest::of(b"intended")).await.unwrap(), Claim::Won(_)), "leases of its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_in_postgresql_keep_their_contract_and_intents_theirs() {
    let Some(cluster) = require("postgres", Postgres::shared()) else { return };
    let url = cluster.url(&cluster.create_database().unwrap());
    // Sixty-four workers on eight connections: a cluster has a hundred, and other tests have some of them.
    let mut opened = Vec::new();
    for _ in 0..8 {
        opened.push(PostgresLeases::open(&url, "c", LASTS).await.unwrap());
    }
    let turn = std::sync::atomic::AtomicUsize::new(0);
    let open = || opened[turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % opened.len()].clone();
    contract::leases(|| async { Arc::new(open()) as Arc<dyn Leases> }).await;
    contract::intents(|| async { Arc::new(open()) as Arc<dyn Intents> }).await;
}

/// The state that a job changes and the end of the job are durable together, or a lost lease keeps both out.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_committed_in_the_transaction_of_what_it_is_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let leases = SqliteLeases::open(&path, "c", Duration::ZERO).unwrap();
    let mut connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("CREATE TABLE done (fence)").unwrap();
    let claim = async || match leases.claim(Digest::of(b"job")).await.unwrap() {
        Claim::Won(lease) => lease,
        other => panic!("{other:?}"),
    };
    let still = claim().await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let taken = claim().await;
    let mut commit = |lease: &geoclaim_consumer::lease::Lease| {
        let transaction = connection.transaction().unwrap();
        transaction.execute("INSERT INTO done VALUES (?1)", [lease.fence() as i64]).unwrap();
        let is_ours = leases.commit_in(&transaction, lease, "").unwrap();
        if is_ours {
            transaction.commit().unwrap()
        } else {
            transaction.rollback().unwrap()
        }
        is_ours
    };
    assert_eq!((commit(&still), commit(&taken)), (false, true));
    let fences: String = connection.query_row("SELECT group_concat(fence) FROM done", [], |row| row.get(0)).unwrap();
    assert_eq!(fences, "2");
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
        let Claim::Won(lease) = leases.claim(job).await.unwrap() else { panic!("nobody else wants it") };
        leases.commit(lease).await.unwrap();
        assert!(matches!(leases.claim(job).await.unwrap(), Claim::Committed), "{act:?}");
    }
}

/// Renewals that get no answer end the work before the lease can have lapsed; one that is given back can be had at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_cannot_be_renewed_ends_the_work() {
    let is_beat = |key: &str| key.ends_with(".beat");
    let script = move |op, key: &str, _| if op == Op::Overwrite && is_beat(key) { Act::Unavailable } else { Act::Pass };
    let store: Store = Arc::new(FaultyStore::new(memory(), script));
    let (leases, job) = (leases(&store), Digest::of(b"job"));
    let Claim::Won(lease) = leases.claim(job).await.unwrap() else { panic!("nobody else wants it") };
    let since = Instant::now();
    let fault = while_renewed(&leases, &lease, std::future::pending::<Result<(), Fault>>()).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Fenced);
    assert!(since.elapsed() <= LASTS + Duration::from_millis(500), "{:?}", since.elapsed());
    leases.release(lease).await.unwrap();
    assert!(matches!(leases.claim(job).await.unwrap(), Claim::Won(lease) if lease.fence() == 2));
}
