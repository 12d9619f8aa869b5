//! Runs of positions as they nearly always come: `[x,y],[x,y]],[[x,y],…` with plain decimals, no white space or one space
//! after each comma. A run goes on from line to line, so that the ends of short lines cost no branch that cannot be
//! foreseen. Whatever looks different is left to the grammar, position by position; what is read here is read as the
//! grammar reads it.

mod portable;
#[cfg(target_arch = "x86_64")]
mod wide;

/// Most positions of a run: as many as an integer has bits.
const MOST: usize = 64;

/// Most brackets that close between two positions.
const MOST_BRACKETS: usize = 3;

/// Positions that follow one another, and how they are read.
#[derive(Debug)]
pub(super) struct Run {
    positions: [[f64; 2]; MOST],
    /// How many brackets close behind each position but the last; one where the line goes on.
    brackets: [u8; MOST],
    length: usize,
    /// How many brackets may close between two positions.
    most_brackets: usize,
    /// Whether a space comes after each comma, as far as is known.
    is_spaced: bool,
    #[cfg(target_arch = "x86_64")]
    wide: Option<wide::Wide>,
}

/// Where a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// At the beginning of a position.
    BeforePosition(usize),
    /// Behind the last position, with none that could belong to the run right behind it.
    AfterPosition(usize),
}

impl Run {
    /// Makes an empty run, which is read in the best way that the CPU has.
    pub(super) fn new() -> Self {
        Self {
            positions: [[0.0; 2]; MOST],
            brackets: [0; MOST],
            length: 0,
            most_brackets: 1,
            is_spaced: false,
            #[cfg(target_arch = "x86_64")]
            wide: wide::Wide::detect(),
        }
    }

    /// Tells whether there are no positions.
    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the lines' positions: longitude and latitude, within ±180 and ±90 and neither on them. With each but the
    /// last line comes how many brackets close behind it; the last may be empty, and goes on.
    #[inline]
    pub(super) fn lines(&self) -> impl Iterator<Item = (&[[f64; 2]], Option<u8>)> {
        let (mut ends, mut start) = (Some(self.ends()), 0);
        std::iter::from_fn(move || {
            let left = ends?;
            if left == 0 {
                ends = None;
                return Some((&self.positions[start..self.length], None));
            }
            let last = left.trailing_zeros() as usize;
            let line = &self.positions[start..=last];
            (ends, start) = (Some(left & (left - 1)), last + 1);
            Some((line, Some(self.brackets[last])))
        })
    }

    /// Returns behind which positions a line ends and another begins, a bit for each.
    #[inline]
    fn ends(&self) -> u64 {
        let bits = self.brackets.iter().enumerate().fold(0, |bits, (at, brackets)| bits | u64::from(*brackets > 1) << at);
        let known = if self.length == MOST { u64::MAX } else { (1 << self.length) - 1 };
        bits & known
    }

    /// Reads positions from `at` on, as many as are plain and have room. No more than `most_brackets` close between two.
    #[inline]
    pub(super) fn read(&mut self, bytes: &[u8], at: usize, most_brackets: usize) -> End {
        (self.length, self.most_brackets) = (0, most_brackets);
        if bytes.get(at) != Some(&b'[') {
            return End::BeforePosition(at);
        }
        let end = self.read_positions(bytes, at);
        if self.length == 0 && is_spaced(bytes, at) != self.is_spaced {
            self.is_spaced = !self.is_spaced;
            return self.read_positions(bytes, at);
        }
        end
    }

    #[inline]
    fn read_positions(&mut self, bytes: &[u8], at: usize) -> End {
        #[cfg(target_arch = "x86_64")]
        if let Some(wide) = self.wide {
            return wide.read(bytes, at, self);
        }
        portable::read(bytes, at, self)
    }
}

/// Tells whether a space comes after the first comma from `at` on.
#[cold]
fn is_spaced(bytes: &[u8], at: usize) -> bool {
    let near = &bytes[at..(at + 40).min(bytes.len())];
    near.iter().position(|byte| *byte == b',').is_some_and(|comma| near.get(comma + 1) == Some(&b' '))
}

#[cfg(test)]
mod tests;
