//! The digest of a body: SHA-256, written as 64 lowercase hexadecimal digits.

use std::{fmt, str::FromStr};

use sha2::{Digest as _, Sha256};

/// The SHA-256 of a body. It identifies bytes, never an event: two events may carry the same bytes.
///
/// ```
/// use geoclaim_common::Digest;
/// let digest = Digest::of(b"");
/// assert_eq!(digest.to_string(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
/// assert_eq!(digest.to_string().parse(), Ok(digest));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Computes the digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Makes a digest of its bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the first two hexadecimal digits, which name the folder of the body's key.
    pub fn shard(&self) -> String {
        format!("{:02x}", self.0[0])
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// The text is not 64 lowercase hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 64 lowercase hexadecimal digits")]
pub struct NotADigest;

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(NotADigest);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

fn nibble(digit: u8) -> Result<u8, NotADigest> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(NotADigest),
    }
}

/// Computes a digest from bytes that come in pieces.
#[derive(Clone, Debug, Default)]
pub struct Digester(Sha256);

impl Digester {
    /// Takes the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// Returns the digest of all pieces.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lowercase_hexadecimal_of_the_right_length_is_a_digest() {
        let good = Digest::of(b"geoclaim").to_string();
        assert!(good.parse::<Digest>().is_ok());
        assert_eq!(good.to_uppercase().parse::<Digest>(), Err(NotADigest));
        assert_eq!(good[1..].parse::<Digest>(), Err(NotADigest));
        assert_eq!(format!("{}é", &good[..62]).parse::<Digest>(), Err(NotADigest));
    }

    #[test]
    fn pieces_give_the_digest_of_the_whole() {
        let mut digester = Digester::default();
        digester.update(b"geo");
        digester.update(b"claim");
        assert_eq!(digester.finish(), Digest::of(b"geoclaim"));
    }
}
