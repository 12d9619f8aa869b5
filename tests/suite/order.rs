//! Store, then publish: asserted on recorded calls, on failures, and with a kill in between.

use std::{
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use geoclaim_common::{
    Envelope, Fault, FaultKind,
    store::{self, LocalDirectory, Store, open},
    stream::{EnvelopeSink, OutgoingRecord, Receipt, memory::MemorySink},
};
use geoclaim_producer::{Publisher, Source};
use geoclaim_tests::{
    faulty::{Act, FaultyStore, Op, objects},
    sample::{large, lines, point},
};

use crate::support::{Bench, memory, publish_to, published, run_named};

/// Notes each record among the calls to the store.
#[derive(Debug)]
struct NotingSink {
    store: FaultyStore,
    sink: MemorySink,
    at: Arc<Mutex<Vec<(String, usize)>>>,
}

#[async_trait]
impl EnvelopeSink for NotingSink {
    async fn send(&self, record: OutgoingRecord) -> Receipt {
        let key = String::from_utf8_lossy(record.key.as_ref().unwrap()).into_owned();
        self.at.lock().unwrap().push((key, self.store.calls().len()));
        self.sink.send(record).await
    }

    async fn flush(&self, _within: Duration) -> Result<(), Fault> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_put_and_seen_before_its_envelope_is_sent() {
    let store = FaultyStore::recording(memory());
    let at = Arc::new(Mutex::new(Vec::new()));
    let sink = NotingSink { store: store.clone(), sink: MemorySink::default(), at: Arc::clone(&at) };
    let publisher = Publisher {
        settings: run_named("r"),
        store: Arc::new(store.clone()),
        sink: Arc::new(sink),
        clock: Arc::new(geoclaim_common::clock::SystemClock),
        counters: Arc::default(),
        on_problem: Arc::new(|problem| panic!("{problem}")),
    };
    let ids = ["a", "b", "c", "d"];
    let text = lines(&ids.map(large));
    publisher.run(vec![Source::bytes("t", text)], std::future::pending()).await.unwrap();
    let calls = store.calls();
    for (id, calls_before) in at.lock().unwrap().iter() {
        let key = geoclaim_common::key::of(&geoclaim_common::Digest::of(large(id).as_bytes())).to_string();
        let of_body: Vec<Op> = calls[..*calls_before].iter().filter(|call| call.key == key).map(|call| call.op).collect();
        assert_eq!(of_body, [Op::Create, Op::Head], "{id}");
    }
    assert_eq!(at.lock().unwrap().iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ids, "in the order of the input");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_put_publishes_nothing_and_holds_its_feature_back() {
    let sink = MemorySink::default();
    let bad_key = geoclaim_common::key::of(&geoclaim_common::Digest::of(large("a").as_bytes())).to_string();
    let store =
        FaultyStore::new(memory(), move |op, key, _| if op != Op::Head && key == bad_key { Act::Unavailable } else { Act::Pass });
    let text = lines(&[large("a"), point("b", 1.0, 1.0), point("a", 2.0, 2.0), large("c")]);
    let report = publish_to(Arc::new(store), sink.clone(), run_named("r"), text).await;
    assert_eq!((report.read, report.published, report.failed, report.rejected), (4, 2, 2, 0));
    let keys: Vec<_> = sink.records().iter().map(|record| record.key.clone().unwrap()).collect();
    assert_eq!(keys, ["b", "c"], "the later event of the same feature waits for the repeat");
}

#[tokio::test(flavor = "multi_thread")]
async fn already_exists_is_not_believed() {
    // A conflict with nothing there, then the put; an answer lost after it was done; an object stored short.
    for (name, script) in [
        (
            "conflict",
            (|op, before| if op == Op::Create && before == 0 { Act::Conflict } else { Act::Pass }) as fn(Op, usize) -> Act,
        ),
        ("lost", |op, before| if op == Op::Create && before == 0 { Act::DoneButLost } else { Act::Pass }),
        ("short", |op, before| if op == Op::Create && before == 0 { Act::StoredShort(10) } else { Act::Pass }),
        ("outage", |op, before| if op == Op::Create && before < 3 { Act::Unavailable } else { Act::Pass }),
    ] {
        let inner = memory();
        let store: Store = Arc::new(FaultyStore::new(Arc::clone(&inner), move |op, _, before| script(op, before)));
        let records = published(&store, large("a")).await;
        assert_eq!(records.len(), 1, "{name}");
        let bench = Bench::new();
        let (report, _) = bench.consume(records, "[0,0,40,40]", inner).await;
        assert_eq!(report.applied, 1, "{name}: the body is whole");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_bytes_are_stored_once_and_every_event_resolves() {
    let store = memory();
    let text = large("a");
    let (left, right) = (MemorySink::default(), MemorySink::default());
    let both = tokio::join!(
        publish_to(Arc::clone(&store), left.clone(), run_named("r"), text.clone()),
        publish_to(Arc::clone(&store), right.clone(), run_named("s"), text),
    );
    assert_eq!(both.0.bodies_written + both.1.bodies_written, 1);
    assert_eq!(objects(&store).await, 1);
    let records: Vec<_> = left.records().into_iter().chain(right.records()).collect();
    let (report, _) = Bench::new().consume(records, "[0,0,40,40]", store).await;
    assert_eq!((report.applied, report.fetched >= 1), (2, true), "two events may carry the same bytes");
}

/// Takes a record and never lets go of it: the moment between put and publish, held open.
#[derive(Debug)]
struct StuckSink;

#[async_trait]
impl EnvelopeSink for StuckSink {
    async fn send(&self, _record: OutgoingRecord) -> Receipt {
        println!("body is in place");
        std::future::pending().await
    }

    async fn flush(&self, _within: Duration) -> Result<(), Fault> {
        Ok(())
    }
}

const CHILD_STORE: &str = "GEOCLAIM_TEST_CHILD_STORE";

/// The child of the test below; without its variable it has nothing to do.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_stops_between_put_and_publish() {
    let Ok(url) = std::env::var(CHILD_STORE) else { return };
    let publisher = Publisher {
        settings: run_named("nightly"),
        store: open(&url, LocalDirectory::Create).unwrap(),
        sink: Arc::new(StuckSink),
        clock: Arc::new(geoclaim_common::clock::SystemClock),
        counters: Arc::default(),
        on_problem: Arc::new(|problem| panic!("{problem}")),
    };
    publisher.run(vec![Source::bytes("text", large("a"))], std::future::pending()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_between_put_and_publish_leaves_a_body_and_no_envelope_and_the_repeat_has_one_effect() {
    let folder = tempfile::tempdir().unwrap();
    let url = folder.path().join("bodies").to_string_lossy().into_owned();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["order::child_that_stops_between_put_and_publish", "--exact", "--nocapture"])
        .env(CHILD_STORE, &url)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let out = std::io::BufReader::new(child.stdout.take().unwrap());
    let seen = std::io::BufRead::lines(out).map_while(Result::ok).any(|line| line.contains("body is in place"));
    assert!(seen, "the child came to the moment between put and publish");
    child.kill().unwrap();
    child.wait().unwrap();

    let store = open(&url, LocalDirectory::Expect).unwrap();
    assert_eq!(objects(&store).await, 1, "the body is there, and no envelope is: the child had no other sink");
    // The repeat carries the same identity, so that doing it twice has one effect.
    let mut records = Vec::new();
    for _ in 0..2 {
        let sink = MemorySink::default();
        let report = publish_to(Arc::clone(&store), sink.clone(), run_named("nightly"), large("a")).await;
        assert_eq!((report.published, report.bodies_written), (1, 0), "the body is found and not written again");
        records.extend(sink.records());
    }
    let ids: Vec<String> =
        records.iter().map(|record| Envelope::decode(record.value.as_ref().unwrap()).unwrap().event_id).collect();
    assert_eq!(ids[0], ids[1]);
    let (report, _) = Bench::new().consume(records, "[0,0,40,40]", store).await;
    assert_eq!((report.applied, report.duplicate), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_ignores_the_condition_of_a_create_is_found_out_at_the_start() {
    let careless = FaultyStore::new(memory(), |op, _, _| if op == Op::Create { Act::Careless } else { Act::Pass });
    let inner: Store = Arc::new(careless);
    let fault = store::check_creates(&inner).await.unwrap_err();
    assert!(fault.kind == FaultKind::Configuration && fault.detail.contains("ignores it"), "{fault}");
    assert_eq!(objects(&inner).await, 0, "nothing is left behind");
    store::check_creates(&memory()).await.unwrap();
}
