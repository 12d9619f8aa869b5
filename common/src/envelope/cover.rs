//! The cover, and the reader of the box at its fixed place.
//!
//! The member `cover` is base64url without padding of these bytes:
//!
//! | Offset | Length | Content |
//! | --- | --- | --- |
//! | 0 | 1 | version, 1 |
//! | 1 | 32 | west, south, east, north: four IEEE 754 doubles, little-endian |
//!
//! | 33 | 0 to 400 | the cells within the box, see [`crate::cover`] |
//!
//! Thirty-three bytes are exactly 44 digits, so in a value that begins with `{"cover":"` the box is the 44 bytes from
//! offset 10, whatever follows it.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{Bbox, cover::Cells, limits};

/// The version that is written.
const VERSION: u8 = 1;

/// Length of version and box in bytes.
const BOX_BYTES: usize = 1 + 4 * 8;

/// Length of version and box in base64url digits.
const BOX_DIGITS: usize = BOX_BYTES / 3 * 4;

/// What a value that has its box at the fixed place begins with.
pub(super) const PREFIX: &[u8] = b"{\"cover\":\"";

/// What the fixed place of a record's value says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Peek {
    /// The box stands there.
    Placed(Bbox),
    /// It does not, or is no box: the value takes the full parse.
    Unknown,
}

/// Reads the box at its fixed place, without parsing anything and without allocating.
pub fn peek(value: &[u8]) -> Peek {
    value.strip_prefix(PREFIX).and_then(|rest| rest.get(..BOX_DIGITS)).and_then(decode_box).map_or(Peek::Unknown, Peek::Placed)
}

/// Reads the length of the stored body from the end of a canonical value, so that even what is discarded unparsed
/// can be counted. `None` when it does not stand there.
pub fn peek_body_bytes(value: &[u8]) -> Option<u64> {
    let value = value.strip_suffix(b"}")?;
    let digits = value.iter().rev().take(20).take_while(|byte| byte.is_ascii_digit()).count();
    let (before, digits) = value.split_at(value.len() - digits);
    before.strip_suffix(b"\"body_bytes\":").filter(|_| !digits.is_empty())?;
    digits.iter().try_fold(0_u64, |number, digit| number.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
}

/// Writes the cover of a box and the cells within it.
pub(super) fn encode(bbox: &Bbox, cells: Option<&Cells>) -> String {
    let mut bytes = vec![VERSION];
    bytes.extend(bbox.to_array().into_iter().flat_map(f64::to_le_bytes));
    bytes.extend_from_slice(cells.map_or(&[], Cells::as_bytes));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads a whole cover. `None` when it is no cover of a known version.
pub(super) fn decode(cover: &str) -> Option<(Bbox, Option<Cells>)> {
    let (box_digits, rest) = cover.as_bytes().split_at_checked(BOX_DIGITS)?;
    let bbox = decode_box(box_digits)?;
    // More than any writer writes is left unread, and the box stands for itself.
    if rest.is_empty() || rest.len() > limits::COVER_BYTES.div_ceil(3) * 4 {
        return Some((bbox, None));
    }
    let cells = URL_SAFE_NO_PAD.decode(rest).ok()?;
    Some((bbox, Some(Cells::from_bytes(&cells))))
}

/// Tells whether this is the cover of a later version, of which nothing is known here.
pub(super) fn is_later(cover: &str) -> bool {
    URL_SAFE_NO_PAD.decode(cover).is_ok_and(|bytes| bytes.first().is_some_and(|version| *version > VERSION))
}

/// The six bits of each base64url digit, shifted to each of its four places in a group; another byte sets a bit above.
const PLACED: [[u32; 256]; 4] = {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut placed = [[NO_DIGIT; 256]; 4];
    let mut value = 0;
    while value < 64 {
        let mut place = 0;
        while place < 4 {
            placed[place][digits[value] as usize] = (value as u32) << (18 - 6 * place);
            place += 1;
        }
        value += 1;
    }
    placed
};

/// What a byte that is no digit sets.
const NO_DIGIT: u32 = 1 << 24;

/// Reads a box from its digits, which are whole groups of four. Every envelope of every topic comes by here.
#[inline]
fn decode_box(digits: &[u8]) -> Option<Bbox> {
    let (groups, []) = digits.as_chunks::<4>() else { return None };
    if groups.len() != BOX_DIGITS / 4 {
        return None;
    }
    let (mut bytes, mut all) = ([0; BOX_BYTES], 0);
    for (group, out) in groups.iter().zip(bytes.as_chunks_mut::<3>().0) {
        let bits = (0..4).fold(0, |bits, place| bits | PLACED[place][usize::from(group[place])]);
        all |= bits;
        [_, out[0], out[1], out[2]] = bits.to_be_bytes();
    }
    let [version, numbers @ ..] = bytes;
    if all & NO_DIGIT != 0 || version != VERSION {
        return None;
    }
    let [west, south, east, north] = *numbers.as_chunks::<8>().0 else { return None };
    Bbox::new(f64::from_le_bytes(west), f64::from_le_bytes(south), f64::from_le_bytes(east), f64::from_le_bytes(north)).ok()
}
