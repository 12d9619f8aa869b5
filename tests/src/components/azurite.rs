//! Azurite: Microsoft's emulator of Azure Blob Storage, from the cache, run by Node.

use std::{io, process::Command, sync::OnceLock, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha2::{Digest as _, Sha256};

use super::{Unavailable, cache, http, service::Emulator};

/// The account that the emulator has, and its key, which its documentation gives to everybody.
pub const ACCOUNT: &str = "devstoreaccount1";
/// See [`ACCOUNT`].
pub const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

const VERSION: &str = "2021-12-02";

/// Owns a running emulator. Dropping it, or the end of the process, kills it.
#[derive(Debug)]
pub struct Azurite(Emulator);

impl Azurite {
    /// Returns the one emulator that all tests of this process share, started at first use.
    ///
    /// # Errors
    /// When the program is missing or does not start.
    pub fn shared() -> Result<&'static Self, Unavailable> {
        static SHARED: OnceLock<Result<Azurite, Unavailable>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref().map_err(Clone::clone)
    }

    fn start() -> Result<Self, Unavailable> {
        let program = cache::azurite()?;
        let command = |address: &str| {
            let (host, port) = address.split_once(':').unwrap_or_default();
            let mut command = Command::new("node");
            command.arg(&program).args(["--blobHost", host, "--blobPort", port, "--silent"]);
            command.args(["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]);
            command
        };
        let is_ready = |address: &str| http::put(address, "/", &[], b"", Duration::from_secs(5)).is_ok();
        Emulator::start("azurite", command, is_ready).map(Self)
    }

    /// Returns `http://127.0.0.1:PORT/ACCOUNT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}/{ACCOUNT}", self.0.address)
    }

    /// Sends one unsigned GET of a path with its query, and returns the HTTP status and what the reply carries.
    ///
    /// # Errors
    /// When the emulator does not answer.
    pub fn get(&self, path: &str) -> io::Result<(u16, String)> {
        http::exchange("GET", &self.0.address, path, &[], b"", Duration::from_secs(10))
    }

    /// Creates a container.
    ///
    /// # Errors
    /// When the emulator refuses.
    pub fn create_container(&self, name: &str) -> io::Result<()> {
        let date = Command::new("date").args(["-u", "+%a, %d %b %Y %H:%M:%S GMT"]).env("LC_ALL", "C").output()?;
        let date = String::from_utf8_lossy(&date.stdout).trim().to_owned();
        let resource = format!("/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container");
        let signed = format!("PUT{}x-ms-date:{date}\nx-ms-version:{VERSION}\n{resource}", "\n".repeat(12));
        let key = BASE64_STANDARD.decode(KEY).map_err(io::Error::other)?;
        let authorization = format!("SharedKey {ACCOUNT}:{}", BASE64_STANDARD.encode(hmac(&key, signed.as_bytes())));
        let headers = [("x-ms-date", &*date), ("x-ms-version", VERSION), ("Authorization", &authorization)];
        let path = format!("/{ACCOUNT}/{name}?restype=container");
        let status = http::put(&self.0.address, &path, &headers, b"", Duration::from_secs(10))?;
        if status == 201 { Ok(()) } else { Err(io::Error::other(format!("cannot create container {name}: HTTP {status}"))) }
    }
}

/// HMAC with SHA-256 (RFC 2104), which signs requests; of a key that is no longer than a block.
fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let padded = |with: u8| -> Vec<u8> { (0..64).map(|n| key.get(n).copied().unwrap_or(0) ^ with).collect() };
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::hmac;

    #[test]
    fn the_hmac_is_that_of_rfc_4231() {
        let hex: String = hmac(b"Jefe", b"what do ya want for nothing?").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
}
