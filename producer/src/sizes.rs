//! How large bodies are, and the inline limit that follows from it.

use geoclaim_common::limits;
use serde::Serialize;

/// The sizes of bodies as they come.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    bodies: Vec<u64>,
    /// The length of each record, were its body inline.
    records: Vec<u64>,
}

/// What sizes come to. Percentiles are by nearest rank: so many percent of the bodies are at most this long.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SizeReport {
    /// How many bodies there are.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Half of the bodies are at most this long.
    pub p50: u64,
    /// Nine in ten are.
    pub p90: u64,
    /// Ninety-nine in a hundred are.
    pub p99: u64,
    /// Nine hundred and ninety-nine in a thousand are.
    pub p99_9: u64,
    /// All are.
    pub max: u64,
    /// The limit for a whole record that lets 99 in 100 bodies travel inline, in full KiB; not below
    /// [`limits::CLAIM_RECORD_BYTES`], which a record with a claim check may have.
    pub inline_limit: u64,
    /// How many bodies would be stored with that limit.
    pub above_count: u64,
    /// Their share of the bytes, from 0 to 1.
    pub above_share: f64,
}

impl Sizes {
    /// Adds a body and the record that it would be inline.
    pub fn add(&mut self, body_bytes: u64, record_bytes: u64) {
        self.bodies.push(body_bytes);
        self.records.push(record_bytes);
    }

    /// Returns how many bodies there are so far.
    pub fn count(&self) -> u64 {
        self.bodies.len() as u64
    }

    /// Returns what the sizes come to.
    pub fn report(&self) -> SizeReport {
        let mut bodies = self.bodies.clone();
        bodies.sort_unstable();
        let mut records = self.records.clone();
        records.sort_unstable();
        let inline_limit = (percentile(&records, 990).div_ceil(1_024) * 1_024).max(limits::CLAIM_RECORD_BYTES as u64);
        let above = self.bodies.iter().zip(&self.records).filter(|(_, record)| **record > inline_limit);
        let (above_count, above_bytes) = above.fold((0, 0), |(count, bytes), (body, _)| (count + 1, bytes + body));
        let bytes: u64 = bodies.iter().sum();
        SizeReport {
            count: bodies.len() as u64,
            bytes,
            p50: percentile(&bodies, 500),
            p90: percentile(&bodies, 900),
            p99: percentile(&bodies, 990),
            p99_9: percentile(&bodies, 999),
            max: percentile(&bodies, 1_000),
            inline_limit,
            above_count,
            above_share: if bytes == 0 { 0.0 } else { above_bytes as f64 / bytes as f64 },
        }
    }
}

/// Returns the smallest number that so many thousandths of the numbers, which are in order, do not exceed.
fn percentile(sorted: &[u64], thousandths: usize) -> u64 {
    let rank = (sorted.len() * thousandths).div_ceil(1_000).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let thousand: Vec<u64> = (1..=1_000).collect();
        assert_eq!([500, 900, 990, 999, 1_000].map(|rank| percentile(&thousand, rank)), [500, 900, 990, 999, 1_000]);
        assert_eq!([500, 990, 1_000].map(|rank| percentile(&[7], rank)), [7, 7, 7]);
        assert_eq!(percentile(&[1, 2, 3], 500), 2);
        assert_eq!(percentile(&[], 990), 0);
    }

    #[test]
    fn the_limit_keeps_ninety_nine_in_a_hundred_inline() {
        let mut sizes = Sizes::default();
        (0..99).for_each(|_| sizes.add(1_000, 1_400));
        sizes.add(101_000, 101_400);
        let report = sizes.report();
        assert_eq!((report.inline_limit, report.above_count, report.count), (2_048, 1, 100));
        assert!((report.above_share - 101.0 / 200.0).abs() < 1e-12);
        let none = SizeReport { inline_limit: 2_048, ..SizeReport::default() };
        assert_eq!(Sizes::default().report(), none);
    }
}
