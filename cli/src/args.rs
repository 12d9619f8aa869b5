//! Flags that several commands share.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use geoclaim_common::{Fault, Spool, kafka::KafkaSettings};

use crate::commands::{
    audit::AuditArgs, consume::ConsumeArgs, demo::DemoArgs, extent::ExtentArgs, inspect::InspectArgs, janitor::JanitorArgs,
    plan::PlanArgs, publish::PublishArgs, redrive::RedriveArgs, sweep::SweepArgs, url::UrlArgs,
};

/// The claim check for oversized GeoJSON: large bodies go to object storage, small envelopes to Kafka, and each event
/// is applied once.
#[derive(Debug, Parser)]
#[command(name = "geoclaim", version, max_term_width = 100, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) log: LogArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Everything in one process: embedded broker, local directory, GeoPackage; real sample data
    Demo(DemoArgs),
    /// Read GeoJSON, store what is large, publish envelopes
    Publish(PublishArgs),
    /// Filter, resolve, verify, apply once
    Consume(ConsumeArgs),
    /// Print bbox, vertex count and size of each feature, one JSON line each
    Extent(ExtentArgs),
    /// Before going live: sizes, the inline limit they suggest, and what each area would fetch by each filter
    Plan(PlanArgs),
    /// Read envelopes as a person would
    Inspect(InspectArgs),
    /// Send dead letters again, after checking that their bodies exist; without --send, only look
    Redrive(RedriveArgs),
    /// Plan what nothing can refer to any more; with --delete, also delete what was planned before
    Sweep(SweepArgs),
    /// List what interrupted writes, checks and leases left in a store; with --delete, remove it
    Janitor(JanitorArgs),
    /// Do topic, dead letters, bucket, ledger and limits still agree, and are the oldest bodies there?
    Audit(AuditArgs),
    /// Print a URL by which anyone can fetch a body for a while
    Url(UrlArgs),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    #[default]
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// How log events are written to standard error
    #[arg(long, global = true, value_enum, default_value_t, env = "GEOCLAIM_LOG_FORMAT", help_heading = "Logging")]
    pub(crate) log_format: LogFormat,
    /// Log more: -v for progress, -vv for details (GEOCLAIM_LOG takes a filter)
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Logging")]
    verbose: u8,
}

impl LogArgs {
    pub(crate) fn level(&self) -> &'static str {
        match self.verbose {
            0 => "warn",
            1 => "geoclaim=info,info",
            _ => "debug",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Lines for people, on standard error
    Text,
    /// One JSON object, the last line of standard output
    Json,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ReportArgs {
    /// How the report at the end is given
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    report: ReportFormat,
}

impl ReportArgs {
    pub(crate) fn is_json(&self) -> bool {
        self.report == ReportFormat::Json
    }
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Kafka")]
pub(crate) struct KafkaArgs {
    /// Brokers, HOST:PORT[,HOST:PORT…]
    #[arg(long, env = "GEOCLAIM_BROKERS")]
    brokers: String,
    /// The topic of the envelopes
    #[arg(long, env = "GEOCLAIM_TOPIC")]
    pub(crate) topic: String,
    /// Any librdkafka property; the few that would break a promise are refused (in the variable: one a line)
    #[arg(short = 'X', value_name = "KEY=VALUE", value_parser = property, env = "GEOCLAIM_KAFKA_PROPERTIES", hide_env_values = true, value_delimiter = '\n')]
    properties: Vec<(String, String)>,
}

fn property(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((name.trim().to_owned(), value.to_owned()))
}

impl KafkaArgs {
    pub(crate) fn settings(&self) -> Result<KafkaSettings, Fault> {
        let settings = KafkaSettings { brokers: self.brokers.clone(), properties: self.properties.iter().cloned().collect() };
        settings.validate()?;
        Ok(settings)
    }
}

#[derive(Clone, Debug, Args)]
#[group(skip)]
pub(crate) struct SpoolArgs {
    /// A directory on disk for bodies that are larger than memory is to hold, while they are worked on [default: TMPDIR, or
    /// /var/tmp]
    #[arg(long, value_name = "DIR", env = "GEOCLAIM_SPOOL")]
    spool: Option<PathBuf>,
}

impl SpoolArgs {
    /// Returns where large bodies are kept. A directory that was named is tried.
    pub(crate) fn spool(&self) -> Result<Spool, Fault> {
        let Some(directory) = self.spool.clone() else { return Ok(Spool::default()) };
        let spool = Spool { directory, ..Spool::default() };
        spool.check().map(|()| spool)
    }
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Store")]
pub(crate) struct StoreArgs {
    /// Where large bodies are: file:///dir, s3://bucket/prefix, gs://…, az://…; credentials come from the environment
    #[arg(long, env = "GEOCLAIM_STORE", value_name = "URL")]
    pub(crate) store: String,
}
