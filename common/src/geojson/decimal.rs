//! Decimals with sixteen decimal places to doubles, correctly rounded, without a division.

/// How many decimal places a [`nearest`] integer has.
pub(super) const PLACES: usize = 16;

/// 2¹⁰¹ / 5¹⁶, rounded up: 64 significant bits of the reciprocal.
const RECIPROCAL: u64 = ((1_u128 << 101) / 5_u128.pow(16) + 1) as u64;

/// Returns the double nearest to `scaled` · 10⁻¹⁶, or `None` for the one integer in a thousand that needs a closer look.
///
/// Method: with `scaled` shifted left until its highest bit is set, the upper half of its product with the reciprocal is
/// the quotient by 5¹⁶ with 63 or 64 significant bits, too large by less than one. That decides how it is rounded to 53
/// bits unless what is cut off is exactly one half. A true tie cannot be: a quotient that is an integer of 54 bits would
/// need a dividend of more than 64. This is the algorithm of Eisel and Lemire for one power of ten.
#[inline(always)]
pub(super) fn nearest(scaled: u64, negative: bool) -> Option<f64> {
    let shift = scaled.leading_zeros() & 63;
    let quotient = ((u128::from(scaled << shift) * u128::from(RECIPROCAL)) >> 64) as u64;
    let upper = (quotient >> 63) as u32;
    let cut = 10 + upper;
    if quotient << (64 - cut) == 1 << 63 {
        return None;
    }
    let mantissa = ((quotient >> (cut - 1)) + 1) >> 1;
    // The mantissa's leading bit adds the one that is missing in the exponent.
    let exponent = u64::from(1021 + cut - shift);
    let bits = if scaled == 0 { 0 } else { (exponent << 52) + mantissa };
    Some(f64::from_bits(bits | u64::from(negative) << 63))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_the_standard_library(scaled: u64) -> f64 {
        format!("{scaled}e-16").parse().unwrap()
    }

    #[test]
    fn the_ends_of_the_range_are_right() {
        for scaled in [
            0,
            1,
            2,
            9,
            10,
            u64::MAX,
            u64::MAX - 1,
            1 << 63,
            (1 << 63) - 1,
            5_u64.pow(16),
            10_u64.pow(16),
            1_800_000_000_000_000_000,
        ] {
            assert_eq!(
                nearest(scaled, false).unwrap_or_else(|| by_the_standard_library(scaled)),
                by_the_standard_library(scaled),
                "{scaled}"
            );
        }
        assert!(nearest(0, true).unwrap().is_sign_negative());
    }

    #[test]
    fn hardly_any_integer_needs_a_closer_look() {
        let step = 0x9E37_79B9_7F4A_7C15_u64;
        let undecided = (1..100_000_u64).filter(|n| nearest(n.wrapping_mul(step), false).is_none()).count();
        assert!((20..200).contains(&undecided), "{undecided}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn every_decision_is_that_of_the_standard_library(scaled in any::<u64>(), drop in 0_u32..64) {
            let scaled = scaled >> drop;
            if let Some(value) = nearest(scaled, false) {
                prop_assert_eq!(value.to_bits(), by_the_standard_library(scaled).to_bits());
            }
        }

        #[test]
        fn a_half_is_rounded_by_what_is_beyond_it(mantissa in 1_u64 << 52..1 << 53, down in 0_u32..10, off in -2_i64..3) {
            // Decimals right beside the middle between two doubles.
            let middle = (mantissa as f64 + 0.5) / 2_f64.powi(53 - down as i32);
            let scaled = ((middle * 1e16) as u64).wrapping_add_signed(off);
            if let Some(value) = nearest(scaled, false) {
                prop_assert_eq!(value.to_bits(), by_the_standard_library(scaled).to_bits());
            }
        }
    }
}
