//! What is written: the clipped body, sealed.
//!
//! The object is GeoJSON. Its last member, `geoclaim`, says of what it was made, and ends with the SHA-256 of all bytes
//! before its own member, so that whoever reads it can tell a whole output of this job from anything else:
//!
//! ```json
//! {"type":"Feature","id":"f","properties":{},"geometry":{…},"geoclaim":{"job":"…","pipeline":"clip/1","area":"CH",
//!  "body_key":"…","parameters":{"simplify_degrees":null,"generation":null},"sha256":"…"}}
//! ```
//!
//! That is the SHA-256 of everything before `,"sha256":`. The key is the one that the body is stored under, if it is stored.

use std::collections::BTreeMap;

use bytes::Bytes;
use geo::Geometry;
use geoclaim_common::{
    Bbox, Digest,
    geojson::{Kind, ScanOptions},
    reproject::scan,
};
use serde_json::value::RawValue;

use super::{
    area::Within,
    clip::Clip,
    job::{Job, PIPELINE, Parameters},
};
use crate::sink::State;

/// The bytes of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) bytes: Bytes,
    /// Why there is nothing else to write.
    pub(super) refused: Option<String>,
}

impl Output {
    /// Returns the ending of its name.
    pub(super) fn ending(&self) -> &'static str {
        if self.refused.is_some() { REFUSED } else { CLIPPED }
    }
}

/// The ending of the name of an output.
pub(super) const CLIPPED: &str = "geojson";
/// The ending of the name of an output that says why there is none.
pub(super) const REFUSED: &str = "refused.json";

/// Before the digest in a seal.
const BEFORE_DIGEST: &[u8] = br#","sha256":""#;
/// After it.
const AFTER_DIGEST: &[u8] = br#""}}"#;

/// Clips a state to an area.
///
/// # Errors
/// Why it cannot be.
pub(super) fn clipped(state: &State, bbox: &Bbox, within: &Within, simplify_degrees: Option<f64>) -> Result<String, String> {
    if state.extent.suspect {
        return Err("an edge of more than 180 degrees of longitude, of which nobody knows which way round it is meant".to_owned());
    }
    let clipper = Clipper { bbox, within, simplify_degrees, options: ScanOptions { crs: state.crs, ..ScanOptions::default() } };
    let bytes = state.body.bytes();
    let text = std::str::from_utf8(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)).map_err(|error| error.to_string())?;
    match state.outline.kind {
        Kind::Geometry(_) => Ok(clipper.geometry(text.trim())?.unwrap_or_else(|| EMPTY.to_owned())),
        Kind::Feature => clipper.feature(text).map(|(feature, _)| feature),
        Kind::FeatureCollection => clipper.collection(text),
    }
}

/// A geometry that has no part in the area but on its boundary.
const EMPTY: &str = r#"{"type":"GeometryCollection","geometries":[]}"#;

struct Clipper<'a> {
    bbox: &'a Bbox,
    within: &'a Within,
    simplify_degrees: Option<f64>,
    options: ScanOptions,
}

type Members<'a> = BTreeMap<String, &'a RawValue>;

impl Clipper<'_> {
    /// Returns the clipped geometry as text; `None` when nothing of it is in the area.
    fn geometry(&self, text: &str) -> Result<Option<String>, String> {
        let is_as_it_was = self.within.is_all && self.simplify_degrees.is_none();
        if is_as_it_was && !matches!(self.options.crs, geoclaim_common::geojson::CrsMember::Is(_)) {
            return Ok(Some(text.to_owned()));
        }
        let mut clip = Clip::new(self.within, self.bbox, self.simplify_degrees);
        scan(text.as_bytes(), &self.options, &mut clip).map_err(|error| error.to_string())?;
        Ok(clip.finish()?.as_ref().map(text_of))
    }

    /// Returns a feature with its id and properties as they were, and whether any of it is in the area.
    fn feature(&self, text: &str) -> Result<(String, bool), String> {
        let members: Members<'_> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let given = |name: &str| members.get(name).map(|value| value.get()).filter(|value| *value != "null");
        let clipped = given("geometry").map(|geometry| self.geometry(geometry)).transpose()?.flatten();
        let id = given("id").map(|id| format!(r#""id":{id},"#)).unwrap_or_default();
        let properties = given("properties").unwrap_or("null");
        let geometry = clipped.as_deref().unwrap_or(EMPTY);
        let feature = format!(r#"{{"type":"Feature",{id}"properties":{properties},"geometry":{geometry}}}"#);
        Ok((feature, clipped.is_some()))
    }

    /// Returns a collection with those of its features that are in the area.
    fn collection(&self, text: &str) -> Result<String, String> {
        let members: Members<'_> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let features = members.get("features").map_or("[]", |features| features.get());
        let features: Vec<&RawValue> = serde_json::from_str(features).map_err(|error| error.to_string())?;
        let mut kept = Vec::new();
        for feature in features {
            let (text, is_within) = self.feature(feature.get())?;
            if is_within {
                kept.push(text);
            }
        }
        Ok(format!(r#"{{"type":"FeatureCollection","features":[{}]}}"#, kept.join(",")))
    }
}

fn text_of(geometry: &Geometry) -> String {
    geojson::Geometry::new(geojson::GeometryValue::from(geometry)).to_string()
}

/// Seals an output: adds its last member.
pub(super) fn sealed(job: &Job, parameters: &Parameters, made: Result<String, String>) -> Output {
    let refused = made.as_ref().err().cloned();
    let object = made.unwrap_or_else(|why| format!(r#"{{"refused":{}}}"#, serde_json::Value::from(why)));
    let mut bytes = object.trim_end().strip_suffix('}').unwrap_or_default().as_bytes().to_vec();
    let area = serde_json::Value::from(&*job.area);
    let (key, source) = (job.key, job.source.key());
    let parameters = serde_json::to_string(parameters).unwrap_or_default();
    let made_of = format!(
        r#","geoclaim":{{"job":"{key}","pipeline":"{PIPELINE}","area":{area},"body_key":"{source}","parameters":{parameters}"#
    );
    bytes.extend_from_slice(made_of.as_bytes());
    let digest = Digest::of(&bytes).to_string();
    for piece in [BEFORE_DIGEST, digest.as_bytes(), AFTER_DIGEST] {
        bytes.extend_from_slice(piece);
    }
    Output { bytes: bytes.into(), refused }
}

/// Tells whether bytes are a whole output of a job.
pub(super) fn is_whole(bytes: &[u8], job: &Job) -> bool {
    let Some(before) = bytes.strip_suffix(AFTER_DIGEST) else { return false };
    let Some((before, digest)) = before.split_last_chunk::<64>() else { return false };
    let Some(content) = before.strip_suffix(BEFORE_DIGEST) else { return false };
    let names = format!(r#","geoclaim":{{"job":"{}","#, job.key);
    memchr::memmem::rfind(content, names.as_bytes()).is_some() && Digest::of(content).to_string().as_bytes() == digest
}
