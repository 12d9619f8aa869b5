//! What one body becomes: an inline record, or a body to store and a record with its claim check. Pure, but that what is compressed of a very
//! large body lies in a file.

use bytes::Bytes;
use geoclaim_common::{
    Body, Envelope, Timestamp,
    envelope::{Content, DEFAULT_CRS, InlineBody, InlineMember},
    extent::{Extent, MeasureOptions, measure},
    geojson::{CrsMember, Outline, member, scalar_text},
    limits,
    stream::OutgoingRecord,
};

use super::PublishSettings;
use crate::{
    identity,
    read::{Place, RawBody},
};

/// What is to be done for one event.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The feature, so that order can be kept.
    pub feature_id: String,
    /// The record to publish.
    pub record: OutgoingRecord,
    /// The body to store first; `None` when it is inline.
    pub body: Option<Body>,
}

/// Where an event comes from.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The name of the source.
    pub source: &'a str,
    /// The event's place in the run, from 0.
    pub run_place: u64,
    /// When it happened.
    pub occurred_at: Timestamp,
}

/// Plans the event of one body. The size decision is on the whole record as the broker counts it.
///
/// # Errors
/// The body is no good: where, and why.
pub fn plan(raw: &RawBody, origin: Origin<'_>, settings: &PublishSettings) -> Result<Planned, (Place, String)> {
    let (sealed, measured) = if raw.bytes.len() < settings.inline_limit_bytes {
        // An inline body says itself where it lies.
        (None, measure(&raw.bytes, &MeasureOptions { cover_bytes: 0, ..settings.measure }))
    } else {
        let (sealed, measured) = Body::seal_beside(raw.bytes.clone(), |bytes| measure(bytes, &settings.measure));
        (Some(sealed), measured)
    };
    let (extent, outline) = measured.map_err(|error| (raw.place.within(&raw.bytes, &error), error.problem.clone()))?;
    plan_measured(raw, sealed, extent, &outline, origin, settings).map_err(|problem| (raw.place, problem))
}

/// As [`plan`], of a body that has been measured, and perhaps sealed.
///
/// # Errors
/// Why the body is no good.
pub fn plan_measured(
    raw: &RawBody,
    sealed: Option<Body>,
    extent: Extent,
    outline: &Outline,
    origin: Origin<'_>,
    settings: &PublishSettings,
) -> Result<Planned, String> {
    let feature_id = settings.id_rule.feature_id(&raw.bytes, outline, raw.place.index)?;
    let version = version(&raw.bytes, outline, settings)?;
    let mut envelope = Envelope {
        event_id: identity::event_id(origin.source, &settings.run, &feature_id, origin.run_place),
        feature_id: feature_id.clone(),
        version,
        occurred_at: Some(origin.occurred_at),
        crs: crs_of(settings.measure.scan.crs),
        bbox: extent.bbox,
        cells: extent.cells,
        vertex_count: Some(extent.vertex_count),
        suspect: extent.suspect,
        content: Content::Inline(InlineBody { member: InlineMember::of(extent.kind), bytes: Bytes::new() }),
        others: Default::default(),
    };
    if let Some(bytes) = inlineable(&raw.bytes).filter(|bytes| bytes.len() < settings.inline_limit_bytes) {
        envelope.content = Content::Inline(InlineBody { member: InlineMember::of(extent.kind), bytes });
        let record = record_of(&envelope);
        if record.bytes() <= settings.inline_limit_bytes {
            return Ok(Planned { feature_id, record, body: None });
        }
    }
    let body = sealed.unwrap_or_else(|| Body::seal(raw.bytes.clone()));
    let body = match settings.zstd_level {
        Some(level) => body.compressed(level, &settings.spool).map_err(|error| format!("it cannot be compressed: {error}"))?,
        None => body,
    };
    envelope.content = Content::Claim(body.claim());
    let mut record = record_of(&envelope);
    if record.bytes() >= limits::CLAIM_RECORD_BYTES && envelope.cells.take().is_some() {
        record = record_of(&envelope);
    }
    if record.bytes() >= limits::CLAIM_RECORD_BYTES {
        let problem = format!(
            "its record would have {} bytes, and one with a claim check stays below {}: the identity is too long",
            record.bytes(),
            limits::CLAIM_RECORD_BYTES
        );
        return Err(problem);
    }
    Ok(Planned { feature_id, record, body: Some(body) })
}

/// Returns what the envelope says of the body's coordinates.
fn crs_of(member: CrsMember) -> String {
    match member {
        CrsMember::Is(epsg) => epsg.to_string(),
        CrsMember::Refuse | CrsMember::Ignore => DEFAULT_CRS.to_owned(),
    }
}

fn record_of(envelope: &Envelope) -> OutgoingRecord {
    OutgoingRecord {
        key: Some(Bytes::copy_from_slice(envelope.feature_id.as_bytes())),
        value: Some(envelope.encode().into()),
        headers: Vec::new(),
    }
}

/// Returns the JSON text that can stand in an envelope: the object without white space around it. A byte order mark
/// is no JSON, so a body with one is stored, where it keeps every byte.
fn inlineable(bytes: &Bytes) -> Option<Bytes> {
    let text = bytes.trim_ascii();
    text.starts_with(b"{").then(|| bytes.slice_ref(text))
}

fn version(body: &[u8], outline: &Outline, settings: &PublishSettings) -> Result<Option<i64>, String> {
    let Some(name) = &settings.version_property else { return Ok(None) };
    let text = outline
        .properties
        .clone()
        .and_then(|properties| member(body, properties, name))
        .and_then(|range| scalar_text(&body[range]));
    let version = text.as_deref().and_then(|text| text.parse().ok());
    version.map(Some).ok_or_else(|| format!("the property {name:?} holds no integer to be the version"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use geoclaim_common::{Digest, envelope::record_bytes};

    const ORIGIN: Origin<'_> = Origin { source: "s", run_place: 3, occurred_at: Timestamp::from_millis(0) };

    fn settings() -> PublishSettings {
        PublishSettings { run: "r".into(), ..PublishSettings::default() }
    }

    fn raw(text: &str) -> RawBody {
        RawBody { bytes: Bytes::copy_from_slice(text.as_bytes()), place: Place { index: 3, offset: 0, line: 1, column: 1 } }
    }

    fn feature(padding: usize) -> RawBody {
        raw(&format!(
            r#"{{"type":"Feature","id":"f","geometry":{{"type":"Point","coordinates":[1,2]}},"x":"{}"}}"#,
            "y".repeat(padding)
        ))
    }

    fn envelope(planned: &Planned) -> Envelope {
        Envelope::decode(planned.record.value.as_ref().unwrap()).unwrap()
    }

    #[test]
    fn the_whole_record_decides_and_not_the_body_alone() {
        let settings = settings();
        let small = plan(&feature(0), ORIGIN, &settings).unwrap();
        let overhead = small.record.bytes() - feature(0).bytes.len();
        let room = settings.inline_limit_bytes - overhead - feature(0).bytes.len();
        let fits = plan(&feature(room), ORIGIN, &settings).unwrap();
        assert_eq!((fits.record.bytes(), fits.body.is_none()), (settings.inline_limit_bytes, true));
        let over = plan(&feature(room + 1), ORIGIN, &settings).unwrap();
        assert!(over.body.is_some() && over.record.bytes() < limits::CLAIM_RECORD_BYTES);
        let value = over.record.value.as_ref().unwrap();
        assert_eq!(over.record.bytes(), record_bytes(b"f", value.len(), []));
    }

    #[test]
    fn an_inline_body_is_the_bytes_as_given_under_its_own_member() {
        let point = r#"{ "type":"Point", "coordinates":[-120.65487365123505, 1.0] }"#;
        let settings = PublishSettings { id_rule: identity::IdRule::Index, ..settings() };
        let planned = plan(&raw(point), ORIGIN, &settings).unwrap();
        assert_eq!(
            envelope(&planned).content,
            Content::Inline(InlineBody { member: InlineMember::Geometry, bytes: Bytes::copy_from_slice(point.as_bytes()) })
        );
        let planned = plan(&feature(0), ORIGIN, &settings).unwrap();
        assert!(matches!(envelope(&planned).content, Content::Inline(InlineBody { member: InlineMember::Geojson, .. })));
    }

    #[test]
    fn a_body_with_a_byte_order_mark_is_stored_with_it() {
        let with_mark = raw("\u{feff}{\"type\":\"Feature\",\"id\":\"f\",\"geometry\":null}");
        let planned = plan(&with_mark, ORIGIN, &settings()).unwrap();
        assert_eq!(planned.body.unwrap().claim().digest, Digest::of(&with_mark.bytes));
    }

    #[test]
    fn what_is_no_good_is_told_with_its_place() {
        let (place, problem) = plan(&raw("{\n\"type\":\"Point\",\"coordinates\":[1,100]}"), ORIGIN, &settings()).unwrap_err();
        assert_eq!((place.line, place.column), (2, 31));
        assert!(problem.contains("latitude 100"));
        let (_, problem) = plan(&raw(r#"{"type":"Point","coordinates":[1,2]}"#), ORIGIN, &settings()).unwrap_err();
        assert!(problem.contains("--id-property"));
    }

    #[test]
    fn a_version_comes_from_its_property() {
        let settings = PublishSettings { version_property: Some("v".into()), ..settings() };
        let with = |v: &str| raw(&format!(r#"{{"type":"Feature","id":1,"properties":{{"v":{v}}},"geometry":null}}"#));
        assert_eq!(envelope(&plan(&with("12"), ORIGIN, &settings).unwrap()).version, Some(12));
        assert!(plan(&with("1.5"), ORIGIN, &settings).unwrap_err().1.contains("no integer"));
    }
}
