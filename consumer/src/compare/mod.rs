//! Comparing what two sinks hold: a state that was rebuilt by a replay, and the old one.

mod gpkg;
mod postgis;

use std::collections::VecDeque;

use async_trait::async_trait;
use geoclaim_common::Fault;
use serde::Serialize;

pub use gpkg::GeoPackageFeatures;
pub use postgis::PostgisFeatures;

/// How many features are read at once.
const PAGE: u32 = 1_000;

/// How many differences are told one by one.
const TOLD: usize = 10;

/// What a sink holds of a feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The feature.
    pub feature_id: String,
    /// The event that brought it into this state.
    pub event_id: String,
    /// Its version.
    pub version: Option<i64>,
    /// The digest of its body.
    pub body_sha256: Option<String>,
    /// The areas that it meets.
    pub areas: Vec<String>,
    /// Whether it has left them, where such features stay.
    pub has_left: bool,
    /// What geometry and properties are, in the words of the sink: comparable between two of the same kind.
    pub content: Option<String>,
}

/// Reads the features of a sink.
#[async_trait]
pub trait HeldFeatures: Send + Sync + std::fmt::Debug {
    /// Returns the features whose ids come after this one, in the order of the bytes of their ids, and at most so many.
    ///
    /// # Errors
    /// The sink cannot be read.
    async fn after(&self, feature_id: Option<&str>, most: u32) -> Result<Vec<Held>, Fault>;

    /// Names the kind of the sink; contents are compared only within one.
    fn kind(&self) -> &'static str;
}

/// What a comparison came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// Features that both hold in the same state.
    pub same: u64,
    /// Features that both hold, in different states.
    pub different: u64,
    /// Features that only the new one holds.
    pub only_new: u64,
    /// Features that only the old one holds.
    pub only_old: u64,
    /// The first few differences, in words.
    pub examples: Vec<String>,
}

impl Comparison {
    /// Tells whether both hold the same.
    pub fn is_same(&self) -> bool {
        self.different + self.only_new + self.only_old == 0
    }

    fn tell(&mut self, what: impl FnOnce() -> String) {
        if self.examples.len() < TOLD {
            self.examples.push(what());
        }
    }

    fn differs(&mut self, new: &Held, old: &Held) {
        self.different += 1;
        self.tell(|| {
            let parts = [
                ("event", new.event_id != old.event_id),
                ("version", new.version != old.version),
                ("body", new.body_sha256 != old.body_sha256),
                ("areas", new.areas != old.areas),
                ("whether it has left", new.has_left != old.has_left),
                ("content", new.content != old.content),
            ];
            let parts: Vec<&str> = parts.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect();
            format!("{}: {} differ", new.feature_id, parts.join(", "))
        });
    }
}

/// Compares two sinks feature by feature, in memory for a page of each.
///
/// # Errors
/// One of them cannot be read.
pub async fn compare(new: &dyn HeldFeatures, old: &dyn HeldFeatures) -> Result<Comparison, Fault> {
    let is_same_kind = new.kind() == old.kind();
    let (mut new, mut old) = (Pages::of(new), Pages::of(old));
    let mut comparison = Comparison::default();
    loop {
        let (of_new, of_old) = (new.first().await?, old.first().await?);
        let order = match (of_new, of_old) {
            (None, None) => return Ok(comparison),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(new), Some(old)) => new.feature_id.as_bytes().cmp(old.feature_id.as_bytes()),
        };
        match (order.is_le().then(|| new.take()).flatten(), order.is_ge().then(|| old.take()).flatten()) {
            (Some(mut new), Some(mut old)) => {
                if !is_same_kind {
                    (new.content, old.content) = (None, None);
                }
                if new == old { comparison.same += 1 } else { comparison.differs(&new, &old) }
            }
            (Some(new), None) => {
                comparison.only_new += 1;
                comparison.tell(|| format!("{}: only in the new one", new.feature_id));
            }
            (None, Some(old)) => {
                comparison.only_old += 1;
                comparison.tell(|| format!("{}: only in the old one", old.feature_id));
            }
            (None, None) => return Ok(comparison),
        }
    }
}

/// Features one by one.
struct Pages<'a> {
    of: &'a dyn HeldFeatures,
    page: VecDeque<Held>,
    last: Option<String>,
    is_ended: bool,
}

impl<'a> Pages<'a> {
    fn of(of: &'a dyn HeldFeatures) -> Self {
        Self { of, page: VecDeque::new(), last: None, is_ended: false }
    }

    async fn first(&mut self) -> Result<Option<&Held>, Fault> {
        if self.page.is_empty() && !self.is_ended {
            self.page = self.of.after(self.last.as_deref(), PAGE).await?.into();
            self.last = self.page.back().map(|held| held.feature_id.clone()).or(self.last.take());
            self.is_ended = self.page.is_empty();
        }
        Ok(self.page.front())
    }

    fn take(&mut self) -> Option<Held> {
        self.page.pop_front()
    }
}
