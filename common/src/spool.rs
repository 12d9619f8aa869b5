//! Bodies that are larger than memory is to hold: in a file without a name, read through a map of it.
//!
//! The bytes of such a body are page cache, which the system takes back when it needs to, and everything that reads bytes
//! reads them as it does those in memory. The file has no name, so nobody else can change or cut it, and it is gone with the
//! body, even when the process dies.
#![allow(unsafe_code, reason = "mapping a file is unsafe where others can change it: see `map`")]

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use memmap2::{Mmap, MmapOptions};
use serde::{Deserialize, Serialize};

use crate::{Fault, limits};

/// Which bodies are spooled, where, and how many bytes of them at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spool {
    /// The directory; on a disk, for in a file system in memory nothing is won.
    pub directory: PathBuf,
    /// Bodies from this length on are spooled.
    pub from_bytes: u64,
    /// How many bytes may be spooled at once; a larger body is spooled alone.
    pub most_bytes: u64,
}

impl Default for Spool {
    fn default() -> Self {
        Self { directory: directory(), from_bytes: limits::SPOOL_FROM_BYTES, most_bytes: limits::SPOOL_BYTES }
    }
}

/// Returns `TMPDIR`, or `/var/tmp`, which is on a disk where `/tmp` may be in memory.
fn directory() -> PathBuf {
    let on_disk = Path::new("/var/tmp");
    if std::env::var_os("TMPDIR").is_none() && on_disk.is_dir() { on_disk.to_owned() } else { std::env::temp_dir() }
}

impl Spool {
    /// Tells whether a body of so many bytes is spooled.
    pub fn takes(&self, length: u64) -> bool {
        length >= self.from_bytes
    }

    /// Begins a file.
    ///
    /// # Errors
    /// It cannot be made; the text names the directory.
    pub fn begin(&self) -> io::Result<Spooled> {
        let file = tempfile::tempfile_in(&self.directory).map_err(|error| self.told(&error))?;
        Ok(Spooled { file, length: 0, directory: self.directory.clone() })
    }

    /// Checks that files can be made in the directory.
    ///
    /// # Errors
    /// [`crate::FaultKind::Configuration`]: they cannot.
    pub fn check(&self) -> Result<(), Fault> {
        self.begin().map(drop).map_err(|error| Fault::configuration(error.to_string()))
    }

    fn told(&self, error: &io::Error) -> io::Error {
        told(&self.directory, error)
    }
}

fn told(directory: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("large bodies cannot be kept in {}: {error}", directory.display()))
}

/// A file that grows.
#[derive(Debug)]
pub struct Spooled {
    file: File,
    length: usize,
    directory: PathBuf,
}

impl Spooled {
    /// Adds bytes at the end.
    ///
    /// # Errors
    /// They cannot be written, as when the disk is full; the text names the directory.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes).map_err(|error| told(&self.directory, &error))?;
        self.length += bytes.len();
        Ok(())
    }

    /// Returns what has been written so far.
    ///
    /// # Errors
    /// It cannot be mapped.
    pub fn map(&self) -> io::Result<Mapped> {
        if self.length == 0 {
            return Ok(Mapped(None));
        }
        // SAFETY: a map is sound while nobody changes or cuts the file beneath it. This file has no name and its handle is
        // not given away; here, bytes are only ever added after its end, and the map goes no further than the end was.
        let map = unsafe { MmapOptions::new().len(self.length).map(&self.file) };
        map.map(|map| Mapped(Some(map))).map_err(|error| told(&self.directory, &error))
    }

    /// Returns all that has been written, as bytes that are read from the file.
    ///
    /// # Errors
    /// It cannot be mapped.
    pub fn finish(self) -> io::Result<Bytes> {
        self.map().map(Bytes::from_owner)
    }
}

impl io::Write for Spooled {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Spooled::write(self, bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes of a file.
#[derive(Debug, Default)]
pub struct Mapped(Option<Mmap>);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spooled_is_read_as_it_was_written_and_outlives_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let spool = Spool { directory: directory.path().to_owned(), ..Spool::default() };
        let mut file = spool.begin().unwrap();
        assert_eq!(file.map().unwrap().as_ref(), b"");
        file.write(b"first").unwrap();
        let early = file.map().unwrap();
        file.write(&[7; 10_000]).unwrap();
        assert_eq!(early.as_ref(), b"first");
        let whole = file.finish().unwrap();
        assert_eq!((whole.len(), &whole[..6]), (10_005, &b"first\x07"[..]));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "the file has no name");
    }

    #[test]
    fn a_directory_that_cannot_be_used_is_named() {
        let spool = Spool { directory: "/no/such/directory".into(), ..Spool::default() };
        assert!(spool.check().unwrap_err().detail.contains("/no/such/directory"));
    }
}
