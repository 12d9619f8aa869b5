//! Where the bytes of a body are put together, decoded and verified while they come.

use std::io::{self, Write};

use bytes::Bytes;

use crate::{
    Body, ClaimCheck, Encoding, Fault, FaultKind, Spool, body::Verifier, digest::Digester, encoding::Decoder, spool::Spooled,
};

/// What becomes of the bytes.
#[derive(Clone, Copy, Debug)]
pub enum Keeping<'a> {
    /// They are kept in memory, of which so much must be free.
    Memory,
    /// They are kept in a file.
    File(&'a Spool),
    /// Only whether they are right is wanted.
    Nothing,
}

/// A body that is on its way.
#[derive(Debug)]
pub(super) struct Room(Form);

#[derive(Debug)]
enum Form {
    Plain(Target),
    Zstd { decoder: Box<Decoder<Target>>, came: Digester, claim: ClaimCheck },
}

/// The body's own bytes.
#[derive(Debug)]
struct Target {
    verifier: Verifier,
    kept: Kept,
    /// Why it takes no more.
    refused: Option<Fault>,
}

#[derive(Debug)]
enum Kept {
    Memory(Vec<u8>),
    File(Spooled),
    Nothing,
}

impl Room {
    /// Makes room for a body whose length is within the limit.
    pub(super) fn new(claim: ClaimCheck, keeping: Keeping<'_>) -> Result<Self, Fault> {
        let kept = match keeping {
            // What a compressed body comes to is not believed before it has come.
            Keeping::Memory if claim.encoded.is_some() => Kept::Memory(Vec::new()),
            Keeping::Memory => Kept::Memory(Vec::with_capacity(usize::try_from(claim.length).unwrap_or(0))),
            Keeping::File(spool) => Kept::File(spool.begin().map_err(|error| unavailable(&error))?),
            Keeping::Nothing => Kept::Nothing,
        };
        let target = Target { verifier: Verifier::new(claim), kept, refused: None };
        Ok(Self(match claim.encoding() {
            Encoding::Identity => Form::Plain(target),
            Encoding::Zstd => {
                let decoder = Box::new(Decoder::new(target).map_err(|error| unavailable(&error))?);
                Form::Zstd { decoder, came: Digester::default(), claim }
            }
        }))
    }

    /// Takes the next piece of what is stored.
    ///
    /// # Errors
    /// [`FaultKind::Lengthened`], [`FaultKind::Corrupt`]; [`FaultKind::Unavailable`] when the disk is full.
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<(), Fault> {
        match &mut self.0 {
            Form::Plain(target) => target.take(piece),
            Form::Zstd { decoder, came, claim } => {
                came.update(piece);
                let taken = decoder.take(piece);
                taken.map_err(|error| decoder.out().refused.take().unwrap_or_else(|| undecodable(claim, &error)))
            }
        }
    }

    /// Returns the verified body; none when nothing was kept and it is right.
    ///
    /// # Errors
    /// [`FaultKind::Truncated`] or [`FaultKind::Corrupt`].
    pub(super) fn finish(self) -> Result<Option<Body>, Fault> {
        match self.0 {
            Form::Plain(target) => target.finish(),
            Form::Zstd { decoder, came, claim } => {
                let (mut target, ended) = decoder.end();
                ended.map_err(|error| target.refused.take().unwrap_or_else(|| undecodable(&claim, &error)))?;
                // What decodes to the body is right, whoever has compressed it and how.
                target.finish().map_err(|fault| match claim.encoded {
                    Some(encoded) if fault.kind == FaultKind::Corrupt && came.finish() == encoded.digest => {
                        let detail = format!("{}; what is stored is what was declared, and is no form of it", fault.detail);
                        Fault::new(FaultKind::Mismatch, detail)
                    }
                    _ => fault,
                })
            }
        }
    }
}

impl Target {
    fn take(&mut self, piece: &[u8]) -> Result<(), Fault> {
        self.verifier.update(piece)?;
        match &mut self.kept {
            Kept::Memory(bytes) => bytes.extend_from_slice(piece),
            Kept::File(file) => file.write(piece).map_err(|error| unavailable(&error))?,
            Kept::Nothing => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<Option<Body>, Fault> {
        let bytes = match self.kept {
            Kept::Memory(bytes) => Bytes::from(bytes),
            Kept::File(file) => file.finish().map_err(|error| unavailable(&error))?,
            Kept::Nothing => return self.verifier.check().map(|()| None),
        };
        self.verifier.finish(bytes).map(Some)
    }
}

/// What a decoder writes to.
impl Write for Target {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        match self.take(piece) {
            Ok(()) => Ok(piece.len()),
            Err(fault) => {
                self.refused = Some(fault);
                Err(io::ErrorKind::InvalidData.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn undecodable(claim: &ClaimCheck, error: &io::Error) -> Fault {
    Fault::new(FaultKind::Corrupt, format!("{} cannot be decoded: {error}", claim.key()))
}

fn unavailable(error: &io::Error) -> Fault {
    Fault::unavailable(error.to_string())
}
