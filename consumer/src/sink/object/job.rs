//! What one job is, and its key.

use std::sync::Arc;

use geo::Polygon;
use geoclaim_common::{ClaimCheck, Digest, digest::Digester};
use object_store::path::Path;
use serde::Serialize;

use crate::sink::State;

/// The version of what is made of a body. A change of the transformation that makes other bytes raises it.
pub const PIPELINE: &str = "clip/1";

/// What a job depends on beside the body: what can be chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Parameters {
    /// How far a line may be moved by simplifying it, in degrees; `None` keeps every vertex.
    pub simplify_degrees: Option<f64>,
    /// A name that makes all jobs new ones, for a backfill beside what is there.
    pub generation: Option<String>,
}

/// One job: one body, clipped to one area.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) key: Digest,
    pub(super) area: Arc<str>,
    pub(super) source: ClaimCheck,
}

/// What the key is made of; its JSON, members in this order, is digested.
#[derive(Serialize)]
struct Named<'a> {
    pipeline: &'a str,
    store: &'a str,
    body_key: &'a str,
    body_sha256: String,
    crs: String,
    area: &'a str,
    area_sha256: String,
    parameters: &'a Parameters,
}

impl Job {
    /// Names the job of a state in an area: by the body's store, key and digest, the area, the parameters and the
    /// version of the pipeline, and nothing else. An inline body has the key that it would be stored under.
    pub(super) fn new(store: &str, state: &State, (area, area_sha256): (&Arc<str>, Digest), parameters: &Parameters) -> Self {
        let bytes = state.body.bytes();
        let inline = || ClaimCheck::new(Digest::of(bytes), bytes.len() as u64);
        // However it is stored, the output is the same.
        let source = ClaimCheck { encoded: None, ..state.body.claim().unwrap_or_else(inline) };
        let body_key = source.key();
        let named = Named {
            pipeline: PIPELINE,
            store,
            body_key: body_key.as_ref(),
            body_sha256: source.digest.to_string(),
            crs: state.crs_name(),
            area,
            area_sha256: area_sha256.to_string(),
            parameters,
        };
        // Strings and finite numbers are always JSON.
        let key = Digest::of(&serde_json::to_vec(&named).unwrap_or_default());
        Self { key, area: Arc::clone(area), source }
    }

    /// Returns where the output stands, relative to the sink's prefix.
    pub(super) fn path(&self, ending: &str) -> Path {
        Path::from(format!("jobs/{}/{}.{ending}", self.key.shard(), self.key))
    }
}

/// Returns the digest of an area: of its polygons' ordinates, and of nothing else.
pub(super) fn digest_of(polygons: &[Polygon]) -> Digest {
    let mut digester = Digester::default();
    for polygon in polygons {
        digester.update(&(polygon.interiors().len() as u64).to_le_bytes());
        for ring in std::iter::once(polygon.exterior()).chain(polygon.interiors()) {
            digester.update(&(ring.0.len() as u64).to_le_bytes());
            for at in &ring.0 {
                digester.update(&at.x.to_le_bytes());
                digester.update(&at.y.to_le_bytes());
            }
        }
    }
    digester.finish()
}
