//! The arrows between the rooms, and what must be absent from each.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use geoclaim_tests::components::workspace;
use serde_json::Value;

/// Returns each crate's dependencies, those for its tests left out.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let output =
        Command::new(cargo).args(["metadata", "--no-deps", "--format-version", "1"]).current_dir(workspace()).output().unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap().iter().filter(|dependency| dependency["kind"].is_null());
        all.map(|dependency| dependency["name"].as_str().unwrap().to_owned()).collect()
    };
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (package["name"].as_str().unwrap().to_owned(), names(package)))
        .collect()
}

#[test]
fn arrows_point_down() {
    let dependencies = dependencies();
    let ours = |name: &str| {
        let mut ours: Vec<&str> =
            dependencies[name].iter().map(String::as_str).filter(|name| name.starts_with("geoclaim")).collect();
        ours.sort_unstable();
        ours
    };
    assert_eq!(ours("geoclaim-common"), [] as [&str; 0]);
    assert_eq!(ours("geoclaim-producer"), ["geoclaim-common"]);
    assert_eq!(ours("geoclaim-consumer"), ["geoclaim-common"]);
    assert_eq!(ours("geoclaim"), ["geoclaim-common", "geoclaim-consumer", "geoclaim-producer"]);
    for library in ["geoclaim-common", "geoclaim-producer", "geoclaim-consumer"] {
        for foreign in ["clap", "tracing-subscriber", "indicatif", "anyhow"] {
            assert!(!dependencies[library].iter().any(|name| name == foreign), "{library} depends on {foreign}");
        }
    }
}

/// Returns the source files of the libraries and the binary, with their paths from the workspace's root.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> =
        ["common/src", "producer/src", "consumer/src", "cli/src"].iter().map(|folder| workspace().join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|end| end == "rs") && !entry.ends_with("tests.rs") {
                let name = entry.strip_prefix(workspace()).unwrap().to_string_lossy().into_owned();
                found.push((name, code(&entry)));
            }
        }
    }
    found
}

/// Returns a file without its comments and without the tests at its end.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect()
}

fn naming(words: &[&str]) -> Vec<String> {
    let mut files: Vec<String> =
        sources().into_iter().filter(|(_, text)| words.iter().any(|word| text.contains(word))).map(|(name, _)| name).collect();
    files.sort();
    files
}

#[test]
fn each_thing_of_the_outside_world_is_named_in_one_place() {
    assert!(naming(&["rdkafka"]).iter().all(|name| name.starts_with("common/src/kafka/")), "{:?}", naming(&["rdkafka"]));
    assert_eq!(naming(&["rstar"]), ["consumer/src/aoi/tree.rs"]);
    assert_eq!(naming(&["proj4rs"]), ["common/src/reproject/transform.rs"]);
    assert_eq!(naming(&["\"geom\"", "geom/"]), ["common/src/key.rs"]);
    assert_eq!(naming(&["SystemTime", "Instant::now", "Timestamp::now", "Zoned::now"]), ["common/src/clock.rs"]);
    let printing = naming(&["println!", "eprintln!", "print!(", "io::stdout()", "io::stderr()"]);
    assert!(printing.iter().all(|name| name.starts_with("cli/")), "{printing:?}");
    let parsing = naming(&["clap::", "use clap"]);
    assert!(parsing.iter().all(|name| name.starts_with("cli/")), "{parsing:?}");
    assert_eq!(naming(&[".bytes().await"]), [] as [&str; 0], "a fetch that trusts the server's length");
}

#[test]
fn the_pure_core_is_neither_async_nor_does_it_do_io() {
    let pure = |name: &str| {
        [
            "common/src/cover/",
            "common/src/extent/",
            "common/src/geojson/",
            "common/src/envelope/",
            "common/src/reproject/",
            "common/src/bbox.rs",
            "common/src/fault.rs",
            "common/src/stream/watermark.rs",
            "consumer/src/aoi/",
            "consumer/src/engine/judge.rs",
            "producer/src/publish/plan.rs",
        ]
        .iter()
        .any(|room| name.starts_with(room))
    };
    let sources = sources();
    let rooms: Vec<_> = sources.iter().filter(|(name, _)| pure(name)).collect();
    assert!(rooms.len() > 20);
    for (name, text) in rooms {
        for word in ["async ", ".await", "std::fs", "std::net", "tokio::"] {
            assert!(!text.contains(word), "{name} has {word}");
        }
    }
}

#[test]
fn no_test_is_ignored_and_no_file_names_this_machine() {
    for (name, text) in sources() {
        assert!(!text.contains("#[ignore"), "{name}");
        for word in ["todo!(", "unimplemented!(", "dbg!("] {
            assert!(!text.contains(word), "{name} has {word}");
        }
    }
}

#[test]
fn unsafe_code_is_in_the_scanner_in_the_map_of_a_file_and_in_one_system_call_of_the_command_line() {
    let files = ["cli/src/allocator.rs", "common/src/geojson/run/wide.rs", "common/src/spool.rs"];
    assert_eq!(naming(&["allow(unsafe_code"]), files);
}
