//! One area of interest.

use std::sync::Arc;

use geo::{Coord, LineString, MapCoords, Polygon};
use geoclaim_common::{
    Bbox,
    extent::{Edges, turns_of},
    geojson::{GeometryType, Position, ScanError, ScanOptions, Visitor, scan},
};

use super::around::{MOST_METRES, around};

/// A named geometry that a consumer wants, as polygons on either side of the antimeridian.
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
        Self { id: id.into(), polygons: bbox.planar().map(box_polygon).collect() }
    }

    /// Makes an area of a GeoJSON geometry of polygons.
    ///
    /// # Errors
    /// It is no GeoJSON, has points or lines, is empty, or has an edge of more than 180 degrees of longitude, of which
    /// nobody knows which way round it is meant.
    pub fn from_geojson(id: impl Into<Arc<str>>, geometry: &[u8]) -> Result<Self, ScanError> {
        let collect = Collect::scan(geometry)?;
        if !collect.lines.is_empty() {
            let problem =
                "a point or a line is no area without a distance: give the feature a property radius_m or buffer_m, in metres";
            return Err(ScanError::new(0, problem));
        }
        Self::of_polygons(id, collect.polygons)
    }

    /// Makes an area of a GeoJSON geometry and whatever lies within `metres` of it: points with a radius, lines and
    /// polygons with a buffer. It is never smaller than that, and half a per cent of the distance wider.
    ///
    /// # Errors
    /// As [`Area::from_geojson`], and a distance that is not between 0 and 1,000,000 metres.
    pub fn around_geojson(id: impl Into<Arc<str>>, geometry: &[u8], metres: f64) -> Result<Self, ScanError> {
        if !(metres > 0.0 && metres <= MOST_METRES) {
            let problem = format!("a distance of {metres} metres: more than 0 and at most {MOST_METRES} are allowed");
            return Err(ScanError::new(0, problem));
        }
        let collect = Collect::scan(geometry)?;
        let rings = collect.polygons.iter().flat_map(|polygon| std::iter::once(polygon.exterior()).chain(polygon.interiors()));
        let lines = collect.lines.iter().map(Vec::as_slice).chain(rings.map(|ring| &ring.0[..]));
        let around: Vec<Polygon> = lines.flat_map(|line| around(line, metres)).collect();
        Self::of_polygons(id, collect.polygons.into_iter().chain(around).collect())
    }

    fn of_polygons(id: impl Into<Arc<str>>, polygons: Vec<Polygon>) -> Result<Self, ScanError> {
        if polygons.is_empty() {
            return Err(ScanError::new(0, "an area without positions"));
        }
        Ok(Self { id: id.into(), polygons: polygons.into_iter().flat_map(in_range).collect() })
    }
}

/// Returns a planar box as a polygon.
pub(crate) fn box_polygon([west, south, east, north]: [f64; 4]) -> Polygon {
    let corners = [(west, south), (east, south), (east, north), (west, north), (west, south)];
    Polygon::new(LineString::from(corners.to_vec()), Vec::new())
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
pub(crate) fn bounds_of_rings(polygon: &Polygon) -> [f64; 4] {
    let positions = std::iter::once(polygon.exterior()).chain(polygon.interiors()).flat_map(|ring| &ring.0);
    positions.fold([f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY], |[w, s, e, n], at| {
        [w.min(at.x), s.min(at.y), e.max(at.x), n.max(at.y)]
    })
}

/// Collects the polygons of a scan, and its points and lines.
#[derive(Default)]
struct Collect {
    polygons: Vec<Polygon>,
    lines: Vec<Vec<Coord>>,
    rings: Vec<LineString>,
    line: Vec<Coord>,
    edges: Option<Edges>,
    in_rings: bool,
    problem: Option<String>,
}

impl Collect {
    fn scan(geometry: &[u8]) -> Result<Self, ScanError> {
        let mut collect = Self::default();
        scan(geometry, &ScanOptions::default(), &mut collect)?;
        collect.problem.take().map_or(Ok(collect), |problem| Err(ScanError::new(0, problem)))
    }

    fn refuse_long_edge(&mut self, to: f64) {
        let from = self.line.last().map_or(to, |last| last.x);
        self.problem.get_or_insert_with(|| {
            format!(
                "an edge from longitude {from} to {to}, of which nobody knows which way round it is meant: cut the area at ±180, \
                 along the antimeridian and the pole, or give it as a box [west, south, east, north] with west > east"
            )
        });
    }

    fn end_ring(&mut self, ring: Vec<Coord>, edges: Edges) {
        let end = edges.close();
        if end.closes_long || end.may_be_cap {
            self.refuse_long_edge(ring.first().map_or(0.0, |first| first.x));
        }
        if ring.len() < 3 && !ring.is_empty() {
            self.problem = Some("a ring of fewer than three positions".to_owned());
        }
        self.rings.push(LineString::new(ring));
    }
}

impl Visitor for Collect {
    fn begin_geometry(&mut self, kind: GeometryType) {
        self.in_rings = matches!(kind, GeometryType::Polygon | GeometryType::MultiPolygon);
    }

    fn position(&mut self, Position { x, y, .. }: Position) {
        let at = Coord { x, y };
        match &mut self.edges {
            None => self.lines.push(vec![at]),
            Some(edges) => {
                if edges.take(x) {
                    self.refuse_long_edge(x);
                }
                self.line.push(at);
            }
        }
    }

    fn begin_line(&mut self) {
        self.edges = Some(Edges::default());
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        match self.edges.take() {
            Some(edges) if self.in_rings => self.end_ring(line, edges),
            _ if line.is_empty() => {}
            _ => self.lines.push(line),
        }
    }

    fn end_part(&mut self) {
        let mut rings = std::mem::take(&mut self.rings).into_iter();
        if let Some(exterior) = rings.next().filter(|ring| !ring.0.is_empty()) {
            self.polygons.push(Polygon::new(exterior, rings.collect()));
        }
    }
}
