//! Every sink keeps the contract, each with what only it does.

use std::{future::ready, sync::Arc, time::Duration};

use geoclaim_common::{Fault, FaultKind};
use geoclaim_consumer::sink::{
    Change, ChangeKind, Effect, OnLeft, Sink,
    gpkg::GeoPackageSink,
    postgis::{PostgisSink, Statements, tokio_postgres::Transaction},
    stdout::LineSink,
};
use geoclaim_tests::{
    components::{Postgres, require},
    contract::{self, change, of_kind, with_body},
};

/// A database of its own in the cluster that tests share.
struct Database {
    cluster: &'static Postgres,
    name: String,
}

impl Database {
    fn fresh() -> Option<Self> {
        let cluster = require("postgres", Postgres::shared())?;
        Some(Self { cluster, name: cluster.create_database().unwrap() })
    }

    async fn sink(&self, consumer: &str) -> PostgisSink {
        PostgisSink::open(&self.cluster.url(&self.name), consumer).await.unwrap()
    }

    fn query(&self, sql: &str) -> String {
        self.cluster.query(&self.name, sql).unwrap()
    }
}

async fn apply(sink: &dyn Sink, changes: Vec<Change>) -> Vec<Effect> {
    sink.apply(Arc::new(changes)).await.unwrap()
}

/// What the contract leaves behind: the features in order, and how many events the ledger has.
const LEFT_BEHIND: (&str, usize) = ("f|{\"x\": 6}\ng|{\"x\": 4}\nh|{\"x\": 7}", 7 + 12 + 5);

#[tokio::test(flavor = "multi_thread")]
async fn a_geopackage_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.gpkg");
    let open = || Arc::new(GeoPackageSink::open(&path, "c").unwrap()) as Arc<dyn Sink>;
    contract::sink(|| ready(open())).await;
    let connection = rusqlite::Connection::open(&path).unwrap();
    let text = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    let features = "SELECT group_concat(line, char(10)) FROM (SELECT feature_id || '|' || replace(properties, ':', ': ') AS line
      FROM features ORDER BY feature_id)";
    assert_eq!(text(features), LEFT_BEHIND.0);
    let events = text("SELECT count(*) || '' FROM geoclaim_ledger WHERE consumer = 'c'");
    assert_eq!(events, LEFT_BEHIND.1.to_string(), "a row for every event, stale ones too");
    contract::one_of_many_again_and_again(&[open(), open(), open(), open()]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_keep_the_contract_within_a_run() {
    contract::sink_within_a_run(&(Arc::new(LineSink::new(std::io::sink())) as Arc<dyn Sink>)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgis_keeps_the_contract() {
    let Some(database) = Database::fresh() else { return };
    contract::sink(|| async { Arc::new(database.sink("c").await) as Arc<dyn Sink> }).await;
    assert_eq!(database.query("SELECT feature_id, properties FROM features ORDER BY feature_id"), LEFT_BEHIND.0);
    let events = database.query("SELECT count(*) FROM geoclaim_ledger WHERE consumer = 'c'");
    assert_eq!(events, LEFT_BEHIND.1.to_string(), "a row for every event, stale ones too");
    let mut sinks: Vec<Arc<dyn Sink>> = Vec::new();
    for _ in 0..8 {
        sinks.push(Arc::new(database.sink("c").await));
    }
    contract::one_of_many_again_and_again(&sinks).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_make_the_tables_once_and_a_newer_version_is_left_alone() {
    let Some(database) = Database::fresh() else { return };
    let url = database.cluster.url(&database.name);
    let opened = futures::future::join_all((0..8).map(|n| {
        let url = url.clone();
        tokio::spawn(async move { PostgisSink::open(&url, format!("c{n}")).await.map(drop) })
    }));
    opened.await.into_iter().for_each(|opened| opened.unwrap().unwrap());
    assert_eq!(database.query("SELECT count(*) FROM geoclaim_schema"), "1");
    let kind = "SELECT type || ' ' || srid || ' ' || coord_dimension FROM geometry_columns
      WHERE f_table_name = 'features' AND f_geometry_column = 'geom'";
    assert_eq!(database.query(kind), "GEOMETRY 4326 2");
    assert_eq!(database.query("SELECT count(*) FROM pg_indexes WHERE tablename = 'features' AND indexdef LIKE '%gist%'"), "1");
    database.query("UPDATE geoclaim_schema SET version = 1000");
    let fault = PostgisSink::open(&url, "c").await.unwrap_err();
    assert!(fault.kind == FaultKind::Configuration && fault.detail.contains("version 1000"), "{fault}");
}

#[tokio::test(flavor = "multi_thread")]
async fn consumers_share_a_database_and_none_undoes_what_another_holds() {
    let Some(database) = Database::fresh() else { return };
    let (north, south) = (database.sink("north").await, database.sink("south").await.on_left(OnLeft::Mark));
    assert_eq!(apply(&north, vec![change("f", "e1", None, 1)]).await, [Effect::Applied]);
    assert_eq!(apply(&south, vec![change("f", "e1", None, 1)]).await, [Effect::Applied], "its own ledger");
    let leave = of_kind("f", "e2", None, ChangeKind::Leave);
    assert_eq!(apply(&north, vec![leave.clone()]).await, [Effect::Left]);
    assert_eq!(database.query("SELECT consumer, left_at IS NULL FROM features"), "south|t");
    assert_eq!(apply(&south, vec![leave]).await, [Effect::Left]);
    assert_eq!(database.query("SELECT consumer, left_at IS NULL FROM features"), "south|f", "marked and kept");
    assert_eq!(apply(&south, vec![of_kind("f", "e3", None, ChangeKind::Delete)]).await, [Effect::NotHeld]);
    assert_eq!(database.query("SELECT count(*) FROM features"), "0", "what is deleted goes, marked or not");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_postgis_cannot_hold_is_recorded_with_its_reason_and_the_others_stand() {
    let Some(database) = Database::fresh() else { return };
    let sink = database.sink("c").await;
    // A rule of the database's owner, which only the database can tell.
    database.query("ALTER TABLE features ADD CONSTRAINT no_unwanted CHECK (feature_id <> 'unwanted')");
    let point = r#"{"type":"Point","coordinates":[1,2,3]}"#;
    let open_ring = r#"{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,1]]]}"#;
    let batch = vec![
        with_body("good", "g", None, r#"{"a":"\\u0000"}"#, point),
        with_body("ring", "r", None, "{}", open_ring),
        with_body("nul", "n", None, r#"{"a":"\u0000"}"#, point),
        with_body("unwanted", "x", None, "{}", point),
        with_body("also good", "o", None, "null", "null"),
        with_body("name\0", "e\0", None, "{}", point),
    ];
    let effects = apply(&sink, batch.clone()).await;
    let rejected = |n: usize, why: &str| matches!(&effects[n], Effect::Rejected(told) if told.contains(why));
    assert!(rejected(1, "does not end where it begins") && rejected(2, "\\u0000") && rejected(3, "no_unwanted"), "{effects:?}");
    assert_eq!([&effects[0], &effects[4], &effects[5]], [&Effect::Applied; 3]);
    assert!(apply(&sink, batch).await.iter().all(|effect| *effect == Effect::Duplicate), "recorded, and not tried again");
    let z = "SELECT feature_id, ST_AsText(geom), ST_Z(geom_z) FROM features WHERE feature_id <> 'also good' ORDER BY feature_id";
    assert_eq!(database.query(z), "good|POINT(1 2)|3\nname\u{2400}|POINT(1 2)|3");
    assert_eq!(
        database.query("SELECT string_agg(event_id, ',' ORDER BY event_id) FROM geoclaim_ledger WHERE outcome = 'rejected'"),
        "n,r,x"
    );
}

/// Counts applied events in a table of its own, and refuses on demand.
#[derive(Debug)]
struct Tally;

#[async_trait::async_trait]
impl Statements for Tally {
    async fn run(&self, transaction: &Transaction<'_>, batch: &[Change], effects: &[Effect]) -> Result<(), Fault> {
        let refuse = |error| Fault::configuration(format!("{error}"));
        for (change, _) in batch.iter().zip(effects).filter(|(_, effect)| **effect == Effect::Applied) {
            transaction.execute("INSERT INTO tally VALUES ($1)", &[&change.event_id]).await.map_err(refuse)?;
        }
        if batch.iter().any(|change| change.event_id == "bad") { Err(Fault::unavailable("no")) } else { Ok(()) }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_of_an_embedder_are_in_the_same_transaction() {
    let Some(database) = Database::fresh() else { return };
    let sink = database.sink("c").await.with_statements(Arc::new(Tally));
    database.query("CREATE TABLE tally (event text PRIMARY KEY)");
    let batch = || vec![change("f", "e1", None, 1), change("f", "e1", None, 1), change("g", "e2", None, 1)];
    assert_eq!(apply(&sink, batch()).await, [Effect::Applied, Effect::Duplicate, Effect::Applied]);
    assert_eq!(apply(&sink, batch()).await, [Effect::Duplicate, Effect::Duplicate, Effect::Duplicate]);
    assert!(sink.apply(Arc::new(vec![change("h", "e3", None, 1), change("h", "bad", None, 1)])).await.is_err());
    assert_eq!(database.query("SELECT string_agg(event, ',' ORDER BY event) FROM tally"), "e1,e2");
    assert_eq!(database.query("SELECT count(*) FROM features WHERE feature_id = 'h'"), "0");
    assert_eq!(database.query("SELECT count(*) FROM geoclaim_ledger"), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_was_ended_by_the_database_comes_again_whole() {
    let Some(database) = Database::fresh() else { return };
    let sink = database.sink("c").await;
    apply(&sink, vec![change("f", "e1", None, 1)]).await;
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'geoclaim'";
    assert_eq!(database.query(end), "1");
    let fault = loop {
        match sink.apply(Arc::new(vec![change("g", "e2", None, 2)])).await {
            Ok(effects) => break effects,
            Err(fault) => assert_eq!(fault.kind, FaultKind::Unavailable, "{fault}"),
        }
    };
    assert_eq!(fault, [Effect::Applied]);
    // A reader that holds the row: the batch waits, and goes on when the row is free.
    assert_eq!(database.query("SELECT count(*) FROM features"), "2");
}

/// Old events are forgotten a few at a time, young ones and other consumers' are kept, and what stands still stands.
async fn forgets(sink: &dyn Sink, other: &dyn Sink, age: impl Fn()) {
    apply(other, vec![change("o", "other", None, 1)]).await;
    apply(sink, (0..5).map(|n| change(&format!("f{n}"), &format!("e{n}"), Some(1), 1)).collect()).await;
    age();
    apply(sink, vec![change("young", "young", None, 1)]).await;
    let week = Duration::from_secs(7 * 86_400);
    assert_eq!([sink.forget(week, 3).await.unwrap(), sink.forget(week, 3).await.unwrap()], [3, 2]);
    assert_eq!(sink.forget(week, 3).await.unwrap(), 0);
    assert_eq!(apply(sink, vec![change("young", "young", None, 1)]).await, [Effect::Duplicate]);
    assert_eq!(apply(sink, vec![change("f1", "e1", Some(1), 1)]).await, [Effect::Stale], "the feature's state is known");
    assert_eq!(apply(other, vec![change("o", "other", None, 1)]).await, [Effect::Duplicate]);
}

#[tokio::test(flavor = "multi_thread")]
async fn old_events_of_the_ledger_are_forgotten_when_they_may_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.gpkg");
    let open = |consumer: &str| GeoPackageSink::open(&path, consumer).unwrap();
    let age = || {
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute("UPDATE geoclaim_ledger SET recorded_at = '2001-01-01T00:00:00.000Z'", []).unwrap();
    };
    forgets(&open("c"), &open("other"), age).await;
    let Some(database) = Database::fresh() else { return };
    let age = || drop(database.query("UPDATE geoclaim_ledger SET recorded_at = '2001-01-01'"));
    forgets(&database.sink("c").await, &database.sink("other").await, age).await;
}
