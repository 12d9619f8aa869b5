//! The plan: what was found without a reference, and when. It lies in the store, so that a run can be killed, and the next one
//! on another machine goes on.
//!
//! `sweep/plan/{first two hex}.json` each hold the candidates of a shard. Each entry is true on its own.

use std::collections::HashMap;

use futures::TryStreamExt as _;
use geoclaim_common::{
    Digest, Encoding, Fault, Timestamp,
    retention::Timing,
    store::{Store, fault_of, read},
};
use object_store::{Error, ObjectStore as _, ObjectStoreExt as _, path::Path};
use serde::{Deserialize, Serialize};

use super::{
    SweepCounters,
    pace::Pace,
    spill::{Body, BodyList, SHARDS, Spill},
};

const FOLDER: &str = "sweep/plan";

/// Most that is read of one shard.
const MOST_BYTES: u64 = 256 << 20;

/// A candidate.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    digest: String,
    /// Of an encoded form, its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    modified_ms: i64,
    bytes: u64,
    /// When no reference was found for the first time.
    since_ms: i64,
}

/// The plan of earlier runs.
pub(super) struct Plan<'a> {
    store: &'a Store,
    pace: &'a Pace,
    /// The shards that have one.
    there: [bool; SHARDS],
}

impl<'a> Plan<'a> {
    /// Looks which shards have a plan.
    pub(super) async fn of(store: &'a Store, pace: &'a Pace) -> Result<Self, Fault> {
        pace.wait().await;
        let objects: Vec<_> = store.list(Some(&Path::from(FOLDER))).try_collect().await.map_err(|error| fault_of(&error))?;
        let mut there = [false; SHARDS];
        for object in objects {
            let name = object.location.filename().and_then(|name| name.strip_suffix(".json"));
            if let Some(shard) = name.and_then(|name| usize::from_str_radix(name, 16).ok()).filter(|shard| *shard < SHARDS) {
                there[shard] = true;
            }
        }
        Ok(Self { store, pace, there })
    }

    fn path(shard: usize) -> Path {
        Path::from(format!("{FOLDER}/{shard:02x}.json"))
    }

    /// Writes down what has no reference now, keeps the time of what was written down already, and drops the rest. Returns what
    /// has been written down for a grace.
    pub(super) async fn renew(
        &self,
        mut spill: Spill,
        (now, timing): (Timestamp, Timing),
        is_old: impl Fn(&Body) -> bool,
        counters: &SweepCounters,
    ) -> Result<BodyList, Fault> {
        let mut ripe = spill.list()?;
        for shard in 0..SHARDS {
            let before = self.read(shard).await?;
            let since = |body: &Body| {
                let entry = before.get(&(body.digest, body.encoding))?;
                let is_same = entry.modified_ms == body.modified.as_millis() && entry.bytes == body.size;
                is_same.then(|| Timestamp::from_millis(entry.since_ms))
            };
            let (mut entries, mut failed) = (Vec::new(), Ok(()));
            spill.look(shard, |body, is_referenced| {
                if is_referenced {
                    return counters.referenced();
                }
                if !is_old(&body) {
                    return counters.young();
                }
                let since = since(&body);
                let is_ripe = since.is_some_and(|since| now.since(since).as_secs() >= timing.grace_seconds);
                counters.candidate(body.size, is_ripe);
                if is_ripe && failed.is_ok() {
                    failed = ripe.push(&body);
                }
                entries.push(Entry {
                    digest: body.digest.to_string(),
                    encoding: Some(body.encoding).filter(|form| *form != Encoding::Identity).map(|form| form.name().to_owned()),
                    modified_ms: body.modified.as_millis(),
                    bytes: body.size,
                    since_ms: since.unwrap_or(now).as_millis(),
                });
            })?;
            failed?;
            self.write(shard, &entries).await?;
        }
        Ok(ripe)
    }

    async fn read(&self, shard: usize) -> Result<HashMap<(Digest, Encoding), Entry>, Fault> {
        if !self.there[shard] {
            return Ok(HashMap::new());
        }
        self.pace.wait().await;
        let path = Self::path(shard);
        let Some(text) = read(self.store, &path, MOST_BYTES).await? else { return Ok(HashMap::new()) };
        let told = |what: &dyn std::fmt::Display| {
            Fault::configuration(format!("{path} in the store is no plan of a sweep ({what}): delete it, and plan anew"))
        };
        let entries: Vec<Entry> = serde_json::from_slice(&text).map_err(|error| told(&error))?;
        let keyed = |entry: Entry| {
            let digest = entry.digest.parse().map_err(|_| told(&"no digest"))?;
            let encoding = entry.encoding.as_deref().map_or(Some(Encoding::Identity), Encoding::of_name);
            Ok(((digest, encoding.ok_or_else(|| told(&"an unknown encoding"))?), entry))
        };
        entries.into_iter().map(keyed).collect()
    }

    async fn write(&self, shard: usize, entries: &[Entry]) -> Result<(), Fault> {
        if entries.is_empty() && !self.there[shard] {
            return Ok(());
        }
        self.pace.wait().await;
        let path = Self::path(shard);
        if entries.is_empty() {
            return match self.store.delete(&path).await {
                Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(fault_of(&error)),
            };
        }
        let text = serde_json::to_vec(entries).map_err(|error| Fault::configuration(error.to_string()))?;
        self.store.put(&path, text.into()).await.map(drop).map_err(|error| fault_of(&error))
    }
}
