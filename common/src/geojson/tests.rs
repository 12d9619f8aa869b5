use super::*;

/// Writes down what it is told.
#[derive(Default)]
struct Log(String);

impl Visitor for Log {
    fn begin_geometry(&mut self, kind: GeometryType) {
        self.0 += &format!("{kind:?}<");
    }
    fn begin_part(&mut self) {
        self.0.push('{');
    }
    fn begin_line(&mut self) {
        self.0.push('(');
    }
    fn position(&mut self, position: Position) {
        self.0 += &format!(" {} {}", position.x, position.y);
        if let Some(z) = position.z {
            self.0 += &format!(" {z}");
        }
    }
    fn end_line(&mut self) {
        self.0.push(')');
    }
    fn end_part(&mut self) {
        self.0.push('}');
    }
    fn end_geometry(&mut self) {
        self.0.push('>');
    }
}

fn log(body: &str) -> String {
    let mut log = Log::default();
    scan(body.as_bytes(), &ScanOptions::default(), &mut log).unwrap();
    log.0
}

fn error(body: &str) -> String {
    scan(body.as_bytes(), &ScanOptions::default(), &mut Log::default()).unwrap_err().to_string()
}

#[test]
fn every_geometry_is_told_by_part_and_line() {
    assert_eq!(log(r#"{"type":"Point","coordinates":[1,2,3,4]}"#), "Point<{ 1 2 3}>");
    assert_eq!(log(r#"{"type":"MultiPoint","coordinates":[[1,2],[3,4]]}"#), "MultiPoint<{ 1 2}{ 3 4}>");
    assert_eq!(log(r#"{"type":"LineString","coordinates":[[1,2],[3,4]]}"#), "LineString<{( 1 2 3 4)}>");
    assert_eq!(log(r#"{"type":"Polygon","coordinates":[[[1,2]],[[3,4]]]}"#), "Polygon<{( 1 2)( 3 4)}>");
    assert_eq!(log(r#"{"type":"MultiPolygon","coordinates":[[[[1,2]]],[[[3,4]]]]}"#), "MultiPolygon<{( 1 2)}{( 3 4)}>");
    let nested = r#"{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1,2]},
        {"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[3,4]}]}]}"#;
    assert_eq!(log(nested), "GeometryCollection<Point<{ 1 2}>GeometryCollection<Point<{ 3 4}>>>");
}

#[test]
fn empty_coordinates_have_no_position() {
    assert_eq!(log(r#"{"type":"Point","coordinates":[]}"#), "Point<>");
    assert_eq!(log(r#"{"type":"MultiPolygon","coordinates":[]}"#), "MultiPolygon<>");
    assert_eq!(log(r#"{"type":"Polygon","coordinates":[]}"#), "Polygon<{}>");
    assert_eq!(log(r#"{"type":"LineString","coordinates":[]}"#), "LineString<{()}>");
    assert_eq!(log(r#"{"type":"FeatureCollection","features":[]}"#), "");
}

#[test]
fn members_come_in_any_order_and_foreign_ones_are_ignored() {
    let body = r#"{"coordinates":[1,2],"x":{"coordinates":[9,9],"type":"Polygon"},"geometries":[1],"t\u0079pe":"Point"}"#;
    assert_eq!(log(body), "Point<{ 1 2}>");
    let body = r#"{"features":[1,2],"geometry":{"coordinates":[[1,2]],"type":"LineString"},"type":"Feature","coordinates":[7]}"#;
    assert_eq!(log(body), "LineString<{( 1 2)}>");
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    assert_eq!(log("\u{feff}\n{\"type\":\"Point\",\"coordinates\":[1,2]}\n"), "Point<{ 1 2}>");
}

#[test]
fn what_is_no_json_is_rejected_with_its_place() {
    for (body, message) in [
        (r#"{"type":"Point","coordinates":[1,NaN]}"#, "expected a number, found NaN, which is not JSON (at byte 33)"),
        (r#"{"type":"Point","coordinates":[1,2]} x"#, "expected the end of the text after the document, found 'x' (at byte 37)"),
        (r#"{"type":"Point","coordinates":[1,2]"#, "expected ',' or '}', found the end of the text (at byte 35)"),
        (r#"{"type":"Point","coordinates":[1,2],}"#, "expected a string, found '}' (at byte 36)"),
        (r#"{"type":"Point","coordinates":[1,,2]}"#, "expected a number, found ',' (at byte 33)"),
        (r#"{"type":"Point","coordinates":[01,2]}"#, "expected a digit of a number, found '1' (at byte 32)"),
        (r#"{"type":"Point","coordinates":[1,2],"a":"\ud800"}"#, "a lone high surrogate in a string (at byte 47)"),
        (r#"[1,2]"#, "expected an object, found '[' (at byte 0)"),
        ("", "expected an object, found the end of the text (at byte 0)"),
    ] {
        assert_eq!(error(body), message, "{body}");
    }
    let error = scan(b"{\"type\":\"Poi\xffnt\"}", &ScanOptions::default(), &mut Log::default()).unwrap_err();
    assert_eq!(error, ScanError::new(12, "not UTF-8"));
}

#[test]
fn coordinates_of_the_wrong_depth_or_kind_are_rejected() {
    for (body, message) in [
        (r#"{"type":"Polygon","coordinates":[[1,2],[3,4]]}"#, "expected a position"),
        (r#"{"type":"Point","coordinates":[[1,2]]}"#, "expected a number"),
        (r#"{"type":"Point","coordinates":[1]}"#, "at least two numbers"),
        (r#"{"type":"MultiPoint","coordinates":[[]]}"#, "expected a number"),
        (r#"{"type":"Point","coordinates":["1","2"]}"#, "expected a number"),
        (r#"{"type":"Point","coordinates":null}"#, "expected a position"),
        (r#"{"type":"Point"}"#, "Point without the member \"coordinates\""),
        (r#"{"type":"Feature"}"#, "Feature without the member \"geometry\""),
        (r#"{"coordinates":[1,2]}"#, "without the member \"type\""),
        (r#"{"type":"point","coordinates":[1,2]}"#, "\"point\" is no GeoJSON type"),
        (r#"{"type":"Feature","geometry":{"type":"Feature","geometry":null}}"#, "expected a geometry, found a Feature"),
        (r#"{"type":"FeatureCollection","features":[{"type":"Point","coordinates":[1,2]}]}"#, "expected a Feature"),
        (r#"{"type":"Feature","geometry":null,"id":{}}"#, "id is a string or a number"),
        (r#"{"type":"Feature","geometry":null,"properties":[]}"#, "properties are an object or null"),
        (r#"{"type":"Point","coordinates":[1,2],"coordinates":[3,4]}"#, "\"coordinates\" comes twice"),
        (r#"{"type":"Point","type":"Point","coordinates":[1,2]}"#, "\"type\" comes twice"),
    ] {
        assert!(error(body).contains(message), "{body}: {}", error(body));
    }
}

#[test]
fn numbers_out_of_range_are_rejected() {
    for (coordinates, message) in [
        ("[120.1,200.5]", "latitude 200.5"),
        ("[8.5,147.4]", "axes may be swapped"),
        ("[1e400,1]", "no longitude"),
        ("[1,1e308]", "latitude"),
        ("[1e308,1]", "no longitude"),
        ("[1,2,1e308]", "beyond any height"),
        ("[1,-1e999]", "latitude -inf"),
    ] {
        let body = format!(r#"{{"type":"Point","coordinates":{coordinates}}}"#);
        assert!(error(&body).contains(message), "{body}: {}", error(&body));
    }
}

#[test]
fn a_crs_that_is_not_wgs_84_is_refused_unless_ignored() {
    let with = |crs: &str| format!(r#"{{"type":"Point","coordinates":[1,2],"crs":{crs}}}"#);
    for name in [
        "urn:ogc:def:crs:OGC:1.3:CRS84",
        "EPSG:4326",
        "urn:ogc:def:crs:EPSG::4326",
        "http://www.opengis.net/def/crs/OGC/1.3/CRS84",
    ] {
        log(&with(&format!(r#"{{"type":"name","properties":{{"name":"{name}"}}}}"#)));
    }
    log(&with("null"));
    let mercator = with(r#"{"type":"name","properties":{"name":"urn:ogc:def:crs:EPSG::3857"}}"#);
    assert!(error(&mercator).contains("EPSG::3857"));
    assert!(error(&with(r#"{"type":"link","properties":{"href":"http://example.org"}}"#)).contains("without a name"));
    let options = ScanOptions { crs: CrsMember::Ignore, ..ScanOptions::default() };
    assert!(scan(mercator.as_bytes(), &options, &mut Log::default()).is_ok());
}

#[test]
fn deep_nesting_is_an_error_and_not_an_overflow() {
    let arrays = format!(r#"{{"type":"Point","coordinates":[1,2],"x":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert!(error(&arrays).contains("nested deeper than 128"));
    let polygons = format!(r#"{{"type":"MultiPolygon","coordinates":{}"#, "[".repeat(100_000));
    assert!(error(&polygons).contains("expected a number"));
    let collections = r#"{"type":"GeometryCollection","geometries":["#.repeat(10_000);
    assert!(error(&collections).contains("collections nested deeper than 16"));
    let reversed = format!("{}1", r#"{"geometries":["#.repeat(10_000));
    assert!(error(&reversed).contains("nested deeper than 128"));
}

#[test]
fn validity_is_a_setting() {
    let strict = ScanOptions { validity: Validity::Strict, ..ScanOptions::default() };
    for (body, message) in [
        (r#"{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1]]]}"#, "not closed"),
        (r#"{"type":"Polygon","coordinates":[[[0,0],[1,0],[0,0]]]}"#, "a ring of 3 positions"),
        (r#"{"type":"LineString","coordinates":[[0,0]]}"#, "one position"),
    ] {
        log(body);
        let error = scan(body.as_bytes(), &strict, &mut Log::default()).unwrap_err();
        assert!(error.problem.contains(message), "{error}");
    }
    let polygons = "[[[0,0],[1,0],[1,1],[0,0]],[[2,2],[3,2],[2,2],[2,2]]],[[[5,5],[6,5],[6,6]]]";
    let body = format!(r#"{{"type":"MultiPolygon","coordinates":[{polygons}],"more":"{}"}}"#, ".".repeat(90));
    let error = scan(body.as_bytes(), &strict, &mut Log::default()).unwrap_err();
    assert_eq!((error.problem.contains("not closed"), error.at), (true, body.find("[[5,5]").unwrap()), "{error}");
}

#[test]
fn members_of_the_outermost_object_are_found() {
    let body = r#"{"type":"Feature","id":"a\"b","properties":{"n\u0061me":"x","n":{"name":"y"}},"geometry":null}"#;
    let outline = scan(body.as_bytes(), &ScanOptions::default(), &mut Log::default()).unwrap();
    assert_eq!(scalar_text(&body.as_bytes()[outline.id.unwrap()]).as_deref(), Some("a\"b"));
    assert_eq!(outline.geometry, None);
    let name = member(body.as_bytes(), outline.properties.unwrap(), "name").unwrap();
    assert_eq!(&body[name], "\"x\"");
}

#[test]
fn a_place_is_a_line_and_a_column() {
    let body = b"{\n  \"type\": 1}";
    let error = scan(body, &ScanOptions::default(), &mut Log::default()).unwrap_err();
    assert_eq!(error.line_and_column(body), (2, 11));
}
