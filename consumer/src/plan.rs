//! What areas of interest would fetch, by each filter: a look ahead, before anything is published.

use std::collections::BTreeSet;

use geoclaim_common::{
    cover::Cover,
    extent::Extent,
    geojson::{Position, ScanError, ScanOptions, Visitor},
    reproject::scan,
};
use serde::Serialize;

use crate::aoi::{Area, AreaIndex, refine_places};

/// Features and bytes that would be fetched by each filter if every body had a claim check; one that travels inline is
/// taken without a fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fetches {
    /// By the smallest and largest longitude and latitude.
    pub planar_features: u64,
    #[allow(missing_docs, reason = "as the features before it")]
    pub planar_bytes: u64,
    /// By the RFC 7946 bbox, which may cross the antimeridian.
    pub bbox_features: u64,
    #[allow(missing_docs, reason = "as the features before it")]
    pub bbox_bytes: u64,
    /// By bbox and cover, as geoclaim does.
    pub cover_features: u64,
    #[allow(missing_docs, reason = "as the features before it")]
    pub cover_bytes: u64,
    /// Those that do intersect: the floor.
    pub exact_features: u64,
    #[allow(missing_docs, reason = "as the features before it")]
    pub exact_bytes: u64,
}

/// What one area would fetch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AreaFetches {
    /// The area.
    pub id: String,
    #[serde(flatten)]
    #[allow(missing_docs, reason = "the type says it")]
    pub fetches: Fetches,
}

/// What areas would fetch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FetchReport {
    /// Each area, as if it had a consumer of its own.
    pub areas: Vec<AreaFetches>,
    /// The sum of all areas: a body that two areas fetch counts twice.
    pub total: Fetches,
    /// One consumer of all areas: it fetches each body once.
    pub together: Fetches,
}

/// Counts what areas would fetch.
#[derive(Debug)]
pub struct FetchPlan {
    index: AreaIndex,
    areas: Vec<Fetches>,
    together: Fetches,
}

/// The areas that each filter lets through.
struct Met {
    planar: BTreeSet<usize>,
    bbox: BTreeSet<usize>,
    cover: BTreeSet<usize>,
    exact: BTreeSet<usize>,
}

impl FetchPlan {
    /// Makes a plan for these areas.
    pub fn new(areas: Vec<Area>) -> Self {
        let fetches = vec![Fetches::default(); areas.len()];
        Self { index: AreaIndex::new(areas), areas: fetches, together: Fetches::default() }
    }

    /// Counts a body whose extent, cells included, is known.
    ///
    /// # Errors
    /// What [`scan`] rejects.
    pub fn add(&mut self, body: &[u8], extent: &Extent, options: &ScanOptions) -> Result<(), ScanError> {
        let Some(met) = self.met(body, extent, options)? else { return Ok(()) };
        let bytes = body.len() as u64;
        for area in met.planar.union(&met.bbox) {
            self.areas[*area].count(&met, bytes, |areas| areas.contains(area));
        }
        self.together.count(&met, bytes, |areas| !areas.is_empty());
        Ok(())
    }

    fn met(&self, body: &[u8], extent: &Extent, options: &ScanOptions) -> Result<Option<Met>, ScanError> {
        let Some(bbox) = &extent.bbox else { return Ok(None) };
        let mut planar = Planar([f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY]);
        scan(body, options, &mut planar)?;
        // Cells that no writer made cannot be here; without them the bbox is the cover.
        let cover = Cover::new(*bbox, extent.cells.as_ref()).ok();
        let by_bbox: BTreeSet<usize> = bbox.planar().flat_map(|planar| self.index.near(planar)).collect();
        let by_cover = cover.map_or_else(|| by_bbox.clone(), |cover| self.index.near_cover(&cover));
        // A body that may be meant either way round meets whatever its bbox meets; its cover may know better.
        let exact = refine_places(body, bbox, &self.index, options)?.intersection(&by_cover).copied().collect();
        Ok(Some(Met { planar: self.index.near(planar.0), bbox: by_bbox, cover: by_cover, exact }))
    }

    /// Returns what has been counted.
    pub fn report(self) -> FetchReport {
        let mut total = Fetches::default();
        self.areas.iter().for_each(|fetches| total.add(fetches));
        let named = self.index.ids().iter().zip(self.areas);
        let areas = named.map(|(id, fetches)| AreaFetches { id: id.to_string(), fetches }).collect();
        FetchReport { areas, total, together: self.together }
    }
}

impl Fetches {
    fn count(&mut self, met: &Met, bytes: u64, is_met: impl Fn(&BTreeSet<usize>) -> bool) {
        let take = |areas: &BTreeSet<usize>, features: &mut u64, sum: &mut u64| {
            if is_met(areas) {
                *features += 1;
                *sum += bytes;
            }
        };
        take(&met.planar, &mut self.planar_features, &mut self.planar_bytes);
        take(&met.bbox, &mut self.bbox_features, &mut self.bbox_bytes);
        take(&met.cover, &mut self.cover_features, &mut self.cover_bytes);
        take(&met.exact, &mut self.exact_features, &mut self.exact_bytes);
    }

    fn add(&mut self, other: &Self) {
        self.planar_features += other.planar_features;
        self.planar_bytes += other.planar_bytes;
        self.bbox_features += other.bbox_features;
        self.bbox_bytes += other.bbox_bytes;
        self.cover_features += other.cover_features;
        self.cover_bytes += other.cover_bytes;
        self.exact_features += other.exact_features;
        self.exact_bytes += other.exact_bytes;
    }
}

/// The smallest and the largest ordinates, whatever they mean.
struct Planar([f64; 4]);

impl Visitor for Planar {
    fn position(&mut self, position: Position) {
        let [west, south, east, north] = self.0;
        self.0 = [west.min(position.x), south.min(position.y), east.max(position.x), north.max(position.y)];
    }
}

#[cfg(test)]
mod tests {
    use geoclaim_common::{
        Bbox,
        extent::{MeasureOptions, measure},
    };

    use super::*;

    #[test]
    fn each_filter_lets_through_less_than_the_one_before() {
        let boxed = |id, west, south, east, north| Area::from_bbox(id, &Bbox::new(west, south, east, north).unwrap());
        let mut plan = FetchPlan::new(vec![boxed("fiji", 177.0, -20.0, -179.0, -15.0), boxed("between", 0.0, -20.0, 1.0, -15.0)]);
        let options = MeasureOptions { cover_bytes: 400, ..MeasureOptions::default() };
        // Both sides of the antimeridian: only its planar box reaches Greenwich, and only its bbox reaches between.
        let body = r#"{"type":"MultiPoint","coordinates":[[176,-16],[178,-16],[-178.5,-16]]}"#;
        let other = r#"{"type":"LineString","coordinates":[[170,-30],[180,-10]]}"#;
        for body in [body, other] {
            let (extent, _) = measure(body.as_bytes(), &options).unwrap();
            plan.add(body.as_bytes(), &extent, &options.scan).unwrap();
        }
        let report = plan.report();
        let features =
            |fetches: &Fetches| [fetches.planar_features, fetches.bbox_features, fetches.cover_features, fetches.exact_features];
        assert_eq!(report.areas[0].id, "fiji");
        assert_eq!(features(&report.areas[1].fetches), [1, 0, 0, 0]);
        assert_eq!(features(&report.together)[3], 2);
        assert_eq!(features(&report.total), [3, 2, 2, 2]);
        assert_eq!(report.total.exact_bytes, (body.len() + other.len()) as u64);
    }
}
