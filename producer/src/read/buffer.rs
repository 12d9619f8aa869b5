//! What has been read and not yet taken: in memory, or in a file where it is more than memory is to hold.

use std::{io, ops::Range};

use bytes::Bytes;
use geoclaim_common::spool::{Mapped, Spool, Spooled};

/// How many bytes are read at once.
const CHUNK: usize = 256 << 10;

/// How many bytes are read at once into a file, of which each piece is mapped anew.
const SPOOLED_CHUNK: usize = 2 << 20;

/// From this length on, a body takes over the memory that it lies in instead of being copied out of it.
const TAKE_OVER: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Buffer {
    spool: Spool,
    /// Memory, all of it initialised; what is in it lies in `filled`.
    memory: Vec<u8>,
    filled: Range<usize>,
    /// The file that holds it all, where one does, and from where on it has not been taken.
    file: Option<(Spooled, Mapped, usize)>,
}

impl Buffer {
    pub(super) fn new(spool: Spool) -> Self {
        Self { spool, memory: Vec::new(), filled: 0..0, file: None }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match &self.file {
            Some((_, mapped, start)) => &mapped.as_ref()[*start..],
            None => &self.memory[self.filled.clone()],
        }
    }

    /// Returns how many bytes of memory are in use.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.memory.capacity()
    }

    /// Reads on. Returns how many bytes came: none at the end of the source.
    pub(super) fn fill(&mut self, source: &mut impl io::Read) -> io::Result<usize> {
        if self.file.is_none() && self.spool.takes(self.filled.len() as u64) {
            let mut file = self.spool.begin()?;
            file.write(self.bytes())?;
            self.file = Some((file, Mapped::default(), 0));
            self.memory = Vec::new();
            self.filled = 0..0;
        }
        match &mut self.file {
            None => {
                self.make_room();
                let read = read_some(source, &mut self.memory[self.filled.end..])?;
                self.filled.end += read;
                Ok(read)
            }
            Some((file, mapped, _)) => {
                self.memory.resize(SPOOLED_CHUNK, 0);
                let read = read_some(source, &mut self.memory)?;
                file.write(&self.memory[..read])?;
                *mapped = file.map()?;
                Ok(read)
            }
        }
    }

    /// Makes room for a chunk at the end of the memory, by moving what is there to its beginning where that is worth it.
    fn make_room(&mut self) {
        if self.filled.start > 0 && self.filled.len() <= self.filled.start {
            self.memory.copy_within(self.filled.clone(), 0);
            self.filled = 0..self.filled.len();
        }
        if self.memory.len() - self.filled.end < CHUNK {
            self.memory.resize((self.filled.end + CHUNK).next_multiple_of(CHUNK), 0);
        }
    }

    /// Drops the first bytes.
    pub(super) fn drop_front(&mut self, count: usize) {
        match &mut self.file {
            None => self.filled.start += count,
            Some((_, mapped, start)) => {
                *start += count;
                if *start == mapped.as_ref().len() {
                    self.file = None;
                }
            }
        }
    }

    /// Takes the first bytes.
    pub(super) fn take_front(&mut self, count: usize) -> Bytes {
        if let Some((_, mapped, start)) = self.file.take() {
            let rest = &mapped.as_ref()[start + count..];
            self.memory = rest.to_vec();
            self.filled = 0..rest.len();
            return Bytes::from_owner(mapped).slice(start..start + count);
        }
        let Range { start, end } = self.filled;
        let taken = start..start + count;
        self.filled.start = taken.end;
        if count < TAKE_OVER {
            return Bytes::copy_from_slice(&self.memory[taken]);
        }
        let rest = self.memory[taken.end..end].to_vec();
        self.filled = 0..rest.len();
        let mut memory = std::mem::replace(&mut self.memory, rest);
        memory.truncate(taken.end);
        Bytes::from(memory).slice(taken)
    }
}

fn read_some(source: &mut impl io::Read, memory: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(memory) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
