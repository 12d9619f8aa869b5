//! The reader: which kind of text the input is, and one body after the other.

use std::{collections::VecDeque, io};

use bytes::Bytes;

use super::{
    Place, RawBody, ReadOptions, ReadProblem, Taken, collection,
    shape::{self, Shape},
    window::Window,
};

/// Yields the bodies of one source.
///
/// ```
/// use geoclaim_producer::read::{ReadOptions, Reader};
/// let input = br#"{"type":"FeatureCollection","features":[{"type":"Feature","geometry":null}, {"n":2}]}"#;
/// let bodies: Vec<_> = Reader::new(&input[..], ReadOptions::default()).map(|body| body.unwrap().bytes).collect();
/// assert_eq!(bodies, [&br#"{"type":"Feature","geometry":null}"#[..], br#"{"n":2}"#]);
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    pub(super) window: Window<R>,
    state: State,
    options: ReadOptions,
    index: u64,
    ready: VecDeque<Result<RawBody, ReadProblem>>,
    nested: Option<Box<Nested>>,
}

#[derive(Debug)]
enum State {
    Start,
    Collection(collection::Walk),
    /// After a first text of one line.
    AfterText {
        spans_lines: bool,
    },
    Lines,
    Sequence,
    Ended,
}

impl<R: io::Read> Reader<R> {
    /// Reads `source` from its beginning.
    pub fn new(source: R, options: ReadOptions) -> Self {
        let most = usize::try_from(options.most_bytes).unwrap_or(usize::MAX);
        let window = Window::new(source, most, options.spool.clone());
        Self { window, state: State::Start, options, index: 0, ready: VecDeque::new(), nested: None }
    }

    fn step(&mut self) -> Result<(), ReadProblem> {
        match &mut self.state {
            State::Start if self.options.taken == Taken::Whole => self.whole(),
            State::Start => self.start(),
            State::Collection(_) => self.collection(),
            State::AfterText { spans_lines } => {
                let spans_lines = *spans_lines;
                self.after_text(spans_lines)
            }
            State::Lines => self.line(),
            State::Sequence => self.sequence(),
            State::Ended => Ok(()),
        }
    }

    fn whole(&mut self) -> Result<(), ReadProblem> {
        let place = self.place();
        self.state = State::Ended;
        let whole = self.window.take_until(None)?;
        if whole.is_empty() {
            return Err(empty(place));
        }
        self.emit(whole, place);
        Ok(())
    }

    fn start(&mut self) -> Result<(), ReadProblem> {
        let mut mark = self.window.byte_order_mark()?;
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.window.look(mark)? {
            // A mark that is not right before the object belongs to nothing.
            self.window.advance(mark + 1);
            mark = 0;
        }
        match self.window.look(mark)? {
            Some(0x1e) => {
                self.window.advance(mark);
                self.state = State::Sequence;
                Ok(())
            }
            Some(b'{') => self.text(mark),
            Some(_) => {
                self.window.advance(mark);
                Err(self.problem("expected GeoJSON: an object that begins with '{', one a line, or an RFC 8142 sequence"))
            }
            None => Err(empty(self.place())),
        }
    }

    /// Begins a text whose `{` comes after a byte order mark of this length, or of none.
    fn text(&mut self, mark: usize) -> Result<(), ReadProblem> {
        match shape::of(&mut self.window, mark)? {
            Shape::Collection => {
                collection::check_crs_ahead(&mut self.window, mark, self.options.crs)?;
                self.window.advance(mark);
                self.state = State::Collection(collection::Walk::new(self.options.crs));
                Ok(())
            }
            Shape::Single => {
                // The mark belongs to the object's bytes.
                let place = self.place();
                let length = self.window.object(mark)?;
                let bytes = self.window.take(length);
                self.state = State::AfterText { spans_lines: memchr::memchr(b'\n', &bytes).is_some() };
                self.emit(bytes, place);
                Ok(())
            }
        }
    }

    fn collection(&mut self) -> Result<(), ReadProblem> {
        let State::Collection(walk) = &mut self.state else { return Ok(()) };
        match walk.step(&mut self.window, self.index)? {
            collection::Step::Body(bytes, place) => self.emit(bytes, place),
            collection::Step::Bad(problem) => {
                self.index += 1;
                self.ready.push_back(Err(problem));
            }
            collection::Step::Ended { spans_lines } => self.state = State::AfterText { spans_lines },
        }
        Ok(())
    }

    fn after_text(&mut self, spans_lines: bool) -> Result<(), ReadProblem> {
        let mut newline = false;
        while let Some(byte @ (b' ' | b'\t' | b'\r' | b'\n')) = self.window.look(0)? {
            newline |= byte == b'\n';
            self.window.advance(1);
        }
        match self.window.look(0)? {
            None => self.state = State::Ended,
            Some(_) if newline && !spans_lines => self.state = State::Lines,
            Some(_) => return Err(self.problem("bytes after the end of the document")),
        }
        Ok(())
    }

    fn line(&mut self) -> Result<(), ReadProblem> {
        if self.window.look(0)?.is_none() {
            self.state = State::Ended;
            return Ok(());
        }
        let place = self.place();
        let line = self.window.take_until(Some(b'\n'));
        self.record(line, place);
        Ok(())
    }

    fn sequence(&mut self) -> Result<(), ReadProblem> {
        // Stands on a record separator; several in a row are one.
        self.window.advance(1);
        if self.window.look(0)?.is_none() {
            self.state = State::Ended;
            return Ok(());
        }
        let place = self.place();
        let text = self.window.take_before(0x1e);
        self.record(text, place);
        if self.window.look(0)?.is_none() {
            self.state = State::Ended;
        }
        Ok(())
    }

    /// Takes one line or text of a sequence, which may be a collection of its own.
    fn record(&mut self, text: Result<Bytes, ReadProblem>, place: Place) {
        let text = match text {
            Ok(text) => text,
            Err(problem) => {
                self.index += 1;
                return self.ready.push_back(Err(problem));
            }
        };
        let leading = text.len() - text.trim_ascii_start().len();
        let trimmed = text.slice(leading..leading + text.trim_ascii().len());
        if trimmed.is_empty() {
            return;
        }
        let start =
            Place { index: self.index, offset: place.offset + leading as u64, column: place.column + leading as u64, ..place };
        // Most lines are features; only what can be a collection is looked into.
        if memchr::memmem::find(&trimmed, b"FeatureCollection").is_none() {
            return self.emit(trimmed, start);
        }
        let mut inner = Reader::new(io::Cursor::new(trimmed.clone()), self.options.clone());
        inner.index = self.index;
        if matches!(shape::of(&mut inner.window, 0), Ok(Shape::Collection)) {
            self.nested = Some(Box::new(Nested { inner, start }));
        } else {
            self.emit(trimmed, start);
        }
    }

    fn emit(&mut self, bytes: Bytes, place: Place) {
        let place = Place { index: self.index, ..place };
        self.index += 1;
        self.ready.push_back(Ok(RawBody { bytes, place }));
    }

    fn place(&self) -> Place {
        Place { index: self.index, ..self.window.place() }
    }

    fn problem(&self, problem: &str) -> ReadProblem {
        ReadProblem { place: self.place(), problem: problem.to_owned() }
    }
}

/// A collection within a line or a text of a sequence.
#[derive(Debug)]
struct Nested {
    inner: Reader<io::Cursor<Bytes>>,
    start: Place,
}

impl Nested {
    fn next(&mut self) -> Option<Result<RawBody, ReadProblem>> {
        let start = self.start;
        let moved = |inside: Place| {
            let column = if inside.line == 1 { start.column + inside.column - 1 } else { inside.column };
            Place { index: inside.index, offset: start.offset + inside.offset, line: start.line + inside.line - 1, column }
        };
        Some(match self.inner.next()? {
            Ok(body) => Ok(RawBody { place: moved(body.place), ..body }),
            Err(problem) => Err(ReadProblem { place: moved(problem.place), ..problem }),
        })
    }
}

impl<R: io::Read> Iterator for Reader<R> {
    type Item = Result<RawBody, ReadProblem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            if let Some(mut nested) = self.nested.take() {
                if let Some(item) = nested.next() {
                    self.nested = Some(nested);
                    return Some(item);
                }
                self.index = nested.inner.index;
                continue;
            }
            if matches!(self.state, State::Ended) {
                return None;
            }
            if let Err(mut problem) = self.step() {
                problem.place.index = self.index;
                self.index += 1;
                self.state = State::Ended;
                return Some(Err(problem));
            }
        }
    }
}

fn empty(place: Place) -> ReadProblem {
    ReadProblem { place, problem: "the input is empty".to_owned() }
}
