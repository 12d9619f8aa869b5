//! What every object store must do.

use std::{sync::Arc, time::Duration};

use geoclaim_common::{
    Body, FaultKind,
    store::{self, Store},
};
use geoclaim_producer::put::{Put, PutSettings, Putter};
use object_store::ObjectStoreExt as _;

/// A store must honour a conditional create, show what it has, and say *missing* of what it has not.
///
/// # Panics
/// The store breaks the contract.
pub async fn store(store: Store, name: &str) {
    store::check(&store).await.unwrap_or_else(|fault| panic!("{name}: {fault}"));
    store::check_creates(&store).await.unwrap_or_else(|fault| panic!("{name}: {fault}"));
    let body = Body::seal(format!("{{\"store\":\"{name}\"}}").into());
    let missing = store.head(&body.claim().key()).await.expect_err("nothing is there");
    assert_eq!(store::fault_of(&missing).kind, FaultKind::Missing, "{name}");
    let deadline = Duration::from_secs(20);
    let putter = Arc::new(Putter::new(Arc::clone(&store), PutSettings { deadline, ..PutSettings::default() }));
    let put_once = async |body: &Body| putter.put(body).await.expect("it is put").put;
    assert_eq!(put_once(&body).await, Put::Written, "{name}");
    assert_eq!(put_once(&body).await, Put::Present, "{name}: a second create is refused");
    assert_eq!(store.get(&body.claim().key()).await.unwrap().bytes().await.unwrap(), body.bytes());
    store.put(&body.claim().key(), "short".into()).await.expect("it is overwritten");
    assert_eq!(put_once(&body).await, Put::Repaired, "{name}");
    let contenders = (0..16).map(|_| {
        let (putter, body) = (Arc::clone(&putter), Body::seal(format!("{{\"contended\":\"{name}\"}}").into()));
        tokio::spawn(async move { putter.put(&body).await })
    });
    let ended = futures::future::join_all(contenders).await;
    let ended: Vec<Put> = ended.into_iter().map(|task| task.expect("a task ends").expect("it is put").put).collect();
    let written = ended.iter().filter(|put| **put == Put::Written).count();
    assert_eq!(written, 1, "{name}: one of many creates wins");
}
