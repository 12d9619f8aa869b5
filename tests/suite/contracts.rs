//! What every implementation behind a seam must do, run against all of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use geoclaim_common::{
    Body, Fault, FaultKind,
    fault::RetrySettings,
    geojson::CrsMember,
    kafka::{EmbeddedBroker, KafkaSettings, KafkaSink, KafkaSource, SourceEnd, SourceSettings},
    store::{self, LocalDirectory, Store},
    stream::{AdmitAll, EnvelopeSink, EnvelopeSource, OutgoingRecord, Position, SourceEvent},
};
use geoclaim_consumer::{
    resolve::BodyBytes,
    sink::{Change, ChangeKind, Effect, Sink, State, gpkg::GeoPackageSink, stdout::LineSink},
};
use geoclaim_producer::put::{Put, put};
use geoclaim_tests::components::{Kafka, SeaweedFs, require};
use object_store::ObjectStoreExt as _;

use crate::support::memory;

/// A store must honour a conditional create, show what it has, and say *missing* of what it has not.
async fn store_contract(store: Store, name: &str) {
    store::check(&store).await.unwrap_or_else(|fault| panic!("{name}: {fault}"));
    let body = Body::seal(format!("{{\"store\":\"{name}\"}}").into());
    let missing = store.head(&body.claim().key()).await.unwrap_err();
    assert_eq!(store::fault_of(&missing).kind, FaultKind::Missing, "{name}");
    let deadline = Duration::from_secs(20);
    let retry = RetrySettings::default();
    assert_eq!(put(&store, &body, &retry, deadline).await.unwrap(), Put::Written, "{name}");
    assert_eq!(put(&store, &body, &retry, deadline).await.unwrap(), Put::Present, "{name}: a second create is refused");
    assert_eq!(store.get(&body.claim().key()).await.unwrap().bytes().await.unwrap(), body.bytes());
    store.put(&body.claim().key(), "short".into()).await.unwrap();
    assert_eq!(put(&store, &body, &retry, deadline).await.unwrap(), Put::Repaired, "{name}");
    let contenders = (0..16).map(|n| {
        let (store, body) = (Arc::clone(&store), Body::seal(format!("{{\"contended\":\"{name}\"}}").into()));
        tokio::spawn(async move { (n, put(&store, &body, &RetrySettings::default(), Duration::from_secs(20)).await.unwrap()) })
    });
    let ended = futures::future::join_all(contenders).await;
    let written = ended.iter().filter(|put| put.as_ref().unwrap().1 == Put::Written).count();
    assert_eq!(written, 1, "{name}: one of many creates wins");
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_keep_their_contract() {
    store_contract(memory(), "memory").await;
    let folder = tempfile::tempdir().unwrap();
    store_contract(store::open(folder.path().to_str().unwrap(), LocalDirectory::Create).unwrap(), "local").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn seaweedfs_keeps_the_contract_of_a_store() {
    let Some(weed) = require("seaweedfs", SeaweedFs::shared()) else { return };
    weed.create_bucket("contract").unwrap();
    let builder = object_store::aws::AmazonS3Builder::new()
        .with_bucket_name("contract")
        .with_endpoint(weed.endpoint())
        .with_allow_http(true);
    let store = builder.with_region("us-east-1").with_access_key_id("any").with_secret_access_key("any").build().unwrap();
    store_contract(Arc::new(object_store::prefix::PrefixStore::new(store, "bodies")), "seaweedfs").await;
}

fn change(feature: &str, event: &str, version: Option<i64>, x: i32) -> Change {
    let body = format!(
        r#"{{"type":"Feature","id":"{feature}","properties":{{"x":{x}}},"geometry":{{"type":"Point","coordinates":[{x},1]}}}}"#
    );
    let (extent, outline) = geoclaim_common::extent::measure(body.as_bytes(), &Default::default()).unwrap();
    let state =
        State { areas: vec!["area".into()], crs: CrsMember::Refuse, body: BodyBytes::Inline(body.into()), extent, outline };
    of_kind(feature, event, version, ChangeKind::Hold(Box::new(state)))
}

/// Makes a change; each stands in the partition after the one before.
fn of_kind(feature: &str, event: &str, version: Option<i64>, kind: ChangeKind) -> Change {
    static OFFSET: AtomicI64 = AtomicI64::new(0);
    let position = Position { partition: 0, offset: OFFSET.fetch_add(1, Ordering::Relaxed), timestamp: None };
    Change { feature_id: feature.into(), event_id: event.into(), version, occurred_at: None, position, kind }
}

async fn apply(sink: &Arc<dyn Sink>, changes: Vec<Change>) -> Vec<Effect> {
    sink.apply(Arc::new(changes)).await.unwrap()
}

/// What has left or is deleted must go once, and no older state may bring it back.
async fn exits_contract(sink: &Arc<dyn Sink>) {
    use Effect::{Applied, Duplicate, Left, NotHeld, Stale};
    let leave = |event: &str, version| of_kind("x", event, version, ChangeKind::Leave);
    let delete = |event: &str, version| of_kind("x", event, version, ChangeKind::Delete);
    let early = leave("x0", None);
    assert_eq!(apply(sink, vec![leave("x1", Some(3))]).await, [NotHeld]);
    assert_eq!(apply(sink, vec![change("x", "x2", Some(2), 1), change("x", "x3", Some(4), 1)]).await, [Stale, Applied]);
    assert_eq!(apply(sink, vec![early, leave("x1", Some(3)), leave("x4", Some(5))]).await, [Stale, Duplicate, Left]);
    assert_eq!(apply(sink, vec![leave("x4", Some(5)), change("x", "x5", Some(4), 1)]).await, [Duplicate, Stale]);
    assert_eq!(apply(sink, vec![change("x", "x6", Some(6), 1), delete("x7", None)]).await, [Applied, Left]);
    assert_eq!(apply(sink, vec![delete("x8", None), change("x", "x9", Some(5), 1)]).await, [NotHeld, Stale]);
    assert_eq!(apply(sink, vec![change("x", "x10", Some(7), 1), delete("x11", Some(8))]).await, [Applied, Left]);
}

/// A sink must apply an event once, within a batch and across batches, and let no older version back in.
async fn sink_contract(sink: Arc<dyn Sink>) {
    use Effect::{Applied, Duplicate, Stale};
    assert_eq!(apply(&sink, vec![]).await, []);
    assert_eq!(
        apply(&sink, vec![change("f", "e1", None, 1), change("f", "e1", None, 1), change("g", "e2", Some(5), 2)]).await,
        [Applied, Duplicate, Applied]
    );
    assert_eq!(apply(&sink, vec![change("f", "e1", None, 1)]).await, [Duplicate]);
    assert_eq!(
        apply(&sink, vec![change("g", "e3", Some(4), 3), change("g", "e4", Some(6), 4), change("g", "e5", Some(6), 5)]).await,
        [Stale, Applied, Stale]
    );
    assert_eq!(apply(&sink, vec![change("f", "e6", None, 6)]).await, [Applied], "the same feature soon after");
    exits_contract(&sink).await;
    let many = |_| {
        let sink = Arc::clone(&sink);
        tokio::spawn(async move { apply(&sink, vec![change("h", "once", None, 7)]).await })
    };
    let ended: Vec<Effect> = futures::future::join_all((0..16).map(many)).await.into_iter().flat_map(Result::unwrap).collect();
    assert_eq!(ended.iter().filter(|effect| **effect == Applied).count(), 1, "duplicates at the same time");
    sink.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn sinks_keep_their_contract() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.gpkg");
    sink_contract(Arc::new(GeoPackageSink::open(&path, "c").unwrap())).await;
    let connection = rusqlite::Connection::open(&path).unwrap();
    let state: Vec<(String, String)> = {
        let mut rows = connection.prepare("SELECT feature_id, properties FROM features ORDER BY feature_id").unwrap();
        rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().collect::<Result<_, _>>().unwrap()
    };
    assert_eq!(
        state,
        [("f", "{\"x\":6}"), ("g", "{\"x\":4}"), ("h", "{\"x\":7}")]
            .map(|(id, properties)| (id.to_owned(), properties.to_owned()))
    );
    let ledger: i64 =
        connection.query_row("SELECT count(*) FROM geoclaim_ledger WHERE consumer = 'c'", [], |row| row.get(0)).unwrap();
    assert_eq!(ledger, 7 + 12, "a row for every event, stale ones too");
    sink_contract(Arc::new(LineSink::new(std::io::sink()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_on_one_geopackage_apply_an_event_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.gpkg");
    let sinks: Vec<Arc<dyn Sink>> =
        (0..4).map(|_| Arc::new(GeoPackageSink::open(&path, "c").unwrap()) as Arc<dyn Sink>).collect();
    let applied = sinks.into_iter().map(|sink| {
        tokio::spawn(async move {
            let mut applied = 0;
            for n in 0..50 {
                let effects = apply(&sink, vec![change("f", &format!("e{n}"), None, n)]).await;
                applied += usize::from(effects[0] == Effect::Applied);
            }
            applied
        })
    });
    let applied: usize = futures::future::join_all(applied).await.into_iter().map(Result::unwrap).sum();
    assert_eq!(applied, 50);
}

fn record(n: usize) -> OutgoingRecord {
    OutgoingRecord {
        key: Some(format!("k{}", n % 7).into()),
        value: Some(format!("v{n}").into()),
        headers: vec![("h".into(), None)],
    }
}

/// What is acknowledged is delivered, in order for each key; what is settled is not delivered again, and what is not
/// settled is.
async fn stream_contract(settings: KafkaSettings, topic: &str) -> Result<(), Fault> {
    let sink = KafkaSink::open(&settings, topic, 1 << 20)?;
    let mut receipts = Vec::new();
    for n in 0..500 {
        receipts.push(sink.send(record(n)).await);
    }
    for receipt in receipts {
        receipt.acknowledged().await?;
    }
    sink.flush(Duration::from_secs(10)).await?;
    let seen = read(&settings, topic, "g", 100).await?;
    assert_eq!(seen.len(), 500);
    for key in 0..7 {
        let of_key: Vec<usize> = seen.iter().filter(|(found, _)| *found == format!("k{key}")).map(|(_, n)| *n).collect();
        assert!(of_key.is_sorted() && !of_key.is_empty(), "{of_key:?}");
    }
    let again = read(&settings, topic, "g", usize::MAX).await?;
    assert!(!again.is_empty() && again.len() <= 400, "{} of at most 400 that were left", again.len());
    let left: Vec<usize> = seen[100..].iter().map(|(_, n)| *n).collect();
    assert!(left.iter().all(|n| again.iter().any(|(_, found)| found == n)), "nothing that was not settled is lost");
    assert_eq!(read(&settings, topic, "g", usize::MAX).await?, [], "all was settled");
    assert_eq!(read(&settings, topic, "other", usize::MAX).await?.len(), 500, "another group has its own offsets");
    Ok(())
}

/// Reads to the end and settles the first `settled` records of those received.
async fn read(settings: &KafkaSettings, topic: &str, group: &str, settled: usize) -> Result<Vec<(String, usize)>, Fault> {
    let end = if settled == usize::MAX { SourceEnd::EndOfTopic } else { SourceEnd::Never };
    let source = SourceSettings { group: group.into(), end, drain_seconds: 1, ..SourceSettings::default() };
    let mut source = KafkaSource::open(settings, topic, &source, Arc::new(AdmitAll))?;
    let (mut seen, mut unsettled) = (Vec::new(), Vec::new());
    while let Some(event) = source.next().await {
        let SourceEvent::Record(record) = event else { panic!("{event:?}") };
        let text = |bytes: &Option<bytes::Bytes>| String::from_utf8(bytes.clone().unwrap().to_vec()).unwrap();
        assert_eq!(record.headers, [("h".to_owned(), None)]);
        assert!(record.timestamp.is_some());
        seen.push((text(&record.key), text(&record.value)[1..].parse().unwrap()));
        if seen.len() <= settled {
            record.ticket.settle()
        } else {
            unsettled.push(record.ticket)
        }
        if settled != usize::MAX && seen.len() == 500 {
            source.stop();
        }
    }
    drop(unsettled);
    source.close(Duration::from_secs(10)).await;
    Ok(seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_broker_keeps_the_contract_of_a_stream() {
    let broker = EmbeddedBroker::start().unwrap();
    broker.create_topic("t", 3).unwrap();
    // It forgets a member that has left only when its session times out.
    let mut settings = broker.settings();
    settings.properties.insert("session.timeout.ms".into(), "6000".into());
    settings.properties.insert("heartbeat.interval.ms".into(), "1000".into());
    stream_contract(settings, "t").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn apache_kafka_keeps_the_contract_of_a_stream() {
    let Some(kafka) = require("kafka", Kafka::shared()) else { return };
    kafka.create_topic("stream-contract", 3, &[]).unwrap();
    stream_contract(KafkaSettings::new(kafka.bootstrap()), "stream-contract").await.unwrap();
}
