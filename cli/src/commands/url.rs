//! `geoclaim url`.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use geoclaim_common::{
    Digest, Encoding, key,
    store::{self, Bucket, LocalDirectory, exists},
};

use crate::{args::StoreArgs, console, failure::Failure, time};

#[derive(Debug, Args)]
pub(crate) struct UrlArgs {
    /// The key of a body as its envelope has it, or its digest
    #[arg(value_name = "KEY", value_parser = body)]
    body: Named,
    /// How long the URL is good for; seven days is the most that S3 takes
    #[arg(long, value_name = "TIME", value_parser = time::duration, default_value = "15m")]
    expires: Duration,
    /// Do not look first whether the body is there
    #[arg(long)]
    unchecked: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// A body, and the form that was asked for.
#[derive(Clone, Copy, Debug)]
struct Named(Digest, Option<Encoding>);

fn body(text: &str) -> Result<Named, String> {
    let expected = "expected a body_key as an envelope has it, or the 64 hexadecimal digits of its body_sha256";
    let by_key = key::parse(text).map(|(digest, encoding)| Named(digest, Some(encoding)));
    by_key.or_else(|| Some(Named(text.parse().ok()?, None))).ok_or_else(|| expected.to_owned())
}

pub(crate) async fn run(args: UrlArgs) -> Result<ExitCode, Failure> {
    let bucket = Bucket::open(&args.store.store)?;
    let Named(digest, encoding) = args.body;
    let store = store::open(&args.store.store, LocalDirectory::Expect)?;
    let mut key = key::encoded(&digest, encoding.unwrap_or_default());
    let mut is_there = args.unchecked || exists(&store, &key).await?;
    if !is_there && encoding.is_none() {
        let compressed = key::encoded(&digest, Encoding::Zstd);
        is_there = exists(&store, &compressed).await?;
        key = if is_there { compressed } else { key };
    }
    let url = bucket.presign(&key, args.expires).await?;
    if !is_there {
        return Err(Failure::wrong(format!("{key} is not there, so a URL would lead nowhere")));
    }
    console::out(&format!("{url}\n"))?;
    Ok(ExitCode::SUCCESS)
}
