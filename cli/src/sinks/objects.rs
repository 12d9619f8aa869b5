//! Clipped copies in an object store.

use std::{sync::Arc, time::Duration};

use clap::{Args, ValueEnum, builder::NonEmptyStringValueParser};
use geoclaim_common::store::{self, LocalDirectory};
use geoclaim_consumer::{
    lease::StoreLeases,
    sink::object::{Existing, ObjectSink, Parameters},
};

use super::SinkSettings;
use crate::failure::Failure;

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
    /// What becomes of a copy that is there and is another than would be made now; a local directory has no way to overwrite
    /// safely [default: skip]
    #[arg(long, value_name = "HOW")]
    existing: Option<ExistingArg>,
    /// Makes new copies under other names beside what is there
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    generation: Option<String>,
    /// Simplify lines and rings: how far they may be moved, up to 10
    #[arg(long, value_name = "DEGREES", allow_negative_numbers = true)]
    simplify: Option<f64>,
    /// Make each copy under a lease that lasts so long, 3 or more, so that of many consumers one makes it
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(3..=86_400))]
    lease: Option<u64>,
}

impl ObjectArgs {
    pub(super) fn is_given(&self) -> bool {
        let Self { existing, generation, simplify, lease } = self;
        existing.is_some() || generation.is_some() || simplify.is_some() || lease.is_some()
    }
}

/// Opens the sink in the store that a URL names.
pub(super) async fn open_objects(url: &str, settings: SinkSettings<'_>) -> Result<ObjectSink, Failure> {
    let ObjectArgs { existing, generation, simplify, lease } = settings.objects;
    let store = store::open(url, LocalDirectory::Create)?;
    let existing = match existing {
        Some(ExistingArg::Overwrite) => Existing::Overwrite,
        Some(ExistingArg::Skip) | None => Existing::Skip,
    };
    let parameters = Parameters { simplify_degrees: *simplify, generation: generation.clone() };
    let sink = ObjectSink::open(Arc::clone(&store), settings.store, settings.areas, (parameters, existing)).await?;
    let sink = sink.clipping_up_to(settings.clip_bytes);
    Ok(match lease {
        Some(seconds) => sink.with_leases(Arc::new(StoreLeases::new(store, Duration::from_secs(*seconds)))),
        None => sink,
    })
}
