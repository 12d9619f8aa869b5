//! What a scan tells.

use std::{fmt, str::FromStr};

/// The seven geometry types of RFC 7946.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of RFC 7946")]
pub enum GeometryType {
    Point,
    MultiPoint,
    LineString,
    MultiLineString,
    Polygon,
    MultiPolygon,
    GeometryCollection,
}

/// The `type` of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A bare geometry.
    Geometry(GeometryType),
    /// A feature.
    Feature,
    /// A feature collection.
    FeatureCollection,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Geometry(geometry) => fmt::Debug::fmt(geometry, f),
            Self::Feature => f.write_str("Feature"),
            Self::FeatureCollection => f.write_str("FeatureCollection"),
        }
    }
}

impl FromStr for Kind {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Ok(match name {
            "Point" => Self::Geometry(GeometryType::Point),
            "MultiPoint" => Self::Geometry(GeometryType::MultiPoint),
            "LineString" => Self::Geometry(GeometryType::LineString),
            "MultiLineString" => Self::Geometry(GeometryType::MultiLineString),
            "Polygon" => Self::Geometry(GeometryType::Polygon),
            "MultiPolygon" => Self::Geometry(GeometryType::MultiPolygon),
            "GeometryCollection" => Self::Geometry(GeometryType::GeometryCollection),
            "Feature" => Self::Feature,
            "FeatureCollection" => Self::FeatureCollection,
            _ => return Err(()),
        })
    }
}

/// One position: longitude, latitude, and a third ordinate where there is one. Further ordinates are passed over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// Longitude in degrees, as written.
    pub x: f64,
    /// Latitude in degrees.
    pub y: f64,
    /// The third ordinate.
    pub z: Option<f64>,
}

/// Is told what a scan finds, in document order.
///
/// A *part* is what hangs together: a point, a line string, or a polygon with its rings. A *line* is a line string
/// or a ring. Positions of a point or multi-point come in a part without a line. An empty point or multi-geometry
/// has no part; an empty line string has a part with a line without positions; an empty polygon a part without lines.
pub trait Visitor {
    /// A geometry begins; collections nest.
    fn begin_geometry(&mut self, _kind: GeometryType) {}
    /// A part begins.
    fn begin_part(&mut self) {}
    /// A line string or a ring begins.
    fn begin_line(&mut self) {}
    /// The next position of the current line or point.
    fn position(&mut self, position: Position);
    /// The next positions of the current line: longitude and latitude, within ±180 and ±90 and neither on them, without
    /// a third ordinate.
    #[inline]
    fn positions(&mut self, positions: &[[f64; 2]]) {
        positions.iter().for_each(|[x, y]| self.position(Position { x: *x, y: *y, z: None }));
    }
    /// A position that the body does not have: on a curve between two that it has, which is an edge of the body in its
    /// own reference system. See [`crate::reproject::scan`].
    fn inserted(&mut self, position: Position) {
        self.position(position);
    }
    /// The current line string or ring ends.
    fn end_line(&mut self) {}
    /// The current part ends.
    fn end_part(&mut self) {}
    /// The current geometry ends.
    fn end_geometry(&mut self) {}
}
