//! Another topic as the sink: effects and progress in one transaction, and the topic its own ledger.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    sync::Arc,
    time::Duration,
};

use geoclaim_common::{
    Envelope, FaultKind,
    envelope::Content,
    kafka::{EmbeddedBroker, Input, KafkaSettings, Membership, StoredRecord, read_topic},
};
use geoclaim_consumer::sink::{
    Change, ChangeKind, Effect, Sink,
    kafka::{Emit, Output, TopicSink},
};
use geoclaim_tests::{
    binary,
    contract::{self, change},
    sample::{feature, large, lines, point},
};
use rdkafka::{
    ClientConfig,
    producer::{BaseProducer, BaseRecord, Producer as _},
};

use crate::support::Real;

fn output(topic: &str, emit: Emit) -> Output {
    Output { topic: topic.to_owned(), partitions: 2, message_bytes: 1 << 20, emit }
}

async fn open(settings: &KafkaSettings, output: Output, id: &str) -> TopicSink {
    let (settings, id) = (settings.clone(), id.to_owned());
    let input = Input { topic: "input".into(), membership: Membership::default() };
    tokio::task::spawn_blocking(move || TopicSink::open(&settings, &output, input, ("c", &id))).await.unwrap().unwrap()
}

fn records(settings: &KafkaSettings, topic: &str) -> Vec<StoredRecord> {
    let mut records = Vec::new();
    let visited = read_topic(settings, topic, |record| {
        records.push(record);
        ControlFlow::Continue(())
    });
    visited.unwrap();
    records
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_of_the_embedded_broker_keeps_the_contract_of_a_sink() {
    let broker = EmbeddedBroker::start().unwrap();
    broker.create_topic("out", 2).unwrap();
    let sink = open(&broker.settings(), output("out", Emit::Envelope), "envelopes").await;
    contract::sink_within_a_run(&(Arc::new(sink) as Arc<dyn Sink>)).await;
    let sink = open(&broker.settings(), output("out", Emit::Feature), "features").await;
    assert_eq!(sink.apply(Arc::new(vec![change("z", "z1", None, 1)])).await.unwrap(), [Effect::Applied]);
}

/// As the other sinks do; and the second that is opened with one transactional id fences the first.
#[tokio::test(flavor = "multi_thread")]
async fn a_topic_keeps_the_contract_of_a_sink_and_is_its_own_ledger() {
    let Some(real) = Real::get() else { return };
    let settings = KafkaSettings::new(real.kafka.bootstrap());
    let topic = real.place("topic-sink", 2).name;
    let again = || async { Arc::new(open(&settings, output(&topic, Emit::Envelope), &topic).await) as Arc<dyn Sink> };
    contract::sink(again).await;
    let mut last: BTreeMap<String, Envelope> = BTreeMap::new();
    let found = records(&settings, &topic);
    for record in &found {
        let envelope = Envelope::decode(record.value.as_deref().unwrap()).unwrap();
        assert_eq!(record.key.as_deref(), Some(envelope.feature_id.as_bytes()));
        last.insert(envelope.feature_id.clone(), envelope);
    }
    assert_eq!(last.keys().collect::<Vec<_>>(), ["f", "g", "h", "x"]);
    assert_eq!((last["f"].others["areas"].as_str(), &last["x"].content), (r#"["area"]"#, &Content::Deleted));
    assert!(last["g"].cells.is_none() && last["g"].bbox.unwrap().west() == 4.0, "the state that stands");
    let (first, second) = (again().await, again().await);
    let fault = first.apply(Arc::new(vec![change("f", "late", None, 1)])).await.unwrap_err();
    assert!(fault.kind == FaultKind::Fenced && fault.detail.contains("transactional id"), "{fault}");
    assert_eq!(second.apply(Arc::new(vec![change("f", "late", None, 1)])).await.unwrap(), [Effect::Applied]);
    assert_eq!(records(&settings, &topic).len(), found.len() + 1);
}

/// A feature that leaves, and comes back, because the areas are others does so for those who read on: by events of their
/// own, which no version holds back.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_judged_again_is_another_event_for_who_reads_on() {
    let broker = EmbeddedBroker::start().unwrap();
    broker.create_topic("out", 1).unwrap();
    let sink = open(&broker.settings(), Output { partitions: 1, ..output("out", Emit::Envelope) }, "id").await;
    let apply = async |change| sink.apply(Arc::new(vec![change])).await.unwrap().remove(0);
    let held = change("f", "e1", Some(5), 1);
    let leaves = Change { kind: ChangeKind::Leave, ..held.clone() };
    assert_eq!(apply(held.clone()).await, Effect::Applied);
    assert_eq!((apply(leaves.clone()).await, apply(leaves).await), (Effect::Left, Effect::Duplicate));
    assert_eq!((apply(held.clone()).await, apply(held).await), (Effect::Applied, Effect::Duplicate));
    let found: Vec<Envelope> = records(&broker.settings(), "out")
        .iter()
        .map(|record| Envelope::decode(record.value.as_deref().unwrap()).unwrap())
        .collect();
    let events: BTreeSet<&str> = found.iter().map(|envelope| &*envelope.event_id).collect();
    assert_eq!((found.len(), events.len(), &*found[0].event_id), (3, 3, "e1"));
    let versions: Vec<_> = found.iter().map(|envelope| envelope.version).collect();
    assert_eq!((versions, found[1].content == Content::Deleted), (vec![Some(5), None, None], true));
}

/// What another has in a transaction that is still open is waited for, and what was aborted is not there.
#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_is_read_past_open_and_aborted_transactions() {
    let Some(real) = Real::get() else { return };
    let settings = KafkaSettings::new(real.kafka.bootstrap());
    let topic = real.place("topic-open", 2).name;
    let sink = open(&settings, output(&topic, Emit::Envelope), &format!("{topic}-a")).await;
    let one = Arc::new(vec![change("f", "e1", None, 1)]);
    assert_eq!(sink.apply(Arc::clone(&one)).await.unwrap(), [Effect::Applied]);
    let written = records(&settings, &topic).remove(0);
    let header = written.headers.iter().find(|(name, _)| name == "geoclaim.ledger").unwrap().1.clone().unwrap();
    let entry = |event: &str| String::from_utf8(header.to_vec()).unwrap().replace("\"e1\"", &format!("\"{event}\""));
    let (brokers, name) = (real.kafka.bootstrap().to_owned(), topic.clone());
    let (aborted, open_one) = (entry("aborted"), entry("open"));
    let (begun, has_begun) = std::sync::mpsc::channel();
    let writer = std::thread::spawn(move || {
        let producer: BaseProducer = ClientConfig::new()
            .set("bootstrap.servers", brokers)
            .set("transactional.id", format!("{name}-other"))
            .create()
            .unwrap();
        let wait = Duration::from_secs(20);
        producer.init_transactions(wait).unwrap();
        for (entry, is_kept) in [(aborted, false), (open_one, true)] {
            producer.begin_transaction().unwrap();
            let headers = rdkafka::message::OwnedHeaders::new();
            let headers = headers.insert(rdkafka::message::Header { key: "geoclaim.ledger", value: Some(&entry) });
            producer.send(BaseRecord::to(&name).key("f").payload("{}").headers(headers)).unwrap();
            producer.flush(wait).unwrap();
            if is_kept {
                begun.send(()).unwrap();
                std::thread::sleep(Duration::from_secs(1));
                producer.commit_transaction(wait).unwrap();
            } else {
                producer.abort_transaction(wait).unwrap();
            }
        }
    });
    has_begun.recv().unwrap();
    // Opened while the transaction is open: it knows what was committed after that.
    let beside = open(&settings, output(&topic, Emit::Envelope), &format!("{topic}-b")).await;
    let batch = ["e1", "open", "aborted"].map(|event| change("f", event, None, 1)).to_vec();
    assert_eq!(beside.apply(Arc::new(batch)).await.unwrap(), [Effect::Duplicate, Effect::Duplicate, Effect::Applied]);
    writer.join().unwrap();
}

#[test]
fn the_command_line_writes_to_another_topic() {
    let Some(real) = Real::get() else { return };
    let place = real.place("topic-cli", 3);
    let across = feature("across", r#"{"type":"LineString","coordinates":[[1,1],[40,1]]}"#);
    let features = lines(&[point("in", 3.0, 1.0), point("out", 30.0, 1.0), across, large("large")]);
    assert_eq!(binary::run(&["publish", "-"], &place.env, features.as_bytes()).code(), 0);
    let consume = |flags: &[&str]| {
        let all = [&["consume", "--aoi", "0,0,10,10", "--report", "json", "-e"], flags].concat();
        binary::run(&all, &place.env, b"")
    };
    let (envelopes, lines) = (format!("{}-regional", place.name), format!("{}-features", place.name));
    let first = consume(&["--sink", &format!("kafka:{envelopes}")]);
    assert_eq!(
        (first.code(), &first.report()["applied"], &first.report()["discarded"]),
        (0, &3.into(), &1.into()),
        "{}",
        first.stderr
    );
    let again = consume(&["--sink", &format!("kafka:{envelopes}"), "--from-start"]);
    assert_eq!(
        (again.code(), &again.report()["applied"], &again.report()["duplicate"]),
        (0, &0.into(), &3.into()),
        "{}",
        again.stderr
    );
    let settings = KafkaSettings::new(real.kafka.bootstrap());
    assert_eq!(records(&settings, &envelopes).len(), 3);

    // What was written can be consumed further, and the body is where it was.
    let folder = tempfile::tempdir().unwrap();
    let mut env = place.env.clone();
    env.push(("GEOCLAIM_TOPIC".into(), envelopes.clone()));
    let further = binary::run_in(&["consume", "--aoi", "0,0,2,2", "--report", "json", "-e"], &env, b"", Some(folder.path()));
    assert_eq!((further.code(), &further.report()["consumed"]), (0, &3.into()), "{}", further.stderr);

    let features = consume(&["--sink", &format!("kafka:{lines}"), "--from-start", "--emit", "feature"]);
    assert_eq!((features.code(), &features.report()["applied"]), (0, &3.into()), "{}", features.stderr);
    let values = records(&settings, &lines);
    assert!(values.iter().all(|record| record.value.as_deref().unwrap().starts_with(br#"{"type":"Feature""#)), "{values:?}");

    let same = consume(&["--sink", &format!("kafka:{}", place.name)]);
    assert!(same.code() == 2 && same.stderr.contains("never end"), "{}", same.stderr);
    let marked = consume(&["--sink", &format!("kafka:{envelopes}"), "--on-left", "mark"]);
    assert!(marked.code() == 2 && marked.stderr.contains("gpkg:FILE"), "{}", marked.stderr);
    let letters = consume(&["--sink", &format!("kafka:{}.dead-letters", place.name)]);
    assert!(letters.code() == 2 && letters.stderr.contains("dead letters"), "{}", letters.stderr);
    let astray = consume(&["--emit", "feature"]);
    assert!(astray.code() == 2 && astray.stderr.contains("kafka:TOPIC"), "{}", astray.stderr);
}
