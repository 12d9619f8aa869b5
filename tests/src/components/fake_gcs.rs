//! fake-gcs-server: an emulator of Google Cloud Storage, in memory, from the cache.

use std::{io, process::Command, sync::OnceLock, time::Duration};

use tempfile::TempDir;

use super::{
    Unavailable, cache, http, ports,
    service::{Service, start_on_free_ports},
};

/// Owns a running emulator. Dropping it, or the end of the process, kills it.
#[derive(Debug)]
pub struct FakeGcs {
    // Before the folder, so that it is dead when the folder goes.
    _service: Service,
    _folder: TempDir,
    address: String,
}

impl FakeGcs {
    /// Returns the one emulator that all tests of this process share, started at first use.
    ///
    /// # Errors
    /// When the program is missing or does not start.
    pub fn shared() -> Result<&'static Self, Unavailable> {
        static SHARED: OnceLock<Result<FakeGcs, Unavailable>> = OnceLock::new();
        SHARED.get_or_init(|| start_on_free_ports(Self::try_start)).as_ref().map_err(Clone::clone)
    }

    fn try_start() -> Result<Self, Unavailable> {
        let program = cache::fake_gcs_server()?;
        let because = |error: io::Error| Unavailable::because("fake-gcs-server", &error);
        let folder = tempfile::Builder::new().prefix("geoclaim-fake-gcs-").tempdir().map_err(because)?;
        let port = ports::free(1).map_err(because)?[0];
        let address = format!("127.0.0.1:{port}");
        let mut command = Command::new(program);
        command.args(["-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", &port.to_string()]);
        command.args(["-public-host", &address, "-external-url", &format!("http://{address}"), "-log-level", "warn"]);
        command.current_dir(folder.path());
        let mut service = Service::new("fake-gcs-server", command, folder.path().join("fake-gcs.log"), Vec::new());
        service.start(|| http::send("GET", &address, "/storage/v1/b", &[], b"", Duration::from_secs(5)).is_ok())?;
        Ok(Self { _service: service, _folder: folder, address })
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
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
        let status =
            http::send("POST", &self.address, "/storage/v1/b?project=tests", &headers, body.as_bytes(), Duration::from_secs(10))?;
        if status == 200 { Ok(()) } else { Err(io::Error::other(format!("cannot create bucket {name}: HTTP {status}"))) }
    }
}
