//! One GeoJSON feature a line, for pipes.
//!
//! A pipe has no transaction and no memory: what was written in one run is known in that run, up to a bounded number
//! of events and features, and a crash can repeat what was written last. An offset is acknowledged only after the lines
//! are flushed. A feature that was written and has left the areas, or is deleted, is one more line: a feature without
//! geometry whose member `geoclaim` says `"left"` or `"deleted"`.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    io::Write,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use geoclaim_common::{Fault, FaultKind, geojson::Kind};

use super::{
    Change, ChangeKind, Effect, Features, Sink, State as FeatureState,
    order::{Standing, Verdict, judge},
};
use crate::holdings::hash;

/// How many events, and how many features, are remembered.
const REMEMBERED: usize = 500_000;

/// Writes lines to anything that can be written to.
pub struct LineSink<W> {
    state: Arc<Mutex<State<W>>>,
}

struct State<W> {
    out: W,
    seen: HashSet<u64>,
    events: VecDeque<u64>,
    standings: HashMap<u64, Standing>,
    features: VecDeque<u64>,
}

impl<W: Write + Send + 'static> LineSink<W> {
    /// Makes a sink that writes to `out`.
    pub fn new(out: W) -> Self {
        let (seen, events, standings, features) = Default::default();
        Self { state: Arc::new(Mutex::new(State { out, seen, events, standings, features })) }
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

    async fn features(&self, mark: u64) -> Result<Features, Fault> {
        Ok(Features { mark, ..Features::default() })
    }

    async fn close(&self) -> Result<(), Fault> {
        Ok(())
    }
}

impl<W: Write> State<W> {
    fn apply(&mut self, change: &Change) -> std::io::Result<Effect> {
        let (event, feature) = (hash(&change.event_id), hash(&change.feature_id));
        let standing = self.standings.get(&feature).copied();
        match judge(change, standing.as_ref(), self.seen.contains(&event)) {
            Verdict::Duplicate | Verdict::Renew => return Ok(Effect::Duplicate),
            Verdict::Stale => return Ok(Effect::Stale),
            Verdict::Apply => {}
        }
        let was_held = standing.is_some_and(|standing| standing.is_held);
        let effect = match &change.kind {
            ChangeKind::Hold(_) => Effect::Applied,
            ChangeKind::Leave | ChangeKind::Delete if was_held => Effect::Left,
            ChangeKind::Leave | ChangeKind::Delete => Effect::NotHeld,
        };
        match &change.kind {
            ChangeKind::Hold(state) => self.out.write_all(&line_of(&change.feature_id, state))?,
            ChangeKind::Leave if was_held => self.out.write_all(&exit_line(&change.feature_id, "left"))?,
            ChangeKind::Delete if was_held => self.out.write_all(&exit_line(&change.feature_id, "deleted"))?,
            ChangeKind::Leave | ChangeKind::Delete => {}
        }
        self.remember(event, feature, Standing::after(change, standing.as_ref()));
        Ok(effect)
    }

    fn remember(&mut self, event: u64, feature: u64, standing: Standing) {
        if self.seen.insert(event) {
            self.events.push_back(event);
        }
        if self.standings.insert(feature, standing).is_none() {
            self.features.push_back(feature);
        }
        if self.events.len() > REMEMBERED {
            self.events.pop_front().map(|oldest| self.seen.remove(&oldest));
        }
        if self.features.len() > REMEMBERED {
            self.features.pop_front().map(|oldest| self.standings.remove(&oldest));
        }
    }
}

pub(super) fn exit_line(feature_id: &str, how: &str) -> Vec<u8> {
    let id = serde_json::to_string(feature_id).unwrap_or_default();
    format!(r#"{{"type":"Feature","id":{id},"properties":null,"geometry":null,"geoclaim":"{how}"}}"#)
        .into_bytes()
        .into_iter()
        .chain([b'\n'])
        .collect()
}

/// Returns the feature on one line: a feature or collection as it is, a bare geometry in a feature of its own. Line
/// breaks are white space in JSON outside strings, and cannot stand within them.
pub(super) fn line_of(feature_id: &str, state: &FeatureState) -> Vec<u8> {
    let bytes = state.body.bytes();
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii();
    let mut line = Vec::with_capacity(bytes.len() + 128);
    let is_bare = matches!(state.outline.kind, Kind::Geometry(_));
    if is_bare {
        let id = serde_json::to_string(feature_id).unwrap_or_default();
        line.extend_from_slice(format!(r#"{{"type":"Feature","id":{id},"properties":null,"geometry":"#).as_bytes());
    }
    line.extend(bytes.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
    if is_bare {
        line.push(b'}');
    }
    line.push(b'\n');
    line
}
