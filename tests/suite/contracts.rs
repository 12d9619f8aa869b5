//! What every implementation behind a seam must do, run against all of them.

use std::{sync::Arc, time::Duration};

use geoclaim_common::{
    Fault,
    kafka::{EmbeddedBroker, KafkaSettings, KafkaSink, KafkaSource, SourceEnd, SourceSettings},
    store::{self, LocalDirectory},
    stream::{AdmitAll, EnvelopeSink, EnvelopeSource, OutgoingRecord, SourceEvent},
};
use geoclaim_tests::{
    components::{Kafka, SeaweedFs, require},
    contract,
};

use crate::support::{azure, gcs, memory};

#[tokio::test(flavor = "multi_thread")]
async fn stores_keep_their_contract() {
    contract::store(memory(), "memory").await;
    let folder = tempfile::tempdir().unwrap();
    contract::store(store::open(folder.path().to_str().unwrap(), LocalDirectory::Create).unwrap(), "local").await;
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
    contract::store(Arc::new(object_store::prefix::PrefixStore::new(store, "bodies")), "seaweedfs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn azurite_keeps_the_contract_of_a_store() {
    let Some(store) = azure("contract") else { return };
    contract::store(store, "azurite").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fake_gcs_server_where_puts_go_by_its_json_api_keeps_the_contract_of_a_store() {
    let Some(store) = gcs("contract") else { return };
    contract::store(store, "fake-gcs-server").await;
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
