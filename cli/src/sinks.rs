//! `--sink`.

use std::{str::FromStr, sync::Arc};

use geoclaim_consumer::sink::{OnLeft, Sink, gpkg::GeoPackageSink, postgis::PostgisSink, stdout::LineSink};

use crate::failure::Failure;

/// Where effects go.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum SinkTarget {
    GeoPackage(String),
    /// May hold a password, so it is never printed.
    Postgis(String),
    StandardOutput,
}

impl FromStr for SinkTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("gpkg", file)) if !file.is_empty() => Ok(Self::GeoPackage(file.strip_prefix("//").unwrap_or(file).to_owned())),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => Ok(Self::Postgis(text.to_owned())),
            Some(("stdout", "")) => Ok(Self::StandardOutput),
            _ if text == "stdout" || text == "-" => Ok(Self::StandardOutput),
            _ if text.ends_with(".gpkg") && !text.contains("://") => Ok(Self::GeoPackage(text.to_owned())),
            _ => Err("expected gpkg:FILE (a GeoPackage), postgres://USER@HOST/DATABASE (PostGIS), or stdout: (one GeoJSON feature a line)".to_owned()),
        }
    }
}

impl std::fmt::Debug for SinkTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::GeoPackage(_) => "GeoPackage",
            Self::Postgis(_) => "Postgis",
            Self::StandardOutput => "StandardOutput",
        })
    }
}

impl SinkTarget {
    /// Opens the sink; its ledger is kept by `consumer`.
    pub(crate) async fn open(&self, consumer: &str, on_left: OnLeft) -> Result<Arc<dyn Sink>, Failure> {
        Ok(match self {
            Self::GeoPackage(file) => Arc::new(GeoPackageSink::open(file, consumer)?.on_left(on_left)),
            Self::Postgis(url) => Arc::new(PostgisSink::open(url, consumer).await?.on_left(on_left)),
            // A line that says so is all that can be done there.
            Self::StandardOutput => Arc::new(LineSink::new(std::io::stdout())),
        })
    }
}
