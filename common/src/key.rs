//! The one module that builds keys: `geom/{first two hex}/{digest}.json`, and `….json.zst` where the body is compressed.
//!
//! A key encodes nothing mutable. It is always *rebuilt* from a digest; a key that somebody sent is only ever
//! compared with the rebuilt one, so no text of an envelope reaches a store.

use object_store::path::Path;

use crate::{Digest, Encoding};

/// The folder of all bodies.
pub const FOLDER: &str = "geom";

/// Returns the key of the body with this digest, relative to the store's configured prefix.
///
/// ```
/// use geoclaim_common::{Digest, key};
/// assert!(key::of(&Digest::of(b"")).as_ref().starts_with("geom/e3/e3b0c442"));
/// ```
pub fn of(digest: &Digest) -> Path {
    Path::from_iter([FOLDER, &digest.shard(), &format!("{digest}.json")])
}

/// Returns the key of an encoded form of the body with this digest.
pub fn encoded(digest: &Digest, encoding: Encoding) -> Path {
    match encoding {
        Encoding::Identity => of(digest),
        Encoding::Zstd => Path::from_iter([FOLDER, &digest.shard(), &format!("{digest}.json.zst")]),
    }
}

/// Returns the digest that `key` is the key of, and the form, or `None` when it is not exactly of the body grammar.
pub fn parse(key: &str) -> Option<(Digest, Encoding)> {
    let name = key.rsplit('/').next()?;
    let (name, encoding) = match name.strip_suffix(".zst") {
        Some(name) => (name, Encoding::Zstd),
        None => (name, Encoding::Identity),
    };
    let digest: Digest = name.strip_suffix(".json")?.parse().ok()?;
    (encoded(&digest, encoding).as_ref() == key).then_some((digest, encoding))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_key_of_a_digest_is_a_key() {
        let digest = Digest::of(b"body");
        let key = of(&digest).to_string();
        assert_eq!(parse(&key), Some((digest, Encoding::Identity)));
        assert_eq!(parse(&format!("{key}.zst")), Some((digest, Encoding::Zstd)));
        let shard = digest.shard();
        for hostile in [
            format!("/{key}"),
            format!("geom/00/{digest}.json"),
            format!("geom/{shard}/../{shard}/{digest}.json"),
            format!("geom/{shard}/{digest}.json.gz"),
            format!("geom/{shard}/{digest}.zst"),
            format!("geom/{shard}/{digest}.json.zst.zst"),
            format!("geom/{shard}/{}.json", digest.to_string().to_uppercase()),
            format!("other/{shard}/{digest}.json"),
            "file:///etc/passwd".into(),
            String::new(),
        ] {
            assert_eq!(parse(&hostile), None, "{hostile}");
        }
    }
}
