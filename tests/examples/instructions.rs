//! Work whose instructions are counted by valgrind, see `tests/suite/instructions.rs`:
//!
//! - `instructions scan FILE TIMES` measures a body so many times;
//! - `instructions discard ROUNDS` judges so many times ten thousand envelopes, one to three times, that meet none of ten thousand
//!   areas.

use std::sync::Arc;

use geoclaim_common::{
    clock::SystemClock,
    extent::{MeasureOptions, measure},
    store::{self, LocalDirectory},
    stream::{Gate, Position, RecordView, Triage, memory::MemorySink},
};
use geoclaim_consumer::{
    ConsumeSettings, Consumer, DeadLetters,
    aoi::{AreaSet, LiveAreas},
    sink::stdout::LineSink,
};
use geoclaim_tests::sample::{northern_areas, southern_envelope};

/// Envelopes of a round, and how many rounds there may be.
const ROUND: usize = 10_000;
const MOST_ROUNDS: usize = 3;

/// Envelopes that are judged together.
const BURST: usize = 1_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["scan", file, times] => scan(&std::fs::read(file).unwrap(), times.parse().unwrap()),
        ["discard", rounds] => discard(rounds.parse().unwrap()),
        _ => panic!("usage: instructions scan FILE TIMES | instructions discard ROUNDS"),
    }
}

fn scan(body: &[u8], times: usize) {
    for _ in 0..times {
        let (extent, _) = measure(std::hint::black_box(body), &MeasureOptions::default()).unwrap();
        println!("{}", extent.vertex_count);
    }
}

fn discard(rounds: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let consumer = Consumer {
        settings: ConsumeSettings::default(),
        areas: Arc::new(LiveAreas::new(AreaSet::new(northern_areas(10_000)))),
        holdings: Arc::default(),
        store: store::open("memory://", LocalDirectory::Expect).unwrap(),
        sink: Arc::new(LineSink::new(std::io::sink())),
        dead_letters: DeadLetters::new(Arc::new(MemorySink::default())),
        clock: Arc::new(SystemClock),
        counters: Arc::default(),
    };
    let gate: Arc<dyn Gate> = runtime.block_on(consumer.gate()).unwrap();
    let records: Vec<(String, Vec<u8>)> = (0..MOST_ROUNDS * ROUND)
        .map(southern_envelope)
        .map(|envelope| (envelope.feature_id.clone(), envelope.encode()))
        .collect();
    let view = |(offset, (key, value)): (usize, &'static (String, Vec<u8>))| {
        let position = Position { partition: 0, offset: offset as i64, timestamp: None };
        RecordView { key: Some(key.as_bytes()), value: Some(value), position }
    };
    let views: Vec<RecordView<'_>> = records.leak().iter().enumerate().map(view).collect();
    let mut verdicts = Vec::with_capacity(BURST);
    for burst in views[..rounds * ROUND].chunks(BURST) {
        verdicts.clear();
        gate.judge_all(std::hint::black_box(burst), &mut verdicts);
        assert!(verdicts.iter().all(|verdict| *verdict == Triage::Discard));
    }
}
