//! One GeoJSON feature a line, for pipes.
//!
//! A pipe has no transaction and no memory: what was written in one run is known in that run, up to a bounded number
//! of events and features, and a crash can repeat what was written last. An offset is acknowledged only after the lines
//! are flushed. A feature that was written and has left the areas, or is deleted, is one more line: a feature without
//! geometry whose member `geoclaim` says `"left"` or `"deleted"`.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    io::{self, BufWriter, Write},
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use geoclaim_common::{
    Fault, FaultKind,
    geojson::{Kind, member},
};

use super::{
    Change, ChangeKind, Effect, Features, Sink, State as FeatureState,
    order::{Standing, effect_of},
};
use crate::holdings::hash;

/// How many events, and how many features, are remembered.
const REMEMBERED: usize = 500_000;

/// How many bytes are written at once.
const BUFFER: usize = 64 << 10;

/// Writes lines to anything that can be written to.
pub struct LineSink<W: Write> {
    state: Arc<Mutex<State<W>>>,
}

struct State<W: Write> {
    out: BufWriter<W>,
    seen: HashSet<u64>,
    events: VecDeque<u64>,
    standings: HashMap<u64, Standing>,
    features: VecDeque<u64>,
}

impl<W: Write + Send + 'static> LineSink<W> {
    /// Makes a sink that writes to `out`.
    pub fn new(out: W) -> Self {
        let (seen, events, standings, features) = Default::default();
        let out = BufWriter::with_capacity(BUFFER, out);
        Self { state: Arc::new(Mutex::new(State { out, seen, events, standings, features })) }
    }
}

impl<W: Write> std::fmt::Debug for LineSink<W> {
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

    fn memory_for(&self, _length: u64, _vertex_count: Option<u64>) -> u64 {
        0
    }

    async fn features(&self, mark: u64) -> Result<Features, Fault> {
        Ok(Features { mark, ..Features::default() })
    }

    async fn close(&self) -> Result<(), Fault> {
        Ok(())
    }
}

impl<W: Write> State<W> {
    fn apply(&mut self, change: &Change) -> io::Result<Effect> {
        let (event, feature) = (hash(&change.event_id), hash(&change.feature_id));
        let standing = self.standings.get(&feature).copied();
        let effect = effect_of(change, standing.as_ref(), self.seen.contains(&event));
        if matches!(effect, Effect::Duplicate | Effect::Stale) {
            return Ok(effect);
        }
        let was_held = effect == Effect::Left;
        match &change.kind {
            ChangeKind::Hold(state) => write_line(&mut self.out, &change.feature_id, state)?,
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

/// Returns the feature on one line: see [`write_line`].
pub(super) fn line_of(feature_id: &str, state: &FeatureState) -> Vec<u8> {
    let mut line = Vec::with_capacity(state.body.bytes().len() + 128);
    // Memory takes all that it is given.
    let _ = write_line(&mut line, feature_id, state);
    line
}

/// Writes the feature on one line: a feature or collection as it is, but for the id where a feature has none of its own, a
/// bare geometry in a feature of its own.
fn write_line(out: &mut impl Write, feature_id: &str, state: &FeatureState) -> io::Result<()> {
    let bytes = state.body.bytes();
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii();
    let is_bare = matches!(state.outline.kind, Kind::Geometry(_));
    let id = serde_json::to_string(feature_id).unwrap_or_default();
    let lacks_id = state.outline.kind == Kind::Feature && state.outline.id.is_none();
    let rest = match lacks_id.then(|| member(bytes, 0..bytes.len(), "id")) {
        None => bytes,
        // It says null.
        Some(Some(null)) => {
            write_unbroken(out, &bytes[..null.start])?;
            write!(out, "{id}")?;
            &bytes[null.end..]
        }
        Some(None) => {
            write!(out, r#"{{"id":{id},"#)?;
            bytes.strip_prefix(b"{").unwrap_or(bytes)
        }
    };
    if is_bare {
        write!(out, r#"{{"type":"Feature","id":{id},"properties":null,"geometry":"#)?;
    }
    write_unbroken(out, rest)?;
    out.write_all(if is_bare { b"}\n" } else { b"\n" })
}

/// Writes JSON without its line breaks: they are white space outside strings, and cannot stand within them.
fn write_unbroken(out: &mut impl Write, mut text: &[u8]) -> io::Result<()> {
    while let Some(at) = memchr::memchr2(b'\n', b'\r', text) {
        out.write_all(&text[..at])?;
        out.write_all(b" ")?;
        text = &text[at + 1..];
    }
    out.write_all(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::BodyBytes;

    fn line(body: &str) -> String {
        let (extent, outline) = geoclaim_common::extent::measure(body.as_bytes(), &Default::default()).unwrap();
        let (areas, crs) = Default::default();
        let state = FeatureState { areas, crs, body: BodyBytes::Inline(body.to_owned().into()), extent, outline };
        String::from_utf8(line_of("f\"1", &state)).unwrap()
    }

    #[test]
    fn every_feature_has_its_id() {
        let own = r#"{"type":"Feature","id":7,"geometry":null}"#;
        assert_eq!(line(own), format!("{own}\n"));
        let none = "\u{feff} {\n\"type\":\"Feature\",\"properties\":{\"A3\":\"f\"},\"geometry\":null}";
        assert_eq!(line(none), "{\"id\":\"f\\\"1\", \"type\":\"Feature\",\"properties\":{\"A3\":\"f\"},\"geometry\":null}\n");
        let null = r#"{"type":"Feature","id":null,"geometry":null}"#;
        assert_eq!(line(null), "{\"type\":\"Feature\",\"id\":\"f\\\"1\",\"geometry\":null}\n");
        let bare = r#"{"type":"Point","coordinates":[1,2]}"#;
        assert_eq!(line(bare), format!("{{\"type\":\"Feature\",\"id\":\"f\\\"1\",\"properties\":null,\"geometry\":{bare}}}\n"));
    }
}
