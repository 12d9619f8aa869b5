//! Instructions of the scan and of the discard path, counted by valgrind against what `tests/instructions.json` records:
//! a count does not depend on what else the machine does. Who makes one grow by more than five in a hundred changes the
//! record in the same commit, and says why.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use geoclaim_tests::{
    binary,
    components::{Unavailable, datasets, require, workspace},
    sample::{fifteen_digits, largest, squares},
};
use serde_json::Value;

/// Most instructions a vertex, whatever the body.
const MOST_A_VERTEX: u64 = 240;

/// Counts the instructions of one run.
fn count(work: &[&str], folder: &Path) -> u64 {
    let out = folder.join("callgrind.out");
    let status = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", &format!("--callgrind-out-file={}", out.display())])
        .arg(binary::instructions())
        .args(work)
        .stdout(Stdio::null())
        .status()
        .expect("valgrind runs");
    assert!(status.success(), "{work:?}");
    let told = std::fs::read_to_string(out).unwrap();
    let total = told.lines().find_map(|line| line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")));
    total.and_then(|total| total.split_whitespace().next()?.parse().ok()).unwrap_or_else(|| panic!("{work:?}: no total"))
}

/// Counts the instructions of two units of work: what comes before and after them cancels out.
fn of_two(work: &[&str], folder: &Path) -> u64 {
    let times = |n| [work, &[n]].concat();
    count(&times("3"), folder) - count(&times("1"), folder)
}

fn hold_to_record(name: &str, counted: u64) {
    let record: Value =
        serde_json::from_str(&std::fs::read_to_string(workspace().join("tests/instructions.json")).unwrap()).unwrap();
    let recorded = record[name].as_u64().unwrap_or_else(|| panic!("no record of {name}; counted {counted}"));
    println!("{name}: {counted} instructions, {recorded} recorded");
    assert!(counted * 100 <= recorded * 105, "{name}: {counted} instructions, {recorded} recorded");
}

#[test]
fn scan_and_discard_take_no_more_instructions_than_recorded() {
    let is_there = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
    if require("valgrind", is_there.map_err(|error| Unavailable(error.to_string()))).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut bodies = vec![("squares", squares(120).into(), 72_000), ("fifteen_digits", fifteen_digits(100_000).into(), 100_000)];
    if let Some(countries) = require("countries-land-10m", datasets::countries()) {
        bodies.push(("canada", largest(&countries), 1_387_507));
    }
    for (name, body, vertices) in bodies {
        let file = folder.path().join("body.json");
        std::fs::write(&file, body).unwrap();
        let a_vertex = of_two(&["scan", file.to_str().unwrap()], folder.path()) / 2 / vertices;
        hold_to_record(&format!("scan of {name}, a vertex"), a_vertex);
        assert!(a_vertex <= MOST_A_VERTEX, "{name}: {a_vertex}");
    }
    hold_to_record("discard, an envelope", of_two(&["discard"], folder.path()) / 20_000);
}
