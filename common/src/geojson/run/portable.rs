//! Runs on any machine.

use super::{End, MOST, Run};
use crate::geojson::number;

/// Reads positions from the `[` at `at` on into an empty run. Returns where they end.
pub(super) fn read(bytes: &[u8], mut at: usize, run: &mut Run) -> End {
    let gap = usize::from(run.is_spaced);
    while run.length < MOST {
        let Some((position, end)) = position(bytes, at, gap) else { return End::BeforePosition(at) };
        let closing = bytes[end..].iter().take(run.most_brackets + 1).take_while(|byte| **byte == b']').count();
        run.positions[run.length] = position;
        let next = next(&bytes[end..], closing, gap).filter(|_| closing <= run.most_brackets);
        run.brackets[run.length] = if next.is_some() { closing as u8 } else { 0 };
        run.length += 1;
        match next {
            Some(distance) => at = end + distance,
            None => return End::AfterPosition(end + 1),
        }
    }
    End::BeforePosition(at)
}

/// Returns where the next position begins when as many brackets open as have closed and something follows that could be
/// in a number.
fn next(rest: &[u8], closing: usize, gap: usize) -> Option<usize> {
    let [comma, space, open] = [closing, closing + 1, closing + 1 + gap];
    let is_next = rest.get(comma) == Some(&b',')
        && (gap == 0 || rest.get(space) == Some(&b' '))
        && rest.get(open..open + closing)?.iter().all(|byte| *byte == b'[')
        && matches!(rest.get(open + closing), Some(b'-'..=b'9'));
    is_next.then_some(open + closing - 1)
}

/// Reads a position; returns it and where its closing bracket is.
fn position(bytes: &[u8], at: usize, gap: usize) -> Option<([f64; 2], usize)> {
    let (x, length) = number::parse(bytes.get(at + 1..)?).ok()?;
    let comma = at + 1 + length;
    if bytes.get(comma) != Some(&b',') || (gap == 1 && bytes.get(comma + 1) != Some(&b' ')) {
        return None;
    }
    let second = comma + 1 + gap;
    let (y, length) = number::parse(bytes.get(second..)?).ok()?;
    let end = second + length;
    let is_plain = bytes.get(end) == Some(&b']') && x.abs() < 180.0 && y.abs() < 90.0;
    is_plain.then_some(([x, y], end))
}
