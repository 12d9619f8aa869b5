//! A consumer that is killed, again and again, on the real broker and the real database: the end is that of one clean
//! run. `tests/crash-matrix KILLS EVENTS` runs the long form.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use geoclaim_common::kafka::KafkaSettings;
use geoclaim_tests::{
    binary::{self, Running},
    components::{Kafka, Postgres, require},
    proxy::{Mode, Proxy},
    random::Random,
};

use crate::{
    effects::{Look, MEMBER, POSTGIS_TRIGGER, Target, check, consume},
    flow::{Flow, PARTITIONS, committed, envelopes, setting, wanted},
    support::{Place, Real},
};

fn finish(target: &Target, place: &Place) {
    let sink = target.url();
    let run = binary::run(&consume(&sink, &[&MEMBER[..], &["--until-end"]].concat()), &place.env, b"");
    assert_eq!(run.code(), 0, "{}", run.stderr);
    assert_eq!(run.report()["dead_lettered"], 0, "{}", run.stderr);
}

/// Kills the consumer at random moments while events flow.
async fn killed(real: &Real, target: Target, name: &str) {
    let (kills, count) = (setting("GEOCLAIM_CRASH_KILLS", 40), setting("GEOCLAIM_CRASH_EVENTS", 4_000));
    let seed = Random::seed();
    println!("{name}: {kills} kills, {count} events, seed {seed}");
    let place = real.place(name, PARTITIONS);
    let settings = KafkaSettings::new(real.kafka.bootstrap());
    target.prepare(&place);
    let records = envelopes(real, &place, count).await;
    // So that the last kills still meet some work.
    let pause = Duration::from_millis((kills as u64 * 550).max(1) / (count as u64 / 20).max(1));
    let flow = Flow::start(&settings, &place.name, records, pause);
    let mut random = Random::new(seed);
    let (mut looks, mut advanced) = (Vec::new(), 0);
    for kill in 0..kills {
        let sink = target.url();
        let mut child = binary::start(&consume(&sink, &MEMBER), &place.env, None);
        tokio::time::sleep(Duration::from_millis(150 + random.below(800))).await;
        child.signal("KILL");
        child.wait();
        if kill % 5 == 0 {
            let committed = committed(real.kafka.bootstrap(), &place.name);
            looks.push(Look(committed, target.ledger()));
        }
        advanced = advanced.max(target.ledger().len());
    }
    flow.task.await.unwrap();
    assert!(flow.is_done.load(Ordering::SeqCst));
    finish(&target, &place);
    looks.push(Look(committed(real.kafka.bootstrap(), &place.name), target.ledger()));
    check(&target, &settings, &place.name, &looks);
    let records = flow.sent.load(Ordering::SeqCst);
    println!("{name}: {records} records acknowledged, {advanced} events in the ledger after the last kill");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_of_postgis_that_is_killed_at_any_moment_ends_as_one_clean_run() {
    let Some(real) = Real::get() else { return };
    let Some(postgres) = require("postgres", Postgres::start()) else { return };
    let database = postgres.create_database().unwrap();
    killed(&real, Target::Postgis(Arc::new(postgres), database), "crash-postgis").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_of_a_geopackage_that_is_killed_at_any_moment_ends_as_one_clean_run() {
    let Some(real) = Real::get() else { return };
    killed(&real, Target::GeoPackage(tempfile::tempdir().unwrap()), "crash-gpkg").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_into_a_topic_that_is_killed_at_any_moment_ends_as_one_clean_run() {
    let Some(real) = Real::get() else { return };
    let output = format!("crash-output-{}", std::process::id());
    killed(&real, Target::Topic(KafkaSettings::new(real.kafka.bootstrap()), output), "crash-topic").await;
}

fn wait_for(what: &str, child: &Running, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < Duration::from_secs(120), "{what}\n{}", child.stderr());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Broker killed and restarted, database stopped at once and restarted, store answering 503 for ten seconds, while
/// events flow through one consumer that nobody restarts.
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_outlives_its_broker_its_database_and_its_store() {
    let Some(real) = Real::get() else { return };
    let Some(mut kafka) = require("kafka", Kafka::start()) else { return };
    let Some(mut postgres) = require("postgres", Postgres::start()) else { return };
    let proxy = Proxy::before(real.store.endpoint().rsplit(':').next().unwrap().parse().unwrap()).unwrap();
    let count = setting("GEOCLAIM_CRASH_EVENTS", 4_000);
    let mut place = real.place("outlives", PARTITIONS);
    kafka.create_topic(&place.name, PARTITIONS, &[]).unwrap();
    let endpoint = format!("http://127.0.0.1:{}", proxy.port());
    place.env.extend([("GEOCLAIM_BROKERS".to_owned(), kafka.bootstrap().to_owned()), ("AWS_ENDPOINT".into(), endpoint)]);
    let settings = KafkaSettings::new(kafka.bootstrap());
    let database = postgres.create_database().unwrap();
    let url = postgres.url(&database);
    let run = binary::run(&consume(&url, &["--group", "nobody", "--until-end"]), &place.env, b"");
    assert_eq!(run.code(), 0, "{}", run.stderr);
    postgres.query(&database, POSTGIS_TRIGGER).unwrap();
    let records = envelopes(&real, &place, count).await;
    let mut child = binary::start(&consume(&url, &MEMBER), &place.env, None);
    let flow = Flow::start(&settings, &place.name, records, Duration::from_millis(30_000 / (count as u64 / 20)));
    let applied =
        |postgres: &Postgres| -> usize { postgres.query(&database, "SELECT count(*) FROM effects").unwrap().parse().unwrap() };
    wait_for("it begins", &child, || applied(&postgres) > count / 20);
    kafka.stop_hard();
    tokio::time::sleep(Duration::from_secs(2)).await;
    kafka.restart().unwrap();
    let after = applied(&postgres);
    wait_for("it goes on after the broker", &child, || applied(&postgres) > after + count / 20);
    postgres.stop_immediately().unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    postgres.restart().unwrap();
    let after = applied(&postgres);
    wait_for("it goes on after the database", &child, || applied(&postgres) > after + count / 20);
    proxy.set(Mode::Unavailable);
    tokio::time::sleep(Duration::from_secs(10)).await;
    proxy.set(Mode::Pass);
    flow.task.await.unwrap();
    let all = wanted(&settings, &place.name);
    let all: BTreeSet<&String> = all.values().filter(|(_, wanted)| *wanted).map(|(event, _)| event).collect();
    wait_for("it ends", &child, || applied(&postgres) >= all.len());
    child.signal("TERM");
    let run = child.wait();
    assert_eq!((run.code(), &run.report()["dead_lettered"]), (0, &0.into()), "{}", run.stderr);
    check(&Target::Postgis(Arc::new(postgres), database), &settings, &place.name, &[]);
}
