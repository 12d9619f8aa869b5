//! JSON numbers to doubles, correctly rounded.

use super::decimal;

/// Powers of ten up to that of the decimals that are folded.
const POWERS: [u64; 17] = {
    let mut powers = [1; 17];
    let mut at = 1;
    while at < 17 {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// Powers of ten that a double holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21,
    1e22,
];

/// Largest integer up to which every integer is a double.
const EXACT_INTEGERS: u64 = 1 << 53;

/// Reads the JSON number at the start of `bytes`. Returns its value and length, or the offset of the byte that no
/// JSON number has there.
///
/// The value is the double nearest to the decimal, as IEEE 754 wants it: degrees by [`decimal::nearest`]; for others, a
/// quotient of two exact doubles is correctly rounded (Clinger 1990); what does not fit either goes through the standard
/// library.
pub(super) fn parse(bytes: &[u8]) -> Result<(f64, usize), usize> {
    let negative = bytes.first() == Some(&b'-');
    let start = usize::from(negative);
    let (mut mantissa, integer_digits) = digits(bytes, start, 0);
    let mut at = start + integer_digits;
    if integer_digits == 0 {
        return Err(at);
    }
    if integer_digits > 1 && bytes[start] == b'0' {
        return Err(start + 1);
    }
    let mut decimals = 0;
    if bytes.get(at) == Some(&b'.') {
        (mantissa, decimals) = digits(bytes, at + 1, mantissa);
        at += 1 + decimals;
        if decimals == 0 {
            return Err(at);
        }
    }
    let has_exponent = matches!(bytes.get(at), Some(b'e' | b'E'));
    if has_exponent {
        at = exponent(bytes, at)?;
    }
    let plain = if has_exponent { None } else { of_digits(mantissa, integer_digits, decimals, negative) };
    let parsed = || std::str::from_utf8(&bytes[..at]).ok().and_then(|text| text.parse().ok());
    Ok((plain.or_else(parsed).unwrap_or(f64::NAN), at))
}

/// Returns the double nearest to these digits, where that is told without the standard library.
#[inline]
fn of_digits(mantissa: u64, integer_digits: usize, decimals: usize, negative: bool) -> Option<f64> {
    if integer_digits <= 3 && decimals <= decimal::PLACES {
        return decimal::nearest(mantissa * POWERS[decimal::PLACES - decimals], negative);
    }
    let power = EXACT_POWERS.get(decimals).filter(|_| integer_digits + decimals <= 19 && mantissa <= EXACT_INTEGERS)?;
    let magnitude = mantissa as f64 / power;
    Some(if negative { -magnitude } else { magnitude })
}

/// Takes the digits at `at` into the number, eight at a time; returns it, which wraps beyond nineteen, and their count.
#[inline]
fn digits(bytes: &[u8], mut at: usize, mut number: u64) -> (u64, usize) {
    let start = at;
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let values = u64::from_le_bytes(*eight) ^ 0x3030_3030_3030_3030;
        // The lowest byte that is no digit is right; a carry can only reach those above it.
        let others = (values.wrapping_add(0x0606_0606_0606_0606) | values) & 0xF0F0_F0F0_F0F0_F0F0;
        let count = others.trailing_zeros() as usize / 8;
        if count > 0 {
            number = number.wrapping_mul(POWERS[count]).wrapping_add(folded(values << (64 - 8 * count)));
        }
        at += count;
        if count < 8 {
            return (number, at - start);
        }
    }
    while let Some(digit @ b'0'..=b'9') = bytes.get(at) {
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        at += 1;
    }
    (number, at - start)
}

/// Folds eight values of 0 to 9, the first in the lowest byte, into one number.
#[inline]
fn folded(values: u64) -> u64 {
    let pairs = values.wrapping_mul(10).wrapping_add(values >> 8);
    let fours = (pairs & 0x00FF_00FF_00FF_00FF).wrapping_mul(1 + (100 << 16)) >> 16;
    (fours & 0x0000_FFFF_0000_FFFF).wrapping_mul(1 + (10_000 << 32)) >> 32
}

/// Skips an exponent that begins at `at`; returns where it ends.
fn exponent(bytes: &[u8], at: usize) -> Result<usize, usize> {
    let mut at = at + 1;
    if matches!(bytes.get(at), Some(b'+' | b'-')) {
        at += 1;
    }
    let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 { Err(at) } else { Ok(at + digits) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_follow_the_json_grammar() {
        for (text, value) in [("0", 0.0), ("-0", -0.0), ("10.50", 10.5), ("1e3", 1e3), ("1.5E-2", 0.015), ("-7,", -7.0)] {
            assert_eq!(parse(text.as_bytes()).unwrap().0, value, "{text}");
        }
        for (text, at) in [("", 0), ("-", 1), ("01", 1), ("1.", 2), (".5", 0), ("+1", 0), ("1e", 2), ("1e+", 3), ("-a", 1)] {
            assert_eq!(parse(text.as_bytes()), Err(at), "{text}");
        }
    }

    #[test]
    fn the_digits_that_serde_json_gets_wrong_without_float_roundtrip_are_right() {
        assert_eq!(parse(b"-120.65487365123505").unwrap().0, -120.654_873_651_235_05);
        assert_eq!(parse(b"1e400").unwrap().0, f64::INFINITY);
    }

    proptest! {
        #[test]
        fn every_number_is_read_as_the_standard_library_reads_it(integer in -400_i64..400, decimals in "[0-9]{0,20}") {
            let text = if decimals.is_empty() { integer.to_string() } else { format!("{integer}.{decimals}") };
            prop_assert_eq!(parse(text.as_bytes()).unwrap(), (text.parse::<f64>().unwrap(), text.len()));
        }

        #[test]
        fn every_double_survives(value in proptest::num::f64::NORMAL) {
            let text = serde_json::to_string(&value).unwrap();
            prop_assert_eq!(parse(text.as_bytes()).unwrap().0, value);
        }
    }
}
