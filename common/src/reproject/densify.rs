//! Positions between the ends of an edge that is no straight line in longitude and latitude.

use super::{TOLERANCE_DEGREES, Transform};
use crate::{
    geojson::{GeometryType, Position, Visitor},
    limits,
};

/// An edge is halved so often at most.
const MOST_HALVINGS: u32 = 24;

/// So many positions are inserted into a body at most, beside a few for each of its own.
const MOST_INSERTED: u64 = 1_000_000;
const INSERTED_FOR_EACH: u64 = 16;

/// A visitor that stands before another and tells it longitudes and latitudes.
pub(super) struct Densify<'a, V> {
    transform: Transform,
    visitor: &'a mut V,
    problem: Option<String>,
    allowance: u64,
    in_rings: bool,
    /// The longitude at which the current part began, and beside which its next line begins.
    anchor: Option<f64>,
    /// First and last position of the current line.
    line: Option<(Both, Both)>,
}

/// A position in the body's system, and its longitude and latitude.
#[derive(Clone, Copy)]
struct Both {
    written: [f64; 2],
    at: [f64; 2],
}

impl<'a, V: Visitor> Densify<'a, V> {
    pub(super) fn new(transform: Transform, visitor: &'a mut V) -> Self {
        Self { transform, visitor, problem: None, allowance: MOST_INSERTED, in_rings: false, anchor: None, line: None }
    }

    /// Returns the first thing that was wrong.
    pub(super) fn finish(self) -> Result<(), String> {
        self.problem.map_or(Ok(()), Err)
    }

    /// Transforms a position. A longitude stays in the turn in which it was written. Of a projected position nobody wrote
    /// one, so it is the one nearest to the last: what crosses the antimeridian goes on beyond 180.
    fn both(&self, written: [f64; 2], near: Option<f64>) -> Result<Both, String> {
        let [longitude, latitude] = self.transform.apply(written)?;
        let near = if self.transform.is_geographic() { written[0] } else { near.unwrap_or(longitude) };
        let longitude = longitude + 360.0 * ((near - longitude) / 360.0).round();
        if longitude.abs() > limits::LONGITUDE_DEGREES {
            return Err(self.transform.no_position(written));
        }
        Ok(Both { written, at: [longitude, latitude] })
    }

    fn take(&mut self, Position { x, y, z }: Position) -> Result<(), String> {
        self.allowance += INSERTED_FOR_EACH;
        let both = self.both([x, y], self.line.map(|(_, last)| last.at[0]).or(self.anchor))?;
        if let Some((_, last)) = self.line {
            self.between(last, both, MOST_HALVINGS)?;
        }
        self.anchor = self.anchor.or(Some(both.at[0]));
        self.line = Some((self.line.map_or(both, |(first, _)| first), both));
        self.visitor.position(Position { x: both.at[0], y: both.at[1], z });
        Ok(())
    }

    /// Inserts what is needed between two positions.
    fn between(&mut self, a: Both, b: Both, halvings: u32) -> Result<(), String> {
        // A long edge of a geographic system may be meant either way round, and that is for others to say.
        let is_long = (a.at[0] - b.at[0]).abs() > 180.0;
        if self.transform.is_geographic() && is_long {
            return Ok(());
        }
        let middle = self.part_way(a, b, 0.5)?;
        // The curve may cross its chord in the middle, so one place beside it is compared too.
        if is_on_chord(a, b, 0.5, middle) && is_on_chord(a, b, 0.3, self.part_way(a, b, 0.3)?) {
            return Ok(());
        }
        if halvings == 0 {
            return self.over_a_pole(a, b);
        }
        self.between(a, middle, halvings - 1)?;
        self.insert(middle.at)?;
        self.between(middle, b, halvings - 1)
    }

    /// Returns the place of an edge at a share of the way.
    fn part_way(&self, a: Both, b: Both, share: f64) -> Result<Both, String> {
        self.both(along(a.written, b.written, share), Some(a.at[0]))
    }

    /// An edge over a pole has no chord however short it is: it goes up one meridian and down another.
    fn over_a_pole(&mut self, a: Both, b: Both) -> Result<(), String> {
        if a.at[1].abs().min(b.at[1].abs()) < 80.0 {
            return Err(format!("the edge at {:?} does not stay where its reference system is good", a.written));
        }
        let pole = 90_f64.copysign(a.at[1]);
        self.insert([a.at[0], pole])?;
        self.insert([b.at[0], pole])
    }

    fn insert(&mut self, [x, y]: [f64; 2]) -> Result<(), String> {
        self.allowance = self.allowance.checked_sub(1).ok_or("its edges are too long for its reference system: densify them")?;
        self.visitor.inserted(Position { x, y, z: None });
        Ok(())
    }

    /// A ring that is not closed is closed by an edge of its own system too.
    fn close(&mut self) -> Result<(), String> {
        match self.line {
            Some((first, last)) if self.in_rings && first.written != last.written => {
                let first = self.both(first.written, Some(last.at[0]))?;
                self.between(last, first, MOST_HALVINGS)
            }
            _ => Ok(()),
        }
    }

    /// Goes on until something is wrong.
    fn attempt(&mut self, step: impl FnOnce(&mut Self) -> Result<(), String>) {
        if self.problem.is_none() {
            self.problem = step(self).err();
        }
    }
}

/// Tells whether a place of an edge lies on the chord between its ends.
fn is_on_chord(a: Both, b: Both, share: f64, place: Both) -> bool {
    let chord = along(a.at, b.at, share);
    (0..2).all(|axis| (place.at[axis] - chord[axis]).abs() <= TOLERANCE_DEGREES)
}

/// Returns the place between two others, at a share of the way.
pub(super) fn along(a: [f64; 2], b: [f64; 2], share: f64) -> [f64; 2] {
    [a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share]
}

impl<V: Visitor> Visitor for Densify<'_, V> {
    fn begin_geometry(&mut self, kind: GeometryType) {
        self.in_rings = matches!(kind, GeometryType::Polygon | GeometryType::MultiPolygon);
        self.visitor.begin_geometry(kind);
    }

    fn begin_part(&mut self) {
        (self.anchor, self.line) = (None, None);
        self.visitor.begin_part();
    }

    fn begin_line(&mut self) {
        self.line = None;
        self.visitor.begin_line();
    }

    fn position(&mut self, position: Position) {
        self.attempt(|densify| densify.take(position));
    }

    fn end_line(&mut self) {
        self.attempt(Self::close);
        self.visitor.end_line();
    }

    fn end_part(&mut self) {
        self.visitor.end_part();
    }

    fn end_geometry(&mut self) {
        self.visitor.end_geometry();
    }
}
