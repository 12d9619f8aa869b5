//! The parts of S3's interface that are about the bucket and not about its objects. Requests are signed by `object_store`.

use std::time::Duration;

use object_store::{
    aws::AmazonS3,
    path::Path,
    signer::{Method, SignedUrlOptions, Signer},
};
use quick_xml::de::from_str;
use serde::{Deserialize, de::DeserializeOwned};

use super::{Lifecycle, Upload, fault_of, http};
use crate::{Fault, FaultKind, Timestamp};

/// How long a signed request is good for.
const SIGNED_FOR: Duration = Duration::from_secs(60);

/// Most that is read of an answer.
const ANSWER_BYTES: usize = 16 << 20;

/// A bucket of S3.
#[derive(Debug)]
pub(super) struct S3 {
    bucket: AmazonS3,
    prefix: String,
    client: reqwest::Client,
}

#[derive(Debug, Deserialize)]
struct LifecycleConfiguration {
    #[serde(rename = "Rule", default)]
    rules: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Rule {
    status: String,
    prefix: Option<String>,
    filter: Option<Filter>,
    expiration: Option<Expiration>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Filter {
    prefix: Option<String>,
    and: Option<And>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct And {
    prefix: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Expiration {
    days: Option<u64>,
    date: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListMultipartUploadsResult {
    #[serde(rename = "Upload", default)]
    uploads: Vec<ListedUpload>,
    is_truncated: Option<bool>,
    next_key_marker: Option<String>,
    next_upload_id_marker: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListedUpload {
    key: String,
    upload_id: String,
    initiated: Option<String>,
}

impl S3 {
    pub(super) fn new(bucket: AmazonS3, prefix: &str) -> Result<Self, Fault> {
        Ok(Self { bucket, prefix: prefix.to_owned(), client: http::client(false)? })
    }

    pub(super) fn signer(&self) -> &dyn Signer {
        &self.bucket
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Sends a signed request without a body.
    async fn ask(&self, method: Method, key: &str, query: &[(&str, &str)]) -> Result<(u16, String), Fault> {
        let unavailable =
            |error: reqwest::Error| Fault::unavailable(format!("the bucket does not answer: {}", error.without_url()));
        let options = SignedUrlOptions::default().with_query(query.iter().copied());
        let key = Path::parse(key).map_err(|error| Fault::configuration(error.to_string()))?;
        let url = self.bucket.signed_url_opts(method.clone(), &key, SIGNED_FOR, &options).await;
        let request = self.client.request(method, url.map_err(|error| fault_of(&error))?);
        let mut answer = request.send().await.map_err(unavailable)?;
        let mut text = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(unavailable)? {
            text.extend_from_slice(&piece);
            if text.len() > ANSWER_BYTES {
                return Err(Fault::new(FaultKind::TooLarge, "the bucket's answer is longer than any can be"));
            }
        }
        Ok((answer.status().as_u16(), String::from_utf8_lossy(&text).into_owned()))
    }

    /// Returns when bodies expire. A rule that holds for some of them counts as if it held for all.
    pub(super) async fn lifecycle(&self) -> Result<Lifecycle, Fault> {
        match self.ask(Method::GET, "", &[("lifecycle", "")]).await? {
            (200, text) => Ok(earliest(&read::<LifecycleConfiguration>(&text)?, &self.bodies())),
            (404, text) if text.contains("NoSuchLifecycleConfiguration") => Ok(Lifecycle::Never),
            (status, text) => Err(refused("tell its lifecycle", status, &text)),
        }
    }

    /// The prefix of all bodies, as the bucket has it.
    fn bodies(&self) -> String {
        let folder = crate::key::FOLDER;
        if self.prefix.is_empty() { format!("{folder}/") } else { format!("{}/{folder}/", self.prefix) }
    }

    pub(super) async fn uploads(&self) -> Result<Vec<Upload>, Fault> {
        let under = if self.prefix.is_empty() { String::new() } else { format!("{}/", self.prefix) };
        let (mut uploads, mut after) = (Vec::new(), None::<(String, String)>);
        loop {
            let mut query = vec![("uploads", ""), ("prefix", under.as_str())];
            if let Some((key, id)) = &after {
                query.extend([("key-marker", key.as_str()), ("upload-id-marker", id.as_str())]);
            }
            let (status, text) = self.ask(Method::GET, "", &query).await?;
            if status != 200 {
                return Err(refused("list its uploads", status, &text));
            }
            let page: ListMultipartUploadsResult = read(&text)?;
            uploads.extend(page.uploads.into_iter().map(|upload| Upload {
                begun: upload.initiated.as_deref().and_then(Timestamp::parse_rfc3339),
                key: upload.key,
                id: upload.upload_id,
            }));
            after = match (page.is_truncated, page.next_key_marker, page.next_upload_id_marker) {
                (Some(true), Some(key), Some(id)) => Some((key, id)),
                _ => return Ok(uploads),
            };
        }
    }

    pub(super) async fn abort(&self, upload: &Upload) -> Result<(), Fault> {
        match self.ask(Method::DELETE, &upload.key, &[("uploadId", upload.id.as_str())]).await? {
            (200 | 204 | 404, _) => Ok(()),
            (status, text) => Err(refused("give up an upload", status, &text)),
        }
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    from_str(text).map_err(|error| Fault::configuration(format!("the bucket's answer cannot be read: {error}")))
}

fn refused(what: &str, status: u16, text: &str) -> Fault {
    let detail = Fault::configuration(text).one_line();
    let kind = if status >= 500 || status == 429 { FaultKind::Unavailable } else { FaultKind::Configuration };
    Fault::new(kind, format!("the bucket does not {what}: {status} {detail}"))
}

/// Returns when the first rule that holds for anything under a prefix deletes it.
fn earliest(configuration: &LifecycleConfiguration, bodies: &str) -> Lifecycle {
    const DAY: u64 = 86_400;
    let expires = |rule: &Rule| {
        let filter = rule.filter.as_ref();
        let filtered =
            filter.and_then(|filter| filter.prefix.as_ref().or(filter.and.as_ref().and_then(|and| and.prefix.as_ref())));
        let prefix = filtered.or(rule.prefix.as_ref()).map_or("", String::as_str);
        let applies = rule.status == "Enabled" && (bodies.starts_with(prefix) || prefix.starts_with(bodies));
        let expiration = rule.expiration.as_ref().filter(|_| applies)?;
        // At a date it deletes what is there, however young.
        expiration.days.or(expiration.date.as_ref().map(|_| 0))
    };
    let days = configuration.rules.iter().filter_map(expires).min();
    days.map_or(Lifecycle::Never, |days| Lifecycle::After(Duration::from_secs(days.saturating_mul(DAY))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rules: &str) -> Lifecycle {
        let text =
            format!("<LifecycleConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{rules}</LifecycleConfiguration>");
        earliest(&read(&text).unwrap(), "tiles/geom/")
    }

    fn days(days: u64) -> Lifecycle {
        Lifecycle::After(Duration::from_secs(days * 86_400))
    }

    #[test]
    fn the_earliest_rule_that_holds_for_bodies_counts() {
        let rule = |id: &str, rest: &str| format!("<Rule><ID>{id}</ID><Status>Enabled</Status>{rest}</Rule>");
        let all = rule("all", "<Filter/><Expiration><Days>30</Days></Expiration>");
        let bodies = rule("b", "<Filter><Prefix>tiles/</Prefix></Filter><Expiration><Days>14</Days></Expiration>");
        let some = rule(
            "s",
            "<Filter><And><Prefix>tiles/geom/ab</Prefix><Tag><Key>k</Key><Value>v</Value></Tag></And></Filter><Expiration><Days>3</Days></Expiration>",
        );
        let others = rule("o", "<Prefix>logs/</Prefix><Expiration><Days>1</Days></Expiration>");
        let off = all.replace("Enabled", "Disabled").replace("30", "1");
        let uploads = rule(
            "u",
            "<Filter/><AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>",
        );
        assert_eq!(of(&format!("{all}{others}{off}{uploads}")), days(30));
        assert_eq!(of(&format!("{all}{bodies}{others}")), days(14));
        assert_eq!(of(&format!("{all}{bodies}{some}")), days(3));
        assert_eq!(of(&format!("{others}{uploads}")), Lifecycle::Never);
        assert_eq!(of(""), Lifecycle::Never);
    }
}
