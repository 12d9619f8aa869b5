//! One GeoJSON feature a line, for pipes.
//!
//! A pipe has no transaction: a duplicate within one run is known by its event id, up to a bounded number of them, and
//! a crash can repeat what was written last. An offset is acknowledged only after the lines are flushed.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    io::Write,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use geoclaim_common::{Fault, FaultKind, geojson::Kind};

use super::{Change, Effect, Sink};

/// How many event ids, and how many features' versions, are remembered.
const REMEMBERED: usize = 1_000_000;

/// Writes lines to anything that can be written to.
pub struct LineSink<W> {
    state: Arc<Mutex<State<W>>>,
}

struct State<W> {
    out: W,
    seen: HashSet<String>,
    order: VecDeque<String>,
    versions: HashMap<String, i64>,
}

impl<W: Write + Send + 'static> LineSink<W> {
    /// Makes a sink that writes to `out`.
    pub fn new(out: W) -> Self {
        let state = State { out, seen: HashSet::new(), order: VecDeque::new(), versions: HashMap::new() };
        Self { state: Arc::new(Mutex::new(state)) }
    }
}

impl<W> std::fmt::Debug for LineSink<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LineSink")
    }
}

#[async_trait]
impl<W: Write + Send + 'static> Sink for LineSink<W> {
    async fn apply(&self, batch: Arc<Vec<Change>>) -> Result<Vec<Effect>, Fault> {
        let state = Arc::clone(&self.state);
        let write = move || {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            let effects = batch.iter().map(|change| state.apply(change)).collect::<Result<Vec<_>, _>>();
            effects
                .and_then(|effects| state.out.flush().map(|()| effects))
                .map_err(|error| Fault::new(FaultKind::Configuration, format!("standard output cannot be written: {error}")))
        };
        tokio::task::spawn_blocking(write).await.unwrap_or_else(|error| Err(Fault::unavailable(error.to_string())))
    }

    async fn close(&self) -> Result<(), Fault> {
        Ok(())
    }
}

impl<W: Write> State<W> {
    fn apply(&mut self, change: &Change) -> std::io::Result<Effect> {
        if self.seen.contains(&change.event_id) {
            return Ok(Effect::Duplicate);
        }
        if let Some(version) = change.version {
            let newest = self.versions.entry(change.feature_id.clone()).or_insert(i64::MIN);
            if version <= *newest {
                return Ok(Effect::Stale);
            }
            *newest = version;
            if self.versions.len() > REMEMBERED {
                self.versions.clear();
            }
        }
        let line = line_of(change);
        self.out.write_all(&line)?;
        self.seen.insert(change.event_id.clone());
        self.order.push_back(change.event_id.clone());
        if self.order.len() > REMEMBERED {
            self.order.pop_front().map(|oldest| self.seen.remove(&oldest));
        }
        Ok(Effect::Applied)
    }
}

/// Returns the feature on one line: a feature or collection as it is, a bare geometry in a feature of its own. Line
/// breaks are white space in JSON outside strings, and cannot stand within them.
fn line_of(change: &Change) -> Vec<u8> {
    let bytes = change.body.bytes();
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii();
    let mut line = Vec::with_capacity(bytes.len() + 128);
    let is_bare = matches!(change.outline.kind, Kind::Geometry(_));
    if is_bare {
        let id = serde_json::to_string(&change.feature_id).unwrap_or_default();
        line.extend_from_slice(format!(r#"{{"type":"Feature","id":{id},"properties":null,"geometry":"#).as_bytes());
    }
    line.extend(bytes.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
    if is_bare {
        line.push(b'}');
    }
    line.push(b'\n');
    line
}
