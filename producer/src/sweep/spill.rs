//! Lists of bodies and references on disk, in 256 files by the first byte of the digest.
//!
//! A reference is kept as the eight bytes that follow it. Two digests that share nine bytes would keep each other's body: that
//! is on the safe side, and does not happen (2⁻⁷² for a pair).

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read as _, Seek as _, Write as _},
    path::{Path, PathBuf},
};

use geoclaim_common::{Digest, Encoding, Fault, Timestamp};

/// How many files, one for each first byte.
pub(super) const SHARDS: usize = 256;

const BUFFER_BYTES: usize = 8 << 10;

const REFERENCE_BYTES: usize = 8;

const BODY_BYTES: usize = 32 + 8 + 8 + 1;

/// A body as a listing has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) digest: Digest,
    pub(super) encoding: Encoding,
    pub(super) modified: Timestamp,
    pub(super) size: u64,
}

/// Files that are gone when they are closed.
#[derive(Debug)]
pub(super) struct Spill {
    folder: Option<PathBuf>,
    bodies: Vec<BufWriter<File>>,
    references: Vec<BufWriter<File>>,
}

impl Spill {
    /// Makes the files in a folder.
    pub(super) fn new(folder: Option<&Path>) -> Result<Self, Fault> {
        let files = || (0..SHARDS).map(|_| file(folder)).collect::<Result<_, _>>();
        Ok(Self { folder: folder.map(Path::to_owned), bodies: files()?, references: files()? })
    }

    pub(super) fn body(&mut self, body: &Body) -> Result<(), Fault> {
        self.bodies[shard(&body.digest)].write_all(&body.to_bytes()).map_err(|error| failed(&error))
    }

    pub(super) fn reference(&mut self, digest: &Digest) -> Result<(), Fault> {
        self.references[shard(digest)].write_all(&short(digest).to_le_bytes()).map_err(|error| failed(&error))
    }

    /// Makes an empty list beside these.
    pub(super) fn list(&self) -> Result<BodyList, Fault> {
        file(self.folder.as_deref()).map(BodyList)
    }

    /// Gives each body of a shard to `visit`, with whether anything refers to it.
    pub(super) fn look(&mut self, shard: usize, mut visit: impl FnMut(Body, bool)) -> Result<(), Fault> {
        let references = references(&mut self.references[shard]).map_err(|error| failed(&error))?;
        let is_referenced = |digest: &Digest| references.binary_search(&short(digest)).is_ok();
        each::<BODY_BYTES>(&mut self.bodies[shard], |bytes| {
            let body = Body::from_bytes(bytes);
            visit(body, is_referenced(&body.digest));
        })
        .map_err(|error| failed(&error))
    }
}

/// Bodies in a file that is gone when it is closed.
#[derive(Debug)]
pub(super) struct BodyList(BufWriter<File>);

impl BodyList {
    pub(super) fn push(&mut self, body: &Body) -> Result<(), Fault> {
        self.0.write_all(&body.to_bytes()).map_err(|error| failed(&error))
    }

    /// Returns the bodies one by one.
    pub(super) fn bodies(self) -> Result<impl Iterator<Item = Result<Body, Fault>>, Fault> {
        let mut file = self.0.into_inner().map_err(|error| failed(error.error()))?;
        let count = file.stream_position().map_err(|error| failed(&error))? / BODY_BYTES as u64;
        file.rewind().map_err(|error| failed(&error))?;
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
        Ok((0..count).map(move |_| {
            let mut bytes = [0; BODY_BYTES];
            reader.read_exact(&mut bytes).map_err(|error| failed(&error))?;
            Ok(Body::from_bytes(&bytes))
        }))
    }
}

impl Body {
    fn to_bytes(self) -> [u8; BODY_BYTES] {
        let mut bytes = [0; BODY_BYTES];
        bytes[..32].copy_from_slice(self.digest.as_bytes());
        bytes[32..40].copy_from_slice(&self.modified.as_millis().to_le_bytes());
        bytes[40..48].copy_from_slice(&self.size.to_le_bytes());
        bytes[48] = u8::from(self.encoding == Encoding::Zstd);
        bytes
    }

    fn from_bytes(bytes: &[u8; BODY_BYTES]) -> Self {
        let (mut digest, mut modified, mut size) = ([0; 32], [0; 8], [0; 8]);
        digest.copy_from_slice(&bytes[..32]);
        modified.copy_from_slice(&bytes[32..40]);
        size.copy_from_slice(&bytes[40..48]);
        let encoding = if bytes[48] == 1 { Encoding::Zstd } else { Encoding::Identity };
        let modified = Timestamp::from_millis(i64::from_le_bytes(modified));
        Self { digest: Digest::from_bytes(digest), encoding, modified, size: u64::from_le_bytes(size) }
    }
}

fn file(folder: Option<&Path>) -> Result<BufWriter<File>, Fault> {
    let file = match folder {
        Some(folder) => tempfile::tempfile_in(folder),
        None => tempfile::tempfile(),
    };
    file.map(|file| BufWriter::with_capacity(BUFFER_BYTES, file)).map_err(|error| failed(&error))
}

fn shard(digest: &Digest) -> usize {
    digest.as_bytes()[0].into()
}

fn short(digest: &Digest) -> u64 {
    digest.as_bytes()[1..=REFERENCE_BYTES].iter().fold(0, |short, byte| short << 8 | u64::from(*byte))
}

/// Returns the references of a shard in order, each once.
fn references(file: &mut BufWriter<File>) -> io::Result<Vec<u64>> {
    let mut references = Vec::new();
    each::<REFERENCE_BYTES>(file, |bytes| references.push(u64::from_le_bytes(*bytes)))?;
    references.sort_unstable();
    references.dedup();
    Ok(references)
}

fn each<const N: usize>(file: &mut BufWriter<File>, mut visit: impl FnMut(&[u8; N])) -> io::Result<()> {
    file.flush()?;
    let file = file.get_mut();
    file.rewind()?;
    let count = file.metadata()?.len() / N as u64;
    let mut reader = BufReader::with_capacity(BUFFER_BYTES * 8, file);
    let mut bytes = [0; N];
    for _ in 0..count {
        reader.read_exact(&mut bytes)?;
        visit(&bytes);
    }
    Ok(())
}

fn failed(error: &io::Error) -> Fault {
    Fault::configuration(format!("lists cannot be spilled to disk: {error}; name a folder with room by --spill"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spilled_is_found_again_and_no_reference_is_missed() {
        let mut spill = Spill::new(None).unwrap();
        let digest = |n: u32| Digest::of(&n.to_le_bytes());
        let body = |n| Body {
            digest: digest(n),
            encoding: Encoding::default(),
            modified: Timestamp::from_millis(-i64::from(n)),
            size: n.into(),
        };
        for n in 0..5_000 {
            spill.body(&body(n)).unwrap();
            for _ in 0..n % 3 {
                spill.reference(&digest(n)).unwrap();
            }
        }
        let mut seen = Vec::new();
        for shard in 0..SHARDS {
            spill.look(shard, |body, is_referenced| seen.push((body, is_referenced))).unwrap();
        }
        seen.sort_by_key(|(body, _)| body.size);
        let wanted: Vec<_> = (0..5_000).map(|n| (body(n), n % 3 > 0)).collect();
        assert_eq!(seen, wanted);
    }
}
