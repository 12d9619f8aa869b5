//! Which offset of a partition may be acknowledged: the one past the last record before which everything is done.

use std::collections::VecDeque;

/// Tracks one partition. Records begin in order and end in any order. Memory grows with the records that are not
/// done, not with those that are: neighbours that are done are kept as one.
#[derive(Debug, Default)]
pub struct Watermark {
    next: Option<i64>,
    /// Offsets in order, with whether all from the previous entry up to this one are done.
    pending: VecDeque<(i64, bool)>,
}

impl Watermark {
    /// Takes note of a record that has work to be done.
    pub fn begin(&mut self, offset: i64) {
        self.pending.push_back((offset, false));
    }

    /// Takes note of a record that is done as soon as it is seen.
    pub fn skip(&mut self, offset: i64) {
        match self.pending.back_mut() {
            None => self.next = Some(offset + 1),
            Some((last, true)) => *last = offset,
            Some((_, false)) => self.pending.push_back((offset, true)),
        }
    }

    /// Takes note that the work of a record is done. Unknown offsets are ignored.
    pub fn done(&mut self, offset: i64) {
        if let Ok(at) = self.pending.binary_search_by_key(&offset, |(offset, _)| *offset) {
            self.pending[at].1 = true;
        }
        while let Some((offset, true)) = self.pending.front() {
            self.next = Some(offset + 1);
            self.pending.pop_front();
        }
    }

    /// Returns the offset to acknowledge, which is the next one to read; `None` before anything is done.
    pub fn next(&self) -> Option<i64> {
        self.next
    }

    /// Returns how many entries wait behind the watermark.
    pub fn gap(&self) -> usize {
        self.pending.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_watermark_never_passes_an_unfinished_record() {
        let mut watermark = Watermark::default();
        (5..=8).for_each(|offset| watermark.begin(offset));
        [6, 7, 8].into_iter().for_each(|offset| watermark.done(offset));
        assert_eq!(watermark.next(), None);
        watermark.done(5);
        assert_eq!(watermark.next(), Some(9));
    }

    #[test]
    fn discarded_records_behind_a_stuck_one_take_no_memory() {
        let mut watermark = Watermark::default();
        watermark.begin(0);
        (1..1_000_000).for_each(|offset| watermark.skip(offset));
        assert_eq!((watermark.next(), watermark.gap()), (None, 2));
        watermark.done(0);
        assert_eq!((watermark.next(), watermark.gap()), (Some(1_000_000), 0));
    }

    proptest! {
        #[test]
        fn it_is_the_first_unfinished_offset_whatever_the_order(kinds in proptest::collection::vec(any::<bool>(), 1..60), seed in any::<u64>()) {
            let mut watermark = Watermark::default();
            let mut unfinished = Vec::new();
            for (offset, skipped) in kinds.iter().enumerate() {
                let offset = offset as i64 * 3;
                if *skipped { watermark.skip(offset) } else { watermark.begin(offset); unfinished.push(offset) }
            }
            let last = (kinds.len() as i64 - 1) * 3;
            let mut state = seed;
            while !unfinished.is_empty() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let done = unfinished.remove((state >> 33) as usize % unfinished.len());
                watermark.done(done);
                let next = watermark.next().unwrap_or(0);
                prop_assert!(unfinished.first().is_none_or(|first| next <= *first));
                prop_assert!(unfinished.first().is_none_or(|first| next > first - 3));
            }
            prop_assert_eq!(watermark.next(), Some(last + 1));
        }
    }
}
