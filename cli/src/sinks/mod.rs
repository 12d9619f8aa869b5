//! `--sink`.

mod objects;
mod topic;

use std::{str::FromStr, sync::Arc};

use geoclaim_common::kafka::{Input, KafkaSettings};
use geoclaim_consumer::{
    aoi::LiveAreas,
    compare::{GeoPackageFeatures, HeldFeatures, PostgisFeatures},
    sink::{OnLeft, Sink, gpkg::GeoPackageSink, postgis::PostgisSink, stdout::LineSink},
};

pub(crate) use objects::ObjectArgs;
pub(crate) use topic::TopicArgs;

use crate::failure::Failure;

const EXPECTED: &str = "expected gpkg:FILE (a GeoPackage), postgres://USER@HOST/DATABASE (PostGIS), file:///DIRECTORY, s3://BUCKET/PREFIX, \
     gs:// or az:// (a clipped copy of each body as an object), kafka:TOPIC (another topic), or stdout: (one GeoJSON feature a line)";

/// Where effects go.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum SinkTarget {
    GeoPackage(String),
    /// May hold a password, so it is never printed.
    Postgis(String),
    Objects(String),
    Topic(String),
    StandardOutput,
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
    pub(crate) topic: &'a TopicArgs,
    pub(crate) kafka: &'a KafkaSettings,
    /// What one body may take of memory to be clipped.
    pub(crate) clip_bytes: u64,
    /// The group and the topic that are read.
    pub(crate) group: &'a str,
    pub(crate) input: Input,
}

impl FromStr for SinkTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("gpkg", file)) if !file.is_empty() => Ok(Self::GeoPackage(file.strip_prefix("//").unwrap_or(file).to_owned())),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => Ok(Self::Postgis(text.to_owned())),
            Some(("file" | "s3" | "gs" | "az", rest)) if rest.starts_with("//") => Ok(Self::Objects(text.to_owned())),
            Some(("kafka", topic)) if !topic.trim_start_matches('/').is_empty() => {
                Ok(Self::Topic(topic.trim_start_matches('/').to_owned()))
            }
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
            Self::Topic(_) => "Topic",
            Self::StandardOutput => "StandardOutput",
        })
    }
}

impl SinkTarget {
    /// Checks that the sink is none of what is read, or written for other purposes.
    pub(crate) fn check(&self, letters: &str, store: &str) -> Result<(), Failure> {
        let bare = |url: &str| url.trim_start_matches("file://").trim_end_matches('/').to_owned();
        match self {
            Self::Topic(topic) if topic == letters => {
                Err(Failure::misuse(format!("--sink kafka:{topic}: that is where dead letters go")))
            }
            Self::Objects(url) if bare(url) == bare(store) => Err(Failure::misuse(format!(
                "--sink {url}: that is the store of the bodies; give the copies a place of their own"
            ))),
            _ => Ok(()),
        }
    }

    /// Tells whether the sink keeps the state of features and a ledger beside it.
    pub(crate) fn keeps_state(&self) -> bool {
        matches!(self, Self::GeoPackage(_) | Self::Postgis(_))
    }

    /// Opens what a sink holds, to be read.
    pub(crate) async fn features(&self, consumer: &str) -> Result<Box<dyn HeldFeatures>, Failure> {
        match self {
            Self::GeoPackage(file) => Ok(Box::new(GeoPackageFeatures::open(file)?)),
            Self::Postgis(url) => Ok(Box::new(PostgisFeatures::open(url, consumer).await?)),
            _ => Err(Failure::misuse("only gpkg:FILE and postgres://… hold features that can be read")),
        }
    }

    /// Opens the sink.
    pub(crate) async fn open(&self, settings: SinkSettings<'_>) -> Result<Arc<dyn Sink>, Failure> {
        let SinkSettings { consumer, on_left, .. } = settings;
        if settings.objects.is_given() && !matches!(self, Self::Objects(_)) {
            return Err(Failure::misuse(
                "--existing, --generation, --simplify and --lease are for a sink of objects: --sink file://… or s3://…",
            ));
        }
        if settings.topic.is_given() && !matches!(self, Self::Topic(_)) {
            return Err(Failure::misuse("--emit and --transactional-id are for a sink that is a topic: --sink kafka:TOPIC"));
        }
        Ok(match self {
            Self::GeoPackage(file) => Arc::new(GeoPackageSink::open(file, consumer)?.on_left(on_left)),
            Self::Postgis(url) => Arc::new(PostgisSink::open(url, consumer).await?.on_left(on_left)),
            Self::Objects(url) => Arc::new(objects::open_objects(url, settings).await?),
            Self::Topic(topic) => Arc::new(topic::open_topic(topic, settings).await?),
            // A line that says so is all that can be done there.
            Self::StandardOutput => Arc::new(LineSink::new(std::io::stdout())),
        })
    }
}
