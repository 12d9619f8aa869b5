//! fake-gcs-server: an emulator of Google Cloud Storage, in memory, from the cache.

use std::{io, process::Command, sync::OnceLock, time::Duration};

use async_trait::async_trait;
use futures::TryStreamExt as _;
use http_body_util::BodyExt as _;
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

use super::{Unavailable, cache, http, service::Emulator};

/// Owns a running emulator. Dropping it, or the end of the process, kills it.
#[derive(Debug)]
pub struct FakeGcs(Emulator);

impl FakeGcs {
    /// Returns the one emulator that all tests of this process share, started at first use.
    ///
    /// # Errors
    /// When the program is missing or does not start.
    pub fn shared() -> Result<&'static Self, Unavailable> {
        static SHARED: OnceLock<Result<FakeGcs, Unavailable>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref().map_err(Clone::clone)
    }

    fn start() -> Result<Self, Unavailable> {
        let program = cache::fake_gcs_server()?;
        let command = |address: &str| {
            let (host, port) = address.split_once(':').unwrap_or_default();
            let mut command = Command::new(&program);
            command.args(["-backend", "memory", "-scheme", "http", "-host", host, "-port", port, "-log-level", "warn"]);
            command.args(["-public-host", address, "-external-url", &format!("http://{address}")]);
            command
        };
        let is_ready = |address: &str| http::send("GET", address, "/storage/v1/b", &[], b"", Duration::from_secs(5)).is_ok();
        Emulator::start("fake-gcs-server", command, is_ready).map(Self)
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.0.address)
    }

    /// Returns what a client reads where a service account's key is expected: where the emulator is, and no key.
    pub fn service_account(&self) -> String {
        let endpoint = self.endpoint();
        format!(r#"{{"gcs_base_url":"{endpoint}","disable_oauth":true,"client_email":"","private_key":"","private_key_id":""}}"#)
    }

    /// Creates a bucket.
    ///
    /// # Errors
    /// When the emulator refuses.
    pub fn create_bucket(&self, name: &str) -> io::Result<()> {
        let body = format!(r#"{{"name":"{name}"}}"#);
        let headers = [("Content-Type", "application/json")];
        let status = http::send(
            "POST",
            &self.0.address,
            "/storage/v1/b?project=tests",
            &headers,
            body.as_bytes(),
            Duration::from_secs(10),
        )?;
        if status == 200 { Ok(()) } else { Err(io::Error::other(format!("cannot create bucket {name}: HTTP {status}"))) }
    }
}

/// Connects to the emulator and puts objects by its JSON API, for it has no puts by the XML API, which clients of Google's
/// store use. Everything else goes as it is. What is tested is therefore not how a put looks on the wire.
#[derive(Debug)]
pub struct PutsInJson;

impl HttpConnector for PutsInJson {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        ReqwestConnector::default().connect(options).map(|client| HttpClient::new(Translated(client)))
    }
}

#[derive(Debug)]
struct Translated(HttpClient);

#[async_trait]
impl HttpService for Translated {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if request.method().as_str() != "PUT" {
            return self.0.execute(request).await;
        }
        let uri = request.uri().to_string();
        let (address, path) = uri.trim_start_matches("http://").split_once('/').unwrap_or_default();
        let (bucket, object) = path.split('?').next().and_then(|path| path.split_once('/')).unwrap_or_default();
        let condition = request.headers().get("x-goog-if-generation-match").and_then(|value| value.to_str().ok());
        let condition = condition.map(|generation| format!("&ifGenerationMatch={generation}")).unwrap_or_default();
        // Of its three kinds of puts, the one that heeds the condition.
        let target = format!("http://{address}/upload/storage/v1/b/{bucket}/o?uploadType=multipart&name={object}{condition}");
        let wrong = |error: &dyn std::fmt::Display| HttpError::new(HttpErrorKind::Request, io::Error::other(error.to_string()));
        let target = target.parse().map_err(|error| wrong(&format!("{error}")))?;
        let mut parts = request.into_parts();
        parts.0.method = "POST".parse().map_err(|error| wrong(&format!("{error}")))?;
        parts.0.uri = target;
        let kind = "multipart/related; boundary=geoclaim-tests".parse().map_err(|error| wrong(&format!("{error}")))?;
        parts.0.headers.insert("content-type", kind);
        parts.0.headers.remove("content-length");
        let content = parts.1.collect().await?.to_bytes();
        let part = |kind: &str, content: &[u8]| {
            [b"--geoclaim-tests\r\nContent-Type: ", kind.as_bytes(), b"\r\n\r\n", content, b"\r\n"].concat()
        };
        let body = [part("application/json", b"{}"), part("application/json", &content), b"--geoclaim-tests--\r\n".to_vec()];
        let request = HttpRequest::from_parts(parts.0, body.concat().into());
        let (mut parts, body) = self.0.execute(request).await?.into_parts();
        let pieces: Vec<_> = body.bytes_stream().try_collect().await?;
        let told: serde_json::Value = serde_json::from_slice(&pieces.concat()).unwrap_or_default();
        for (header, member) in [("etag", "etag"), ("x-goog-generation", "generation")] {
            if let Some(value) = told[member].as_str().and_then(|text| text.parse().ok()) {
                parts.headers.insert(header, value);
            }
        }
        Ok(HttpResponse::from_parts(parts, told.to_string().into()))
    }
}
