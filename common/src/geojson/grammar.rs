//! The grammar of RFC 7946 over a [`Cursor`], in one pass.

use std::ops::Range;

use super::{Cursor, GeometryType, Kind, Outline, ScanError, ScanOptions, Visitor, check_crs, run::Run, scalar_text};
use crate::limits;

pub(super) type Result<T> = std::result::Result<T, ScanError>;

/// Scans one body and tells `visitor` what it finds. A byte order mark and white space around the object are passed
/// over; anything else after it is an error.
///
/// # Errors
/// The first thing that is wrong, with its place. What the visitor has been told by then is worth nothing.
pub fn scan<V: Visitor>(body: &[u8], options: &ScanOptions, visitor: &mut V) -> Result<Outline> {
    let start = if body.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut scanner = Scanner { cursor: Cursor::at(body, start), body, options: *options, run: Run::new(), visitor };
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

pub(super) struct Scanner<'a, V> {
    pub(super) cursor: Cursor<'a>,
    body: &'a [u8],
    pub(super) options: ScanOptions,
    pub(super) run: Run,
    pub(super) visitor: &'a mut V,
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
        check_crs(self.body, start..self.cursor.position(), self.options.crs)
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
}
