//! One area of interest.

use std::sync::Arc;

use geo::{Coord, LineString, MapCoords, Polygon};
use geoclaim_common::{
    Bbox,
    extent::{Edges, turns_of},
    geojson::{GeometryType, Position, ScanError, ScanOptions, Visitor, scan},
};

/// A named geometry that a consumer wants: polygons, on either side of the antimeridian.
#[derive(Clone, Debug, PartialEq)]
pub struct Area {
    /// The area's identity, which travels with the event into the sink.
    pub id: Arc<str>,
    /// Its polygons. One that lies beyond ±180 stands here once for each turn that brings a part of it within.
    pub polygons: Vec<Polygon>,
}

impl Area {
    /// Makes an area of a box; one that crosses the antimeridian becomes two polygons.
    pub fn from_bbox(id: impl Into<Arc<str>>, bbox: &Bbox) -> Self {
        let polygon = |[west, south, east, north]: [f64; 4]| {
            let corners = [(west, south), (east, south), (east, north), (west, north), (west, south)];
            Polygon::new(LineString::from(corners.to_vec()), Vec::new())
        };
        Self { id: id.into(), polygons: bbox.planar().map(polygon).collect() }
    }

    /// Makes an area of a GeoJSON geometry.
    ///
    /// # Errors
    /// It is no GeoJSON, is neither polygon nor multipolygon, is empty, or has an edge of more than 180 degrees of
    /// longitude, of which nobody knows which way round it is meant.
    pub fn from_geojson(id: impl Into<Arc<str>>, geometry: &[u8]) -> Result<Self, ScanError> {
        let mut collect = Collect::default();
        scan(geometry, &ScanOptions::default(), &mut collect)?;
        if let Some(other) = collect.other {
            let problem = format!("a {other:?} cannot be an area yet: use polygons, multipolygons or boxes");
            return Err(ScanError::new(0, problem));
        }
        if let Some(problem) = collect.problem {
            return Err(ScanError::new(0, problem));
        }
        if collect.polygons.is_empty() {
            return Err(ScanError::new(0, "an area without positions"));
        }
        Ok(Self { id: id.into(), polygons: collect.polygons.into_iter().flat_map(in_range).collect() })
    }
}

/// Returns a polygon once for each turn that brings a part of it between -180 and 180.
fn in_range(polygon: Polygon) -> Vec<Polygon> {
    let [west, _, east, _] = bounds_of_rings(&polygon);
    if west > east {
        return Vec::new();
    }
    if west >= -180.0 && east <= 180.0 {
        return vec![polygon];
    }
    (turns_of(west)..=turns_of(east))
        .map(|turns| polygon.map_coords(|Coord { x, y }| Coord { x: x - 360.0 * f64::from(turns), y }))
        .collect()
}

/// Returns the box of all rings: a hole that sticks out of its polygon has an edge that a body can meet.
pub(super) fn bounds_of_rings(polygon: &Polygon) -> [f64; 4] {
    let positions = std::iter::once(polygon.exterior()).chain(polygon.interiors()).flat_map(|ring| &ring.0);
    positions.fold([f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY], |[w, s, e, n], at| {
        [w.min(at.x), s.min(at.y), e.max(at.x), n.max(at.y)]
    })
}

/// Collects the polygons of a scan.
#[derive(Default)]
struct Collect {
    polygons: Vec<Polygon>,
    rings: Vec<LineString>,
    ring: Vec<Coord>,
    edges: Edges,
    other: Option<GeometryType>,
    problem: Option<String>,
}

impl Collect {
    fn refuse_long_edge(&mut self, to: f64) {
        let from = self.ring.last().map_or(to, |last| last.x);
        self.problem.get_or_insert_with(|| {
            format!(
                "an edge from longitude {from} to {to}, of which nobody knows which way round it is meant: cut the area at ±180, \
                 along the antimeridian and the pole, or give it as a box [west, south, east, north] with west > east"
            )
        });
    }
}

impl Visitor for Collect {
    fn begin_geometry(&mut self, kind: GeometryType) {
        if !matches!(kind, GeometryType::Polygon | GeometryType::MultiPolygon | GeometryType::GeometryCollection) {
            self.other.get_or_insert(kind);
        }
    }

    fn position(&mut self, Position { x, y, .. }: Position) {
        if self.edges.take(x) {
            self.refuse_long_edge(x);
        }
        self.ring.push(Coord { x, y });
    }

    fn begin_line(&mut self) {
        self.edges = Edges::default();
    }

    fn end_line(&mut self) {
        let end = self.edges.close();
        if end.closes_long || end.may_be_cap {
            self.refuse_long_edge(self.ring.first().map_or(0.0, |first| first.x));
        }
        if self.ring.len() < 3 && !self.ring.is_empty() {
            self.problem = Some("a ring of fewer than three positions".to_owned());
        }
        self.rings.push(LineString::new(std::mem::take(&mut self.ring)));
    }

    fn end_part(&mut self) {
        let mut rings = std::mem::take(&mut self.rings).into_iter();
        if let Some(exterior) = rings.next().filter(|ring| !ring.0.is_empty()) {
            self.polygons.push(Polygon::new(exterior, rings.collect()));
        }
    }
}
