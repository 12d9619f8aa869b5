//! JSON numbers to doubles, correctly rounded.

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
/// The value is the double nearest to the decimal, as IEEE 754 wants it: a quotient of two exact doubles is
/// correctly rounded (Clinger 1990), and what does not fit that goes through the standard library.
pub(super) fn parse(bytes: &[u8]) -> Result<(f64, usize), usize> {
    let digit = |at: usize| bytes.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit <= 9);
    let negative = bytes.first() == Some(&b'-');
    let start = usize::from(negative);
    let mut at = start;
    let mut mantissa = 0_u64;
    while let Some(digit) = digit(at) {
        mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    let integer_digits = at - start;
    if integer_digits == 0 {
        return Err(at);
    }
    if integer_digits > 1 && bytes[start] == b'0' {
        return Err(start + 1);
    }
    let mut decimals = 0;
    if bytes.get(at) == Some(&b'.') {
        at += 1;
        let first = at;
        while let Some(digit) = digit(at) {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
            at += 1;
        }
        decimals = at - first;
        if decimals == 0 {
            return Err(at);
        }
    }
    let has_exponent = matches!(bytes.get(at), Some(b'e' | b'E'));
    if has_exponent {
        at = exponent(bytes, at)?;
    }
    let exact = !has_exponent && integer_digits + decimals <= 19 && mantissa <= EXACT_INTEGERS;
    let value = match EXACT_POWERS.get(decimals) {
        Some(power) if exact => {
            let magnitude = mantissa as f64 / power;
            if negative { -magnitude } else { magnitude }
        }
        _ => std::str::from_utf8(&bytes[..at]).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN),
    };
    Ok((value, at))
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
