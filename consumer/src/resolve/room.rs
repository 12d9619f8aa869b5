//! Where the bytes of a body are put together, and verified while they come.

use bytes::Bytes;
use geoclaim_common::{Body, ClaimCheck, Fault, FaultKind, Spool, body::Verifier, spool::Spooled};

/// A body that is on its way.
#[derive(Debug)]
pub(super) struct Room {
    verifier: Verifier,
    kept: Kept,
}

#[derive(Debug)]
enum Kept {
    Memory(Vec<u8>),
    File(Spooled),
    Nothing,
}

/// What becomes of the bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keeping<'a> {
    /// They are kept in memory, which has been taken from the budget.
    Memory,
    /// They are kept in a file.
    File(&'a Spool),
    /// Only whether they are right is wanted.
    Nothing,
}

impl Room {
    /// Makes room for a body whose length is within the limit and agrees with the store's.
    pub(super) fn new(claim: ClaimCheck, keeping: Keeping<'_>) -> Result<Self, Fault> {
        let kept = match keeping {
            Keeping::Memory => Kept::Memory(Vec::with_capacity(usize::try_from(claim.length).unwrap_or(0))),
            Keeping::File(spool) => Kept::File(spool.begin().map_err(|error| unavailable(&error))?),
            Keeping::Nothing => Kept::Nothing,
        };
        Ok(Self { verifier: Verifier::new(claim), kept })
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// [`FaultKind::Lengthened`]; [`FaultKind::Unavailable`] when the disk is full.
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<(), Fault> {
        self.verifier.update(piece)?;
        match &mut self.kept {
            Kept::Memory(bytes) => bytes.extend_from_slice(piece),
            Kept::File(file) => file.write(piece).map_err(|error| unavailable(&error))?,
            Kept::Nothing => {}
        }
        Ok(())
    }

    /// Returns the verified body; one of which nothing was kept is empty when it is right.
    ///
    /// # Errors
    /// [`FaultKind::Truncated`] or [`FaultKind::Corrupt`].
    pub(super) fn finish(self) -> Result<Option<Body>, Fault> {
        let bytes = match self.kept {
            Kept::Memory(bytes) => Bytes::from(bytes),
            Kept::File(file) => file.finish().map_err(|error| unavailable(&error))?,
            Kept::Nothing => return self.verifier.check().map(|()| None),
        };
        self.verifier.finish(bytes).map(Some)
    }
}

fn unavailable(error: &std::io::Error) -> Fault {
    Fault::new(FaultKind::Unavailable, error.to_string())
}
