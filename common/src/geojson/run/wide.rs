//! Runs on machines with AVX2: 64 bytes are looked at together, and both numbers of a position are folded together.
//!
//! All of the scanner's unsafe code is in this file. It is here because a vector is loaded through a pointer, and because
//! a function for a CPU that may not be there cannot be called safely. What makes it sound: a [`Wide`] exists only where
//! the CPU can, and every load begins at most [`MARGIN_BEFORE`] bytes before a position and ends at most [`MARGIN_BEHIND`]
//! bytes behind its beginning, which the loop checks to be inside the slice.
//!
//! Method, for a position at a time: one bitmap says which of the 64 bytes separate numbers and one which are points, so
//! that numbers and their points are found by counting zeros, without a branch on how long they are. The digits before and
//! behind the points are loaded left to right and folded by multiply-adds into three integers, whole · 10¹⁶ + high · 10⁸ +
//! low. Their quotient by 10¹⁶ is taken in doubles and corrected by its exact remainder; see [`quotients`]. What may stand
//! in a number and is no digit (`-`, a second point, `/`) is less than `0`, which both folds notice.
#![allow(unsafe_code, reason = "vector loads and a call by detected CPU; see above")]

use std::arch::x86_64::*;

use super::{End, MOST, MOST_BRACKETS, Run};

/// The last bytes of a whole part are loaded four at once.
const MARGIN_BEFORE: usize = 3;

/// The bracket, 64 bytes that are looked at, and a fraction that begins behind the last of them.
const MARGIN_BEHIND: usize = 1 + 64 + 1 + 16;

/// Behind the whole part come none or a point and one to sixteen places: so many bytes, a bit for each, by their negative.
const DISTANCES: u64 = 1 | 0xFFFF << (64 - 17);

/// Loaded from `17 - distance` on, it keeps the places of a fraction: one less than the distance, and none at 0.
const KEEP: [u8; 33] = {
    let mut keep = [0; 33];
    let mut at = 0;
    while at < 16 {
        keep[at] = 0xFF;
        at += 1;
    }
    keep
};

/// For a whole part of 0 to 3 digits: which of the last four bytes are its digits, and the least number without a leading
/// zero.
const WHOLES: [[u32; 2]; 4] = [[0, u32::MAX >> 1], [0xFF00_0000, 0], [0xFFFF_0000, 10], [0xFFFF_FF00, 100]];

/// The signs of longitude and latitude, by whether the first is negative and, twice, the second.
const SIGNS: [[f64; 2]; 4] = [[0.0, 0.0], [-0.0, 0.0], [0.0, -0.0], [-0.0, -0.0]];

/// What is between two positions, by how many bytes it is: the bytes, and which of eight they are. Nothing at other lengths.
const BETWEEN: [[u64; 2]; 9] = {
    const fn word(text: &[u8]) -> [u64; 2] {
        let (mut word, mut mask, mut at) = (0, 0, text.len());
        while at > 0 {
            at -= 1;
            word = word << 8 | text[at] as u64;
            mask = mask << 8 | 0xFF;
        }
        [word, mask]
    }
    let nothing = [1, 0];
    [nothing, nothing, nothing, word(b"],["), word(b"], ["), word(b"]],[["), word(b"]], [["), word(b"]]],[[["), word(b"]]], [[[")]
};

/// The right to run on this CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wide(());

impl Wide {
    /// Asks the CPU.
    pub(super) fn detect() -> Option<Self> {
        let is_able = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2");
        is_able.then_some(Self(()))
    }

    /// Reads positions from the `[` at `at` on into an empty run. Returns where they end.
    #[inline]
    pub(super) fn read(self, bytes: &[u8], at: usize, run: &mut Run) -> End {
        // SAFETY: the CPU has what the functions are compiled for.
        unsafe { if run.is_spaced { read::<1>(bytes, at, run) } else { read::<0>(bytes, at, run) } }
    }
}

/// Reads a run whose commas have `GAP` spaces behind them.
#[target_feature(enable = "avx2,fma,bmi1,bmi2")]
fn read<const GAP: usize>(bytes: &[u8], mut at: usize, run: &mut Run) -> End {
    if at < MARGIN_BEFORE {
        return End::BeforePosition(at);
    }
    let last = bytes.len().saturating_sub(MARGIN_BEHIND);
    let most = 2 * run.most_brackets.min(MOST_BRACKETS) + 1 + GAP;
    let mut length = 0;
    let end = loop {
        if at >= last || length == MOST {
            break End::BeforePosition(at);
        }
        // SAFETY: the margins are inside the slice, and there is room for one position more.
        let found = unsafe { position::<GAP>(bytes.as_ptr().add(at), run.positions.get_unchecked_mut(length)) };
        let Some(Closed { distance, between }) = found else { break End::BeforePosition(at) };
        at += distance;
        // SAFETY: eight bytes behind a position are inside the slice.
        if between > most || !unsafe { is_between(bytes.as_ptr().add(at), between) } {
            run.brackets[length] = 0;
            length += 1;
            break End::AfterPosition(at + 1);
        }
        run.brackets[length] = ((between - 1 - GAP) / 2) as u8;
        at += between - 1;
        length += 1;
    };
    run.length = length;
    end
}

/// Where a position ends.
struct Closed {
    /// How far behind the opening bracket the closing one is.
    distance: usize,
    /// How many bytes follow before the next number, beginning with the closing bracket.
    between: usize,
}

/// Reads the position whose bracket is at `bracket`; `None` when it is not plain.
///
/// # Safety
/// [`MARGIN_BEFORE`] bytes before `bracket` and [`MARGIN_BEHIND`] from it on can be read.
#[inline(always)]
unsafe fn position<const GAP: usize>(bracket: *const u8, out: &mut [f64; 2]) -> Option<Closed> {
    // SAFETY: every offset is below 64 from the byte behind the bracket, and what is loaded there as long as stated above.
    unsafe {
        let start = bracket.add(1);
        let (separators, points) = maps(start);
        let ends = separators | points;
        let x_end = separators.trailing_zeros() as usize;
        let before_y = if GAP == 0 { separators } else { _blsr_u64(separators) };
        let y = x_end + 1 + GAP;
        let y_end = _blsr_u64(before_y).trailing_zeros() as usize;
        let x_point = ends.trailing_zeros() as usize;
        let y_point = (ends & !_blsmsk_u64(before_y)).trailing_zeros() as usize;
        if y_end > 63 || *start.add(x_end) != b',' || *start.add(y_end) != b']' || (GAP == 1 && *start.add(x_end + 1) != b' ') {
            return None;
        }
        let [x_negative, y_negative] = [usize::from(*start == b'-'), usize::from(*start.add(y) == b'-')];
        let (x_digits, y_digits) = (x_point.wrapping_sub(x_negative), y_point.wrapping_sub(y + y_negative));
        let (x_places, y_places) = (x_point.wrapping_sub(x_end), y_point.wrapping_sub(y_end));
        let are_places = (DISTANCES >> (x_places & 63)) & (DISTANCES >> (y_places & 63)) & 1;
        if x_digits | y_digits > 3 || are_places == 0 {
            return None;
        }
        let wholes = wholes([(start.add(x_point), x_digits), (start.add(y_point), y_digits)])?;
        let [high, low] = fractions([(start.add(x_point), x_places), (start.add(y_point), y_places)])?;
        let signs = _mm_loadu_pd(SIGNS[x_negative | y_negative << 1].as_ptr());
        _mm_storeu_pd(out.as_mut_ptr(), _mm_xor_pd(quotients(wholes, high, low), signs));
        Some(Closed { distance: y_end + 1, between: (!separators >> y_end).trailing_zeros() as usize })
    }
}

/// Tells whether these are the bytes between two positions.
#[inline(always)]
unsafe fn is_between(at: *const u8, count: usize) -> bool {
    // SAFETY: eight bytes can be read, and the count is at most eight.
    unsafe {
        let [word, mask] = *BETWEEN.get_unchecked(count);
        at.cast::<u64>().read_unaligned() & mask == word
    }
}

/// Returns which of 64 bytes cannot be in a number, and which are points. Of the bytes from `-` to `9`, which are one range,
/// a slash is told by what follows.
#[inline(always)]
unsafe fn maps(start: *const u8) -> (u64, u64) {
    // SAFETY: 64 bytes can be read.
    unsafe {
        let (low, high) = (half(_mm256_loadu_si256(start.cast())), half(_mm256_loadu_si256(start.add(32).cast())));
        let joined = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        (joined(low.0, high.0), joined(low.1, high.1))
    }
}

#[inline(always)]
unsafe fn half(bytes: __m256i) -> (u32, u32) {
    // SAFETY: the CPU has AVX2.
    unsafe {
        // Shifted so that what can be in a number is least.
        let shifted = _mm256_add_epi8(bytes, _mm256_set1_epi8(i8::MIN.wrapping_sub(b'-' as i8)));
        let separators = _mm256_cmpgt_epi8(shifted, _mm256_set1_epi8(i8::MIN + (b'9' - b'-') as i8));
        let points = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(b'.' as i8));
        (_mm256_movemask_epi8(separators) as u32, _mm256_movemask_epi8(points) as u32)
    }
}

/// Returns two numbers of at most three digits, by where they end; `None` when one has no digits, a leading zero or
/// something else than digits, or is a longitude of 180 or a latitude of 90.
#[inline(always)]
unsafe fn wholes([x, y]: [(*const u8, usize); 2]) -> Option<__m128d> {
    // SAFETY: four bytes before both ends can be read, and neither count is above 3.
    unsafe {
        let (digits, rules) = {
            let word = |end: *const u8| end.sub(4).cast::<i32>().read_unaligned();
            let rule = |count: usize| WHOLES.as_ptr().add(count).cast::<i64>().read_unaligned();
            (_mm_insert_epi32(_mm_cvtsi32_si128(word(x.0)), word(y.0), 2), _mm_set_epi64x(rule(y.1), rule(x.1)))
        };
        let digits = _mm_and_si128(_mm_sub_epi8(digits, _mm_set1_epi8(b'0' as i8)), rules);
        let pairs = _mm_maddubs_epi16(digits, _mm_set1_epi32(0x010A_6400));
        let wholes = _mm_madd_epi16(pairs, _mm_set1_epi16(1));
        let is_less = _mm_cmpgt_epi32(_mm_srli_epi64(rules, 32), wholes);
        // A byte below `0` counts for 253 or more.
        let is_more = _mm_cmpgt_epi32(wholes, _mm_set_epi32(0, 89, 0, 179));
        let bad = _mm_or_si128(is_less, is_more);
        (_mm_testz_si128(bad, bad) == 1).then(|| _mm_cvtepi32_pd(_mm_shuffle_epi32(wholes, 0b1000)))
    }
}

/// Returns the first eight and the second eight decimal places of two numbers, by where their whole parts end and, as a
/// negative number, how much is left of them there; `None` when there is something else than digits.
#[inline(always)]
unsafe fn fractions([x, y]: [(*const u8, usize); 2]) -> Option<[__m128d; 2]> {
    // SAFETY: a point and sixteen bytes can be read from both ends on, and what is left is at most 17.
    unsafe {
        let (digits, keep) = {
            let load = |at: *const u8| _mm_loadu_si128(at.cast());
            let keep = |places: usize| load(KEEP.as_ptr().add(17).wrapping_add(places));
            (_mm256_set_m128i(load(y.0.add(1)), load(x.0.add(1))), _mm256_set_m128i(keep(y.1), keep(x.1)))
        };
        let digits = _mm256_and_si256(_mm256_sub_epi8(digits, _mm256_set1_epi8(b'0' as i8)), keep);
        // What is no digit and no separator is less than '0'.
        if _mm256_testz_si256(digits, _mm256_set1_epi8(i8::MIN)) == 0 {
            return None;
        }
        let pairs = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(0x010A));
        let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x0001_0064));
        let fours = _mm256_packus_epi32(fours, fours);
        let eights = _mm256_madd_epi16(fours, _mm256_set1_epi32(0x0001_2710));
        let eights = _mm_unpacklo_epi32(_mm256_castsi256_si128(eights), _mm256_extracti128_si256(eights, 1));
        Some([_mm_cvtepi32_pd(eights), _mm_cvtepi32_pd(_mm_unpackhi_epi64(eights, eights))])
    }
}

/// Returns the doubles nearest to whole + high · 10⁻⁸ + low · 10⁻¹⁶.
///
/// With whole below 180, upper = (whole · 10⁸ + high) · 10⁸ is a double (35 bits times 5⁸), and so are the error of its sum
/// with low and the remainder of the quotient of that sum by 10¹⁶ (a fused multiply-add tells it exactly). Both together,
/// divided by 10¹⁶ with a relative error below 2⁻⁵¹, correct the quotient by at most one unit in its last place. The
/// corrected quotient is rounded once more, and rightly: a decimal with sixteen places is at least 2⁻³⁹ units away from the
/// middle between two doubles, for their distance is a multiple of one part in 5¹⁶ of half a unit and not zero.
#[inline(always)]
unsafe fn quotients(whole: __m128d, high: __m128d, low: __m128d) -> __m128d {
    // SAFETY: the CPU has FMA.
    unsafe {
        let (e8, e16) = (_mm_set1_pd(1e8), _mm_set1_pd(1e16));
        let upper = _mm_mul_pd(_mm_fmadd_pd(whole, e8, high), e8);
        let sum = _mm_add_pd(upper, low);
        let error = _mm_sub_pd(low, _mm_sub_pd(sum, upper));
        let quotient = _mm_div_pd(sum, e16);
        let remainder = _mm_add_pd(_mm_fnmadd_pd(quotient, e16, sum), error);
        _mm_fmadd_pd(remainder, _mm_set1_pd(1e-16), quotient)
    }
}
