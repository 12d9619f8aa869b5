//! A body and its claim check. Holding a [`Body`] is the proof that its bytes have its digest.

use std::io;

use bytes::Bytes;
use object_store::path::Path;

use crate::{Digest, Encoding, Fault, FaultKind, Spool, digest::Digester, encoding, key, limits};

/// Digest and length of a stored body; the key is derived from the digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClaimCheck {
    /// The SHA-256 of the body.
    pub digest: Digest,
    /// The length of the body in bytes.
    pub length: u64,
    /// What is stored, where that is not the body as it is.
    pub encoded: Option<Encoded>,
}

/// The encoded form of a body: what is stored under its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Encoded {
    /// How it is encoded.
    pub encoding: Encoding,
    /// The SHA-256 of what is stored.
    pub digest: Digest,
    /// The length of what is stored in bytes.
    pub length: u64,
}

impl ClaimCheck {
    /// Makes the claim check of a body that is stored as it is.
    pub const fn new(digest: Digest, length: u64) -> Self {
        Self { digest, length, encoded: None }
    }

    /// Returns the key under which the body is stored, relative to the store's prefix.
    pub fn key(&self) -> Path {
        key::encoded(&self.digest, self.encoding())
    }

    /// Returns the form in which it is stored.
    pub fn encoding(&self) -> Encoding {
        self.encoded.map_or(Encoding::Identity, |encoded| encoded.encoding)
    }

    /// Returns how many bytes are stored.
    pub fn stored_length(&self) -> u64 {
        self.encoded.map_or(self.length, |encoded| encoded.length)
    }
}

/// The bytes of one GeoJSON object together with their claim check, and with the form that is stored if that is another.
///
/// There are two ways to get one: [`Body::seal`] computes the digest, [`Body::verify`] checks it.
///
/// ```
/// use geoclaim_common::{Body, FaultKind};
/// let body = Body::seal(r#"{"type":"Point","coordinates":[8.5,47.4]}"#.into());
/// assert!(Body::verify(body.bytes().clone(), body.claim()).is_ok());
/// let cut = body.bytes().slice(..20);
/// assert_eq!(Body::verify(cut, body.claim()).unwrap_err().kind, FaultKind::Truncated);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    bytes: Bytes,
    claim: ClaimCheck,
    /// What is stored, where the claim check says that it is an encoded form.
    encoded: Option<Bytes>,
}

impl Body {
    /// Computes the digest of `bytes`. Takes about a millisecond a megabyte: keep large bodies off async threads.
    pub fn seal(bytes: Bytes) -> Self {
        let claim = ClaimCheck::new(Digest::of(&bytes), bytes.len() as u64);
        Self { bytes, claim, encoded: None }
    }

    /// Seals `bytes` while `work` is done on them; a large body on a second thread, so that both take as long as the
    /// longer one.
    pub fn seal_beside<T>(bytes: Bytes, work: impl FnOnce(&[u8]) -> T) -> (Self, T) {
        if bytes.len() < limits::SPLIT_WORK_BYTES {
            let done = work(&bytes);
            return (Self::seal(bytes), done);
        }
        std::thread::scope(|scope| {
            let sealing = std::thread::Builder::new().name("digest".into()).spawn_scoped(scope, || Self::seal(bytes.clone()));
            let done = work(&bytes);
            let sealed = sealing.ok().and_then(|sealing| sealing.join().ok());
            (sealed.unwrap_or_else(|| Self::seal(bytes.clone())), done)
        })
    }

    /// Compresses what is stored of the body, if that makes it shorter. Takes a few milliseconds a megabyte.
    ///
    /// # Errors
    /// As [`encoding::compress`].
    pub fn compressed(self, level: i32, spool: &Spool) -> io::Result<Self> {
        let bytes = encoding::compress(&self.bytes, level, spool)?;
        if bytes.len() >= self.bytes.len() {
            return Ok(self);
        }
        let encoded = Encoded { encoding: Encoding::Zstd, digest: Digest::of(&bytes), length: bytes.len() as u64 };
        Ok(Self { claim: ClaimCheck { encoded: Some(encoded), ..self.claim }, encoded: Some(bytes), ..self })
    }

    /// Checks length first, then digest.
    ///
    /// # Errors
    /// [`FaultKind::Truncated`], [`FaultKind::Lengthened`] or [`FaultKind::Corrupt`], with expected and actual.
    pub fn verify(bytes: Bytes, claim: ClaimCheck) -> Result<Self, Fault> {
        let mut verifier = Verifier::new(claim);
        verifier.update(&bytes)?;
        verifier.finish(bytes)
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns what is stored: the bytes, or their encoded form.
    pub fn stored(&self) -> &Bytes {
        self.encoded.as_ref().unwrap_or(&self.bytes)
    }

    /// Returns the claim check.
    pub fn claim(&self) -> ClaimCheck {
        self.claim
    }
}

/// Verifies a body, decoded, while its bytes arrive, so that digesting overlaps with the transfer and a body that is too
/// long is refused at the first byte past its declared length.
#[derive(Debug)]
pub struct Verifier {
    claim: ClaimCheck,
    seen: u64,
    digester: Digester,
}

impl Verifier {
    /// Starts to verify against `claim`.
    pub fn new(claim: ClaimCheck) -> Self {
        Self { claim, seen: 0, digester: Digester::default() }
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// [`FaultKind::Lengthened`] when the pieces exceed the declared length.
    pub fn update(&mut self, piece: &[u8]) -> Result<(), Fault> {
        self.seen += piece.len() as u64;
        if self.seen > self.claim.length {
            return Err(Fault::new(
                FaultKind::Lengthened,
                format!("{} is longer than the {} bytes declared", self.claim.key(), self.claim.length),
            ));
        }
        self.digester.update(piece);
        Ok(())
    }

    /// Ends the verification; `bytes` are the pieces put together.
    ///
    /// # Errors
    /// [`FaultKind::Truncated`] when bytes are missing, [`FaultKind::Corrupt`] when the digest differs.
    pub fn finish(self, bytes: Bytes) -> Result<Body, Fault> {
        let claim = self.claim;
        if bytes.len() as u64 != self.seen {
            let detail = format!("{} bytes of {} were put together, {} have come", bytes.len(), claim.key(), self.seen);
            return Err(Fault::new(FaultKind::Truncated, detail));
        }
        // Whoever has verified it has not got what is stored, if that is something else.
        let plain = ClaimCheck { encoded: None, ..claim };
        self.check().map(|()| Body { bytes, claim: plain, encoded: None })
    }

    /// Ends the verification of bytes that nobody keeps.
    ///
    /// # Errors
    /// As [`Verifier::finish`].
    pub fn check(self) -> Result<(), Fault> {
        let ClaimCheck { digest, length, .. } = self.claim;
        if self.seen < length {
            let detail = format!("{} has {} bytes, {length} declared", self.claim.key(), self.seen);
            return Err(Fault::new(FaultKind::Truncated, detail));
        }
        let actual = self.digester.finish();
        if actual != digest {
            let detail = format!("body has digest {actual}, expected {digest}");
            return Err(Fault::new(FaultKind::Corrupt, detail));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(bytes: &'static [u8], claim: ClaimCheck) -> FaultKind {
        Body::verify(Bytes::from_static(bytes), claim).unwrap_err().kind
    }

    #[test]
    fn a_body_is_verified_by_length_first_and_then_by_digest() {
        let claim = Body::seal(Bytes::from_static(b"0123456789")).claim();
        assert!(Body::verify(Bytes::from_static(b"0123456789"), claim).is_ok());
        assert_eq!(kind(b"012345678", claim), FaultKind::Truncated);
        assert_eq!(kind(b"", claim), FaultKind::Truncated);
        assert_eq!(kind(b"0123456789\n", claim), FaultKind::Lengthened);
        assert_eq!(kind(b"0123456788", claim), FaultKind::Corrupt);
    }

    #[test]
    fn a_corrupt_body_names_the_expected_and_the_actual_digest() {
        let claim = Body::seal(Bytes::from_static(b"a")).claim();
        let fault = Body::verify(Bytes::from_static(b"b"), claim).unwrap_err();
        assert!(fault.detail.contains(&claim.digest.to_string()));
        assert!(fault.detail.contains(&Digest::of(b"b").to_string()));
    }
}
