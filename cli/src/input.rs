//! What is read, and how: the flags that `publish`, `plan` and `extent` share.

use std::{io::IsTerminal, path::PathBuf};

use bytesize::ByteSize;
use clap::{Args, ValueEnum};
use geoclaim_common::{
    Fault,
    extent::{LongEdges, MeasureOptions},
    geojson::{CrsMember, ScanOptions, Validity},
    limits, reproject,
};
use geoclaim_producer::{
    IdRule, Source,
    read::{ReadOptions, Taken},
};

use crate::{args::SpoolArgs, failure::Failure};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum As {
    /// Each feature is an event
    Feature,
    /// The whole document is one event
    Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Id {
    /// The feature's id
    Member,
    /// The feature's place in its source, from 0
    Index,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Edges {
    /// The bbox takes the full circle and the envelope is marked
    Suspect,
    /// They cross the antimeridian
    Cross,
}

/// What is read, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputArgs {
    /// GeoJSON files, or - for standard input: collections, features, geometries, one a line, or RFC 8142 sequences
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// What becomes an event
    #[arg(long = "as", value_enum, default_value = "feature", value_name = "WHAT")]
    taken_as: As,
    /// Take a feature's identity from this property
    #[arg(long, value_name = "NAME", conflicts_with = "id")]
    id_property: Option<String>,
    /// Take a feature's identity from its member id, or from its place in the source
    #[arg(long, value_enum, default_value = "member", value_name = "RULE")]
    id: Id,
    /// Reject rings that are not closed or too short, and lines of one position
    #[arg(long)]
    strict: bool,
    /// Ignore a crs member that is not WGS 84, and take the coordinates for longitude and latitude
    #[arg(long)]
    ignore_crs: bool,
    /// What the coordinates are, where they are not WGS 84; bbox and cover are transformed, bodies stay as they are
    #[arg(long, value_name = "EPSG:n", value_parser = parse_crs, conflicts_with = "ignore_crs")]
    crs: Option<CrsMember>,
    /// What edges of more than 180 degrees of longitude mean
    #[arg(long, value_enum, default_value = "suspect", value_name = "HOW")]
    long_edges: Edges,
    /// The largest body
    #[arg(long, value_name = "BYTES", default_value_t = ByteSize(limits::BODY_BYTES))]
    pub(crate) max_body: ByteSize,
    #[command(flatten)]
    pub(crate) spool: SpoolArgs,
}

/// Reads a reference system, and sees whether it can be transformed.
fn parse_crs(text: &str) -> Result<CrsMember, String> {
    reproject::named(text).map(|epsg| epsg.map_or(CrsMember::Refuse, CrsMember::Is))
}

impl InputArgs {
    /// Returns how the input is read.
    pub(crate) fn read_options(&self) -> Result<ReadOptions, Fault> {
        Ok(ReadOptions {
            taken: self.taken(),
            most_bytes: self.max_body.as_u64(),
            crs: self.measure().scan.crs,
            spool: self.spool.spool()?,
        })
    }

    pub(crate) fn taken(&self) -> Taken {
        match self.taken_as {
            As::Feature => Taken::ByFeature,
            As::Body => Taken::Whole,
        }
    }

    pub(crate) fn id_rule(&self) -> IdRule {
        match (&self.id_property, self.id) {
            (Some(name), _) => IdRule::Property(name.clone()),
            (None, Id::Member) => IdRule::Member,
            (None, Id::Index) => IdRule::Index,
        }
    }

    pub(crate) fn measure(&self) -> MeasureOptions {
        MeasureOptions {
            scan: ScanOptions {
                validity: if self.strict { Validity::Strict } else { Validity::Lenient },
                crs: if self.ignore_crs { CrsMember::Ignore } else { self.crs.unwrap_or_default() },
            },
            long_edges: match self.long_edges {
                Edges::Suspect => LongEdges::Suspect,
                Edges::Cross => LongEdges::Cross,
            },
            cover_bytes: 0,
        }
    }
}

/// Returns the sources that were named; standard input when there are none and it is not a terminal.
pub(crate) fn sources(files: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    if files.is_empty() && std::io::stdin().is_terminal() {
        return Err(Failure::misuse("nothing to read: name a GeoJSON file, or - for standard input"));
    }
    if files.is_empty() {
        return Ok(vec![Source::stdin()]);
    }
    files
        .iter()
        .map(|file| match file.to_str() {
            Some("-") => Ok(Source::stdin()),
            _ if file.is_file() || file.exists() && !file.is_dir() => Ok(Source::file(file)),
            _ if file.is_dir() => Err(Failure::misuse(format!("{} is a directory: name its files", file.display()))),
            _ => Err(Failure::misuse(format!("{}: no such file", file.display()))),
        })
        .collect()
}

/// Returns how many bytes the files have; `None` when one of them is no plain file.
pub(crate) fn total_bytes(files: &[PathBuf]) -> Option<u64> {
    let sizes: Option<Vec<u64>> =
        files.iter().map(|file| std::fs::metadata(file).ok().filter(|meta| meta.is_file()).map(|meta| meta.len())).collect();
    sizes.filter(|sizes| !sizes.is_empty()).map(|sizes| sizes.iter().sum())
}
