//! How the bytes of a body are stored: as they are, or compressed with Zstandard (RFC 8878).
//!
//! A body is what it is: its digest is that of its own bytes, whatever form they are stored in. Each form has a key of its own.
//! The bytes of a compressed form are not fixed by the body (another level or another library makes others), so whoever
//! fetches one goes by the body's length and digest, and decoding stops at the first byte past that length.

use std::io::{self, Write};

use bytes::Bytes;
use zstd::stream::write as stream;

use crate::{Spool, limits};

/// The form in which a body is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Encoding {
    /// As it is.
    #[default]
    Identity,
    /// Compressed with Zstandard.
    Zstd,
}

impl Encoding {
    /// Returns the name that an envelope has for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Zstd => "zstd",
        }
    }

    /// Returns the encoding of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Identity, Self::Zstd].into_iter().find(|encoding| encoding.name() == name)
    }
}

/// The levels of compression: 1 is the fastest, 19 makes the least.
pub const LEVELS: std::ops::RangeInclusive<i32> = 1..=19;

/// The usual level.
pub const LEVEL: i32 = 3;

/// The largest window that a decoder makes room for (2^23 bytes, 8 MiB): no level of [`LEVELS`] needs more.
const WINDOW_LOG: u32 = 23;

/// What a decoder takes of memory, at most.
pub const DECODER_BYTES: u64 = 1 << WINDOW_LOG;

/// Compresses bytes; into a file where they are so many that the spool takes them.
///
/// # Errors
/// The file cannot be written, or the level is none of [`LEVELS`].
pub fn compress(bytes: &[u8], level: i32, spool: &Spool) -> io::Result<Bytes> {
    if !LEVELS.contains(&level) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("level {level} of Zstandard is none of {LEVELS:?}")));
    }
    if spool.takes(bytes.len() as u64) {
        return compress_into(spool.begin()?, bytes, level)?.finish();
    }
    compress_into(Vec::new(), bytes, level).map(Bytes::from)
}

fn compress_into<W: Write>(out: W, bytes: &[u8], level: i32) -> io::Result<W> {
    let mut encoder = stream::Encoder::new(out, level)?;
    encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
    bytes.chunks(limits::PART_BYTES).try_for_each(|piece| encoder.write_all(piece))?;
    encoder.finish()
}

/// Decodes what is written to it, into something that takes the bytes of the body and refuses those that are too many.
pub struct Decoder<W: Write>(stream::Decoder<'static, W>);

impl<W: Write> Decoder<W> {
    /// Decodes Zstandard into `out`.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(out: W) -> io::Result<Self> {
        let mut decoder = stream::Decoder::new(out)?;
        decoder.window_log_max(WINDOW_LOG)?;
        Ok(Self(decoder))
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// It is no Zstandard, or what it is decoded into refuses it.
    pub fn take(&mut self, piece: &[u8]) -> io::Result<()> {
        self.0.write_all(piece)
    }

    /// Returns what it is decoded into, which has all that has been decoded after [`Decoder::end`].
    pub fn out(&mut self) -> &mut W {
        self.0.get_mut()
    }

    /// Ends the decoding, as [`Decoder::take`] would. Bytes that are missing at the end are missing in what was decoded.
    pub fn end(mut self) -> (W, io::Result<()>) {
        let flushed = self.0.flush();
        (self.0.into_inner(), flushed)
    }
}

impl<W: Write> std::fmt::Debug for Decoder<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decoder")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(encoded: &[u8]) -> io::Result<Vec<u8>> {
        let mut decoder = Decoder::new(Vec::new())?;
        encoded.chunks(7).try_for_each(|piece| decoder.take(piece))?;
        let (text, ended) = decoder.end();
        ended.map(|()| text)
    }

    #[test]
    fn what_is_compressed_comes_back_in_memory_and_through_a_file() {
        let text = br#"{"type":"Point","coordinates":[8.5,47.4]}"#.repeat(5_000);
        for from_bytes in [1, u64::MAX] {
            let spool = Spool { from_bytes, ..Spool::default() };
            let encoded = compress(&text, LEVEL, &spool).unwrap();
            assert!(encoded.len() < text.len() / 10);
            assert_eq!(decoded(&encoded).unwrap(), text);
            assert!(decoded(&encoded[..encoded.len() / 2]).map_or(true, |part| part.len() < text.len()));
            assert!(compress(&text, 20, &spool).is_err());
        }
        assert!(decoded(&text).is_err());
    }

    #[test]
    fn a_window_that_takes_too_much_memory_is_refused() {
        // A frame header with a window of 2^27 bytes (RFC 8878, 3.1.1.1.2), then a block of a run of one byte.
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 17 << 3, 0x43, 0x3f, 0x00, 0x78];
        assert!(decoded(&frame).is_err());
    }
}
