//! Coordinates: the part of the grammar that holds nearly all bytes.

use super::{
    CrsMember, GeometryType, Position, ScanError, Validity, Visitor,
    grammar::{Result, Scanner},
};
use crate::limits;

impl<V: Visitor> Scanner<'_, V> {
    /// Runs `element` on each element of an array.
    pub(super) fn each(&mut self, what: &str, mut element: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        if !self.cursor.open_array(what)? {
            return Ok(());
        }
        loop {
            element(self)?;
            if !self.cursor.next_element()? {
                return Ok(());
            }
        }
    }

    pub(super) fn coordinates(&mut self, geometry: GeometryType) -> Result<()> {
        match geometry {
            GeometryType::Point if !self.cursor.open_array("a position")? => Ok(()),
            GeometryType::Point => self.part(Self::ordinates),
            GeometryType::MultiPoint => self.each("an array of positions", |scanner| scanner.part(Self::position)),
            GeometryType::LineString => self.part(|scanner| scanner.line(Line::String)),
            GeometryType::MultiLineString => {
                self.each("an array of line strings", |scanner| scanner.part(|scanner| scanner.line(Line::String)))
            }
            GeometryType::Polygon => self.part(Self::rings),
            GeometryType::MultiPolygon => self.each("an array of polygons", |scanner| scanner.part(Self::rings)),
            GeometryType::GeometryCollection => Err(self.cursor.expected("geometries")),
        }
    }

    fn part(&mut self, content: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.visitor.begin_part();
        content(self)?;
        self.visitor.end_part();
        Ok(())
    }

    fn rings(&mut self) -> Result<()> {
        self.each("an array of rings", |scanner| scanner.line(Line::Ring))
    }

    fn line(&mut self, line: Line) -> Result<()> {
        let start = self.cursor.position();
        self.visitor.begin_line();
        let mut count = 0_usize;
        let (mut first, mut last) = (None, None);
        self.each("an array of positions", |scanner| {
            scanner.cursor.take(b'[', "a position [longitude, latitude]")?;
            scanner.cursor.skip_whitespace();
            let position = scanner.ordinates_of_position()?;
            first = first.or(Some(position));
            last = Some(position);
            count += 1;
            Ok(())
        })?;
        self.visitor.end_line();
        if self.options.validity == Validity::Strict && count > 0 {
            line.check(count, first == last).map_err(|problem| ScanError::new(start, problem))?;
        }
        Ok(())
    }

    fn position(&mut self) -> Result<()> {
        self.cursor.take(b'[', "a position [longitude, latitude]")?;
        self.cursor.skip_whitespace();
        self.ordinates()
    }

    fn ordinates(&mut self) -> Result<()> {
        self.ordinates_of_position().map(drop)
    }

    /// Reads the ordinates of a position whose bracket is open, and closes it.
    #[inline]
    fn ordinates_of_position(&mut self) -> Result<Position> {
        let start = self.cursor.position();
        let x = self.cursor.number()?;
        if !self.cursor.next_element()? {
            return Err(ScanError::new(start, "a position has at least two numbers"));
        }
        let y = self.cursor.number()?;
        let mut z = None;
        while self.cursor.next_element()? {
            let at = self.cursor.position();
            let ordinate = self.cursor.number()?;
            if ordinate.abs() > limits::ORDINATE_MAGNITUDE {
                return Err(ScanError::new(at, format!("ordinate {ordinate} is beyond any height or time")));
            }
            z = z.or(Some(ordinate));
        }
        if y.abs() > 90.0 || x.abs() > limits::LONGITUDE_DEGREES {
            self.check_projected(start, x, y)?;
        }
        let position = Position { x, y, z };
        self.visitor.position(position);
        Ok(position)
    }

    /// Judges ordinates that are no longitude and latitude in degrees.
    #[cold]
    fn check_projected(&self, at: usize, x: f64, y: f64) -> Result<()> {
        match self.options.crs {
            CrsMember::Is(_) if x.abs().max(y.abs()) <= limits::ORDINATE_MAGNITUDE => Ok(()),
            CrsMember::Is(epsg) => Err(ScanError::new(at, format!("[{x}, {y}] is no position in {epsg}"))),
            CrsMember::Refuse | CrsMember::Ignore => Err(out_of_range(at, x, y)),
        }
    }
}

/// What a run of positions is.
#[derive(Clone, Copy)]
enum Line {
    String,
    Ring,
}

impl Line {
    fn check(self, count: usize, closed: bool) -> std::result::Result<(), String> {
        match self {
            Self::String if count < 2 => Err("a line string of one position: two or more are wanted".to_owned()),
            Self::Ring if !closed => Err("a ring that is not closed: its last position must be its first".to_owned()),
            Self::Ring if count < 4 => Err(format!("a ring of {count} positions: four or more are wanted")),
            Self::String | Self::Ring => Ok(()),
        }
    }
}

#[cold]
fn out_of_range(at: usize, x: f64, y: f64) -> ScanError {
    if y.abs() <= 90.0 {
        return ScanError::new(at, format!("longitude {x} is no longitude in degrees"));
    }
    let hint = if x.abs() <= 90.0 && y.abs() <= 180.0 {
        ": the axes may be swapped, GeoJSON is [longitude, latitude]"
    } else {
        ": the coordinates may be projected (--crs EPSG:n says how), or the axes swapped; GeoJSON is [longitude, latitude] in degrees"
    };
    ScanError::new(at, format!("latitude {y} is outside -90 to 90{hint}"))
}
