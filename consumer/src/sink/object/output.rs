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
    Bbox,
    digest::Digester,
    geojson::{CrsMember, Kind, ScanOptions},
    reproject::scan,
};
use serde_json::value::RawValue;

use super::{
    area::Within,
    clip::Clip,
    job::{Job, PIPELINE, Parameters},
    pieces::Pieces,
};
use crate::sink::State;

/// The bytes of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) pieces: Pieces,
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
const BEFORE_DIGEST: &str = r#","sha256":""#;
/// After it.
const AFTER_DIGEST: &str = r#""}}"#;

/// Clips a state to an area.
///
/// # Errors
/// Why it cannot be.
pub(super) fn clipped(state: &State, bbox: &Bbox, within: &Within, simplify_degrees: Option<f64>) -> Result<Pieces, String> {
    if state.extent.suspect {
        return Err("an edge of more than 180 degrees of longitude, of which nobody knows which way round it is meant".to_owned());
    }
    let options = ScanOptions { crs: state.crs, ..ScanOptions::default() };
    let body = state.body.bytes();
    let clipper = Clipper { body, bbox, within, simplify_degrees, options };
    let text = std::str::from_utf8(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)).map_err(|error| error.to_string())?;
    match state.outline.kind {
        Kind::Geometry(_) => Ok(clipper.geometry(text.trim())?.unwrap_or_else(|| EMPTY.to_owned().into())),
        Kind::Feature => clipper.feature(text).map(|(feature, _)| feature),
        Kind::FeatureCollection => clipper.collection(text),
    }
}

/// Tells whether a body is read to be clipped, and not taken as it is.
pub(super) fn is_clipped(crs: CrsMember, within: &Within, simplify_degrees: Option<f64>) -> bool {
    !within.is_all || simplify_degrees.is_some() || matches!(crs, CrsMember::Is(_))
}

/// A geometry that has no part in the area but on its boundary.
const EMPTY: &str = r#"{"type":"GeometryCollection","geometries":[]}"#;

struct Clipper<'a> {
    body: &'a Bytes,
    bbox: &'a Bbox,
    within: &'a Within,
    simplify_degrees: Option<f64>,
    options: ScanOptions,
}

type Members<'a> = BTreeMap<String, &'a RawValue>;

impl Clipper<'_> {
    /// Returns the clipped geometry as text; `None` when nothing of it is in the area.
    fn geometry(&self, text: &str) -> Result<Option<Pieces>, String> {
        if !is_clipped(self.options.crs, self.within, self.simplify_degrees) {
            let mut whole = Pieces::default();
            whole.push_part(self.body, text);
            return Ok(Some(whole));
        }
        let mut clip = Clip::new(self.within, self.bbox, self.simplify_degrees);
        scan(text.as_bytes(), &self.options, &mut clip).map_err(|error| error.to_string())?;
        Ok(clip.finish()?.as_ref().map(|clipped| text_of(clipped).into()))
    }

    /// Returns a feature with its id and properties as they were, and whether any of it is in the area.
    fn feature(&self, text: &str) -> Result<(Pieces, bool), String> {
        let members: Members<'_> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let given = |name: &str| members.get(name).map(|value| value.get()).filter(|value| *value != "null");
        let clipped = given("geometry").map(|geometry| self.geometry(geometry)).transpose()?.flatten();
        let is_within = clipped.is_some();
        let mut feature = Pieces::from(r#"{"type":"Feature","#.to_owned());
        if let Some(id) = given("id") {
            feature.push(&format!(r#""id":{id},"#));
        }
        feature.push(r#""properties":"#);
        feature.push_part(self.body, given("properties").unwrap_or("null"));
        feature.push(r#","geometry":"#);
        feature.append(clipped.unwrap_or_else(|| EMPTY.to_owned().into()));
        feature.push("}");
        Ok((feature, is_within))
    }

    /// Returns a collection with those of its features that are in the area.
    fn collection(&self, text: &str) -> Result<Pieces, String> {
        let members: Members<'_> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let features = members.get("features").map_or("[]", |features| features.get());
        let features: Vec<&RawValue> = serde_json::from_str(features).map_err(|error| error.to_string())?;
        let mut collection = Pieces::from(r#"{"type":"FeatureCollection","features":["#.to_owned());
        let mut separator = "";
        for feature in features {
            let (feature, is_within) = self.feature(feature.get())?;
            if is_within {
                collection.push(std::mem::replace(&mut separator, ","));
                collection.append(feature);
            }
        }
        collection.push("]}");
        Ok(collection)
    }
}

fn text_of(geometry: &Geometry) -> String {
    geojson::Geometry::new(geojson::GeometryValue::from(geometry)).to_string()
}

/// Seals an output: adds its last member.
pub(super) fn sealed(job: &Job, parameters: &Parameters, made: Result<Pieces, String>) -> Output {
    let refused = made.as_ref().err().cloned();
    let mut pieces = made.unwrap_or_else(|why| format!(r#"{{"refused":{}}}"#, serde_json::Value::from(why)).into());
    pieces.strip(b'}');
    let area = serde_json::Value::from(&*job.area);
    let (key, source) = (job.key, job.source.key());
    let parameters = serde_json::to_string(parameters).unwrap_or_default();
    pieces.push(&format!(
        r#","geoclaim":{{"job":"{key}","pipeline":"{PIPELINE}","area":{area},"body_key":"{source}","parameters":{parameters}"#
    ));
    let digest = pieces.digest();
    pieces.push(&format!("{BEFORE_DIGEST}{digest}{AFTER_DIGEST}"));
    Output { pieces, refused }
}

/// Tells of bytes that come piece by piece whether they are a whole output of a job.
#[derive(Debug, Default)]
pub(super) struct Sealed {
    digester: Digester,
    /// The last bytes: they hold the seal, which does not digest itself.
    tail: Vec<u8>,
}

/// How many of the last bytes are kept: more than the last member takes.
const TAIL_BYTES: usize = 16 << 10;

impl Sealed {
    /// Takes the next piece.
    pub(super) fn take(&mut self, piece: &[u8]) {
        self.tail.extend_from_slice(piece);
        let passed = self.tail.len().saturating_sub(TAIL_BYTES);
        // Not byte by byte.
        if passed > TAIL_BYTES {
            self.digester.update(&self.tail[..passed]);
            self.tail.drain(..passed);
        }
    }

    /// Tells whether all that came is a whole output of this job.
    pub(super) fn finish(mut self, job: &Job) -> bool {
        let Some(before) = self.tail.strip_suffix(AFTER_DIGEST.as_bytes()) else { return false };
        let Some((before, digest)) = before.split_last_chunk::<64>() else { return false };
        let Some(content) = before.strip_suffix(BEFORE_DIGEST.as_bytes()) else { return false };
        let names = format!(r#","geoclaim":{{"job":"{}","#, job.key);
        self.digester.update(content);
        memchr::memmem::rfind(content, names.as_bytes()).is_some() && self.digester.finish().to_string().as_bytes() == digest
    }
}
