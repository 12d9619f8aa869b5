//! HTTP for the stores, without redirects.

use std::time::Duration;

use object_store::client::{ClientOptions, HttpClient, HttpConnector};

use crate::Fault;

/// Connects without following redirects and without transparent decoding, so that the bytes are those stored.
#[derive(Debug)]
pub(super) struct NoRedirects;

impl HttpConnector for NoRedirects {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allows_http =
            options.get_config_value(&object_store::ClientConfigKey::AllowHttp).is_some_and(|value| value == "true");
        let client =
            client(!allows_http).map_err(|fault| object_store::Error::Generic { store: "http", source: fault.into() })?;
        Ok(HttpClient::new(client))
    }
}

/// Makes a client without redirects.
pub(super) fn client(https_only: bool) -> Result<reqwest::Client, Fault> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .https_only(https_only)
        .connect_timeout(Duration::from_secs(5))
        .read_timeout(Duration::from_secs(30))
        .timeout(Duration::from_secs(600))
        .pool_idle_timeout(Duration::from_secs(60))
        .user_agent(concat!("geoclaim/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| Fault::configuration(format!("no HTTP client: {error}")))
}

/// Tells whether the endpoint in an environment variable is plain HTTP on this machine, where it needs no TLS.
pub(super) fn endpoint_is_loopback(variable: &str) -> bool {
    let endpoint = std::env::var(variable).or_else(|_| std::env::var(format!("{variable}_URL")));
    let Some(url) = endpoint.ok().and_then(|text| url::Url::parse(&text).ok()) else { return false };
    url.scheme() == "http" && matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}
