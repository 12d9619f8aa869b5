//! Coordinates: the part of the grammar that holds nearly all bytes.

use super::{
    CrsMember, GeometryType, Position, ScanError, Validity, Visitor,
    grammar::{Result, Scanner},
    run,
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
            GeometryType::LineString => self.part(|scanner| scanner.line(Line::String, 1)),
            GeometryType::MultiLineString => {
                self.each("an array of line strings", |scanner| scanner.part(|scanner| scanner.line(Line::String, 2)))
            }
            GeometryType::Polygon => self.part(|scanner| scanner.rings(2)),
            GeometryType::MultiPolygon => self.each("an array of polygons", |scanner| scanner.part(|scanner| scanner.rings(3))),
            GeometryType::GeometryCollection => Err(self.cursor.expected("geometries")),
        }
    }

    fn part(&mut self, content: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.visitor.begin_part();
        content(self)?;
        self.visitor.end_part();
        Ok(())
    }

    fn rings(&mut self, most_brackets: usize) -> Result<()> {
        self.each("an array of rings", |scanner| scanner.line(Line::Ring, most_brackets))
    }

    /// Reads a line, and lines that follow it, across as many brackets as close behind a position of theirs at most.
    fn line(&mut self, line: Line, most_brackets: usize) -> Result<()> {
        let mut ends = Ends { start: self.cursor.position(), ..Ends::default() };
        // A line that is judged is read by itself, so that its place is known.
        let most_brackets = if self.options.validity == Validity::Strict { 1 } else { most_brackets };
        self.visitor.begin_line();
        if self.cursor.open_array("an array of positions")? {
            while self.next_positions(line, &mut ends, most_brackets)? {}
        }
        self.visitor.end_line();
        if self.options.validity == Validity::Strict { line.check(&ends) } else { Ok(()) }
    }

    /// Reads a run, or the next position when it is not plain. Returns whether more follow.
    #[inline]
    fn next_positions(&mut self, line: Line, ends: &mut Ends, most_brackets: usize) -> Result<bool> {
        let end = self.run.read(self.cursor.bytes(), self.cursor.position(), most_brackets);
        if !self.run.is_empty() {
            self.tell_run(line, ends);
        }
        match end {
            run::End::AfterPosition(at) => self.cursor.move_to(at),
            run::End::BeforePosition(at) if !self.run.is_empty() => {
                self.cursor.move_to(at);
                return Ok(true);
            }
            run::End::BeforePosition(at) => {
                self.cursor.move_to(at);
                self.cursor.take(b'[', "a position [longitude, latitude]")?;
                self.cursor.skip_whitespace();
                let Position { x, y, .. } = self.ordinates_of_position()?;
                ends.take(&[[x, y]]);
            }
        }
        self.cursor.next_element()
    }

    /// Tells the visitor of the lines of a run. They are of one kind; a ring that ends may be the last of its polygon.
    fn tell_run(&mut self, line: Line, ends: &mut Ends) {
        for (positions, brackets) in self.run.lines() {
            self.visitor.positions(positions);
            ends.take(positions);
            let Some(brackets) = brackets else { continue };
            self.visitor.end_line();
            let ends_part = match line {
                Line::String => brackets > 1,
                Line::Ring => brackets > 2,
            };
            if ends_part {
                self.visitor.end_part();
                self.visitor.begin_part();
            }
            self.visitor.begin_line();
        }
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

/// How many positions a line has, and its first and last.
#[derive(Default)]
struct Ends {
    /// Where the line begins.
    start: usize,
    count: usize,
    first: Option<[f64; 2]>,
    last: Option<[f64; 2]>,
}

impl Ends {
    fn take(&mut self, positions: &[[f64; 2]]) {
        self.count += positions.len();
        self.first = self.first.or(positions.first().copied());
        self.last = positions.last().copied().or(self.last);
    }
}

/// What a run of positions is.
#[derive(Clone, Copy)]
enum Line {
    String,
    Ring,
}

impl Line {
    fn check(self, ends: &Ends) -> Result<()> {
        let problem = match (self, ends.count) {
            (_, 0) => return Ok(()),
            (Self::String, 1) => "a line string of one position: two or more are wanted".to_owned(),
            (Self::Ring, _) if ends.first != ends.last => {
                "a ring that is not closed: its last position must be its first".to_owned()
            }
            (Self::Ring, count @ 1..4) => format!("a ring of {count} positions: four or more are wanted"),
            (Self::String | Self::Ring, _) => return Ok(()),
        };
        Err(ScanError::new(ends.start, problem))
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
