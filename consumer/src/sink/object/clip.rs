//! A geometry, clipped to an area while it is read. (One whose box lies in the area is not read: it stays as it was
//! written.)
//!
//! Polygons are clipped by overlay, one by one, with the even-odd rule; of lines, what lies within is kept, and of points,
//! those that do. What comes out lies within ±180 and is cut there, whatever turn it came from (RFC 7946, section 3.1.9),
//! has no third ordinate, and is right to the overlay's grid: 2^-30 of the body's box, at worst seven centimetres, and as
//! much of the area's own where the area is no box.

use geo::{
    BooleanOps, Coord, Geometry, GeometryCollection, Intersects, LineString, MapCoords, MultiLineString, MultiPoint,
    MultiPolygon, Point, Polygon, Simplify,
};
use geoclaim_common::{
    Bbox,
    extent::Edges,
    geojson::{GeometryType, Position, Visitor},
};

use super::area::Within;
use crate::aoi::{bounds_of_rings, shifted, turns};

/// Clips what a scan tells it.
pub(super) struct Clip<'a> {
    within: &'a Within,
    simplify_degrees: Option<f64>,
    /// Rounding: a power of ten.
    scale: f64,
    frames: Vec<Frame>,
    rings: Vec<LineString>,
    line: Vec<Coord>,
    edges: Option<Edges>,
    done: Option<Geometry>,
    problem: Option<&'static str>,
}

/// A geometry that is being read, and what of it lies in the area.
struct Frame {
    kind: GeometryType,
    points: Vec<Point>,
    lines: Vec<LineString>,
    polygons: Vec<Polygon>,
    members: Vec<Geometry>,
}

impl<'a> Clip<'a> {
    pub(super) fn new(within: &'a Within, bbox: &Bbox, simplify_degrees: Option<f64>) -> Self {
        let (frames, rings, line) = Default::default();
        Self { within, simplify_degrees, scale: scale_of(bbox), frames, rings, line, edges: None, done: None, problem: None }
    }

    /// Returns what of the geometry lies in the area; `None` when it has no part there.
    ///
    /// # Errors
    /// A ring goes round a pole, and nobody knows what is inside it.
    pub(super) fn finish(self) -> Result<Option<Geometry>, &'static str> {
        self.problem.map_or(Ok(self.done), Err)
    }

    fn keep(&mut self, keep: impl FnOnce(&mut Frame)) {
        if let Some(frame) = self.frames.last_mut() {
            keep(frame);
        }
    }

    fn point(&mut self, at: Coord) {
        let here = |turn: &i32| self.within.windows.iter().any(|area| area.intersects(&shifted(at, *turn)));
        if let Some(turn) = turns(at.x, at.x).find(here) {
            let point = Point(self.rounded(shifted(at, turn)));
            self.keep(|frame| frame.points.push(point));
        }
    }

    fn end_polygon(&mut self) {
        let mut rings = std::mem::take(&mut self.rings).into_iter();
        let Some(exterior) = rings.next().filter(|ring| ring.0.len() > 2) else { return };
        let polygon = Polygon::new(exterior, rings.filter(|ring| ring.0.len() > 2).collect());
        let polygon = self.simplify_degrees.map_or_else(|| polygon.clone(), |degrees| polygon.simplify(degrees));
        let [west, _, east, _] = bounds_of_rings(&polygon);
        for turn in turns(west, east) {
            let turned = polygon.map_coords(|at| shifted(at, turn));
            let clipped = self.within.windows.iter().flat_map(|area| turned.intersection(area));
            let rounded: Vec<Polygon> = clipped.filter_map(|polygon| self.tidy(&polygon)).collect();
            self.keep(|frame| frame.polygons.extend(rounded));
        }
    }

    fn end_line_string(&mut self, line: Vec<Coord>) {
        let [west, east] = line.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[w, e], at| [w.min(at.x), e.max(at.x)]);
        if line.len() < 2 {
            return line.into_iter().for_each(|at| self.point(at));
        }
        let line = LineString::new(line);
        let line = self.simplify_degrees.map_or_else(|| line.clone(), |degrees| line.simplify(degrees));
        for turn in turns(west, east) {
            let turned = MultiLineString::new(vec![line.map_coords(|at| shifted(at, turn))]);
            let clipped = self.within.windows.iter().flat_map(|area| area.clip(&turned, false));
            let rounded: Vec<LineString> = clipped.map(|line| self.round_line(&line)).filter(|line| line.0.len() > 1).collect();
            self.keep(|frame| frame.lines.extend(rounded));
        }
    }

    fn rounded(&self, at: Coord) -> Coord {
        // Adding zero makes the negative one positive.
        let round = |ordinate: f64| (ordinate * self.scale).round() / self.scale + 0.0;
        Coord { x: round(at.x), y: round(at.y) }
    }

    fn round_line(&self, line: &LineString) -> LineString {
        let mut positions: Vec<Coord> = line.0.iter().map(|at| self.rounded(*at)).collect();
        positions.dedup();
        LineString::new(positions)
    }

    /// Rounds a polygon; `None` when nothing of it is left.
    fn tidy(&self, polygon: &Polygon) -> Option<Polygon> {
        let rings = |ring: &LineString| Some(self.round_line(ring)).filter(|ring| ring.0.len() > 3);
        let exterior = rings(polygon.exterior())?;
        Some(Polygon::new(exterior, polygon.interiors().iter().filter_map(rings).collect()))
    }
}

impl Visitor for Clip<'_> {
    fn begin_geometry(&mut self, kind: GeometryType) {
        let (points, lines, polygons, members) = Default::default();
        self.frames.push(Frame { kind, points, lines, polygons, members });
    }

    fn begin_line(&mut self) {
        self.edges = Some(Edges::default());
    }

    fn position(&mut self, Position { x, y, .. }: Position) {
        match &mut self.edges {
            None => self.point(Coord { x, y }),
            // An edge of a projected body may run over ±180: it goes on beyond.
            Some(edges) => {
                edges.take(x);
                self.line.push(Coord { x: x + edges.shift(), y });
            }
        }
    }

    fn end_line(&mut self) {
        let (line, edges) = (std::mem::take(&mut self.line), self.edges.take().unwrap_or_default());
        let is_ring =
            self.frames.last().is_some_and(|frame| matches!(frame.kind, GeometryType::Polygon | GeometryType::MultiPolygon));
        if !is_ring {
            return self.end_line_string(line);
        }
        let end = edges.close();
        if end.goes_round || end.may_be_cap {
            self.problem = Some("a ring that goes round a pole cannot be clipped: cut it at ±180 and along the pole");
        }
        self.rings.push(LineString::new(line));
    }

    fn end_part(&mut self) {
        if !self.rings.is_empty() {
            self.end_polygon();
        }
    }

    fn end_geometry(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        let Some(clipped) = frame.geometry() else { return };
        match self.frames.last_mut() {
            Some(parent) => parent.members.push(clipped),
            None => self.done = Some(clipped),
        }
    }
}

impl Frame {
    fn geometry(self) -> Option<Geometry> {
        let Self { kind, mut points, mut lines, mut polygons, members } = self;
        let collection = |members: Vec<Geometry>| Geometry::GeometryCollection(GeometryCollection::from(members));
        Some(match (kind, points.len(), lines.len(), polygons.len()) {
            (GeometryType::GeometryCollection, ..) if members.is_empty() => return None,
            (GeometryType::GeometryCollection, ..) => collection(members),
            (_, 0, 0, 0) => return None,
            (_, 1, 0, 0) => points.remove(0).into(),
            (_, 0, 1, 0) => lines.remove(0).into(),
            (_, 0, 0, 1) => polygons.remove(0).into(),
            (_, _, 0, 0) => MultiPoint::new(points).into(),
            (_, 0, _, 0) => MultiLineString::new(lines).into(),
            (_, 0, 0, _) => MultiPolygon::new(polygons).into(),
            // A line of one position is a point.
            _ => collection(points.into_iter().map(Geometry::from).chain(lines.into_iter().map(Geometry::from)).collect()),
        })
    }
}

/// Returns the power of ten to whose inverse the coordinates of what is in a box are rounded, so that a vertex that was
/// written with no more decimals comes out as it was: nine for a field, seven for a country, six for a continent.
fn scale_of(bbox: &Bbox) -> f64 {
    let span = bbox.planar().map(|[west, south, east, north]| (east - west).max(north - south)).fold(0.0, f64::max);
    let steps = [(8.0, 6), (0.8, 7), (0.08, 8)];
    10_f64.powi(steps.into_iter().find(|(least, _)| span > *least).map_or(9, |(_, decimals)| decimals))
}

#[cfg(test)]
mod tests;
