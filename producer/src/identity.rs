//! Who an event is: the feature it changes, and the change itself.

use geoclaim_common::{
    digest::Digester,
    geojson::{Outline, member, scalar_text},
    limits,
};
use serde::{Deserialize, Serialize};

/// Where a feature's identity comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum IdRule {
    /// The member `id` of the feature.
    #[default]
    Member,
    /// A property by name.
    Property(String),
    /// The feature's place in its source, from 0.
    Index,
}

impl IdRule {
    /// Returns the `feature_id` of a body.
    ///
    /// # Errors
    /// The feature has none, or one that is too long; the text says which option would help.
    pub fn feature_id(&self, body: &[u8], outline: &Outline, index: u64) -> Result<String, String> {
        let found = match self {
            Self::Index => return Ok(index.to_string()),
            Self::Member => outline.id.clone(),
            Self::Property(name) => outline.properties.clone().and_then(|properties| member(body, properties, name)),
        };
        match found.and_then(|range| scalar_text(&body[range])) {
            Some(id) if id.is_empty() => Err("the feature's identity is an empty string".to_owned()),
            Some(id) if id.len() > limits::FEATURE_ID_BYTES => {
                Err(format!("the feature's identity has {} bytes, {} at most", id.len(), limits::FEATURE_ID_BYTES))
            }
            Some(id) => Ok(id),
            None => Err(match self {
                Self::Property(name) => format!("the feature has no string or number in the property {name:?}"),
                _ => "the feature has no id: use --id-property NAME, or --id index for its place in the source".to_owned(),
            }),
        }
    }
}

/// Derives the `event_id` from source, run, feature and place in the run: the same four give the same identity, so a
/// run that is repeated after a crash repeats its events. It is not the digest of the body, since two events may carry
/// the same bytes.
pub fn event_id(source: &str, run: &str, feature_id: &str, place: u64) -> String {
    let mut digester = Digester::default();
    for text in [source, run, feature_id] {
        digester.update(&(text.len() as u64).to_le_bytes());
        digester.update(text.as_bytes());
    }
    digester.update(&place.to_le_bytes());
    digester.finish().to_string()[..32].to_owned()
}

/// Mints the name of a new run.
pub fn new_run() -> String {
    uuid::Uuid::now_v7().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use geoclaim_common::extent::{MeasureOptions, measure};

    fn feature_id(rule: &IdRule, body: &str) -> Result<String, String> {
        let (_, outline) = measure(body.as_bytes(), &MeasureOptions::default()).unwrap();
        rule.feature_id(body.as_bytes(), &outline, 7)
    }

    #[test]
    fn an_identity_is_a_string_or_a_number_as_it_is_written() {
        let body = r#"{"type":"Feature","id":12.50,"properties":{"A3":"N\u00e9","n":null},"geometry":null}"#;
        assert_eq!(feature_id(&IdRule::Member, body).unwrap(), "12.50");
        assert_eq!(feature_id(&IdRule::Property("A3".into()), body).unwrap(), "Né");
        assert_eq!(feature_id(&IdRule::Index, body).unwrap(), "7");
        assert!(feature_id(&IdRule::Property("n".into()), body).unwrap_err().contains("\"n\""));
    }

    #[test]
    fn a_feature_without_identity_is_told_what_helps() {
        let error = feature_id(&IdRule::Member, r#"{"type":"Feature","id":null,"geometry":null}"#).unwrap_err();
        assert!(error.contains("--id-property") && error.contains("--id index"));
    }

    #[test]
    fn each_of_the_four_makes_another_event() {
        let ids = [
            event_id("a", "r", "f", 1),
            event_id("b", "r", "f", 1),
            event_id("a", "s", "f", 1),
            event_id("a", "r", "g", 1),
            event_id("a", "r", "f", 2),
            event_id("ar", "", "f", 1),
        ];
        let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
        assert_eq!(ids[0], event_id("a", "r", "f", 1));
    }
}
