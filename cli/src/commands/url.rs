//! `geoclaim url`.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use geoclaim_common::{
    Digest, key,
    store::{self, Bucket, LocalDirectory, exists},
};

use crate::{args::StoreArgs, console, failure::Failure, time};

#[derive(Debug, Args)]
pub(crate) struct UrlArgs {
    /// The key of a body as its envelope has it, or its digest
    #[arg(value_parser = body)]
    key: Digest,
    /// How long the URL is good for; seven days is the most that S3 takes
    #[arg(long, value_name = "TIME", value_parser = time::duration, default_value = "15m")]
    expires: Duration,
    /// Do not look first whether the body is there
    #[arg(long)]
    unchecked: bool,
    #[command(flatten)]
    store: StoreArgs,
}

fn body(text: &str) -> Result<Digest, String> {
    let expected = "expected a body_key as an envelope has it, or the 64 hexadecimal digits of its body_sha256";
    key::parse(text).or_else(|| text.parse().ok()).ok_or_else(|| expected.to_owned())
}

pub(crate) async fn run(args: UrlArgs) -> Result<ExitCode, Failure> {
    let bucket = Bucket::open(&args.store.store)?;
    let key = key::of(&args.key);
    let url = bucket.presign(&key, args.expires).await?;
    let store = store::open(&args.store.store, LocalDirectory::Expect)?;
    if !args.unchecked && !exists(&store, &key).await? {
        return Err(Failure::wrong(format!("{key} is not there, so a URL would lead nowhere")));
    }
    console::out(&format!("{url}\n"))?;
    Ok(ExitCode::SUCCESS)
}
