//! Whether a text is a feature collection, which is read feature by feature, or a single object.
//!
//! The `type` may come last, and a foreign member may be named `features`, so the outermost members are walked ahead
//! of reading until the answer is known. When `features` comes before `type` and goes on beyond [`LOOK_AHEAD`], the
//! text is taken for a collection; the walk through it checks that in the end.

use std::{io, ops::Range};

use super::{ReadProblem, balance::Balance, window::Window};

/// How far beyond the beginning of `features` the `type` is looked for.
const LOOK_AHEAD: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Collection,
    Single,
}

/// Tells what the object is that begins `at` bytes ahead. Moves over nothing.
pub(super) fn of<R: io::Read>(window: &mut Window<R>, at: usize) -> Result<Shape, ReadProblem> {
    let most = window.most();
    let mut ahead = Ahead { window, at: at + 1, limit: at.saturating_add(most) };
    let mut has_features = false;
    loop {
        let Some(name) = ahead.member()? else {
            return Ok(if has_features && ahead.reached_limit()? { Shape::Collection } else { Shape::Single });
        };
        match &name[..] {
            b"\"type\"" => {
                let value = ahead.string()?;
                return Ok(if value.as_deref() == Some(b"\"FeatureCollection\"") { Shape::Collection } else { Shape::Single });
            }
            b"\"features\"" if ahead.peek()? == Some(b'[') => {
                has_features = true;
                ahead.limit = ahead.limit.min(ahead.at + LOOK_AHEAD);
            }
            _ => {}
        }
        if !ahead.skip_value()? {
            return Ok(if has_features && ahead.reached_limit()? { Shape::Collection } else { Shape::Single });
        }
    }
}

/// Returns where, ahead of the window, the value of the member `name` lies, when it is within [`LOOK_AHEAD`].
pub(super) fn member_ahead<R: io::Read>(
    window: &mut Window<R>,
    at: usize,
    name: &str,
) -> Result<Option<Range<usize>>, ReadProblem> {
    let quoted = format!("\"{name}\"").into_bytes();
    let mut ahead = Ahead { window, at: at + 1, limit: at + LOOK_AHEAD };
    while let Some(found) = ahead.member()? {
        let start = ahead.at;
        if !ahead.skip_value()? {
            break;
        }
        if found == quoted {
            return Ok(Some(start..ahead.at));
        }
    }
    Ok(None)
}

/// Looks at members without taking them.
struct Ahead<'a, R> {
    window: &'a mut Window<R>,
    at: usize,
    limit: usize,
}

impl<R: io::Read> Ahead<'_, R> {
    fn peek(&mut self) -> Result<Option<u8>, ReadProblem> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.look()? {
            self.at += 1;
        }
        self.look()
    }

    /// Returns the byte here; `None` at the limit as well.
    fn look(&mut self) -> Result<Option<u8>, ReadProblem> {
        if self.at >= self.limit { Ok(None) } else { self.window.look(self.at) }
    }

    /// Tells whether the walk ended at its limit, and not at the end of the text or at something odd.
    fn reached_limit(&mut self) -> Result<bool, ReadProblem> {
        Ok(self.at >= self.limit && self.window.look(self.at)?.is_some())
    }

    /// Moves to the value of the next member and returns its name in quotes; `None` at the end or at anything odd.
    fn member(&mut self) -> Result<Option<Vec<u8>>, ReadProblem> {
        if self.peek()? == Some(b',') {
            self.at += 1;
            self.peek()?;
        }
        let Some(name) = self.string()? else { return Ok(None) };
        if self.peek()? != Some(b':') {
            return Ok(None);
        }
        self.at += 1;
        self.peek()?;
        Ok(Some(name))
    }

    /// Moves over a string and returns it with its quotes, escapes resolved; `None` when there is none.
    fn string(&mut self) -> Result<Option<Vec<u8>>, ReadProblem> {
        let start = self.at;
        if self.window.look(start)? != Some(b'"') {
            return Ok(None);
        }
        self.at += 1;
        loop {
            match self.look()? {
                None => return Ok(None),
                Some(b'\\') => self.at += 2,
                Some(b'"') => break,
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        let raw = &self.window.available()[start..self.at];
        let text = geoclaim_common::geojson::scalar_text(raw);
        Ok(Some(text.map_or_else(|| raw.to_vec(), |text| format!("\"{text}\"").into_bytes())))
    }

    /// Moves over a value; `false` when it does not end before the limit or the end of the text.
    fn skip_value(&mut self) -> Result<bool, ReadProblem> {
        match self.window.look(self.at)? {
            Some(b'"') => Ok(self.string()?.is_some()),
            Some(first @ (b'{' | b'[')) => {
                let mut balance = Balance::of(first);
                loop {
                    if let Some(length) = balance.feed(&self.window.available()[self.at..]) {
                        self.at += length;
                        return Ok(true);
                    }
                    self.at = self.window.available().len();
                    if self.at >= self.limit || !self.window.fill()? {
                        return Ok(false);
                    }
                }
            }
            Some(_) => {
                while let Some(byte) = self.look()? {
                    if matches!(byte, b',' | b'}' | b' ' | b'\t' | b'\r' | b'\n') {
                        return Ok(true);
                    }
                    self.at += 1;
                }
                Ok(false)
            }
            None => Ok(false),
        }
    }
}
