//! Answers that never come, cut by a proxy before the real component.

use std::sync::Arc;

use geoclaim_common::{
    FaultKind,
    kafka::{KafkaSettings, KafkaSink, read_topic},
    stream::{EnvelopeSink as _, OutgoingRecord, memory::MemorySource},
};
use geoclaim_consumer::sink::{Effect, Sink as _, postgis::PostgisSink};
use geoclaim_tests::{
    components::{Kafka, Postgres, ports, require},
    contract::change,
    proxy::{Mode, Proxy},
    sample::{lines, point},
};

use crate::support::{Bench, THEN, assert_adds_up, memory, published};

fn commits(sent: &[u8]) -> bool {
    sent.windows(6).any(|word| word == b"COMMIT")
}

/// Returns a database and its URL through a proxy.
fn behind_a_proxy() -> Option<(&'static Postgres, String, Proxy, String)> {
    let cluster = require("postgres", Postgres::shared())?;
    let database = cluster.create_database().unwrap();
    let proxy = Proxy::before(cluster.port()).unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{}/{database}", proxy.port());
    Some((cluster, database, proxy, url))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_is_unknown_and_the_ledger_tells() {
    let Some((cluster, database, proxy, url)) = behind_a_proxy() else { return };
    let sink = PostgisSink::open(&url, "c").await.unwrap();
    let batch = || Arc::new(vec![change("f", "e1", None, 1), change("g", "e2", None, 2)]);
    let (first, second) = (batch(), batch());
    proxy.set(Mode::CutAnswerTo(commits));
    let fault = sink.apply(Arc::clone(&first)).await.unwrap_err();
    assert_eq!((fault.kind, proxy.cuts()), (FaultKind::Unavailable, 1), "{fault}");
    proxy.set(Mode::Pass);
    assert_eq!(cluster.query(&database, "SELECT count(*) FROM geoclaim_ledger").unwrap(), "2", "it was committed");
    assert_eq!(sink.apply(second).await.unwrap(), [Effect::Duplicate, Effect::Duplicate]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_whose_commits_are_cut_acknowledges_what_the_ledger_has_and_no_more() {
    let Some((cluster, database, proxy, url)) = behind_a_proxy() else { return };
    let store = memory();
    let points: Vec<String> = (0..200).map(|n| point(&format!("f{n:03}"), 1.0, 1.0)).collect();
    let records = published(&store, lines(&points)).await;
    let bench = Bench::new();
    let mut consumer = bench.consumer("[0,0,40,40]", store);
    consumer.settings.batch_events = 20;
    consumer.sink = Arc::new(PostgisSink::open(&url, "c").await.unwrap());
    let source = MemorySource::new(records, THEN, consumer.gate().await.unwrap());
    let watermark = source.watermark();
    proxy.set(Mode::CutAnswerTo(commits));
    let running = tokio::spawn(consumer.run(source, std::future::pending()));
    while proxy.cuts() < 3 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let (next, ledger) = (watermark.lock().unwrap().next(), cluster.query(&database, "SELECT count(*) FROM geoclaim_ledger"));
    assert!(next.unwrap_or(0) <= ledger.unwrap().parse().unwrap(), "nothing is acknowledged before it is known");
    proxy.set(Mode::Pass);
    let report = running.await.unwrap().unwrap();
    assert_adds_up(&report);
    assert_eq!((report.consumed, report.applied + report.duplicate), (200, 200));
    assert!(report.duplicate > 0, "{report:?}");
    assert_eq!(cluster.query(&database, "SELECT count(*) FROM features").unwrap(), "200");
    assert_eq!(watermark.lock().unwrap().next(), Some(200));
}

/// Tells a request to write records, by the key of its kind.
fn produces(sent: &[u8]) -> bool {
    sent.len() > 6 && sent[4..6] == [0, 0]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_whose_acknowledgement_is_cut_is_written_once() {
    let port = ports::free(1).unwrap()[0];
    let listener = format!("PLAINTEXT://127.0.0.1:{port}");
    let Some(kafka) = require("kafka", Kafka::start_with(&[("advertised.listeners", &listener)])) else { return };
    let proxy = Proxy::before_on(port, kafka.bootstrap().rsplit(':').next().unwrap().parse().unwrap()).unwrap();
    kafka.create_topic("t", 1, &[]).unwrap();
    let settings = KafkaSettings::new(format!("127.0.0.1:{port}"));
    let sink = KafkaSink::open(&settings, "t", 1 << 20).unwrap();
    let record = |n: usize| OutgoingRecord { value: Some(n.to_string().into()), ..OutgoingRecord::default() };
    sink.send(record(0)).await.acknowledged().await.unwrap();
    proxy.set(Mode::CutAnswerTo(produces));
    let mut receipts = Vec::new();
    for n in 1..50 {
        receipts.push(sink.send(record(n)).await);
    }
    while proxy.cuts() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    proxy.set(Mode::Pass);
    for receipt in receipts {
        receipt.acknowledged().await.unwrap();
    }
    let mut values: Vec<usize> = Vec::new();
    let visit = |record: geoclaim_common::kafka::StoredRecord| {
        values.push(String::from_utf8_lossy(&record.value.unwrap()).parse().unwrap());
        std::ops::ControlFlow::Continue(())
    };
    read_topic(&settings, "t", visit).unwrap();
    assert_eq!(values, (0..50).collect::<Vec<usize>>(), "each once, and in order");
}
