//! `--sink`.

use std::{str::FromStr, sync::Arc, time::Duration};

use clap::{Args, ValueEnum};
use geoclaim_common::store::{self, LocalDirectory};
use geoclaim_consumer::{
    aoi::LiveAreas,
    lease::StoreLeases,
    sink::{
        OnLeft, Sink,
        gpkg::GeoPackageSink,
        object::{Existing, ObjectSink, Parameters},
        postgis::PostgisSink,
        stdout::LineSink,
    },
};

use crate::failure::Failure;

const EXPECTED: &str = "expected gpkg:FILE (a GeoPackage), postgres://USER@HOST/DATABASE (PostGIS), file:///DIRECTORY, s3://BUCKET/PREFIX, \
     gs:// or az:// (a clipped copy of each body as an object), or stdout: (one GeoJSON feature a line)";

/// Where effects go.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum SinkTarget {
    GeoPackage(String),
    /// May hold a password, so it is never printed.
    Postgis(String),
    Objects(String),
    StandardOutput,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExistingArg {
    /// It stays, if it is whole
    Skip,
    /// It is exchanged, unless somebody else has exchanged it meanwhile
    Overwrite,
}

/// How clipped copies are kept in an object store.
#[derive(Debug, Args)]
#[command(next_help_heading = "Clipped copies (with --sink file://, s3://, gs:// or az://)")]
pub(crate) struct ObjectArgs {
    /// What becomes of a copy that is there and is another than would be made now [default: skip]
    #[arg(long, value_name = "HOW")]
    existing: Option<ExistingArg>,
    /// Makes new copies under other names beside what is there
    #[arg(long, value_name = "NAME")]
    generation: Option<String>,
    /// Simplify lines and rings: how far they may be moved
    #[arg(long, value_name = "DEGREES")]
    simplify: Option<f64>,
    /// Make each copy under a lease that lasts so long, so that of many consumers one makes it
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(3..))]
    lease: Option<u64>,
}

impl ObjectArgs {
    fn is_given(&self) -> bool {
        let Self { existing, generation, simplify, lease } = self;
        existing.is_some() || generation.is_some() || simplify.is_some() || lease.is_some()
    }
}

/// What a sink is opened with.
pub(crate) struct SinkSettings<'a> {
    /// The name that the ledger is kept under.
    pub(crate) consumer: &'a str,
    pub(crate) on_left: OnLeft,
    pub(crate) areas: Arc<LiveAreas>,
    /// The URL of the store of bodies.
    pub(crate) store: &'a str,
    pub(crate) objects: &'a ObjectArgs,
}

impl FromStr for SinkTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("gpkg", file)) if !file.is_empty() => Ok(Self::GeoPackage(file.strip_prefix("//").unwrap_or(file).to_owned())),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => Ok(Self::Postgis(text.to_owned())),
            Some(("file" | "s3" | "gs" | "az", rest)) if rest.starts_with("//") => Ok(Self::Objects(text.to_owned())),
            Some(("stdout", "")) => Ok(Self::StandardOutput),
            _ if text == "stdout" || text == "-" => Ok(Self::StandardOutput),
            _ if text.ends_with(".gpkg") && !text.contains("://") => Ok(Self::GeoPackage(text.to_owned())),
            _ => Err(EXPECTED.to_owned()),
        }
    }
}

impl std::fmt::Debug for SinkTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::GeoPackage(_) => "GeoPackage",
            Self::Postgis(_) => "Postgis",
            Self::Objects(_) => "Objects",
            Self::StandardOutput => "StandardOutput",
        })
    }
}

impl SinkTarget {
    /// Opens the sink.
    pub(crate) async fn open(&self, settings: SinkSettings<'_>) -> Result<Arc<dyn Sink>, Failure> {
        let SinkSettings { consumer, on_left, .. } = settings;
        if settings.objects.is_given() && !matches!(self, Self::Objects(_)) {
            return Err(Failure::misuse(
                "--existing, --generation, --simplify and --lease are for a sink of objects: --sink file://… or s3://…",
            ));
        }
        Ok(match self {
            Self::GeoPackage(file) => Arc::new(GeoPackageSink::open(file, consumer)?.on_left(on_left)),
            Self::Postgis(url) => Arc::new(PostgisSink::open(url, consumer).await?.on_left(on_left)),
            Self::Objects(url) => Arc::new(open_objects(url, settings).await?),
            // A line that says so is all that can be done there.
            Self::StandardOutput => Arc::new(LineSink::new(std::io::stdout())),
        })
    }
}

async fn open_objects(url: &str, settings: SinkSettings<'_>) -> Result<ObjectSink, Failure> {
    let ObjectArgs { existing, generation, simplify, lease } = settings.objects;
    let store = store::open(url, LocalDirectory::Create)?;
    let existing = match existing {
        Some(ExistingArg::Overwrite) => Existing::Overwrite,
        Some(ExistingArg::Skip) | None => Existing::Skip,
    };
    let parameters = Parameters { simplify_degrees: *simplify, generation: generation.clone() };
    let sink = ObjectSink::open(Arc::clone(&store), settings.store, settings.areas, (parameters, existing)).await?;
    Ok(match lease {
        Some(seconds) => sink.with_leases(Arc::new(StoreLeases::new(store, Duration::from_secs(*seconds)))),
        None => sink,
    })
}
