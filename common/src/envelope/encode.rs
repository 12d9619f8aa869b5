//! Envelope to bytes, in the canonical order.

use serde_json::to_string;

use super::{Content, Envelope, cover};
use crate::body::Encoded;

impl Envelope {
    /// Writes the record's value: `cover` first, then `bbox`, both null for a body without a place; members that are
    /// absent are left out; an inline body is spliced in byte for byte;
    /// `body_bytes` comes last, where [`super::peek_body_bytes`] finds it.
    pub fn encode(&self) -> Vec<u8> {
        let inline = match &self.content {
            Content::Inline(inline) => inline.bytes.len(),
            Content::Claim(_) | Content::Deleted => 0,
        };
        let mut value = Vec::with_capacity(inline + 768);
        match &self.bbox {
            Some(bbox) => {
                value.extend_from_slice(cover::PREFIX);
                value.extend_from_slice(cover::encode(bbox, self.cells.as_ref()).as_bytes());
                value.extend_from_slice(b"\",\"bbox\":");
                value.extend_from_slice(json(&bbox.to_array()).as_bytes());
            }
            None => value.extend_from_slice(b"{\"cover\":null,\"bbox\":null"),
        }
        let mut member = |name: &str, raw: &[u8]| {
            value.extend_from_slice(b",\"");
            value.extend_from_slice(name.as_bytes());
            value.extend_from_slice(b"\":");
            value.extend_from_slice(raw);
        };
        member("feature_id", json(&self.feature_id).as_bytes());
        member("event_id", json(&self.event_id).as_bytes());
        if let Some(version) = self.version {
            member("version", version.to_string().as_bytes());
        }
        if let Some(occurred_at) = self.occurred_at {
            member("occurred_at", json(&occurred_at.to_rfc3339()).as_bytes());
        }
        member("crs", json(&self.crs).as_bytes());
        if let Some(vertex_count) = self.vertex_count {
            member("vertex_count", vertex_count.to_string().as_bytes());
        }
        if self.suspect {
            member("suspect", b"true");
        }
        for (name, raw) in &self.others {
            let name = json(name);
            member(&name[1..name.len() - 1], raw.as_bytes());
        }
        match &self.content {
            Content::Deleted => member("deleted", b"true"),
            Content::Inline(inline) => member(inline.member.name(), &inline.bytes),
            Content::Claim(claim) => {
                member("body_key", json(&claim.key().as_ref()).as_bytes());
                member("body_sha256", json(&claim.digest.to_string()).as_bytes());
                if let Some(Encoded { encoding, digest, length }) = claim.encoded {
                    member("body_encoding", json(&encoding.name()).as_bytes());
                    member("body_encoded_sha256", json(&digest.to_string()).as_bytes());
                    member("body_encoded_bytes", length.to_string().as_bytes());
                }
                member("body_bytes", claim.length.to_string().as_bytes());
            }
        }
        value.push(b'}');
        value
    }
}

/// Writes a string or finite numbers, which cannot fail.
fn json<T: serde::Serialize>(value: &T) -> String {
    to_string(value).unwrap_or_default()
}
