//! Bytes to envelope, whatever the order of the members.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use bytes::Bytes;
use serde::{
    Deserialize,
    de::{DeserializeOwned, Deserializer, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{Content, DEFAULT_CRS, Envelope, InlineBody, InlineMember, cover};
use crate::{Bbox, ClaimCheck, Digest, Encoding, Fault, FaultKind, Timestamp, body::Encoded, cover::Cells, key, limits};

impl Envelope {
    /// Reads a record's value.
    ///
    /// # Errors
    /// [`FaultKind::Malformed`] when it is not an envelope, with the member and what was expected;
    /// [`FaultKind::Hostile`] when `body_key` is not the key of `body_sha256`.
    pub fn decode(value: &[u8]) -> Result<Self, Fault> {
        decode(value, Bytes::copy_from_slice)
    }

    /// Reads a record's value; an inline body shares its bytes instead of being copied out of it.
    ///
    /// # Errors
    /// As [`Envelope::decode`].
    pub fn decode_shared(value: &Bytes) -> Result<Self, Fault> {
        decode(value, |raw| value.slice_ref(raw))
    }
}

fn decode(value: &[u8], share: impl Fn(&[u8]) -> Bytes) -> Result<Envelope, Fault> {
    let members: Members<'_> =
        serde_json::from_slice(value).map_err(|error| Fault::malformed(format!("the value is no envelope: {error}")))?;
    let mut members = members.0;
    let feature_id = identity(&mut members, "feature_id", limits::FEATURE_ID_BYTES)?;
    let event_id = identity(&mut members, "event_id", limits::EVENT_ID_BYTES)?;
    let (bbox, cells) = place(&mut members)?;
    let crs = take::<String>(&mut members, "crs", "a string")?.unwrap_or_else(|| DEFAULT_CRS.into());
    if crs.len() > limits::CRS_BYTES {
        return Err(Fault::malformed(format!("crs has {} bytes, {} at most", crs.len(), limits::CRS_BYTES)));
    }
    let occurred_at = take::<String>(&mut members, "occurred_at", "an RFC 3339 string")?
        .map(|text| {
            Timestamp::parse_rfc3339(&text).ok_or_else(|| Fault::malformed("occurred_at is no RFC 3339 time with an offset"))
        })
        .transpose()?;
    Ok(Envelope {
        feature_id,
        event_id,
        version: take(&mut members, "version", "an integer")?,
        occurred_at,
        crs,
        bbox,
        cells,
        vertex_count: take(&mut members, "vertex_count", "an integer")?,
        suspect: take(&mut members, "suspect", "true or false")?.unwrap_or(false),
        content: content(&mut members, share)?,
        others: members.into_iter().map(|(name, raw)| (name.into_owned(), raw.get().to_owned())).collect(),
    })
}

/// The members of an object as raw JSON; a name that comes twice is an error.
struct Members<'a>(BTreeMap<Cow<'a, str>, &'a RawValue>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = BTreeMap::new();
                while let Some(Name(name)) = map.next_key()? {
                    let raw: &RawValue = map.next_value()?;
                    if let Some(_first) = members.insert(name, raw) {
                        return Err(serde::de::Error::custom("a member comes twice"));
                    }
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// A member's name, borrowed when it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

type Raw<'a, 'm> = &'m mut BTreeMap<Cow<'a, str>, &'a RawValue>;

/// Takes a member out; absent and null are the same.
fn take<T: DeserializeOwned>(members: Raw<'_, '_>, name: &str, expected: &str) -> Result<Option<T>, Fault> {
    let Some(raw) = members.remove(name) else { return Ok(None) };
    serde_json::from_str(raw.get()).map_err(|_| Fault::malformed(format!("{name} must be {expected}")))
}

fn identity(members: Raw<'_, '_>, name: &str, most: usize) -> Result<String, Fault> {
    let text: String = take(members, name, "a string")?.ok_or_else(|| Fault::malformed(format!("{name} is missing")))?;
    if text.is_empty() || text.len() > most {
        return Err(Fault::malformed(format!("{name} has {} bytes; 1 to {most} are allowed", text.len())));
    }
    Ok(text)
}

/// Takes out `bbox` and `cover`, which must not contradict each other.
fn place(members: Raw<'_, '_>) -> Result<(Option<Bbox>, Option<Cells>), Fault> {
    let numbers: Option<Vec<f64>> = take(members, "bbox", "[west, south, east, north]")?;
    let bbox = match numbers.as_deref() {
        None => None,
        Some([west, south, east, north]) | Some([west, south, _, east, north, _]) => {
            Some(Bbox::new(*west, *south, *east, *north).map_err(|error| Fault::malformed(error.to_string()))?)
        }
        Some(numbers) => return Err(Fault::malformed(format!("bbox has {} numbers, expected 4", numbers.len()))),
    };
    let Some(text) = take::<String>(members, "cover", "a string")? else { return Ok((bbox, None)) };
    match (cover::decode(&text), bbox) {
        (Some((covered, cells)), None) => Ok((Some(covered), cells)),
        (Some((covered, cells)), Some(bbox)) if covered == bbox => Ok((Some(bbox), cells)),
        (Some((covered, _)), Some(bbox)) => {
            Err(Fault::new(FaultKind::Mismatch, format!("cover says {covered}, bbox says {bbox}")))
        }
        // A cover of a later version beside a bbox: old readers survive new writers.
        (None, Some(bbox)) if cover::is_later(&text) => Ok((Some(bbox), None)),
        (None, _) => Err(Fault::malformed("cover is not base64url of a known version and a box")),
    }
}

fn content(members: Raw<'_, '_>, share: impl Fn(&[u8]) -> Bytes) -> Result<Content, Fault> {
    let mut inline = Vec::new();
    for member in [InlineMember::Geometry, InlineMember::Geojson] {
        if let Some(raw) = members.remove(member.name()).filter(|raw| raw.get() != "null") {
            if !raw.get().starts_with('{') {
                return Err(Fault::malformed(format!("{} must be an object", member.name())));
            }
            inline.push(InlineBody { member, bytes: share(raw.get().as_bytes()) });
        }
    }
    let claim = claim(members)?;
    if take(members, "deleted", "true or false")?.unwrap_or(false) {
        return Ok(Content::Deleted);
    }
    match (inline.pop(), inline.pop(), claim) {
        (Some(inline), None, None) => Ok(Content::Inline(inline)),
        (None, None, Some(claim)) => Ok(Content::Claim(claim)),
        (None, _, None) => Err(Fault::malformed(
            "neither geometry, geojson nor a claim check (body_key, body_sha256, body_bytes), and not deleted",
        )),
        _ => Err(Fault::malformed("more than one of geometry, geojson and a claim check")),
    }
}

fn claim(members: Raw<'_, '_>) -> Result<Option<ClaimCheck>, Fault> {
    let body_key: Option<String> = take(members, "body_key", "a string")?;
    let digest: Option<String> = take(members, "body_sha256", "a string")?;
    let length: Option<u64> = take(members, "body_bytes", "an integer, not negative")?;
    let encoded = encoded(members)?;
    match (body_key, digest, length) {
        (None, None, None) => Ok(None),
        (Some(body_key), Some(digest), Some(length)) => {
            let digest: Digest = digest.parse().map_err(|error| Fault::malformed(format!("body_sha256: {error}")))?;
            let claim = ClaimCheck { digest, length, encoded };
            if claim.stored_length() > length {
                return Err(Fault::malformed("body_encoded_bytes is more than body_bytes: such a body is stored as it is"));
            }
            if key::parse(&body_key) != Some((digest, claim.encoding())) {
                let detail = format!("body_key is not the key of body_sha256, which is {}", claim.key());
                return Err(Fault::new(FaultKind::Hostile, detail));
            }
            Ok(Some(claim))
        }
        _ => Err(Fault::malformed("a claim check needs body_key, body_sha256 and body_bytes")),
    }
}

/// Takes out what says that the body is not stored as it is.
fn encoded(members: Raw<'_, '_>) -> Result<Option<Encoded>, Fault> {
    let name: Option<String> = take(members, "body_encoding", "a string")?;
    let digest: Option<String> = take(members, "body_encoded_sha256", "a string")?;
    let length: Option<u64> = take(members, "body_encoded_bytes", "an integer, not negative")?;
    match (name.as_deref().map(Encoding::of_name), digest, length) {
        (None | Some(Some(Encoding::Identity)), None, None) => Ok(None),
        (Some(Some(encoding @ Encoding::Zstd)), Some(digest), Some(length)) => {
            let digest = digest.parse().map_err(|error| Fault::malformed(format!("body_encoded_sha256: {error}")))?;
            Ok(Some(Encoded { encoding, digest, length }))
        }
        (Some(None), ..) => Err(Fault::malformed("body_encoding is none that is known here: identity or zstd")),
        _ => Err(Fault::malformed("an encoded body needs body_encoding, body_encoded_sha256 and body_encoded_bytes")),
    }
}
