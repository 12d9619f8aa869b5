//! The grammar of RFC 7946 over a [`Cursor`], in one pass.

use std::ops::Range;

use super::{Cursor, GeometryType, Kind, Position, ScanError, Visitor, member, scalar_text};
use crate::limits;

type Result<T> = std::result::Result<T, ScanError>;

/// How strict a scan is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanOptions {
    /// Whether rings and lines must be valid.
    pub validity: Validity,
    /// What a `crs` member does.
    pub crs: CrsMember,
}

/// Whether rings and lines must be what RFC 7946, section 3.1, wants. The bbox is defined either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validity {
    /// Unclosed and short rings and lines are taken as they are.
    #[default]
    Lenient,
    /// Rings are closed and have four positions or more, line strings two or more.
    Strict,
}

/// What a `crs` member that does not name WGS 84 does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrsMember {
    /// The body is refused.
    #[default]
    Refuse,
    /// The member is ignored and the coordinates are taken for longitude and latitude.
    Ignore,
}

/// Where the members of the outermost object lie in the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The `type`.
    pub kind: Kind,
    /// The value of `id`; absent and null are the same.
    pub id: Option<Range<usize>>,
    /// The value of `properties`; absent and null are the same.
    pub properties: Option<Range<usize>>,
    /// The value of `geometry`; absent and null are the same.
    pub geometry: Option<Range<usize>>,
}

/// Scans one body and tells `visitor` what it finds. A byte order mark and white space around the object are passed
/// over; anything else after it is an error.
///
/// # Errors
/// The first thing that is wrong, with its place. What the visitor has been told by then is worth nothing.
pub fn scan<V: Visitor>(body: &[u8], options: &ScanOptions, visitor: &mut V) -> Result<Outline> {
    if let Err(error) = std::str::from_utf8(body) {
        return Err(ScanError::new(error.valid_up_to(), "not UTF-8"));
    }
    let start = if body.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut scanner = Scanner { cursor: Cursor::at(body, start), body, options: *options, visitor };
    scanner.cursor.skip_whitespace();
    let outline = scanner.object(Role::Document, 0)?;
    scanner.cursor.skip_whitespace();
    match scanner.cursor.peek() {
        None => Ok(outline),
        Some(_) => Err(scanner.cursor.expected("the end of the text after the document")),
    }
}

/// What an object may be where it stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Document,
    Feature,
    Geometry,
}

/// The members that hold what an object is made of; which one counts depends on `type`, which may come last.
const CONTENT: [&str; 4] = ["coordinates", "geometries", "geometry", "features"];

/// Returns the place in [`CONTENT`] of the member that counts for `kind`.
fn content_of(kind: Kind) -> usize {
    match kind {
        Kind::Geometry(GeometryType::GeometryCollection) => 1,
        Kind::Geometry(_) => 0,
        Kind::Feature => 2,
        Kind::FeatureCollection => 3,
    }
}

struct Scanner<'a, V> {
    cursor: Cursor<'a>,
    body: &'a [u8],
    options: ScanOptions,
    visitor: &'a mut V,
}

impl<V: Visitor> Scanner<'_, V> {
    fn object(&mut self, role: Role, depth: usize) -> Result<Outline> {
        let start = self.cursor.position();
        if depth > limits::COLLECTION_DEPTH {
            return Err(ScanError::new(start, format!("collections nested deeper than {depth} levels", depth = depth - 1)));
        }
        let mut kind = None;
        let mut seen: [Option<usize>; CONTENT.len()] = [None; CONTENT.len()];
        let mut done = false;
        let (mut id, mut properties, mut geometry) = (None, None, None);
        self.cursor.open_object()?;
        while let Some(key) = self.cursor.next_key()? {
            let at = self.cursor.position();
            let name = self.cursor.key_text(&key).unwrap_or_default();
            let content = CONTENT.iter().position(|member| *member == name);
            match (&*name, content) {
                ("type", _) if kind.is_some() => return Err(ScanError::new(at, "member \"type\" comes twice")),
                ("type", _) => kind = Some(self.kind(role)?),
                (_, Some(content)) => {
                    let counts = kind.map(|kind| content_of(kind) == content);
                    if seen[content].is_some() && counts != Some(false) {
                        return Err(ScanError::new(at, format!("member \"{name}\" comes twice")));
                    }
                    seen[content] = Some(at);
                    match (kind, counts) {
                        (Some(kind), Some(true)) => {
                            self.content(kind, depth)?;
                            done = true;
                        }
                        _ => self.cursor.skip_value()?,
                    }
                }
                ("crs", _) => self.crs()?,
                _ => self.cursor.skip_value()?,
            }
            let value = Some(at..self.cursor.position()).filter(|range| &self.body[range.clone()] != b"null");
            match &*name {
                "id" => id = value,
                "properties" => properties = value,
                "geometry" => geometry = value,
                _ => {}
            }
        }
        let kind = kind.ok_or_else(|| ScanError::new(start, "an object without the member \"type\""))?;
        if !done {
            self.pending_content(kind, seen[content_of(kind)], start, depth)?;
        }
        let outline = Outline { kind, id, properties, geometry };
        self.check_feature(&outline)?;
        Ok(outline)
    }

    /// Reads the content that came before the `type` that says what it is.
    fn pending_content(&mut self, kind: Kind, at: Option<usize>, start: usize, depth: usize) -> Result<()> {
        let missing = || ScanError::new(start, format!("{kind} without the member \"{}\"", CONTENT[content_of(kind)]));
        let end = self.cursor.position();
        self.cursor.move_to(at.ok_or_else(missing)?);
        self.content(kind, depth)?;
        self.cursor.move_to(end);
        Ok(())
    }

    fn kind(&mut self, role: Role) -> Result<Kind> {
        let at = self.cursor.position();
        let text = self.cursor.string()?;
        let quoted = &self.body[text.start - 1..text.end + 1];
        let name = scalar_text(quoted).unwrap_or_default();
        let kind: Kind = name
            .parse()
            .map_err(|()| ScanError::new(at, format!("{:?} is no GeoJSON type", name.chars().take(40).collect::<String>())))?;
        match (role, kind) {
            (Role::Document, _) | (Role::Feature, Kind::Feature) | (Role::Geometry, Kind::Geometry(_)) => Ok(kind),
            (Role::Feature, _) => Err(ScanError::new(at, format!("expected a Feature, found a {kind}"))),
            (Role::Geometry, _) => Err(ScanError::new(at, format!("expected a geometry, found a {kind}"))),
        }
    }

    fn check_feature(&self, outline: &Outline) -> Result<()> {
        if outline.kind != Kind::Feature {
            return Ok(());
        }
        let is = |range: &Range<usize>, first: &[u8]| first.contains(&self.body[range.start]);
        match (&outline.id, &outline.properties) {
            (Some(id), _) if !is(id, b"\"-0123456789") => Err(ScanError::new(id.start, "a feature's id is a string or a number")),
            (_, Some(properties)) if !is(properties, b"{") => {
                Err(ScanError::new(properties.start, "a feature's properties are an object or null"))
            }
            _ => Ok(()),
        }
    }

    fn crs(&mut self) -> Result<()> {
        let start = self.cursor.position();
        self.cursor.skip_value()?;
        let value = start..self.cursor.position();
        if self.options.crs == CrsMember::Ignore || &self.body[value.clone()] == b"null" {
            return Ok(());
        }
        let name = member(self.body, value, "properties")
            .and_then(|properties| member(self.body, properties, "name"))
            .and_then(|name| scalar_text(&self.body[name]));
        match name {
            Some(name) if is_wgs84(&name) => Ok(()),
            Some(name) => Err(ScanError::new(
                start,
                format!(
                    "crs {:?} is not WGS 84: transform the body, or ignore the member by option",
                    name.chars().take(80).collect::<String>()
                ),
            )),
            None => Err(ScanError::new(start, "a crs member without a name: WGS 84 longitude and latitude are expected")),
        }
    }

    fn content(&mut self, kind: Kind, depth: usize) -> Result<()> {
        match kind {
            Kind::Geometry(geometry) => {
                self.visitor.begin_geometry(geometry);
                if geometry == GeometryType::GeometryCollection {
                    self.each("an array of geometries", |scanner| scanner.object(Role::Geometry, depth + 1).map(drop))?;
                } else {
                    self.coordinates(geometry)?;
                }
                self.visitor.end_geometry();
                Ok(())
            }
            Kind::Feature if self.cursor.peek() == Some(b'n') => self.cursor.skip_value(),
            Kind::Feature => self.object(Role::Geometry, depth).map(drop),
            Kind::FeatureCollection => {
                self.each("an array of features", |scanner| scanner.object(Role::Feature, depth).map(drop))
            }
        }
    }

    /// Runs `element` on each element of an array.
    fn each(&mut self, what: &str, mut element: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
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

    fn coordinates(&mut self, geometry: GeometryType) -> Result<()> {
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
            return Err(out_of_range(start, x, y));
        }
        let position = Position { x, y, z };
        self.visitor.position(position);
        Ok(position)
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
        ": the coordinates may be projected, or the axes swapped; GeoJSON is [longitude, latitude] in degrees"
    };
    ScanError::new(at, format!("latitude {y} is outside -90 to 90{hint}"))
}

/// Tells whether a `crs` name means WGS 84 longitude and latitude, as GeoJSON writers use these names.
pub fn is_wgs84(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let code = name.rsplit([':', '/', '#']).next().unwrap_or_default();
    let authority = name.contains("EPSG") || name.contains("OGC") || name == code;
    match code {
        "CRS84" | "CRS84H" => authority,
        "4326" | "4979" => name.contains("EPSG"),
        _ => matches!(&*name, "WGS84" | "WGS 84"),
    }
}
