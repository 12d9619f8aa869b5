//! Walking through a feature collection as it is read.

use std::io;

use bytes::Bytes;
use geoclaim_common::geojson::{self, CrsMember, Cursor, scalar_text};

use super::{Place, ReadProblem, shape, window::Window};

/// What one step comes to.
pub(super) enum Step {
    Body(Bytes, Place),
    Bad(ReadProblem),
    Ended { spans_lines: bool },
}

/// Where the walk stands.
#[derive(Debug)]
pub(super) struct Walk {
    crs: CrsMember,
    position: Position,
    first_line: Option<u64>,
    kind: Option<String>,
    has_features: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Position {
    /// On the collection's opening brace.
    #[default]
    Start,
    /// Between members; whether one has come.
    Members { any: bool },
    /// Between features; whether one has come.
    Features { any: bool },
}

impl Walk {
    pub(super) fn new(crs: CrsMember) -> Self {
        Self { crs, position: Position::default(), first_line: None, kind: None, has_features: false }
    }

    pub(super) fn step<R: io::Read>(&mut self, window: &mut Window<R>, index: u64) -> Result<Step, ReadProblem> {
        loop {
            match self.position {
                Position::Start => {
                    self.first_line = Some(window.place().line);
                    window.advance(1);
                    self.position = Position::Members { any: false };
                }
                Position::Members { any } => {
                    if let Some(ended) = self.member(window, any)? {
                        return Ok(ended);
                    }
                }
                Position::Features { any } => {
                    if let Some(step) = self.feature(window, any, index)? {
                        return Ok(step);
                    }
                }
            }
        }
    }

    fn member<R: io::Read>(&mut self, window: &mut Window<R>, any: bool) -> Result<Option<Step>, ReadProblem> {
        let mut next = peek(window)?;
        if next == Some(b'}') {
            window.advance(1);
            self.check(window)?;
            return Ok(Some(Step::Ended { spans_lines: self.first_line != Some(window.place().line) }));
        }
        if any {
            expect(window, next, b',', "',' or '}' in the collection")?;
            next = peek(window)?;
        }
        if next != Some(b'"') {
            return Err(odd(window, next, "the name of a member of the collection"));
        }
        let name = scalar_text(&value(window)?).unwrap_or_default();
        let colon = peek(window)?;
        expect(window, colon, b':', "':'")?;
        self.position = Position::Members { any: true };
        match (&*name, peek(window)?) {
            ("features", _) if self.has_features => return Err(window.problem("member \"features\" comes twice")),
            ("features", Some(b'[')) => {
                window.advance(1);
                self.has_features = true;
                self.position = Position::Features { any: false };
            }
            ("features", next) => return Err(odd(window, next, "an array of features")),
            ("type", _) if self.kind.is_some() => return Err(window.problem("member \"type\" comes twice")),
            ("type", _) => self.kind = Some(scalar_text(&value(window)?).unwrap_or_default()),
            ("crs", _) => {
                let place = window.place();
                check_crs(&value(window)?, self.crs).map_err(|problem| ReadProblem { place, problem })?;
            }
            _ => drop(value(window)?),
        }
        Ok(None)
    }

    fn feature<R: io::Read>(&mut self, window: &mut Window<R>, any: bool, index: u64) -> Result<Option<Step>, ReadProblem> {
        let mut next = peek(window)?;
        if next == Some(b']') {
            window.advance(1);
            self.position = Position::Members { any: true };
            return Ok(None);
        }
        if any {
            expect(window, next, b',', "',' or ']' after a feature")?;
            next = peek(window)?;
        }
        self.position = Position::Features { any: true };
        let place = Place { index, ..window.place() };
        match next {
            Some(b'{') => {
                let before = window.place().offset;
                match window.object(0) {
                    Ok(length) => Ok(Some(Step::Body(window.take(length), place))),
                    // Moved over: too large. Otherwise it has been cut, and there is nothing after it.
                    Err(problem) if window.place().offset > before => Ok(Some(Step::Bad(problem))),
                    Err(problem) => Err(problem),
                }
            }
            Some(b',' | b']' | b'}') | None => Err(odd(window, next, "a feature")),
            Some(_) => {
                value(window)?;
                Ok(Some(Step::Bad(ReadProblem { place, problem: "a feature must be an object".to_owned() })))
            }
        }
    }

    fn check<R: io::Read>(&self, window: &Window<R>) -> Result<(), ReadProblem> {
        match self.kind.as_deref() {
            Some("FeatureCollection") if self.has_features => Ok(()),
            Some("FeatureCollection") => Err(window.problem("FeatureCollection without the member \"features\"")),
            Some(kind) => Err(window
                .problem(format!("read as a FeatureCollection, but its \"type\", which came after its features, is {kind:?}"))),
            None => Err(window.problem("an object with features but without the member \"type\"")),
        }
    }
}

fn peek<R: io::Read>(window: &mut Window<R>) -> Result<Option<u8>, ReadProblem> {
    while let Some(b' ' | b'\t' | b'\r' | b'\n') = window.look(0)? {
        window.advance(1);
    }
    window.look(0)
}

fn expect<R: io::Read>(window: &mut Window<R>, next: Option<u8>, byte: u8, what: &str) -> Result<(), ReadProblem> {
    if next != Some(byte) {
        return Err(odd(window, next, what));
    }
    window.advance(1);
    Ok(())
}

fn odd<R: io::Read>(window: &Window<R>, found: Option<u8>, expected: &str) -> ReadProblem {
    match found {
        None => window.problem(format!("expected {expected}, found the end of the text: it has been cut")),
        Some(byte) => window.problem(format!("expected {expected}, found '{}'", char::from(byte).escape_default())),
    }
}

/// Takes a value of any kind and checks that it is JSON.
fn value<R: io::Read>(window: &mut Window<R>) -> Result<Bytes, ReadProblem> {
    loop {
        let mut cursor = Cursor::at(window.available(), 0);
        let skipped = cursor.skip_value();
        let length = cursor.position();
        // A value that reaches the end of what is available may go on.
        if length < window.available().len() && skipped.is_ok() {
            return Ok(window.take(length));
        }
        let is_broken = skipped.as_ref().is_err_and(|error| error.at < window.available().len().saturating_sub(16));
        if length > window.most() {
            return Err(window.problem(format!("a member of the collection of more than {} bytes", window.most())));
        }
        if is_broken || !window.double()? {
            return match skipped {
                Ok(()) => Ok(window.take(length)),
                Err(error) => Err(window.problem_at(error.at, error.problem)),
            };
        }
    }
}

/// Refuses a collection whose `crs`, as far as it is in sight, is not WGS 84, before any feature is read.
pub(super) fn check_crs_ahead<R: io::Read>(window: &mut Window<R>, at: usize, crs: CrsMember) -> Result<(), ReadProblem> {
    let Some(value) = shape::member_ahead(window, at, "crs")? else { return Ok(()) };
    check_crs(&window.available()[value.clone()], crs).map_err(|problem| window.problem_at(value.start, problem))
}

/// Judges a `crs` value as a scan of the whole collection would.
fn check_crs(value: &[u8], crs: CrsMember) -> Result<(), String> {
    geojson::check_crs(value, 0..value.len(), crs).map_err(|error| error.problem)
}
