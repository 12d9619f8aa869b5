//! Finds what `tests/setup` has installed.
//!
//! The layout, which the two share: `kafka-VERSION/*.jar`, `azurite-VERSION/`, `venv/` (a Python environment, with
//! SeaweedFS and fake-gcs-server), `data/NAME-VERSION/`. Nothing here installs, fetches or changes anything, and a folder exists
//! only when it is complete.

use std::env;
use std::path::{Path, PathBuf};

use super::Unavailable;

/// The one place that names the broker's version is the file that fetches it.
const POM: &str = include_str!("../../kafka/pom.xml");

/// Returns the cache: `$GEOCLAIM_CACHE`, else `$XDG_CACHE_HOME/geoclaim`, else
/// `$HOME/.cache/geoclaim`.
///
/// It need not exist. Without any of the three it is a folder beside the temporary files.
pub fn dir() -> PathBuf {
    let named = |variable| env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("GEOCLAIM_CACHE")
        .or_else(|| named("XDG_CACHE_HOME").map(|folder| folder.join("geoclaim")))
        .or_else(|| named("HOME").map(|folder| folder.join(".cache/geoclaim")))
        .unwrap_or_else(|| env::temp_dir().join("geoclaim-cache"))
}

/// Returns the version of the broker under test, such as `4.4.0`.
pub fn kafka_version() -> &'static str {
    let after = POM.split_once("<kafka.version>").map_or("", |(_, after)| after);
    after.split_once('<').map_or("", |(version, _)| version.trim())
}

/// Returns the folder with the broker's jars.
///
/// # Errors
///
/// When `tests/setup` has not put them there.
pub fn kafka_jars() -> Result<PathBuf, Unavailable> {
    let folder = dir().join(format!("kafka-{}", kafka_version()));
    installed(folder, "Kafka's jars")
}

/// Returns the `java` that runs the broker: of `$JAVA_HOME`, else of the search path.
///
/// # Errors
///
/// When there is none.
pub fn java() -> Result<PathBuf, Unavailable> {
    let home = env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin/java"));
    if let Some(java) = home.filter(|java| java.is_file()) {
        return Ok(java);
    }
    let search = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&search)
        .map(|folder| folder.join("java"))
        .find(|java| java.is_file())
        .ok_or_else(|| Unavailable("java not found; apt-get install openjdk-17-jre-headless".into()))
}

/// Returns SeaweedFS's one program, `weed`.
///
/// # Errors
///
/// When `tests/setup` has not put it there.
pub fn weed() -> Result<PathBuf, Unavailable> {
    installed(dir().join("venv/bin/weed"), "SeaweedFS")
}

/// Returns fake-gcs-server, the program in a Python package.
///
/// # Errors
///
/// When `tests/setup` has not put it there.
pub fn fake_gcs_server() -> Result<PathBuf, Unavailable> {
    installed(dir().join("venv/bin/fake-gcs-server"), "fake-gcs-server")
}

/// Returns the script of Azurite's blob service, which Node runs.
///
/// # Errors
///
/// When `tests/setup` has not put it there.
pub fn azurite() -> Result<PathBuf, Unavailable> {
    installed(dir().join("azurite-3.37.0/node_modules/.bin/azurite-blob"), "Azurite")
}

/// Returns a Python that has `confluent_kafka`, for the programs in `tests/interop`.
///
/// # Errors
///
/// When `tests/setup` has not put it there.
pub fn python() -> Result<PathBuf, Unavailable> {
    installed(dir().join("venv/.complete"), "the Python environment")?;
    Ok(dir().join("venv/bin/python"))
}

/// Gives the path on, when there is something at its end.
pub(super) fn installed(path: PathBuf, what: &str) -> Result<PathBuf, Unavailable> {
    if path.exists() {
        return Ok(path);
    }
    let path = path.display();
    Err(Unavailable(format!("{what}: {path} is missing; run tests/run, which installs it")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_the_pom() {
        let numbers = kafka_version().split('.').filter(|part| part.parse::<u32>().is_ok());
        assert_eq!(numbers.count(), 3, "{:?}", kafka_version());
    }

    #[test]
    fn what_is_missing_says_how_to_get_it() {
        let missing = installed("/nowhere".into(), "weed").map_err(|reason| reason.to_string());
        let text = "weed: /nowhere is missing; run tests/run, which installs it";
        assert_eq!(missing, Err(text.to_owned()));
    }
}
