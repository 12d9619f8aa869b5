//! A binary range coder with adaptive probabilities: each yes or no costs as little as it surprises.
//!
//! Method: the carry-propagating range coder of LZMA (32-bit range, bytes shifted out below 2²⁴), without its constant
//! first byte; probabilities are counts, as in a Krichevsky-Trofimov estimator, so that a few hundred decisions are
//! enough to learn from.

/// Range below which a byte is shifted.
const TOP: u32 = 1 << 24;

/// Probabilities have this many bits.
const PROBABILITY_BITS: u32 = 12;

/// Counts are halved beyond this sum, so that what is near weighs more.
const MOST_COUNTED: u16 = 255;

/// What has been seen in one context: twice the number of noes and of yeses, plus one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model([u16; 2]);

impl Model {
    pub(super) const NEW: Self = Self([1, 1]);

    /// Returns the share of the range that a no takes.
    fn no(self) -> u32 {
        let [no, yes] = self.0.map(u32::from);
        ((no << PROBABILITY_BITS) / (no + yes)).clamp(1, (1 << PROBABILITY_BITS) - 1)
    }

    fn learn(&mut self, bit: bool) {
        self.0[usize::from(bit)] += 2;
        if self.0[0] + self.0[1] > MOST_COUNTED {
            self.0 = self.0.map(|count| count.div_ceil(2));
        }
    }
}

/// Writes decisions, or reads them.
pub(super) trait Coder {
    /// Codes one decision; `given` is what to write, and a reader takes no notice of it.
    fn code(&mut self, model: &mut Model, given: bool) -> bool;
}

/// Writes.
pub(super) struct Encoder {
    out: Vec<u8>,
    low: u64,
    range: u32,
    /// The last byte that a carry can still change, and how many 0xFF follow it.
    held: Option<u8>,
    pending: usize,
}

impl Encoder {
    pub(super) fn new(out: Vec<u8>) -> Self {
        Self { out, low: 0, range: u32::MAX, held: None, pending: 0 }
    }

    fn shift(&mut self) {
        if self.low < 0xFF00_0000 || self.low > u64::from(u32::MAX) {
            let carry = u8::from(self.low > u64::from(u32::MAX));
            if let Some(held) = self.held {
                self.out.push(held.wrapping_add(carry));
            }
            self.out.extend(std::iter::repeat_n(0xFF_u8.wrapping_add(carry), self.pending));
            self.pending = 0;
            self.held = Some((self.low >> 24) as u8);
        } else {
            self.pending += 1;
        }
        self.low = (self.low & 0x00FF_FFFF) << 8;
    }

    /// Ends the text. A reader takes what is missing at the end for zeros, so the roundest number in range is written.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let end = self.low + u64::from(self.range);
        let rounded = |bits: u32| (self.low + (1 << bits) - 1) >> bits << bits;
        self.low = [24, 16, 8].into_iter().map(rounded).find(|value| *value < end).unwrap_or(self.low);
        (0..5).for_each(|_| self.shift());
        let used = self.out.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        self.out.truncate(used);
        self.out
    }
}

impl Coder for Encoder {
    fn code(&mut self, model: &mut Model, given: bool) -> bool {
        let bound = (self.range >> PROBABILITY_BITS) * model.no();
        if given {
            self.low += u64::from(bound);
            self.range -= bound;
        } else {
            self.range = bound;
        }
        model.learn(given);
        while self.range < TOP {
            self.range <<= 8;
            self.shift();
        }
        given
    }
}

/// Reads.
pub(super) struct Decoder<'a> {
    rest: &'a [u8],
    code: u32,
    range: u32,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        let mut decoder = Self { rest: text, code: 0, range: u32::MAX };
        (0..4).for_each(|_| decoder.shift());
        decoder
    }

    fn shift(&mut self) {
        let next = self.rest.split_off_first().copied().unwrap_or(0);
        self.code = self.code << 8 | u32::from(next);
    }
}

impl Coder for Decoder<'_> {
    fn code(&mut self, model: &mut Model, _given: bool) -> bool {
        let bound = (self.range >> PROBABILITY_BITS) * model.no();
        let bit = self.code >= bound;
        if bit {
            self.code -= bound;
            self.range -= bound;
        } else {
            self.range = bound;
        }
        model.learn(bit);
        while self.range < TOP {
            self.range <<= 8;
            self.shift();
        }
        bit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(decisions in proptest::collection::vec((0_usize..4, any::<bool>()), 0..3_000), skew in any::<bool>()) {
            let decisions: Vec<_> = decisions.into_iter().map(|(context, bit)| (context, bit && (!skew || context == 0))).collect();
            let mut models = [Model::NEW; 4];
            let mut encoder = Encoder::new(Vec::new());
            for (context, bit) in &decisions {
                encoder.code(&mut models[*context], *bit);
            }
            let text = encoder.finish();
            let (mut models, mut decoder) = ([Model::NEW; 4], Decoder::new(&text));
            for (context, bit) in decisions {
                prop_assert_eq!(decoder.code(&mut models[context], false), bit);
            }
        }
    }
}
