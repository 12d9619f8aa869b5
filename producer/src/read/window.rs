//! A window over a stream of bytes: what has been read and not yet taken.

use std::io;

use bytes::Bytes;
use geoclaim_common::Spool;

use super::{Place, ReadProblem, balance::Balance, buffer::Buffer};

#[derive(Debug)]
pub(super) struct Window<R> {
    source: R,
    buffer: Buffer,
    ended: bool,
    most: usize,
    offset: u64,
    line: u64,
    column: u64,
}

impl<R: io::Read> Window<R> {
    pub(super) fn new(source: R, most: usize, spool: Spool) -> Self {
        Self { source, buffer: Buffer::new(spool), ended: false, most, offset: 0, line: 1, column: 1 }
    }

    /// Returns the place of the next byte.
    pub(super) fn place(&self) -> Place {
        Place { index: 0, offset: self.offset, line: self.line, column: self.column }
    }

    pub(super) fn problem(&self, problem: impl Into<String>) -> ReadProblem {
        ReadProblem { place: self.place(), problem: problem.into() }
    }

    /// Makes a problem whose place is `ahead` bytes on.
    pub(super) fn problem_at(&self, ahead: usize, problem: impl Into<String>) -> ReadProblem {
        let passed = &self.available()[..ahead.min(self.available().len())];
        ReadProblem { place: moved(self.place(), passed), problem: problem.into() }
    }

    pub(super) fn available(&self) -> &[u8] {
        self.buffer.bytes()
    }

    /// Returns the largest body that is read into memory.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Returns the byte `ahead` bytes on, or `None` past the end.
    pub(super) fn look(&mut self, ahead: usize) -> Result<Option<u8>, ReadProblem> {
        while self.available().len() <= ahead {
            if !self.fill()? {
                return Ok(None);
            }
        }
        Ok(self.available().get(ahead).copied())
    }

    /// Moves over `count` bytes that have been looked at.
    pub(super) fn advance(&mut self, count: usize) {
        self.pass(count);
        self.buffer.drop_front(count);
    }

    fn pass(&mut self, count: usize) {
        let place = moved(self.place(), &self.available()[..count]);
        (self.offset, self.line, self.column) = (place.offset, place.line, place.column);
    }

    /// Reads on. Returns `false` at the end of the source.
    pub(super) fn fill(&mut self) -> Result<bool, ReadProblem> {
        if self.ended {
            return Ok(false);
        }
        match self.buffer.fill(&mut self.source) {
            Ok(read) => {
                self.ended = read == 0;
                Ok(read > 0)
            }
            Err(error) => Err(self.problem(format!("cannot be read: {error}"))),
        }
    }

    /// Reads on until twice as much is available. Returns `false` when the source had nothing more.
    pub(super) fn double(&mut self) -> Result<bool, ReadProblem> {
        let before = self.available().len();
        while self.available().len() < 2 * before.max(1) {
            if !self.fill()? {
                break;
            }
        }
        Ok(self.available().len() > before)
    }

    /// Returns the length of a byte order mark here: 3 or 0.
    pub(super) fn byte_order_mark(&mut self) -> Result<usize, ReadProblem> {
        self.look(2)?;
        Ok(if self.available().starts_with(b"\xef\xbb\xbf") { 3 } else { 0 })
    }

    /// Takes `count` bytes that have been looked at.
    pub(super) fn take(&mut self, count: usize) -> Bytes {
        self.pass(count);
        self.buffer.take_front(count)
    }

    /// Returns how many bytes from here on the object takes that begins `ahead` bytes on.
    ///
    /// An object that is too large is moved over without being kept, and is a problem.
    pub(super) fn object(&mut self, ahead: usize) -> Result<usize, ReadProblem> {
        let mut balance = Balance::of(b'{');
        let mut seen = ahead;
        loop {
            if let Some(end) = balance.feed(&self.available()[seen..]) {
                let length = seen + end;
                if length > self.most {
                    let problem = self.too_large();
                    self.advance(length);
                    return Err(problem);
                }
                return Ok(length);
            }
            seen = self.available().len();
            if seen > self.most {
                let problem = self.too_large();
                self.move_over(balance)?;
                return Err(problem);
            }
            if !self.fill()? {
                return Err(self.problem("an object that does not end: the text has been cut"));
            }
        }
    }

    /// Moves over the rest of a value, keeping none of it. All that is available has been fed.
    fn move_over(&mut self, mut balance: Balance) -> Result<(), ReadProblem> {
        loop {
            self.advance(self.available().len());
            if !self.fill()? {
                return Err(self.problem("an object that does not end: the text has been cut"));
            }
            if let Some(end) = balance.feed(self.available()) {
                self.advance(end);
                return Ok(());
            }
        }
    }

    /// Takes all bytes up to and including `stop`, or to the end; the problem when there are too many, which are then
    /// moved over.
    pub(super) fn take_until(&mut self, stop: Option<u8>) -> Result<Bytes, ReadProblem> {
        let length = self.seek(stop)?;
        Ok(self.take(length))
    }

    /// Takes all bytes before `stop`, which stays, or to the end.
    pub(super) fn take_before(&mut self, stop: u8) -> Result<Bytes, ReadProblem> {
        let length = self.seek(Some(stop))?;
        let has_stop = self.available()[..length].last() == Some(&stop);
        Ok(self.take(length - usize::from(has_stop)))
    }

    fn seek(&mut self, stop: Option<u8>) -> Result<usize, ReadProblem> {
        let mut seen = 0;
        let mut too_large = None;
        loop {
            let found = stop.and_then(|stop| memchr::memchr(stop, &self.available()[seen..]));
            if let Some(at) = found {
                return match too_large {
                    None => Ok(seen + at + 1),
                    Some(problem) => {
                        self.advance(seen + at);
                        Err(problem)
                    }
                };
            }
            seen = self.available().len();
            if seen > self.most {
                too_large.get_or_insert_with(|| self.too_large());
                self.advance(seen);
                seen = 0;
            }
            if !self.fill()? {
                return too_large.map_or(Ok(seen), Err);
            }
        }
    }

    fn too_large(&self) -> ReadProblem {
        self.problem(format!("a body of more than {} bytes, which is the limit", self.most))
    }
}

fn moved(from: Place, passed: &[u8]) -> Place {
    let newlines = memchr::memchr_iter(b'\n', passed).count() as u64;
    let column = match memchr::memrchr(b'\n', passed) {
        Some(last) => (passed.len() - last) as u64,
        None => from.column + passed.len() as u64,
    };
    Place { index: from.index, offset: from.offset + passed.len() as u64, line: from.line + newlines, column }
}
