use std::io;

use geoclaim_common::Spool;

use super::*;

/// Gives its bytes a few at a time, so that every boundary is met.
struct Drip<'a>(&'a [u8], usize);

impl io::Read for Drip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(self.0.len()).min(buffer.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

fn read(text: &str) -> Vec<String> {
    let whole = shown(Reader::new(text.as_bytes(), ReadOptions::default()), text);
    let spool = Spool { from_bytes: 1, ..Spool::default() };
    for drip in [1, 3, 7] {
        assert_eq!(shown(Reader::new(Drip(text.as_bytes(), drip), ReadOptions::default()), text), whole, "by {drip}");
        let spooled = ReadOptions { spool: spool.clone(), ..ReadOptions::default() };
        assert_eq!(shown(Reader::new(Drip(text.as_bytes(), drip), spooled), text), whole, "by {drip}, through a file");
    }
    whole
}

fn shown<R: io::Read>(reader: Reader<R>, text: &str) -> Vec<String> {
    reader
        .map(|item| match item {
            Ok(RawBody { bytes, place }) => {
                assert_eq!(&text.as_bytes()[place.offset as usize..][..bytes.len()], bytes, "the place is where the bytes are");
                String::from_utf8(bytes.to_vec()).unwrap()
            }
            Err(ReadProblem { place, problem }) => format!("{}:{} #{} {problem}", place.line, place.column, place.index),
        })
        .collect()
}

#[test]
fn a_collection_is_read_feature_by_feature_byte_for_byte() {
    assert_eq!(
        read(r#" {"type":"FeatureCollection", "x":{"features":[1]}, "features" : [ {"a": "}]"} , {"b":[{}]}] , "y":null}  "#),
        [r#"{"a": "}]"}"#, r#"{"b":[{}]}"#]
    );
    assert_eq!(read(r#"{"features":[{"a":1}],"type":"FeatureCollection"}"#), [r#"{"a":1}"#]);
    assert!(read(r#"{"type":"FeatureCollection","features":[]}"#).is_empty());
}

#[test]
fn a_single_object_is_its_own_body_even_with_a_member_named_features() {
    for text in [
        r#"{"features":[{"type":"Feature"}],"type":"Feature","geometry":null}"#,
        r#"{"type":"Point","coordinates":[1,2]}"#,
        r#"{"coordinates":[1,2],"type":"Point"}"#,
        r#"{"a":1}"#,
    ] {
        assert_eq!(read(text), [text]);
        assert_eq!(read(&format!("\n  {text}\n\n")), [text]);
    }
}

#[test]
fn a_byte_order_mark_stays_with_the_single_object_it_precedes() {
    assert_eq!(read("\u{feff}{\"a\":1}"), ["\u{feff}{\"a\":1}"]);
    assert_eq!(read("\u{feff}{\"type\":\"FeatureCollection\",\"features\":[{\"a\":1}]}"), ["{\"a\":1}"]);
}

#[test]
fn newline_delimited_texts_are_told_by_their_content() {
    assert_eq!(read("{\"a\":1}\n\n{\"b\":2}\r\n {\"c\":3}"), ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"]);
    assert_eq!(read("{\"a\":1}\n{\"b\":\n{\"c\":3}\n"), ["{\"a\":1}", "{\"b\":", "{\"c\":3}"], "a broken line costs that line");
    let collections = "{\"type\":\"FeatureCollection\",\"features\":[{\"a\":1},{\"b\":2}]}\n{\"type\":\"FeatureCollection\",\"features\":[{\"c\":3},7]}\n";
    assert_eq!(read(collections), ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}", "2:49 #3 a feature must be an object"]);
}

#[test]
fn a_text_sequence_is_told_by_its_separators() {
    assert_eq!(read("\u{1e}{\"a\":1}\n\u{1e}{\n\"b\":2}\n"), ["{\"a\":1}", "{\n\"b\":2}"]);
    assert_eq!(read("\u{1e}{\"a\":1\n\u{1e}\u{1e}{\"b\":2}"), ["{\"a\":1", "{\"b\":2}"], "a cut text costs that text");
}

#[test]
fn what_is_broken_is_told_with_its_place() {
    assert_eq!(read(""), ["1:1 #0 the input is empty"]);
    assert_eq!(
        read("\n\n  x")[0],
        "3:3 #0 expected GeoJSON: an object that begins with '{', one a line, or an RFC 8142 sequence"
    );
    assert_eq!(read("{\"a\":1} x"), ["{\"a\":1}", "1:9 #1 bytes after the end of the document"]);
    assert_eq!(read("{\n\"a\":1}\n{\"b\":2}"), ["{\n\"a\":1}", "3:1 #1 bytes after the end of the document"]);
    assert_eq!(read("{\"a\":{}"), ["1:1 #0 an object that does not end: the text has been cut"]);
}

#[test]
fn a_cut_or_broken_collection_is_an_error_after_its_whole_features() {
    let start = "{\"type\":\"FeatureCollection\",\"features\":[{\"a\":1}";
    for (rest, problem) in [
        ("", "expected ',' or ']' after a feature, found the end of the text: it has been cut"),
        (",", "expected a feature, found the end of the text: it has been cut"),
        (",{\"b\"", "an object that does not end: the text has been cut"),
        ("]", "expected ',' or '}' in the collection, found the end of the text: it has been cut"),
        (" {\"b\":2}]}", "expected ',' or ']' after a feature, found '{'"),
        (",]}", "expected a feature, found ']'"),
        ("]}}", "bytes after the end of the document"),
        ("],\"type\":\"FeatureCollection\"}", "member \"type\" comes twice"),
    ] {
        let items = read(&format!("{start}{rest}"));
        assert_eq!(items.len(), 2, "{rest}: {items:?}");
        assert!(items[1].ends_with(problem), "{rest}: {items:?}");
    }
    assert!(read("{\"features\":[{\"a\":1}]}")[0].starts_with('{'), "no type: a single object, which the scan refuses");
}

#[test]
fn a_collection_in_another_crs_is_refused_before_a_feature_is_read() {
    let crs = "\"crs\":{\"type\":\"name\",\"properties\":{\"name\":\"urn:ogc:def:crs:EPSG::3857\"}}";
    for text in [
        format!("{{\"type\":\"FeatureCollection\",{crs},\"features\":[{{\"a\":1}}]}}"),
        format!("{{\"type\":\"FeatureCollection\",\"features\":[{{\"a\":1}}],{crs}}}"),
    ] {
        let items = read(&text);
        assert!(items.len() == 1 && items[0].contains("EPSG::3857"), "{items:?}");
        let options = ReadOptions { crs: CrsMember::Ignore, ..ReadOptions::default() };
        assert_eq!(shown(Reader::new(text.as_bytes(), options), &text), ["{\"a\":1}"]);
    }
}

#[test]
fn a_body_above_the_limit_is_a_problem_and_is_passed_over() {
    let options = ReadOptions { most_bytes: 1 << 20, ..ReadOptions::default() };
    let large = format!("{{\"x\":\"{}\"}}", "y".repeat(3 << 20));
    let collection = format!("{{\"type\":\"FeatureCollection\",\"features\":[{{\"a\":1}},{large},{{\"b\":2}}]}}");
    let lines = format!("{{\"a\":1}}\n{large}\n{{\"b\":2}}\n");
    for text in [collection, lines] {
        let items = shown(Reader::new(text.as_bytes(), options.clone()), &text);
        assert_eq!(items.len(), 3, "{:?}", items.iter().map(String::len).collect::<Vec<_>>());
        assert!(items[1].contains("more than 1048576 bytes"));
        assert_eq!(items[2], "{\"b\":2}");
    }
}

#[test]
fn memory_follows_the_largest_feature_and_not_the_input() {
    let feature = format!("{{\"x\":\"{}\"}},", "y".repeat(100_000));
    let text = format!("{{\"type\":\"FeatureCollection\",\"features\":[{}{{}}]}}", feature.repeat(500));
    let mut reader = Reader::new(text.as_bytes(), ReadOptions::default());
    let mut largest = 0;
    while reader.next().is_some() {
        largest = largest.max(reader.window.capacity());
    }
    assert!(largest < 4 << 20, "{largest}");
}

#[test]
fn a_whole_document_is_taken_with_every_byte() {
    let options = ReadOptions { taken: Taken::Whole, ..ReadOptions::default() };
    let text = "\u{feff} {\"type\":\"FeatureCollection\",\"features\":[]}\n";
    assert_eq!(shown(Reader::new(text.as_bytes(), options), text), [text]);
}
