//! What a store's error means.

use object_store::Error;

use crate::{Fault, FaultKind};

/// Sorts a store's error by what is done next. The text holds no query string, for those can hold a signature.
pub fn fault_of(error: &Error) -> Fault {
    let text = redacted(&error.to_string());
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let kind = match error {
        Error::NotFound { .. } if says(&["NoSuchBucket", "ContainerNotFound", "bucket does not exist"]) => {
            FaultKind::Configuration
        }
        Error::NotFound { .. } => FaultKind::Missing,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } if says(&["ExpiredToken", "RequestTimeTooSkewed"]) => {
            FaultKind::Unavailable
        }
        Error::PermissionDenied { .. }
        | Error::Unauthenticated { .. }
        | Error::InvalidPath { .. }
        | Error::NotSupported { .. }
        | Error::NotImplemented { .. }
        | Error::UnknownConfigurationKey { .. } => FaultKind::Configuration,
        Error::Generic { .. } if says(&["NoSuchBucket", "AllowHttp", "URL scheme is not allowed"]) => FaultKind::Configuration,
        // `Error` may grow: what nobody knows may heal, and is never taken for a missing body.
        _ => FaultKind::Unavailable,
    };
    Fault::new(kind, text)
}

/// Cuts every query string out of a text.
fn redacted(text: &str) -> String {
    let mut pieces = text.split('?');
    let mut kept = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece
            .find(|character: char| character.is_whitespace() || matches!(character, '"' | '\'' | ')' | ','))
            .unwrap_or(piece.len());
        kept.push_str(if end > 0 { "?…" } else { "?" });
        kept.push_str(&piece[end..]);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn not_found(text: &'static str) -> Error {
        Error::NotFound { path: "geom/00".into(), source: text.into() }
    }

    #[test]
    fn a_missing_bucket_is_a_setting_and_a_missing_key_a_missing_body() {
        assert_eq!(fault_of(&not_found("<Code>NoSuchKey</Code>")).kind, FaultKind::Missing);
        assert_eq!(fault_of(&not_found("<Code>NoSuchBucket</Code>")).kind, FaultKind::Configuration);
    }

    #[test]
    fn a_signature_in_a_url_does_not_reach_a_log() {
        let text = "error sending request for url (http://h/k?X-Amz-Signature=abc&sig=def) at last";
        assert_eq!(redacted(text), "error sending request for url (http://h/k?…) at last");
    }
}
