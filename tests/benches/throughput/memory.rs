//! Peak memory of `publish` and `consume` on all countries, 168 MB.

use geoclaim_tests::{
    binary,
    components::{Kafka, datasets},
};

pub(crate) fn print() {
    let (kafka, countries) = match (Kafka::shared(), datasets::countries()) {
        (Ok(kafka), Ok(countries)) => (kafka, countries),
        (Err(reason), _) | (_, Err(reason)) => return println!("peak memory: {reason}"),
    };
    kafka.create_topic("memory", 4, &[]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let bodies = folder.path().join("bodies");
    let env =
        [("GEOCLAIM_BROKERS", kafka.bootstrap()), ("GEOCLAIM_TOPIC", "memory"), ("GEOCLAIM_STORE", bodies.to_str().unwrap())];
    let env: Vec<(String, String)> = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let publish = binary::run(&["publish", "--id-property", "A3", "--report", "json", countries.to_str().unwrap()], &env, b"");
    println!("publish of 168 MB: peak {} MiB, {:.1} s", publish.peak_bytes >> 20, publish.report()["seconds"].as_f64().unwrap());
    for budget in ["96MiB", "256MiB"] {
        let args = ["consume", "--aoi=-180,-90,180,90", "-e", "--report", "json", "--memory-budget", budget, "--group", budget];
        let consume = binary::run_in(&args, &env, b"", Some(folder.path()));
        let report = consume.report();
        println!(
            "consume of everything with a budget of {budget}: peak {} MiB, {:.1} s, {} applied, {} duplicate",
            consume.peak_bytes >> 20,
            report["seconds"].as_f64().unwrap(),
            report["applied"],
            report["duplicate"]
        );
        let _ = std::fs::remove_file(folder.path().join("geoclaim.gpkg"));
    }
}
