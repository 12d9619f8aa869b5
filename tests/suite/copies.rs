//! Clipped copies in an object store: one whole object a job, whoever does it and however often.

use std::{sync::Arc, time::Duration};

use futures::TryStreamExt as _;
use geoclaim_common::{
    Bbox, FaultKind,
    store::{self, LocalDirectory, Store},
};
use geoclaim_consumer::{
    aoi::{Area, AreaSet, LiveAreas},
    lease::StoreLeases,
    sink::{
        Effect, Sink,
        object::{Existing, ObjectSink, Parameters},
    },
};
use geoclaim_tests::{
    binary,
    contract::{self, change, with_body},
    faulty::{Act, FaultyStore, Op},
    sample::{feature, lines, point},
};
use object_store::{ObjectStore as _, ObjectStoreExt as _, path::Path, prefix::PrefixStore};

use crate::support::{Real, azure, gcs, memory, s3};

fn areas() -> Arc<LiveAreas> {
    let area = Area::from_bbox("area", &Bbox::new(1.0, 0.0, 60.0, 2.0).unwrap());
    Arc::new(LiveAreas::new(AreaSet::new(vec![area])))
}

async fn sink(store: &Store, parameters: Parameters, existing: Existing) -> ObjectSink {
    ObjectSink::open(Arc::clone(store), "s3://bodies", areas(), (parameters, existing)).await.unwrap()
}

async fn plain(store: &Store) -> Arc<dyn Sink> {
    Arc::new(sink(store, Parameters::default(), Existing::Skip).await)
}

async fn leased(store: &Store) -> Arc<dyn Sink> {
    let leases = StoreLeases::new(Arc::clone(store), Duration::from_secs(3));
    Arc::new(sink(store, Parameters::default(), Existing::Skip).await.with_leases(Arc::new(leases)))
}

/// Returns the names and the texts of the outputs.
async fn outputs(store: &Store) -> Vec<(Path, String)> {
    let mut found: Vec<_> = store.list(Some(&Path::from("jobs"))).map_ok(|meta| meta.location).try_collect().await.unwrap();
    found.sort();
    let mut outputs = Vec::new();
    for path in found {
        let bytes = store.get(&path).await.unwrap().bytes().await.unwrap();
        outputs.push((path, String::from_utf8(bytes.to_vec()).unwrap()));
    }
    outputs
}

/// How many outputs the contract leaves behind.
const LEFT_BEHIND: usize = 3 + 5;

async fn keeps_the_contract(store: Store) {
    contract::write_once(|| plain(&store)).await;
    let left = outputs(&store).await;
    assert_eq!(left.len(), LEFT_BEHIND, "{left:?}");
    let (path, text) = &left[0];
    let job = path.filename().unwrap().strip_suffix(".geojson").unwrap();
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!((&value["geoclaim"]["job"], &value["geoclaim"]["area"]), (&job.into(), &"area".into()), "{text}");
    let beside: Store = Arc::new(PrefixStore::new(store, "leased"));
    contract::write_once(|| leased(&beside)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_in_memory_and_in_a_local_directory_keep_the_contract() {
    keeps_the_contract(memory()).await;
    let folder = tempfile::tempdir().unwrap();
    keeps_the_contract(store::open(folder.path().to_str().unwrap(), LocalDirectory::Create).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_on_seaweedfs_keep_the_contract() {
    let Some(real) = Real::get() else { return };
    let store = s3(&real, &real.place("copies", 1).name);
    keeps_the_contract(Arc::clone(&store)).await;
    is_never_taken_for_the_output(Arc::new(PrefixStore::new(store, "damaged"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_on_azurite_keep_the_contract() {
    let Some(store) = azure("copies") else { return };
    keeps_the_contract(Arc::clone(&store)).await;
    is_never_taken_for_the_output(Arc::new(PrefixStore::new(store, "damaged"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_on_fake_gcs_server_where_puts_go_by_its_json_api_keep_the_contract() {
    let Some(store) = gcs("copies") else { return };
    keeps_the_contract(Arc::clone(&store)).await;
    is_never_taken_for_the_output(Arc::new(PrefixStore::new(store, "damaged"))).await;
}

/// Sixty-four workers with a sink each want one job; with leases it is done once, and without them written once.
#[tokio::test(flavor = "multi_thread")]
async fn of_sixty_four_that_want_one_copy_one_writes_it() {
    for is_leased in [true, false] {
        let faulty = Arc::new(FaultyStore::new(memory(), |_, _: &str, _| Act::Pass));
        let store: Store = Arc::clone(&faulty) as Store;
        let one = change("f", "e", None, 7);
        let workers = (0..64).map(|_| {
            let (store, one) = (Arc::clone(&store), one.clone());
            tokio::spawn(async move {
                let sink = if is_leased { leased(&store).await } else { plain(&store).await };
                sink.apply(Arc::new(vec![one])).await.unwrap().remove(0)
            })
        });
        let ended: Vec<Effect> = futures::future::join_all(workers).await.into_iter().map(Result::unwrap).collect();
        let count = |effect: &Effect| ended.iter().filter(|ended| *ended == effect).count();
        assert_eq!((count(&Effect::Applied), count(&Effect::Duplicate)), (1, 63));
        assert_eq!(outputs(&store).await.len(), 1);
        let tries = faulty.calls().iter().filter(|call| call.op == Op::Create && call.key.starts_with("jobs/")).count();
        assert!(!is_leased || tries == 1, "under a lease one has tried, and not {tries}");
    }
}

/// What stands under a job's key and is not its output is left alone and told, or exchanged when that is wanted.
async fn is_never_taken_for_the_output(store: Store) {
    let (skip, overwrite) =
        (plain(&store).await, Arc::new(sink(&store, Parameters::default(), Existing::Overwrite).await) as Arc<dyn Sink>);
    let apply = async |sink: &Arc<dyn Sink>| sink.apply(Arc::new(vec![change("f", "e", None, 7)])).await.unwrap().remove(0);
    assert_eq!(apply(&skip).await, Effect::Applied);
    let (path, text) = outputs(&store).await.remove(0);
    let damaged = [
        text[..text.len() - 40].to_owned(),
        text.replace("[7,1]", "[8,1]"),
        String::new(),
        text.replace("\"area\"", "\"other\""),
    ];
    for damage in damaged {
        store.put(&path, damage.clone().into()).await.unwrap();
        let refused = apply(&skip).await;
        assert!(matches!(&refused, Effect::Rejected(why) if why.contains("--existing overwrite")), "{refused:?}");
        assert_eq!(outputs(&store).await[0].1, damage, "nobody has touched it");
        assert_eq!(apply(&overwrite).await, Effect::Applied);
        assert_eq!((outputs(&store).await, apply(&overwrite).await), (vec![(path.clone(), text.clone())], Effect::Duplicate));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_and_is_not_whole_is_never_taken_for_the_output() {
    is_never_taken_for_the_output(memory()).await;
    let folder = tempfile::tempdir().unwrap();
    let local = store::open(folder.path().to_str().unwrap(), LocalDirectory::Create).unwrap();
    let fault = ObjectSink::open(local, "s3://bodies", areas(), (Parameters::default(), Existing::Overwrite)).await.unwrap_err();
    assert!(fault.kind == FaultKind::Configuration && fault.detail.contains("no conditional exchange"), "{fault}");
}

/// Each of the things that an output depends on makes another key, and nothing else does.
#[tokio::test(flavor = "multi_thread")]
async fn other_parameters_make_other_copies_beside_the_old_ones() {
    let store = memory();
    let zigzag = r#"{"type":"LineString","coordinates":[[2,1],[3,1.001],[4,1],[70,1]]}"#;
    let body = |event: &str| with_body("f", event, None, "{}", zigzag);
    let generation = Parameters { generation: Some("2".into()), ..Parameters::default() };
    let simplify = Parameters { simplify_degrees: Some(0.01), ..Parameters::default() };
    let mut versions = Vec::new();
    for parameters in [Parameters::default(), generation, simplify] {
        let sink = sink(&store, parameters, Existing::Skip).await;
        let effects = sink.apply(Arc::new(vec![body("e1"), body("e2")])).await.unwrap();
        assert_eq!(effects, [Effect::Applied, Effect::Duplicate], "the event is no part of the job");
        versions.push(outputs(&store).await.len());
    }
    assert_eq!(versions, [1, 2, 3]);
    let texts: Vec<String> = outputs(&store).await.into_iter().map(|(_, text)| text).collect();
    let simplified = texts.iter().filter(|text| text.contains("[[2.0,1.0],[60.0,1.0]]")).count();
    let whole = texts.iter().filter(|text| text.contains("[3.0,1.001]")).count();
    assert_eq!((simplified, whole), (1, 2), "{texts:?}");
}

/// A conflict with nothing there, an answer lost after the write, an outage: the copy is there in the end, written once.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_says_nothing_decides_nothing() {
    for act in [Act::Conflict, Act::DoneButLost, Act::Unavailable] {
        let first = act.clone();
        let is_first = move |op, key: &str, before| op == Op::Create && key.starts_with("jobs/") && before == 0;
        let store: Store =
            Arc::new(FaultyStore::new(
                memory(),
                move |op, key: &str, before| if is_first(op, key, before) { first.clone() } else { Act::Pass },
            ));
        let sink = plain(&store).await;
        let batch = Arc::new(vec![change("f", "e", None, 7), change("g", "e2", None, 8)]);
        let effects = loop {
            match sink.apply(Arc::clone(&batch)).await {
                Ok(effects) => break effects,
                Err(fault) => assert_eq!(fault.kind, FaultKind::Unavailable),
            }
        };
        assert_eq!((effects, outputs(&store).await.len()), (vec![Effect::Applied; 2], 2), "{act:?}");
    }
}

/// A job whose write failed under a lease is tried again at once, and one that is committed is exchanged where that is wanted.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_keeps_neither_a_failed_job_nor_a_backfill_waiting() {
    let is_first = |op, key: &str, before| op == Op::Create && key.starts_with("jobs/") && before == 0;
    let script = move |op, key: &str, before| if is_first(op, key, before) { Act::Unavailable } else { Act::Pass };
    let store: Store = Arc::new(FaultyStore::new(memory(), script));
    let leases = || Arc::new(StoreLeases::new(Arc::clone(&store), Duration::from_secs(600)));
    let sink = async |existing| sink(&store, Parameters::default(), existing).await.with_leases(leases());
    let (skip, overwrite) = (sink(Existing::Skip).await, sink(Existing::Overwrite).await);
    let batch = || Arc::new(vec![change("f", "e", None, 7)]);
    assert_eq!(skip.apply(batch()).await.unwrap_err().kind, FaultKind::Unavailable);
    let again = tokio::time::timeout(Duration::from_secs(20), skip.apply(batch())).await.expect("it need not wait");
    assert_eq!(again.unwrap(), [Effect::Applied]);
    let (path, text) = outputs(&store).await.remove(0);
    store.put(&path, "damaged".into()).await.unwrap();
    assert_eq!(overwrite.apply(batch()).await.unwrap(), [Effect::Applied]);
    assert_eq!(outputs(&store).await, [(path, text)]);
}

/// What cannot be clipped is told once, with its reason beside the copies.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_clipped_is_refused_and_recorded() {
    let store = memory();
    let sink = plain(&store).await;
    let long = with_body("f", "e", None, "{}", r#"{"type":"LineString","coordinates":[[2,1],[-179,1]]}"#);
    let batch = Arc::new(vec![long, change("g", "e2", None, 8)]);
    let effects = sink.apply(Arc::clone(&batch)).await.unwrap();
    assert!(matches!(&effects[0], Effect::Rejected(why) if why.contains("which way round")), "{effects:?}");
    assert_eq!(effects[1], Effect::Applied);
    assert_eq!(sink.apply(batch).await.unwrap(), [Effect::Duplicate, Effect::Duplicate], "recorded, and not tried again");
    let told: Vec<String> = outputs(&store)
        .await
        .into_iter()
        .filter(|(path, _)| path.as_ref().ends_with(".refused.json"))
        .map(|(_, text)| text)
        .collect();
    assert!(told.len() == 1 && told[0].contains("which way round"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_keeps_clipped_copies() {
    let Some(real) = Real::get() else { return };
    let place = real.place("copies", 2);
    let folder = tempfile::tempdir().unwrap();
    let across = feature("across", r#"{"type":"Polygon","coordinates":[[[0,0],[10,0],[10,2],[0,2],[0,0]]]}"#);
    let features = lines(&[across, point("in", 3.0, 1.0), point("out", 30.0, 1.0)]);
    assert_eq!(binary::run(&["publish", "-"], &place.env, features.as_bytes()).code(), 0);
    let consume = |flags: &[&str]| {
        let all = [&["consume", "--aoi", "2,0,5,2", "--report", "json", "-e"], flags].concat();
        binary::run_in(&all, &place.env, b"", Some(folder.path()))
    };
    let copies = format!("s3://{}/copies", place.name);
    let first = consume(&["--sink", &copies, "--lease", "3"]);
    assert_eq!(first.code(), 0, "{}", first.stderr);
    assert_eq!((&first.report()["applied"], &first.report()["discarded"]), (&2.into(), &1.into()));
    let again = consume(&["--sink", &copies, "--lease", "3", "--from-start"]).report();
    assert_eq!((&again["applied"], &again["duplicate"]), (&0.into(), &2.into()), "{again}");
    let local = format!("file://{}/copies", folder.path().display());
    let beside = consume(&["--sink", &local, "--from-start", "--generation", "2"]);
    assert_eq!((beside.code(), &beside.report()["applied"]), (0, &2.into()), "{}", beside.stderr);
    let store = store::open(&local, LocalDirectory::Expect).unwrap();
    let texts: Vec<String> = outputs(&store).await.into_iter().map(|(_, text)| text).collect();
    assert!(texts.iter().any(|text| text.contains("[5.0,2.0]") && !text.contains("[10")), "{texts:?}");
    let refused = consume(&["--sink", &local, "--existing", "overwrite"]);
    assert!(refused.code() == 2 && refused.stderr.contains("no conditional exchange"), "{}", refused.stderr);
    let bodies = consume(&["--sink", &format!("s3://{}/bodies/", place.name)]);
    assert!(bodies.code() == 2 && bodies.stderr.contains("store of the bodies"), "{}", bodies.stderr);
    let astray = consume(&["--generation", "2"]);
    assert!(astray.code() == 2 && astray.stderr.contains("sink of objects"), "{}", astray.stderr);
}

/// A worker that stands still (SIGSTOP) past its lease, right before it writes: another makes the copy meanwhile, and the
/// first finds, when it goes on, that it is not its to commit.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_stood_still_past_its_lease_does_not_commit() {
    let Some(real) = Real::get() else { return };
    let place = real.place("stopped", 1);
    real.kafka.create_topic(&format!("{}.dead-letters", place.name), 1, &[]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut env = place.env.clone();
    env.push(("GEOCLAIM_STORE".into(), path("bodies")));
    assert_eq!(binary::run(&["publish", "-"], &env, lines(&[point("f", 3.0, 1.0)]).as_bytes()).code(), 0);
    let worker = |point: &str, group: &str| {
        let mut command = std::process::Command::new(binary::dies_at());
        let copies = format!("file://{}", path("copies"));
        command.args([point, "1", real.kafka.bootstrap(), &place.name, &path("bodies"), &copies]);
        command
            .env("GEOCLAIM_SIGNAL", "STOP")
            .env("GEOCLAIM_LEASE", "3")
            .env("GEOCLAIM_GROUP", format!("{}-{group}", place.name));
        command.stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    let report = |worker: std::process::Child| -> serde_json::Value {
        let ended = worker.wait_with_output().unwrap();
        assert!(ended.status.success());
        serde_json::from_slice(&ended.stdout).unwrap()
    };
    let still = worker("transaction", "still");
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", still.id())).unwrap();
    while !state().contains(") T ") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let other = report(worker("nowhere", "other"));
    assert_eq!((&other["applied"], &other["duplicate"]), (&1.into(), &0.into()), "{other}");
    let store = store::open(&path("copies"), LocalDirectory::Expect).unwrap();
    let copies = outputs(&store).await;
    assert!(std::process::Command::new("kill").args(["-CONT", &still.id().to_string()]).status().unwrap().success());
    let late = report(still);
    assert_eq!((&late["applied"], &late["duplicate"]), (&0.into(), &1.into()), "{late}");
    assert_eq!((copies.len(), outputs(&store).await), (1, copies));
    let ends: Vec<_> = store.list(Some(&Path::from("leases"))).map_ok(|meta| meta.location).try_collect().await.unwrap();
    let mut ends: Vec<_> = ends.iter().filter_map(|path| path.filename()).filter(|name| name.ends_with(".end")).collect();
    ends.sort_unstable();
    assert_eq!(ends, ["00000000000000000001.end", "00000000000000000002.end"], "the first has lapsed, the second is committed");
}
