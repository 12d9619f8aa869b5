//! The command line against the real broker and store: exit statuses, messages, repeats, signals.

use std::time::{Duration, Instant};

use geoclaim_tests::{
    binary,
    sample::{large, lines, point},
};

use crate::support::Real;

#[test]
fn a_wrong_command_line_is_status_2_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = [("GEOCLAIM_TOPIC".to_owned(), "t".to_owned())];
    for (args, message) in [
        (vec!["consume"], "--aoi"),
        (vec!["publish", "nowhere.geojson", "--brokers", "localhost:1", "--store", "memory://"], "nowhere.geojson: no such file"),
        (vec!["extent", "/"], "is a directory"),
        (vec!["publish", "-", "--brokers", "localhost:1", "--store", "memory://", "-X", "acks=1"], "property acks cannot be set"),
        (
            vec!["publish", "-", "--brokers", "localhost:1", "--store", "memory://", "--id", "index", "--id-property", "x"],
            "cannot be used with",
        ),
        (vec!["publish", "-", "--brokers", "localhost:1", "--store", "memory://", "--inline-limit", "1"], "inline limit"),
        (vec!["consume", "--aoi", "none.geojson", "--brokers", "localhost:1", "--store", "memory://"], "none.geojson"),
        (vec!["consume", "--aoi", "1,2,3,99", "--brokers", "localhost:1", "--store", "memory://"], "is no bbox"),
        (
            vec!["consume", "--aoi", "1,2,3,4", "--sink", "oracle:x", "--brokers", "localhost:1", "--store", "memory://"],
            "gpkg:FILE",
        ),
        (vec!["frobnicate"], "unrecognized subcommand"),
    ] {
        let run = binary::run_in(&args, &nothing, b"{}", Some(folder.path()));
        assert_eq!(run.code(), 2, "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(message), "{args:?}: {}", run.stderr);
        assert_eq!(run.stdout, "", "{args:?}");
    }
}

#[test]
fn a_plan_of_what_is_partly_no_good_counts_the_rest() {
    let text = lines(&[large("a"), point("b", 1.0, 1.0), "{\"type\":\"Polygon\",\"coordinates\":3}".into()]);
    let args = ["plan", "--aoi", "1,1,1.5,1.5", "--report", "json"];
    let run = binary::run(&args, &[], text.as_bytes());
    assert_eq!(run.code(), 1, "{}", run.stderr);
    assert!(run.stderr.contains("-:3:"), "{}", run.stderr);
    let report = run.report();
    assert_eq!((&report["rejected"], &report["sizes"]["count"]), (&1.into(), &2.into()), "{report}");
    assert_eq!(report["total"]["exact_bytes"], text.len() - 2 - text.lines().last().unwrap().len() - 1, "both meet it");
    let table = binary::run(&args[..3], &[], point("b", 1.0, 1.0).as_bytes());
    assert_eq!(table.code(), 0, "{}", table.stderr);
    for words in ["1 features", "--inline-limit 2048", "planar box", "bbox + cover", "all areas, summed"] {
        assert!(table.stdout.contains(words), "{words}: {}", table.stdout);
    }
}

#[test]
fn a_topic_or_bucket_that_is_not_there_is_named() {
    let Some(real) = Real::get() else { return };
    let place = real.place("absent", 1);
    let run = binary::run(&["publish", "-", "--topic", "no-such-topic"], &place.env, b"{}");
    assert_eq!(run.code(), 2, "{}", run.stderr);
    assert!(run.stderr.contains("topic no-such-topic does not exist"), "{}", run.stderr);
    let run = binary::run(&["publish", "-", "--store", "s3://no-such-bucket/x"], &place.env, b"{}");
    assert_eq!(run.code(), 2, "{}", run.stderr);
    assert!(run.stderr.contains("NoSuchBucket"), "{}", run.stderr);
    let run = binary::run(&["publish", "-", "--inline-limit", "2MiB"], &place.env, b"{}");
    assert_eq!(run.code(), 2, "{}", run.stderr);
    assert!(run.stderr.contains("max.message.bytes"), "{}", run.stderr);
}

#[test]
fn a_repeated_run_has_one_effect_and_another_run_has_its_own() {
    let Some(real) = Real::get() else { return };
    let place = real.place("repeat", 3);
    let text =
        lines(&[large("a"), point("b", 1.0, 1.0), "{\"type\":\"Point\",\"coordinates\":[0,0]}".into(), point("c", 100.0, 1.0)]);
    let publish = |run: &str| {
        let run = binary::run(&["publish", "-", "--run", run, "--report", "json"], &place.env, text.as_bytes());
        assert_eq!(run.code(), 1, "one feature has no identity: {}", run.stderr);
        assert!(run.stderr.contains("-:3:1, byte") && run.stderr.contains("--id-property"), "{}", run.stderr);
        run.report()
    };
    let first = publish("nightly");
    assert_eq!(
        (&first["read"], &first["rejected"], &first["published"], &first["stored"], &first["bodies_written"]),
        (&4.into(), &1.into(), &3.into(), &1.into(), &1.into())
    );
    assert_eq!(publish("nightly")["bodies_written"], 0);
    let folder = tempfile::tempdir().unwrap();
    let consume = || {
        let run = binary::run_in(
            &["consume", "--aoi", "0,0,40,40", "--until-end", "--report", "json"],
            &place.env,
            b"",
            Some(folder.path()),
        );
        assert_eq!(run.code(), 0, "{}", run.stderr);
        run.report()
    };
    let report = consume();
    assert_eq!(
        (&report["consumed"], &report["applied"], &report["duplicate"], &report["discarded"]),
        (&6.into(), &2.into(), &2.into(), &2.into())
    );
    assert_eq!(consume()["consumed"], 0, "the offsets have advanced");
    publish("another");
    assert_eq!(consume()["applied"], 2, "another run is other events");
}

#[test]
fn a_stream_of_features_comes_out_one_a_line() {
    let Some(real) = Real::get() else { return };
    let place = real.place("lines", 1);
    let pretty = "{\n \"type\": \"Polygon\",\n \"coordinates\": [[[1,1],[2,1],[2,2],[1,1]]]\n}";
    let run = binary::run(&["publish", "-", "--id", "index"], &place.env, pretty.as_bytes());
    assert_eq!(run.code(), 0, "{}", run.stderr);
    let run = binary::run(&["consume", "--aoi=0,0,3,3", "-e", "--sink", "stdout:", "--group", "g"], &place.env, b"");
    assert_eq!(run.code(), 0, "{}", run.stderr);
    assert_eq!(run.lines()[0]["geometry"]["coordinates"][0][1][0], 2);
    assert_eq!(run.lines()[0]["id"], "0");
    let run = binary::run(&["inspect", "--resolve"], &place.env, b"");
    assert!(run.code() == 0 && run.stdout.contains("inline geometry"), "{} {}", run.stdout, run.stderr);
}

#[test]
fn a_publish_that_is_stopped_says_so_and_how_to_repeat_it() {
    let Some(real) = Real::get() else { return };
    let place = real.place("stopped", 1);
    let mut running = binary::start(&["publish", "-", "--report", "json"], &place.env, None);
    running.write(lines(&(0..200).map(|n| point(&n.to_string(), 1.0, 1.0)).collect::<Vec<_>>()).as_bytes());
    let listed = || binary::run(&["inspect", "--json"], &place.env, b"").stdout.lines().count();
    wait_for(|| listed() > 100, || running.stderr());
    running.signal("TERM");
    let run = running.wait();
    let report = run.report();
    assert_eq!((run.code(), &report["interrupted"]), (1, &true.into()), "{}", run.stderr);
    let sum = ["published", "rejected", "failed"].iter().map(|name| report[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!(report["read"].as_u64(), Some(sum), "{report}");
    assert!(!report["run"].as_str().unwrap().is_empty());
}

#[test]
fn sigterm_finishes_commits_and_leaves_and_nothing_is_lost() {
    let Some(real) = Real::get() else { return };
    let place = real.place("sigterm", 2);
    let folder = tempfile::tempdir().unwrap();
    let publish = |from: usize| {
        let features: Vec<String> = (from..from + 50).map(|n| point(&n.to_string(), 1.0, 1.0)).collect();
        assert_eq!(binary::run(&["publish", "-"], &place.env, lines(&features).as_bytes()).code(), 0);
    };
    let args = ["consume", "--aoi=0,0,3,3", "--report", "json", "--sink", "gpkg:out.gpkg"];
    publish(0);
    let mut running = binary::start(&args, &place.env, Some(folder.path()));
    let gpkg = folder.path().join("out.gpkg");
    wait_for(|| gpkg.exists() && count(&gpkg) == 50, || running.stderr());
    running.signal("TERM");
    let first = running.wait();
    assert_eq!(first.code(), 0, "{}", first.stderr);
    assert_eq!(first.report()["applied"], 50);
    publish(50);
    let args: Vec<&str> = args.into_iter().chain(["-e"]).collect();
    let second = binary::run_in(&args, &place.env, b"", Some(folder.path()));
    assert_eq!((&second.report()["consumed"], &second.report()["applied"]), (&50.into(), &50.into()), "all was committed");
    assert_eq!(count(&gpkg), 100);
}

#[test]
fn a_killed_consumer_loses_nothing_and_applies_nothing_twice() {
    let Some(real) = Real::get() else { return };
    let place = real.place("killed", 3);
    let features: Vec<String> = (0..2_000).map(|n| point(&n.to_string(), 1.0, 1.0)).collect();
    assert_eq!(binary::run(&["publish", "-"], &place.env, lines(&features).as_bytes()).code(), 0);
    let folder = tempfile::tempdir().unwrap();
    let gpkg = folder.path().join("out.gpkg");
    let args = ["consume", "--aoi=0,0,3,3", "--report", "json", "--sink", "gpkg:out.gpkg", "-e", "-X", "session.timeout.ms=6000"];
    let mut running = binary::start(&args, &place.env, Some(folder.path()));
    wait_for(|| gpkg.exists() && count(&gpkg) > 0, || running.stderr());
    running.signal("KILL");
    running.wait();
    let applied = count(&gpkg);
    let report = binary::run_in(&args, &place.env, b"", Some(folder.path())).report();
    assert_eq!(count(&gpkg), 2_000);
    assert_eq!(report["applied"].as_u64().unwrap() + applied, 2_000, "{report}");
}

fn count(gpkg: &std::path::Path) -> u64 {
    let open = rusqlite::Connection::open_with_flags(gpkg, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY);
    let count = open.and_then(|connection| connection.query_row("SELECT count(*) FROM features", [], |row| row.get::<_, i64>(0)));
    u64::try_from(count.unwrap_or(0)).unwrap()
}

fn wait_for(mut done: impl FnMut() -> bool, why: impl Fn() -> String) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(60), "{}", why());
        std::thread::sleep(Duration::from_millis(20));
    }
}
