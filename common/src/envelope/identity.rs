//! The reader of identity and version at their place in a canonical value, without a parse.

use std::sync::LazyLock;

use memchr::{memchr2, memmem::Finder};

use super::cover::PREFIX;

/// Who an envelope is about, as its value writes it. The texts are not known to be UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// The thing that changed.
    pub feature_id: &'a [u8],
    /// The change itself.
    pub event_id: &'a [u8],
    /// Orders two states of a feature.
    pub version: Option<i64>,
}

/// Finds the member wherever it stands.
static VERSION: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"version\""));

/// Longest text of a cover and a bbox before the identity.
const MOST_PLACE_BYTES: usize = 1_024;

/// Reads the identity of a value in the canonical order, `cover`, `bbox`, `feature_id`, `event_id`, `version`, without
/// allocating. `None` when it does not stand there or has escapes in it: the value takes the full parse.
pub fn peek_identity(value: &[u8]) -> Option<Identity<'_>> {
    let place = value.get(PREFIX.len()..value.len().min(MOST_PLACE_BYTES))?;
    // A cover is base64url, and a bbox numbers: the first closing bracket is the bbox's.
    let place_bytes = PREFIX.len() + memchr::memchr(b']', place)?;
    let rest = value[place_bytes..].strip_prefix(b"],\"feature_id\":\"")?;
    let (feature_id, rest) = plain_string(rest)?;
    let (event_id, rest) = plain_string(rest.strip_prefix(b",\"event_id\":\"")?)?;
    let version = match rest.strip_prefix(b",\"version\":") {
        Some(digits) => Some(integer(digits)?),
        // Another writer may have put it further down.
        None if VERSION.find(rest).is_some() => return None,
        None => None,
    };
    Some(Identity { feature_id, event_id, version })
}

/// Takes a string without escapes, whose opening quote is gone.
fn plain_string(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr2(b'"', b'\\', rest)?;
    let (text, rest) = rest.split_at(end);
    Some((text, rest.strip_prefix(b"\"")?))
}

fn integer(digits: &[u8]) -> Option<i64> {
    let end = digits.iter().take(21).position(|byte| *byte == b',')?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COVER: &str = r#"{"cover":"AaRwPQrXu2RAj8L1KFxPSsDNzMzMzARmwD0K16NwPT3A","bbox":[165.87,-52.62,-176.15,-29.24]"#;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    fn peeked(rest: &str) -> Option<(String, String, Option<i64>)> {
        let value = format!("{COVER}{rest}");
        peek_identity(value.as_bytes()).map(|found| (text(found.feature_id), text(found.event_id), found.version))
    }

    #[test]
    fn a_canonical_value_tells_who_it_is_about() {
        let of = |feature: &str, event: &str, version| Some((feature.to_owned(), event.to_owned(), version));
        assert_eq!(peeked(r#","feature_id":"é","event_id":"e-1","version":-7,"occurred_at":"#), of("é", "e-1", Some(-7)));
        assert_eq!(peeked(r#","feature_id":"f","event_id":"e","crs":"EPSG:4326""#), of("f", "e", None));
        assert_eq!(peeked(r#","feature_id":"f","event_id":"e","occurred_at":"2026-"#), of("f", "e", None));
    }

    #[test]
    fn what_is_not_certain_takes_the_full_parse() {
        for rest in [
            "",
            r#","event_id":"e","feature_id":"f","crs":"#,
            r#","feature_id":"a\"b","event_id":"e","crs":"#,
            r#","feature_id":"f","event_id":"e","crs":"EPSG:4326","version":3}"#,
            r#","feature_id":"f","event_id":"e","version":1.5,"crs":"#,
            r#","feature_id":"f","event_id":"e","version": 7,"crs":"#,
            r#","feature_id":"f","event_id":"e","version":99999999999999999999999,"#,
            r#","feature_id":"f"#,
        ] {
            assert_eq!(peeked(rest), None, "{rest}");
        }
        assert_eq!(peek_identity(b""), None);
        assert_eq!(peek_identity(br#"{"feature_id":"f","event_id":"e"}"#), None);
    }
}
