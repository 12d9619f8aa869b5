//! `geoclaim extent`.

use std::process::ExitCode;

use geoclaim_common::{Bbox, extent::measure, geojson::scalar_text};
use geoclaim_producer::{
    publish::at,
    read::{RawBody, ReadProblem, Reader},
};
use serde::Serialize;

use crate::{
    args::ReportArgs,
    console,
    failure::{Failure, status},
    input::{InputArgs, sources},
};

#[derive(Debug, clap::Args)]
pub(crate) struct ExtentArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    report: ReportArgs,
}

#[derive(Serialize)]
struct Measured {
    feature_id: Option<String>,
    kind: String,
    bbox: Option<Bbox>,
    vertex_count: u64,
    bytes: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    suspect: bool,
}

#[derive(Serialize)]
struct Wrong {
    error: String,
    at: String,
}

#[derive(Default, Serialize)]
struct Report {
    read: u64,
    rejected: u64,
    vertices: u64,
    bytes: u64,
}

pub(crate) async fn run(args: ExtentArgs) -> Result<ExitCode, Failure> {
    // Reading and measuring block, and nothing else goes on.
    tokio::task::spawn_blocking(move || measure_all(&args)).await.map_err(|error| Failure::wrong(error.to_string()))?
}

fn measure_all(args: &ExtentArgs) -> Result<ExitCode, Failure> {
    let mut report = Report::default();
    for source in sources(&args.input.files)? {
        let name = source.name().to_owned();
        let opened = source.open().map_err(|error| Failure::misuse(format!("{name}: {error}")))?;
        for item in Reader::new(opened, args.input.read_options()?) {
            report.read += 1;
            match item.and_then(|raw| measured(args, &raw)) {
                Ok(measured) => {
                    report.vertices += measured.vertex_count;
                    report.bytes += measured.bytes as u64;
                    console::json(&measured)?;
                }
                Err(ReadProblem { place, problem }) => {
                    report.rejected += 1;
                    console::json(&Wrong { error: problem, at: at(&name, &place) })?;
                }
            }
        }
    }
    if args.report.is_json() {
        console::json(&report)?;
    }
    Ok(status(report.rejected > 0))
}

fn measured(args: &ExtentArgs, raw: &RawBody) -> Result<Measured, ReadProblem> {
    let (extent, outline) = measure(&raw.bytes, &args.input.measure())
        .map_err(|error| ReadProblem { place: raw.place.within(&raw.bytes, &error), problem: error.problem.clone() })?;
    let feature_id = args.input.id_rule().feature_id(&raw.bytes, &outline, raw.place.index).ok();
    let feature_id = feature_id.or_else(|| outline.id.clone().and_then(|id| scalar_text(&raw.bytes[id])));
    Ok(Measured {
        feature_id,
        kind: extent.kind.to_string(),
        bbox: extent.bbox,
        vertex_count: extent.vertex_count,
        bytes: raw.bytes.len(),
        suspect: extent.suspect,
    })
}
