//! What a publisher does so that no sweep takes away a body that it relies on: the rules of `protocol`, against stores.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use geoclaim_common::{
    Body, Fault, key,
    retention::{Announcement, Timing},
    store::Store,
    stream::{EnvelopeSink, OutgoingRecord, Receipt, memory::MemorySink},
};
use geoclaim_producer::{
    PublishReport, PublishSettings, Publisher, Source,
    put::{Put, PutSettings, Putter},
};
use geoclaim_tests::{
    faulty::{Act, FaultyStore, Op},
    sample::{large, lines},
};
use object_store::{ObjectStoreExt as _, path::Path};

use crate::support::{Aged, memory, run_named};

const HOUR: Duration = Duration::from_secs(3_600);

fn body() -> Body {
    Body::seal(br#"{"type":"Point","coordinates":[1,2]}"#.as_slice().into())
}

/// A publisher that knows of a boundary of seven days, one of margin and ten minutes.
fn settings() -> PutSettings {
    let timing = Timing::default();
    PutSettings { boundary: 7 * 24 * HOUR + timing.slack(), deadline: Duration::from_secs(20), ..PutSettings::default() }
}

#[tokio::test]
async fn a_body_older_than_half_the_boundary_is_written_again_and_a_younger_one_is_left() {
    let (local, body) = (Aged::new(), body());
    let putter = Putter::new(Arc::clone(&local.store), settings());
    assert_eq!(putter.put(&body).await.unwrap().put, Put::Written);
    local.make_old(&body, 95 * HOUR);
    assert_eq!(putter.put(&body).await.unwrap().put, Put::Present);
    assert!(local.age(&body) > 94 * HOUR, "it was not touched");
    local.make_old(&body, 97 * HOUR);
    assert_eq!(putter.put(&body).await.unwrap().put, Put::Renewed);
    assert!(local.age(&body) < HOUR, "its age starts anew");
    assert_eq!(putter.put(&body).await.unwrap().put, Put::Present);
}

#[tokio::test]
async fn a_shorter_boundary_that_a_sweep_has_announced_holds() {
    let (local, body) = (Aged::new(), body());
    let timing = Timing { settle_seconds: 2, delete_deadline_seconds: 1, ..Timing::default() };
    Announcement { boundary_seconds: 10 * 3_600, timing }.announce(&local.store).await.unwrap();
    let putter = Putter::new(Arc::clone(&local.store), settings());
    putter.put(&body).await.unwrap();
    local.make_old(&body, 4 * HOUR);
    assert_eq!(putter.put(&body).await.unwrap().put, Put::Present);
    // No sweep can have found it older than ten hours, so there is nothing to wait for.
    local.make_old(&body, 6 * HOUR);
    let started = Instant::now();
    assert_eq!(putter.put(&body).await.unwrap().put, Put::Renewed);
    assert!(started.elapsed() < Duration::from_secs(2));
    // One can have found this one.
    local.make_old(&body, 11 * HOUR);
    assert_eq!(putter.put(&body).await.unwrap().put, Put::Renewed);
    assert!(started.elapsed() >= Duration::from_secs(2), "it settled");
}

#[tokio::test]
async fn a_body_that_another_has_just_written_settles_where_sweeps_are_run_and_its_own_does_not() {
    let (local, body) = (Aged::new(), body());
    let timing = Timing { settle_seconds: 2, delete_deadline_seconds: 1, ..Timing::default() };
    Announcement { boundary_seconds: 10 * 3_600, timing }.announce(&local.store).await.unwrap();
    let putter = || Putter::new(Arc::clone(&local.store), settings());
    let started = Instant::now();
    assert_eq!(putter().put(&body).await.unwrap().put, Put::Written);
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(putter().put(&body).await.unwrap().put, Put::Present);
    assert!(started.elapsed() >= Duration::from_secs(2), "it settled");
}

#[tokio::test]
async fn a_body_that_a_sweep_deletes_while_it_settles_is_put_again() {
    let (inner, body) = (memory(), body());
    let timing = Timing { settle_seconds: 2, delete_deadline_seconds: 1, ..Timing::default() };
    Announcement { boundary_seconds: 10 * 3_600, timing }.announce(&inner).await.unwrap();
    inner.put(&body.claim().key(), body.bytes().clone().into()).await.unwrap();
    let putter = Putter::new(Arc::clone(&inner), settings());
    let delete = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        inner.delete(&body.claim().key()).await.unwrap();
    };
    let (seen, ()) = tokio::join!(putter.put(&body), delete);
    assert_eq!(seen.unwrap().put, Put::Written);
    inner.head(&body.claim().key()).await.unwrap();
}

#[tokio::test]
async fn a_create_whose_answer_is_lost_does_not_make_an_old_body_young() {
    let (local, body) = (Aged::new(), body());
    let putter = |store: Store| Putter::new(store, settings());
    putter(Arc::clone(&local.store)).put(&body).await.unwrap();
    local.make_old(&body, 97 * HOUR);
    let faulty = FaultyStore::new(Arc::clone(&local.store), |op, key, before| match op {
        Op::Create if key.starts_with("geom") && before == 0 => Act::Unavailable,
        _ => Act::Pass,
    });
    putter(Arc::new(faulty)).put(&body).await.unwrap();
    assert!(local.age(&body) < HOUR, "it was written again");
}

fn publisher(store: Store, sink: Arc<dyn EnvelopeSink>) -> Publisher {
    let timing = Timing { publish_deadline_seconds: 2, ..Timing::default() };
    Publisher {
        settings: PublishSettings { timing, delivery_seconds: 1, put_deadline_seconds: 20, ..run_named("relied-on") },
        store,
        sink,
        clock: Arc::new(geoclaim_common::clock::SystemClock),
        counters: Arc::default(),
        on_problem: Arc::new(|problem| println!("{problem}")),
    }
}

async fn publish(publisher: Publisher, text: String) -> PublishReport {
    publisher.run(vec![Source::bytes("text", text)], std::future::pending()).await.unwrap()
}

fn key_of(feature: &str) -> Path {
    key::of(&Body::seal(feature.to_owned().into()).claim().digest)
}

/// The body of the first event takes three seconds to be put; the one of the second lies there meanwhile, and is deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_that_has_dawdled_looks_again_before_it_sends() {
    let (inner, features) = (memory(), [large("slow"), large("quick")]);
    let (slow, quick) = (key_of(&features[0]), key_of(&features[1]));
    let is_slow = slow.to_string();
    let store = FaultyStore::new(Arc::clone(&inner), move |op, key, _| match op {
        Op::Create if key == is_slow => Act::Slow(Duration::from_secs(3)),
        _ => Act::Pass,
    });
    let deleting = async {
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        inner.delete(&quick).await.unwrap();
    };
    let sink = MemorySink::default();
    let publishing = publish(publisher(Arc::new(store), Arc::new(sink.clone())), lines(&features));
    let (report, ()) = tokio::join!(publishing, deleting);
    assert_eq!((report.published, report.bodies_written, sink.records().len()), (2, 3, 2));
    inner.head(&quick).await.unwrap();
}

/// While one body is looked for again, the others wait where they are, and none may hold what it needs.
#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_that_looks_again_does_not_wait_for_those_that_wait_for_it() {
    let features: Vec<String> = (0..8).map(|n| large(&format!("f{n}"))).collect();
    let slow: Vec<String> = [0, 3, 6].map(|n| key_of(&features[n]).to_string()).into();
    let store = FaultyStore::new(memory(), move |op, key, _| match op {
        Op::Create if slow.iter().any(|slow| slow == key) => Act::Slow(Duration::from_millis(2_900)),
        Op::Get if key.starts_with("sweep") => Act::Slow(Duration::from_millis(300)),
        Op::Create | Op::Head => Act::Slow(Duration::from_millis(100)),
        _ => Act::Pass,
    });
    let mut publisher = publisher(Arc::new(store), Arc::new(MemorySink::default()));
    publisher.settings.concurrency = 4;
    let published = tokio::time::timeout(Duration::from_secs(60), publish(publisher, lines(&features))).await;
    assert_eq!(published.expect("it ends").published, 8);
}

/// Acknowledges after three seconds, and deletes a body meanwhile.
#[derive(Debug)]
struct LateSink {
    store: Store,
    delete: Mutex<Option<Path>>,
}

#[async_trait]
impl EnvelopeSink for LateSink {
    async fn send(&self, _record: OutgoingRecord) -> Receipt {
        let (settle, receipt) = Receipt::new();
        let (store, key) = (Arc::clone(&self.store), self.delete.lock().unwrap().take());
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(3)).await;
            if let Some(key) = key {
                store.delete(&key).await.unwrap();
            }
            let _ = settle.send(Ok(()));
        });
        receipt
    }

    async fn flush(&self, _within: Duration) -> Result<(), Fault> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_late_acknowledgement_the_body_is_put_again_if_it_is_gone() {
    let (store, feature) = (memory(), large("late"));
    let key = key_of(&feature);
    let sink = LateSink { store: Arc::clone(&store), delete: Mutex::new(Some(key.clone())) };
    let report = publish(publisher(Arc::clone(&store), Arc::new(sink)), lines(&[feature])).await;
    assert_eq!(report.published, 1);
    store.head(&key).await.unwrap();
}
