//! Peak anonymous memory of `publish` and `consume`: on all countries, 168 MB, and on one body of 1 GiB.

use std::{fs, path::Path};

use geoclaim_tests::{
    binary::{self, Run},
    components::{Kafka, datasets},
    sample,
};

const WORLD: &str = "--aoi=-180,-90,180,90";

pub(crate) fn print() {
    let (kafka, countries) = match (Kafka::shared(), datasets::countries()) {
        (Ok(kafka), Ok(countries)) => (kafka, countries),
        (Err(reason), _) | (_, Err(reason)) => return println!("peak memory: {reason}"),
    };
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench { kafka, folder: folder.path() };
    bench.countries(&countries);
    bench.giant();
}

struct Bench<'a> {
    kafka: &'a Kafka,
    folder: &'a Path,
}

impl Bench<'_> {
    fn countries(&self, countries: &Path) {
        self.kafka.create_topic("memory", 4, &[]).unwrap();
        let file = countries.to_str().unwrap();
        tell("publish of 168 MB", &self.run("memory", &["publish", "--id-property", "A3", file]));
        for budget in ["96MiB", "256MiB"] {
            let consume = ["consume", WORLD, "-e", "--memory-budget", budget, "--group", budget];
            tell(&format!("consume of everything with a budget of {budget}"), &self.run("memory", &consume));
            let _ = fs::remove_file(self.folder.join("geoclaim.gpkg"));
        }
    }

    fn giant(&self) {
        self.kafka.create_topic("giant", 1, &[]).unwrap();
        let file = self.folder.join("giant.geojson");
        sample::write_giant(&file, 1 << 30).unwrap();
        let publish = ["publish", "--max-body", "2GiB", file.to_str().unwrap()];
        tell("publish of one body of 1 GiB", &self.run("giant", &publish));
        let line = format!("{}\n", fs::read_to_string(&file).unwrap());
        let consume = ["consume", WORLD, "-e", "--max-body", "2GiB", "--group"];
        let to_pipe = self.run("giant", &[&consume[..], &["pipe", "--sink", "stdout:", "--report", "text"]].concat());
        tell("consume of it to standard output", &to_pipe);
        println!("  the file is the same: {}", to_pipe.stdout == line);
        let copies = format!("file://{}", self.folder.join("copies").display());
        tell(
            "consume of it to a directory of copies",
            &self.run("giant", &[&consume[..], &["copies", "--sink", &copies]].concat()),
        );
    }

    fn run(&self, topic: &str, args: &[&str]) -> Run {
        let bodies = self.folder.join("bodies");
        let env = [
            ("GEOCLAIM_BROKERS", self.kafka.bootstrap()),
            ("GEOCLAIM_TOPIC", topic),
            ("GEOCLAIM_STORE", bodies.to_str().unwrap()),
        ];
        let env: Vec<(String, String)> = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let report: &[&str] = if args.contains(&"--report") { &[] } else { &["--report", "json"] };
        binary::run_in(&[args, report].concat(), &env, b"", Some(self.folder))
    }
}

fn tell(what: &str, run: &Run) {
    let last = run.stdout.lines().last().unwrap_or_default();
    let report = if last.len() < 4_096 { last } else { "" };
    println!("{what}: peak {} MiB, exit {} {report}{}", run.peak_bytes >> 20, run.code(), run.stderr);
}
