//! Text that is put together from pieces, of which the large ones are parts of the body and are not copied.

use bytes::Bytes;
use geoclaim_common::Digest;
use geoclaim_common::digest::Digester;
use object_store::PutPayload;

/// Shorter pieces are copied together.
const WORTH_SHARING: usize = 16 << 10;

/// Pieces of text that make one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pieces {
    done: Vec<Bytes>,
    last: Vec<u8>,
}

impl Pieces {
    /// Adds a text of its own.
    pub(super) fn push(&mut self, text: &str) {
        self.last.extend_from_slice(text.as_bytes());
    }

    /// Adds a part of `whole`.
    pub(super) fn push_part(&mut self, whole: &Bytes, part: &str) {
        if part.len() < WORTH_SHARING {
            return self.push(part);
        }
        self.end_last();
        self.done.push(whole.slice_ref(part.as_bytes()));
    }

    pub(super) fn append(&mut self, other: Self) {
        if !other.done.is_empty() {
            self.end_last();
            self.done.extend(other.done);
        }
        self.last.extend(other.last);
    }

    /// Takes the last byte off, with white space after it, if it is this one.
    pub(super) fn strip(&mut self, byte: u8) {
        if self.last.is_empty()
            && let Some(piece) = self.done.pop()
        {
            let kept = piece.trim_ascii_end();
            let kept = kept.strip_suffix(&[byte]).unwrap_or(kept);
            return self.done.push(piece.slice(..kept.len()));
        }
        let kept = self.last.trim_ascii_end();
        let length = kept.strip_suffix(&[byte]).unwrap_or(kept).len();
        self.last.truncate(length);
    }

    pub(super) fn digest(&self) -> Digest {
        let mut digester = Digester::default();
        self.iter().for_each(|piece| digester.update(piece));
        digester.finish()
    }

    pub(super) fn len(&self) -> usize {
        self.iter().map(<[u8]>::len).sum()
    }

    /// Returns the pieces one after the other.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.done.iter().map(|piece| &piece[..]).chain([&self.last[..]])
    }

    /// Returns what a store is given.
    pub(super) fn payload(&self) -> PutPayload {
        self.done.iter().cloned().chain([Bytes::copy_from_slice(&self.last)]).collect()
    }

    fn end_last(&mut self) {
        if !self.last.is_empty() {
            self.done.push(std::mem::take(&mut self.last).into());
        }
    }
}

impl From<String> for Pieces {
    fn from(text: String) -> Self {
        Self { done: Vec::new(), last: text.into_bytes() }
    }
}
