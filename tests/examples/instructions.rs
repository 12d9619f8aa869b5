//! Work whose instructions are counted by valgrind, see `tests/suite/instructions.rs`:
//!
//! - `instructions scan FILE TIMES` measures a body so many times;
//! - `instructions discard ROUNDS` judges so many times ten thousand envelopes that meet none of ten thousand areas.

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
    let records: Vec<(String, Vec<u8>)> =
        (0..10_000).map(southern_envelope).map(|envelope| (envelope.feature_id.clone(), envelope.encode())).collect();
    for round in 0..rounds {
        for (offset, (key, value)) in records.iter().enumerate() {
            let position = Position { partition: 0, offset: (round * records.len() + offset) as i64, timestamp: None };
            let record = RecordView { key: Some(key.as_bytes()), value: Some(value), position };
            assert_eq!(gate.judge(std::hint::black_box(&record)), Triage::Discard);
        }
    }
}
