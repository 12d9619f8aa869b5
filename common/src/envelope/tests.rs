use proptest::prelude::*;

use super::*;
use crate::{Body, FaultKind};

fn claim_envelope() -> Envelope {
    Envelope {
        feature_id: "NZL".into(),
        event_id: "5f0c".into(),
        version: Some(7),
        occurred_at: Timestamp::parse_rfc3339("2026-08-08T10:00:00Z"),
        crs: DEFAULT_CRS.into(),
        bbox: Some(Bbox::new(165.87, -52.62, -176.15, -29.24).unwrap()),
        cells: None,
        vertex_count: Some(120),
        suspect: false,
        content: Content::Claim(Body::seal(Bytes::from_static(b"{}")).claim()),
        others: BTreeMap::new(),
    }
}

fn inline_envelope(bbox: Option<Bbox>) -> Envelope {
    let bytes = Bytes::from_static(b"{\"type\":\"Point\", \"coordinates\":[-120.65487365123505,1.0]}");
    let content = Content::Inline(InlineBody { member: InlineMember::Geometry, bytes });
    Envelope { bbox, version: None, vertex_count: None, suspect: true, content, ..claim_envelope() }
}

fn text(envelope: &Envelope) -> String {
    String::from_utf8(envelope.encode()).unwrap()
}

fn fault(value: &str) -> Fault {
    Envelope::decode(value.as_bytes()).unwrap_err()
}

use crate::Fault;

#[test]
fn the_wire_is_held_byte_for_byte() {
    insta::assert_snapshot!(text(&claim_envelope()), @r#"{"cover":"AaRwPQrXu2RAj8L1KFxPSsDNzMzMzARmwD0K16NwPT3A","bbox":[165.87,-52.62,-176.15,-29.24],"feature_id":"NZL","event_id":"5f0c","version":7,"occurred_at":"2026-08-08T10:00:00Z","crs":"EPSG:4326","vertex_count":120,"body_key":"geom/44/44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a.json","body_sha256":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","body_bytes":2}"#);
    insta::assert_snapshot!(text(&inline_envelope(None)), @r#"{"cover":null,"bbox":null,"feature_id":"NZL","event_id":"5f0c","occurred_at":"2026-08-08T10:00:00Z","crs":"EPSG:4326","suspect":true,"geometry":{"type":"Point", "coordinates":[-120.65487365123505,1.0]}}"#);
}

#[test]
fn what_is_written_is_read_again() {
    let mut strange = claim_envelope();
    strange.feature_id = "a\"\\\u{1}\u{2028}é".into();
    strange.others.insert("x\"y".into(), "{\"a\":[1,2]}".into());
    let covered = Envelope { cells: Some(Cells::from_bytes(&[7; 400])), ..claim_envelope() };
    let deleted = Envelope { bbox: None, content: Content::Deleted, ..claim_envelope() };
    for envelope in [covered, deleted, claim_envelope(), inline_envelope(None), inline_envelope(Some(Bbox::WORLD)), strange] {
        assert_eq!(Envelope::decode(&envelope.encode()).unwrap(), envelope);
    }
}

#[test]
fn the_box_is_read_at_its_fixed_place_or_not_at_all() {
    let envelope = claim_envelope();
    let value = envelope.encode();
    assert_eq!(peek(&value), Peek::Placed(envelope.bbox.unwrap()));
    assert_eq!(peek(&inline_envelope(None).encode()), Peek::Unknown);
    for cut in 0..54 {
        assert_eq!(peek(&value[..cut]), Peek::Unknown, "{cut}");
    }
    let newer = text(&envelope).replacen("\"Aa", "\"Ca", 1);
    assert_eq!(peek(newer.as_bytes()), Peek::Unknown, "a version that is not known");
    assert_eq!(Envelope::decode(newer.as_bytes()).unwrap().bbox, envelope.bbox, "the bbox says the same");
    let longer = text(&envelope).replacen("NwPT3A\"", "NwPT3Aabcd\"", 1);
    assert_eq!(peek(longer.as_bytes()), Peek::Placed(envelope.bbox.unwrap()), "cells after the box");
    let longer = Envelope::decode(longer.as_bytes()).unwrap();
    assert_eq!((longer.bbox, longer.cells), (envelope.bbox, Some(Cells::from_bytes(&[0x69, 0xb7, 0x1d]))));
}

#[test]
fn the_length_of_a_stored_body_is_read_from_the_end() {
    let mut envelope = claim_envelope();
    envelope.others.insert("z".into(), "1".into());
    assert_eq!(peek_body_bytes(&envelope.encode()), Some(2));
    assert_eq!(peek_body_bytes(&inline_envelope(None).encode()), None);
    assert_eq!(peek_body_bytes(b"{\"body_bytes\":}"), None);
    assert_eq!(peek_body_bytes(b"7}"), None);
}

#[test]
fn a_plain_envelope_of_another_language_is_read() {
    let plain = r#"{"geometry": {"type":"Point","coordinates":[1,2]}, "event_id":"e", "x-team":"maps", "version":null,
        "body_key":null, "crs":null, "feature_id":"f", "bbox":[1,2,1,2]}"#;
    let envelope = Envelope::decode(plain.as_bytes()).unwrap();
    assert_eq!(envelope.crs, DEFAULT_CRS);
    assert_eq!(envelope.bbox.unwrap().to_array(), [1.0, 2.0, 1.0, 2.0]);
    assert_eq!(envelope.others["x-team"], "\"maps\"");
    assert!(matches!(envelope.content, Content::Inline(InlineBody { member: InlineMember::Geometry, .. })));
    assert_eq!(peek(plain.as_bytes()), Peek::Unknown);
}

#[test]
fn what_is_no_envelope_is_malformed_and_says_why() {
    for (value, message) in [
        ("", "no envelope"),
        ("[]", "a JSON object"),
        ("{\"event_id\":\"e\"}", "feature_id is missing"),
        ("{\"feature_id\":\"f\"}", "event_id is missing"),
        ("{\"feature_id\":\"f\",\"feature_id\":\"g\"}", "comes twice"),
        ("{\"feature_id\":7}", "feature_id must be a string"),
        ("{\"feature_id\":\"\",\"event_id\":\"e\"}", "1 to 512"),
        ("{\"feature_id\":\"f\",\"event_id\":\"e\"}", "neither geometry"),
        ("{\"feature_id\":\"f\",\"event_id\":\"e\",\"geometry\":[1]}", "must be an object"),
        ("{\"feature_id\":\"f\",\"event_id\":\"e\",\"geometry\":{},\"geojson\":{}}", "more than one"),
        ("{\"feature_id\":\"f\",\"event_id\":\"e\",\"bbox\":[1,2,3]}", "bbox has 3 numbers"),
        ("{\"feature_id\":\"f\",\"event_id\":\"e\",\"bbox\":[NaN,2,3,4]}", "no envelope"),
        ("{\"feature_id\":\"f\",\"event_id\":\"e\",\"bbox\":[1,95,3,96]}", "is no bbox"),
        ("{\"feature_id\":\"f\",\"event_id\":\"e\",\"cover\":\"AAAA\"}", "cover is not"),
        ("{\"feature_id\":\"f\",\"event_id\":\"e\",\"body_bytes\":-1}", "body_bytes must be"),
        ("{\"feature_id\":\"f\",\"event_id\":\"e\",\"body_bytes\":1}", "a claim check needs"),
        ("{\"feature_id\":\"f\",\"event_id\":\"e\",\"occurred_at\":\"yesterday\"}", "RFC 3339"),
    ] {
        let fault = fault(value);
        assert_eq!(fault.kind, FaultKind::Malformed, "{value}");
        assert!(fault.detail.contains(message), "{value}: {fault}");
    }
}

#[test]
fn a_key_that_is_not_the_digests_is_hostile() {
    let value = text(&claim_envelope());
    for key in ["/etc/passwd", "geom/44/../secret", "http://169.254.169.254/latest"] {
        let forged = value.replacen("geom/44/44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a.json", key, 1);
        assert_eq!(fault(&forged).kind, FaultKind::Hostile);
    }
}

#[test]
fn a_cover_that_contradicts_the_bbox_is_a_mismatch() {
    let value = text(&claim_envelope()).replacen("165.87", "165.86", 1);
    assert_eq!(fault(&value).kind, FaultKind::Mismatch);
}

#[test]
fn deep_nesting_in_an_unknown_member_is_an_error_and_no_overflow() {
    let value = format!("{{\"x\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(fault(&value).kind, FaultKind::Malformed);
}

#[test]
fn the_whole_record_is_counted() {
    assert_eq!(record_bytes(b"key", 100, []), 3 + 100 + 82);
    assert_eq!(record_bytes(b"key", 100, [("traceparent", 55)]), 3 + 100 + 82 + 11 + 55 + 10);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(value in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = peek(&value);
        let _ = Envelope::decode(&value);
    }

    #[test]
    fn the_cover_holds_every_box_exactly(west in -180.0..=180.0, south in -90.0..=0.0, east in -180.0..=180.0, north in 0.0..=90.0) {
        let bbox = Bbox::new(west, south, east, north).unwrap();
        let envelope = Envelope { bbox: Some(bbox), ..claim_envelope() };
        prop_assert_eq!(peek(&envelope.encode()), Peek::Placed(bbox));
        prop_assert!(record_bytes(b"NZL", envelope.encode().len(), []) < limits::CLAIM_RECORD_BYTES);
    }
}
