//! The flags of `geoclaim consume`.

use bytesize::ByteSize;
use clap::{Args, ValueEnum};
use geoclaim_common::{fault::RetrySettings, limits};

use super::replay::ReplayArgs;
use crate::{
    args::{KafkaArgs, ReportArgs, SpoolArgs, StoreArgs},
    sinks::{ObjectArgs, SinkTarget, TopicArgs},
};

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum LeftArg {
    /// It is removed
    Remove,
    /// It stays, with the time at which it left
    Mark,
}

#[derive(Debug, Args)]
pub(crate) struct ConsumeArgs {
    /// Areas of interest: a GeoJSON file of features with ids, which is read again when it changes, or one box as
    /// WEST,SOUTH,EAST,NORTH
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    pub(super) aoi: String,
    /// The consumer group
    #[arg(long, env = "GEOCLAIM_GROUP", default_value = "geoclaim")]
    pub(super) group: String,
    /// The name that the ledger is kept under [default: the group]
    #[arg(long, value_name = "NAME")]
    pub(super) consumer: Option<String>,
    /// Where effects go: gpkg:FILE, postgres://USER@HOST/DATABASE (its password by PGPASSWORD), kafka:TOPIC,
    /// file:///DIRECTORY, s3://BUCKET/PREFIX, gs:// or az:// (clipped copies, one object each), or stdout:
    #[arg(long, env = "GEOCLAIM_SINK", hide_env_values = true, default_value = "gpkg:geoclaim.gpkg")]
    pub(super) sink: SinkTarget,
    /// Where envelopes go that cannot be applied [default: TOPIC.dead-letters]
    #[arg(long, env = "GEOCLAIM_DEAD_LETTER_TOPIC", value_name = "TOPIC")]
    pub(super) dead_letter_topic: Option<String>,
    /// Stop at the end of the topic instead of waiting for more
    #[arg(short = 'e', long, visible_alias = "exit-at-end")]
    pub(super) until_end: bool,
    /// What becomes of a feature in the sink that leaves the areas
    #[arg(long, value_name = "HOW", default_value = "remove")]
    pub(super) on_left: LeftArg,
    /// How long the ledger keeps an event; longer than the topic and its dead letters keep a record [default: for ever]
    #[arg(long, value_name = "DAYS", env = "GEOCLAIM_LEDGER_RETENTION")]
    pub(super) ledger_retention: Option<u64>,
    /// How many bytes of bodies may be held at once
    #[arg(long, value_name = "BYTES", env = "GEOCLAIM_MEMORY_BUDGET", default_value_t = ByteSize(limits::CONSUME_IN_FLIGHT_BYTES))]
    pub(super) memory_budget: ByteSize,
    /// The largest body that is fetched
    #[arg(long, value_name = "BYTES", default_value_t = ByteSize(limits::BODY_BYTES))]
    pub(super) max_body: ByteSize,
    #[command(flatten)]
    pub(super) spool: SpoolArgs,
    /// How many records of a partition are worked on at once
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(super) concurrency: usize,
    /// How long a missing body of a new envelope is waited for
    #[arg(long, value_name = "SECONDS", default_value_t = RetrySettings::default().fresh_window_seconds)]
    pub(super) fresh_window: u64,
    #[command(flatten)]
    pub(super) replay: ReplayArgs,
    #[command(flatten)]
    pub(super) kafka: KafkaArgs,
    #[command(flatten)]
    pub(super) store: StoreArgs,
    #[command(flatten)]
    pub(super) report: ReportArgs,
    #[command(flatten)]
    pub(super) objects: ObjectArgs,
    #[command(flatten)]
    pub(super) output: TopicArgs,
}
