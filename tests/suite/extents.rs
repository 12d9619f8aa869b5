//! GeoJSON as it really arrives, through `geoclaim extent`: each row has its right answer.

use geoclaim_tests::{
    binary,
    components::{datasets, require},
};
use serde_json::{Value, json};

/// Runs `extent` on one input; returns its lines and its exit status.
fn extent_with(input: &[u8], flags: &[&str]) -> (Vec<Value>, i32) {
    let args: Vec<&str> = ["extent", "-"].into_iter().chain(flags.iter().copied()).collect();
    let run = binary::run(&args, &[], input);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    (run.lines(), run.code())
}

fn extent(input: &str) -> Value {
    let (mut lines, code) = extent_with(input.as_bytes(), &[]);
    assert_eq!((lines.len(), code), (1, 0), "{input}: {lines:?}");
    lines.remove(0)
}

fn bbox(input: &str) -> Value {
    extent(input)["bbox"].clone()
}

fn rejected(input: &[u8]) -> (String, String) {
    let (lines, code) = extent_with(input, &[]);
    let last = lines.last().unwrap_or_else(|| panic!("{:?}", String::from_utf8_lossy(input)));
    assert_eq!(code, 1, "{last}");
    let text = |name: &str| last[name].as_str().unwrap_or_else(|| panic!("{last}")).to_owned();
    (text("error"), text("at"))
}

fn multipolygon(boxes: &[[f64; 4]]) -> String {
    let rings: Vec<String> =
        boxes.iter().map(|[w, s, e, n]| format!("[[[{w},{s}],[{e},{s}],[{e},{n}],[{w},{n}],[{w},{s}]]]")).collect();
    format!(r#"{{"type":"MultiPolygon","coordinates":[{}]}}"#, rings.join(","))
}

#[test]
fn the_antimeridian_and_the_poles() {
    assert_eq!(bbox(&multipolygon(&[[179.0, -1.0, 180.0, 1.0], [-180.0, -1.0, -179.0, 1.0]])), json!([179.0, -1.0, -179.0, 1.0]));
    assert_eq!(
        bbox(&multipolygon(&[[165.87, -52.0, 178.0, -34.0], [-177.0, -44.0, -176.15, -29.0]])),
        json!([165.87, -52.0, -176.15, -29.0])
    );
    let unsplit = r#"{"type":"Polygon","coordinates":[[[179,-1],[-179,-1],[-179,1],[179,1],[179,-1]]]}"#;
    assert_eq!(extent(unsplit)["suspect"], true);
    assert_eq!(bbox(unsplit), json!([-180.0, -1.0, 180.0, 1.0]));
    let (lines, _) = extent_with(unsplit.as_bytes(), &["--long-edges", "cross"]);
    assert_eq!(lines[0]["bbox"], json!([179.0, -1.0, -179.0, 1.0]));
    assert_eq!(bbox(&multipolygon(&[[-180.0, 70.0, 180.0, 90.0]])), json!([-180.0, 70.0, 180.0, 90.0]));
    assert_eq!(bbox(&multipolygon(&[[10.0, 70.0, 20.0, 90.0]])), json!([10.0, 70.0, 20.0, 90.0]));
    assert_eq!(bbox(&multipolygon(&[[368.0, 54.5, 371.0, 57.5]])), json!([8.0, 54.5, 11.0, 57.5]));
    assert_eq!(bbox(&multipolygon(&[[12.0, 40.0, 738.0, 41.0]])), json!([-180.0, 40.0, 180.0, 41.0]));
}

#[test]
fn the_real_countries_that_cross_the_antimeridian_and_no_others() {
    let Some(countries) = require("countries-land-10m", datasets::countries()) else { return };
    let run = binary::run(&["extent", "--id-property", "A3", countries.to_str().unwrap()], &[], b"");
    let lines = run.lines();
    assert_eq!((lines.len(), run.code()), (250, 0));
    let of = |id: &str| lines.iter().find(|line| line["feature_id"] == id).unwrap();
    let wrapped = |line: &&Value| line["bbox"][0].as_f64() > line["bbox"][2].as_f64();
    let mut crossing: Vec<&str> = lines.iter().filter(wrapped).map(|line| line["feature_id"].as_str().unwrap()).collect();
    crossing.sort_unstable();
    assert_eq!(crossing, ["FJI", "FRA", "KIR", "NZL", "RUS", "UMI", "USA"]);
    assert_eq!(of("CAN")["vertex_count"], 1_387_507);
    assert_eq!(of("RUS")["vertex_count"], 1_418_048);
    let rounded = |line: &Value| {
        line["bbox"].as_array().unwrap().iter().map(|n| (n.as_f64().unwrap() * 100.0).round() / 100.0).collect::<Vec<_>>()
    };
    assert_eq!(rounded(of("NZL")), [165.87, -52.62, -176.15, -29.24]);
    assert_eq!(rounded(of("ATA")), [-180.0, -85.05, 180.0, -60.51]);
}

#[test]
fn real_data_that_is_dirty_on_purpose_is_measured_or_named_and_never_panics() {
    let Some(folder) = require("world-geojson", datasets::world_geojson()) else { return };
    let mut files = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry)
            } else if entry.extension().is_some_and(|end| end == "json" || end == "geojson") {
                files.push(entry)
            }
        }
    }
    files.retain(|file| std::fs::read_to_string(file).is_ok_and(|text| text.contains("\"FeatureCollection\"")));
    let args: Vec<&str> = ["extent"].into_iter().chain(files.iter().map(|file| file.to_str().unwrap())).collect();
    let run = binary::run(&args, &[], b"");
    let lines = run.lines();
    assert!(lines.len() >= 8_000, "{} lines of {} files", lines.len(), files.len());
    let bad: Vec<_> = lines.iter().filter(|line| line.get("error").is_some()).collect();
    assert!(bad.len() * 100 < lines.len(), "{} of {}: {:?}", bad.len(), lines.len(), bad.first());
    for line in lines.iter().filter(|line| line["bbox"].is_array()) {
        let bbox: Vec<f64> = line["bbox"].as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect();
        assert!(bbox[0].abs() <= 180.0 && bbox[2].abs() <= 180.0 && bbox[1] <= bbox[3], "{line}");
    }
}

#[test]
fn a_collection_of_millions_of_vertices_is_one_body() {
    let Some(seas) = require("earth-seas-10m", datasets::seas()) else { return };
    let run = binary::run(&["extent", seas.to_str().unwrap()], &[], b"");
    let lines = run.lines();
    assert_eq!((lines.len(), run.code()), (1, 0));
    assert_eq!((&lines[0]["kind"], &lines[0]["vertex_count"]), (&json!("GeometryCollection"), &json!(1_775_916)));
    let Some(maritime) = require("maritime_10m", datasets::maritime()) else { return };
    let run = binary::run(&["extent", maritime.to_str().unwrap()], &[], b"");
    assert_eq!((run.lines().len(), run.code()), (249, 0));
    assert!(run.lines().iter().any(|line| line["vertex_count"] == 81_685), "China");
}

#[test]
fn kinds_and_members() {
    let point = r#"{"coordinates":[1,2],"type":"Point"}"#;
    assert_eq!(
        extent(point),
        json!({"feature_id": null, "kind": "Point", "bbox": [1.0, 2.0, 1.0, 2.0], "vertex_count": 1, "bytes": point.len()})
    );
    let feature =
        format!(r#"{{"geometry":{point},"id":7,"foreign":{{"coordinates":[99,99]}},"bbox":[0,0,0,9,9,9],"type":"Feature"}}"#);
    assert_eq!(
        extent(&feature),
        json!({"feature_id": "7", "kind": "Feature", "bbox": [1.0, 2.0, 1.0, 2.0], "vertex_count": 1, "bytes": feature.len()})
    );
    let (lines, code) = extent_with(format!(r#"{{"features":[{feature},{{"type":"Feature","geometry":null,"properties":null}},{feature}],"type":"FeatureCollection"}}"#).as_bytes(), &[]);
    assert_eq!((lines.len(), code), (3, 0), "a null geometry is valid and the reader goes on");
    assert_eq!(lines[1]["bbox"], Value::Null);
    for empty in [
        r#"{"type":"MultiPolygon","coordinates":[]}"#,
        r#"{"type":"Polygon","coordinates":[[]]}"#,
        r#"{"type":"GeometryCollection","geometries":[]}"#,
    ] {
        assert_eq!(bbox(empty), Value::Null, "{empty}");
    }
    let nested = format!(
        r#"{{"type":"GeometryCollection","geometries":[{point},{{"type":"GeometryCollection","geometries":[{{"type":"Point","coordinates":[5,6]}}]}}]}}"#
    );
    assert_eq!(bbox(&nested), json!([1.0, 2.0, 5.0, 6.0]));
    let whole = format!(r#"{{"type":"FeatureCollection","features":[{feature}]}}"#);
    let (lines, _) = extent_with(whole.as_bytes(), &["--as", "body"]);
    assert_eq!((&lines[0]["kind"], &lines[0]["bytes"]), (&json!("FeatureCollection"), &json!(whole.len())));
    let unclosed = r#"{"type":"Polygon","coordinates":[[[0,0],[2,0],[2,1]]]}"#;
    assert_eq!(bbox(unclosed), json!([0.0, 0.0, 2.0, 1.0]));
    let (lines, code) = extent_with(unclosed.as_bytes(), &["--strict"]);
    assert!(code == 1 && lines[0]["error"].as_str().unwrap().contains("not closed"));
}

#[test]
fn numbers_and_bytes() {
    assert_eq!(bbox(r#"{"type":"Point","coordinates":[-120.65487365123505,1]}"#)[0].as_f64(), Some(-120.65487365123505));
    let marked = "\u{feff}{\"type\":\"Point\",\"coordinates\":[1,2]}";
    assert_eq!(extent(marked)["bytes"], marked.len(), "the mark is kept in the bytes");
    for number in ["NaN", "Infinity", "-Infinity", "1e400", "1e308", "0x10", "1_000", "+1", ".5", "1.", "\"1\"", "null", "true"] {
        let (error, at) = rejected(format!(r#"{{"type":"Point","coordinates":[{number},2]}}"#).as_bytes());
        assert!(!error.is_empty() && at.starts_with("-:1:"), "{number}: {error} at {at}");
    }
    let (error, _) = rejected(br#"{"type":"Point","coordinates":[8.5,100]}"#);
    assert!(error.contains("swapped"), "{error}");
    let (error, _) =
        rejected(br#"{"type":"Point","coordinates":[1,2],"crs":{"type":"name","properties":{"name":"EPSG:25832"}}}"#);
    assert!(error.contains("EPSG:25832"), "{error}");
}

#[test]
fn streams_cut_and_broken() {
    let point = r#"{"type":"Feature","id":1,"geometry":{"type":"Point","coordinates":[1,2]},"properties":null}"#;
    let (lines, code) = extent_with(format!("{point}\n{point}\n").as_bytes(), &[]);
    assert_eq!((lines.len(), code), (2, 0));
    let (lines, code) = extent_with(format!("\u{1e}{point}\n\u{1e}{point}\n").as_bytes(), &[]);
    assert_eq!((lines.len(), code), (2, 0));
    let (lines, code) = extent_with(format!("\u{1e}{point}\n\u{1e}{}\n\u{1e}{point}\n", &point[..40]).as_bytes(), &[]);
    assert_eq!((lines.len(), code), (3, 1), "a cut text is reported and costs itself alone");
    assert!(lines[1]["error"].is_string() && lines[2]["error"].is_null());
    let (lines, code) = extent_with(format!("{point}\n{}\n{point}\n", &point[..40]).as_bytes(), &[]);
    assert_eq!((lines.len(), code), (3, 1));
    assert!(lines[1]["at"].as_str().unwrap().starts_with("-:2:"), "{}", lines[1]);
    let cut = format!(r#"{{"type":"FeatureCollection","features":[{point},{point}"#);
    let (lines, code) = extent_with(cut.as_bytes(), &[]);
    assert_eq!((lines.len(), code), (3, 1), "whole features, then the error");
    assert!(lines[2]["error"].as_str().unwrap().contains("cut"));
    let (error, _) = rejected(format!("{point} trailing").as_bytes());
    assert!(error.contains("after the end"), "{error}");
}

/// Input that crashes readers, or that readers take for something else.
#[test]
fn invalid_and_hostile_input_is_an_error_with_a_place() {
    let deep = |open: &str, n: usize| open.repeat(n).into_bytes();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", vec![]),
        ("white space", b" \n\t ".to_vec()),
        ("no GeoJSON", b"hello".to_vec()),
        ("an array", b"[1,2]".to_vec()),
        ("a number", b"7".to_vec()),
        ("an empty object", b"{}".to_vec()),
        ("not UTF-8", b"{\"type\":\"Point\",\"coordinates\":[1,2],\"x\":\"\xff\xfe\"}".to_vec()),
        ("nested arrays", deep("[", 200_000)),
        ("nested objects", deep("{\"a\":", 200_000)),
        ("nested coordinates", [br#"{"type":"MultiPolygon","coordinates":"#.to_vec(), deep("[", 200_000)].concat()),
        ("nested collections", deep(r#"{"type":"GeometryCollection","geometries":["#, 20_000)),
        ("an unknown type", br#"{"type":"Circle","coordinates":[1,2]}"#.to_vec()),
        ("a type of the wrong case", br#"{"type":"POINT","coordinates":[1,2]}"#.to_vec()),
        ("a type that is no string", br#"{"type":1,"coordinates":[1,2]}"#.to_vec()),
        ("a Topology", br#"{"type":"Topology","objects":{},"arcs":[]}"#.to_vec()),
        ("too shallow", br#"{"type":"Polygon","coordinates":[[1,2],[3,4],[5,6],[1,2]]}"#.to_vec()),
        ("too deep", br#"{"type":"Polygon","coordinates":[[[[1,2],[3,4],[5,6],[1,2]]]]}"#.to_vec()),
        ("a position of one", br#"{"type":"Point","coordinates":[1]}"#.to_vec()),
        ("mixed", br#"{"type":"LineString","coordinates":[[1,2],3]}"#.to_vec()),
        ("an object for coordinates", br#"{"type":"Point","coordinates":{"x":1,"y":2}}"#.to_vec()),
        (
            "a feature in a geometry",
            br#"{"type":"GeometryCollection","geometries":[{"type":"Feature","geometry":null}]}"#.to_vec(),
        ),
        ("a collection in a feature", br#"{"type":"Feature","geometry":{"type":"FeatureCollection","features":[]}}"#.to_vec()),
        ("no geometry member", br#"{"type":"Feature","properties":{}}"#.to_vec()),
        ("features that is no array", br#"{"type":"FeatureCollection","features":{}}"#.to_vec()),
        ("no features", br#"{"type":"FeatureCollection"}"#.to_vec()),
        ("a duplicate member", br#"{"type":"Point","coordinates":[1,2],"coordinates":[3,4]}"#.to_vec()),
        ("a missing comma", br#"{"type":"Point" "coordinates":[1,2]}"#.to_vec()),
        ("a trailing comma", br#"{"type":"Point","coordinates":[1,2,]}"#.to_vec()),
        ("a missing brace", br#"{"type":"Point","coordinates":[1,2]"#.to_vec()),
        ("single quotes", br#"{'type':'Point','coordinates':[1,2]}"#.to_vec()),
        ("a comment", br#"{"type":"Point",/* here */"coordinates":[1,2]}"#.to_vec()),
        ("a control character", b"{\"type\":\"Point\",\"coordinates\":[1,2],\"x\":\"\x01\"}".to_vec()),
        ("a lone surrogate", br#"{"type":"Point","coordinates":[1,2],"x":"\udc00"}"#.to_vec()),
        ("out of range", br#"{"type":"LineString","coordinates":[[0,0],[0,-90.0001]]}"#.to_vec()),
        ("projected", br#"{"type":"Point","coordinates":[949312.4,6001234.5]}"#.to_vec()),
    ];
    for (name, input) in cases {
        let (error, at) = rejected(&input);
        assert!(!error.is_empty() && at.starts_with("-:"), "{name}: {error} at {at}");
    }
}
