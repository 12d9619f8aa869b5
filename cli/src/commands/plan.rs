//! `geoclaim plan`.

use std::process::ExitCode;

use geoclaim_common::{
    Timestamp,
    extent::{Extent, MeasureOptions, measure},
    geojson::ScanError,
    limits,
};
use geoclaim_consumer::plan::{FetchPlan, FetchReport, Fetches};
use geoclaim_producer::{
    IdRule, PublishSettings,
    publish::{Origin, at, plan_measured},
    read::{RawBody, ReadProblem, Reader},
    sizes::{SizeReport, Sizes},
};
use serde::Serialize;

use crate::{
    areas,
    args::ReportArgs,
    console::{self, strong},
    failure::{Failure, status},
    input::{InputArgs, sources},
    progress::Progress,
    topics::USUAL_MESSAGE_BYTES,
};

#[derive(Debug, clap::Args)]
pub(crate) struct PlanArgs {
    /// Areas of interest: a GeoJSON file of features with ids, or one box as WEST,SOUTH,EAST,NORTH
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    aoi: String,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    report: ReportArgs,
}

#[derive(Serialize)]
struct Report {
    sizes: SizeReport,
    rejected: u64,
    #[serde(flatten)]
    fetches: FetchReport,
}

pub(crate) async fn run(args: PlanArgs) -> Result<ExitCode, Failure> {
    let progress = Progress::of_work();
    let planning = {
        let progress = progress.clone();
        // Reading and measuring block, and nothing else goes on.
        tokio::task::spawn_blocking(move || plan_all(&args, &progress).map(|report| (args, report)))
    };
    let (args, report) = progress.during(planning, |_| ()).await.map_err(|error| Failure::wrong(error.to_string()))??;
    if args.report.is_json() {
        console::json(&report)?;
    } else {
        tell(&report)?;
    }
    Ok(status(report.rejected > 0))
}

fn plan_all(args: &PlanArgs, progress: &Progress) -> Result<Report, Failure> {
    let measuring = MeasureOptions { cover_bytes: limits::COVER_BYTES, ..args.input.measure() };
    let mut planning = Planning::new(FetchPlan::new(areas::read(&args.aoi)?), measuring, args.input.id_rule());
    let mut rejected = 0;
    for source in sources(&args.input.files)? {
        let name = source.name().to_owned();
        let opened = source.open().map_err(|error| Failure::misuse(format!("{name}: {error}")))?;
        for item in Reader::new(opened, args.input.read_options()?) {
            if let Err(ReadProblem { place, problem }) = item.and_then(|raw| planning.take(&raw)) {
                rejected += 1;
                progress.say(|| console::error(&format!("{}: {problem}", at(&name, &place))));
            }
            progress.message(&format!("{} features", planning.sizes.count() + rejected));
        }
    }
    Ok(Report { sizes: planning.sizes.report(), rejected, fetches: planning.fetches.report() })
}

/// What the bodies so far come to.
struct Planning {
    sizes: Sizes,
    fetches: FetchPlan,
    /// As they would be published if every body travelled inline, and the same with their places for identities.
    settings: [PublishSettings; 2],
    measuring: MeasureOptions,
}

impl Planning {
    fn new(fetches: FetchPlan, measuring: MeasureOptions, id_rule: IdRule) -> Self {
        let settings = [id_rule, IdRule::Index].map(|id_rule| PublishSettings {
            id_rule,
            inline_limit_bytes: usize::MAX,
            ..PublishSettings::default()
        });
        Self { sizes: Sizes::default(), fetches, settings, measuring }
    }

    /// Takes a body into account.
    fn take(&mut self, raw: &RawBody) -> Result<(), ReadProblem> {
        let wrong =
            |error: ScanError| ReadProblem { place: raw.place.within(&raw.bytes, &error), problem: error.problem.clone() };
        let (extent, outline) = measure(&raw.bytes, &self.measuring).map_err(wrong)?;
        // An inline body says itself where it lies.
        let coarse = Extent { cells: None, ..extent.clone() };
        let [settings, by_place] = &self.settings;
        let planned = |settings| plan_measured(raw, None, coarse.clone(), &outline, ORIGIN, settings);
        // Without an identity it would be rejected, but what it would fetch can be said all the same.
        let inline = planned(settings).or_else(|_| planned(by_place));
        let inline = inline.map_err(|problem| ReadProblem { place: raw.place, problem })?;
        self.fetches.add(&raw.bytes, &extent, &self.measuring.scan).map_err(wrong)?;
        self.sizes.add(raw.bytes.len() as u64, inline.record.bytes() as u64);
        Ok(())
    }
}

/// Nothing is published, so that one origin is as good as another.
const ORIGIN: Origin<'static> = Origin { source: "plan", run_place: 0, occurred_at: Timestamp::from_millis(0) };

fn tell(Report { sizes, rejected, fetches }: &Report) -> Result<(), Failure> {
    let bytes = console::bytes;
    let mut text = format!(
        "{} features, {}: half are at most {}, p90 {}, p99 {}, p99.9 {}, the largest {}\n",
        strong(sizes.count),
        bytes(sizes.bytes),
        bytes(sizes.p50),
        bytes(sizes.p90),
        bytes(sizes.p99),
        bytes(sizes.p99_9),
        bytes(sizes.max)
    );
    text += &format!(
        "--inline-limit {} keeps 99 in 100 inline; the {} above it hold {:.1} % of the bytes\n",
        strong(sizes.inline_limit),
        sizes.above_count,
        100.0 * sizes.above_share
    );
    if sizes.inline_limit > USUAL_MESSAGE_BYTES as u64 {
        text += "such records need a topic and a broker whose max.message.bytes allows them; Kafka's default is 1 MB\n";
    }
    if *rejected > 0 {
        text += &format!("{rejected} are no good and not counted\n");
    }
    text += &format!("\n{:<24}{:>20}{:>20}{:>20}{:>20}\n", "bytes (features)", "planar box", "RFC bbox", "bbox + cover", "exact");
    for area in &fetches.areas {
        text += &row(&console::printable(&area.id), &area.fetches);
    }
    text += &row("all areas, summed", &fetches.total);
    text += &row("one consumer of all", &fetches.together);
    console::out(&text)
}

fn row(name: &str, fetches: &Fetches) -> String {
    let cell = |bytes: u64, features: u64| format!("{} ({features})", console::bytes(bytes));
    let cells = [
        cell(fetches.planar_bytes, fetches.planar_features),
        cell(fetches.bbox_bytes, fetches.bbox_features),
        cell(fetches.cover_bytes, fetches.cover_features),
        cell(fetches.exact_bytes, fetches.exact_features),
    ];
    let short: String = name.chars().take(23).collect();
    format!("{short:<24}{:>20}{:>20}{:>20}{:>20}\n", cells[0], cells[1], cells[2], cells[3])
}
