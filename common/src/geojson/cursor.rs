//! A validating cursor over JSON text: it moves over one token or value at a time and never allocates.

use std::ops::Range;

use super::{ScanError, number};
use crate::limits;

/// A place in JSON text.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Whether a member or an element has been read since the innermost object or array began.
    first: bool,
}

/// The name of a member: where it lies between its quotes.
#[derive(Clone, Debug)]
pub struct Key(Range<usize>);

type Result<T> = std::result::Result<T, ScanError>;

impl<'a> Cursor<'a> {
    /// Stands at byte `at` of `bytes`.
    pub fn at(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, first: true }
    }

    /// Returns the byte offset.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Returns all bytes.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Moves to a byte offset where a value begins.
    pub(super) fn move_to(&mut self, at: usize) {
        self.at = at;
    }

    /// Returns the byte here, or `None` at the end.
    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Moves over white space.
    pub fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Makes an error that says what was expected here and what is here.
    pub(super) fn expected(&self, what: &str) -> ScanError {
        let found = match self.peek() {
            None => "the end of the text".to_owned(),
            Some(b'N') if self.bytes[self.at..].starts_with(b"NaN") => "NaN, which is not JSON".to_owned(),
            Some(b'I') if self.bytes[self.at..].starts_with(b"Infinity") => "Infinity, which is not JSON".to_owned(),
            Some(byte) if byte.is_ascii_graphic() => format!("'{}'", char::from(byte)),
            Some(byte) => format!("byte 0x{byte:02x}"),
        };
        ScanError::new(self.at, format!("expected {what}, found {found}"))
    }

    /// Moves over `byte`.
    pub(super) fn take(&mut self, byte: u8, what: &str) -> Result<()> {
        if self.peek() != Some(byte) {
            return Err(self.expected(what));
        }
        self.at += 1;
        Ok(())
    }

    /// Moves into an object.
    pub fn open_object(&mut self) -> Result<()> {
        self.take(b'{', "an object")?;
        self.first = true;
        Ok(())
    }

    /// Moves to the value of the next member of an object and returns its name, or moves out of the object.
    pub fn next_key(&mut self) -> Result<Option<Key>> {
        self.skip_whitespace();
        if self.peek() == Some(b'}') {
            self.at += 1;
            self.first = false;
            return Ok(None);
        }
        if !self.first {
            self.take(b',', "',' or '}'")?;
            self.skip_whitespace();
        }
        let key = Key(self.string()?);
        self.skip_whitespace();
        self.take(b':', "':'")?;
        self.skip_whitespace();
        self.first = false;
        Ok(Some(key))
    }

    /// Tells whether a member's name is `name`, whatever escapes it was written with.
    pub fn key_is(&self, key: &Key, name: &str) -> bool {
        self.key_text(key).as_deref() == Some(name)
    }

    /// Returns the text of a member's name.
    pub(super) fn key_text(&self, key: &Key) -> Option<std::borrow::Cow<'a, str>> {
        let raw = &self.bytes[key.0.clone()];
        if memchr::memchr(b'\\', raw).is_none() {
            return std::str::from_utf8(raw).ok().map(std::borrow::Cow::Borrowed);
        }
        let quoted = &self.bytes[key.0.start - 1..=key.0.end];
        serde_json::from_slice::<String>(quoted).ok().map(std::borrow::Cow::Owned)
    }

    /// Moves into an array. Returns `false`, and has moved over it, when it is empty.
    pub(super) fn open_array(&mut self, what: &str) -> Result<bool> {
        self.take(b'[', what)?;
        self.skip_whitespace();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(false);
        }
        Ok(true)
    }

    /// Moves to the next element of an array. Returns `false`, and has moved out, when there is none.
    #[inline]
    pub(super) fn next_element(&mut self) -> Result<bool> {
        self.skip_whitespace();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.skip_whitespace();
                Ok(true)
            }
            Some(b']') => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.expected("',' or ']'")),
        }
    }

    /// Moves over a number and returns it.
    #[inline]
    pub(super) fn number(&mut self) -> Result<f64> {
        match number::parse(&self.bytes[self.at..]) {
            Ok((value, length)) => {
                self.at += length;
                Ok(value)
            }
            Err(0) => Err(self.expected("a number")),
            Err(offset) => {
                self.at += offset;
                Err(self.expected("a digit of a number"))
            }
        }
    }

    /// Moves over a string and returns where its text lies between the quotes. Only in strings can JSON have other
    /// characters than those of ASCII, so that this is where UTF-8 is checked.
    pub(super) fn string(&mut self) -> Result<Range<usize>> {
        self.take(b'"', "a string")?;
        let start = self.at;
        loop {
            let Some(offset) = self.bytes[self.at..].iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)) else {
                return Err(ScanError::new(start - 1, "a string that does not end"));
            };
            self.at += offset;
            match self.bytes[self.at] {
                b'"' => {
                    let text = start..self.at;
                    if let Err(error) = std::str::from_utf8(&self.bytes[text.clone()]) {
                        return Err(ScanError::new(start + error.valid_up_to(), "not UTF-8"));
                    }
                    self.at += 1;
                    return Ok(text);
                }
                b'\\' => self.escape()?,
                _ => return Err(self.expected("a string without control characters")),
            }
        }
    }

    fn escape(&mut self) -> Result<()> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                let unit = self.code_unit()?;
                if (0xdc00..0xe000).contains(&unit) {
                    return Err(ScanError::new(self.at - 6, "a lone low surrogate in a string"));
                }
                if (0xd800..0xdc00).contains(&unit) {
                    let paired = self.bytes[self.at..].starts_with(b"\\u");
                    self.at += usize::from(paired);
                    if !paired || !(0xdc00..0xe000).contains(&self.code_unit()?) {
                        return Err(ScanError::new(self.at, "a lone high surrogate in a string"));
                    }
                }
            }
            _ => return Err(self.expected("an escape")),
        }
        Ok(())
    }

    /// Moves over `uXXXX` and returns the code unit.
    fn code_unit(&mut self) -> Result<u32> {
        let digits = self.bytes.get(self.at + 1..self.at + 5);
        let text =
            digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit)).and_then(|digits| std::str::from_utf8(digits).ok());
        let unit =
            text.and_then(|text| u32::from_str_radix(text, 16).ok()).ok_or_else(|| self.expected("four hexadecimal digits"))?;
        self.at += 5;
        Ok(unit)
    }

    /// Moves over one value of any kind, validating it. Arrays and objects may nest [`limits::JSON_DEPTH`] deep.
    pub fn skip_value(&mut self) -> Result<()> {
        let first = self.first;
        // One bit a level, the innermost last: 1 for an object, 0 for an array.
        let mut objects = 0_u128;
        let mut depth = 0;
        loop {
            let opened = match self.peek() {
                Some(b'{') => Some(1),
                Some(b'[') => Some(0),
                _ => None,
            };
            if let Some(kind) = opened {
                if depth == limits::JSON_DEPTH {
                    return Err(ScanError::new(self.at, format!("nested deeper than {depth} levels")));
                }
                self.at += 1;
                objects = objects << 1 | kind;
                depth += 1;
                self.skip_whitespace();
                let close = if kind == 1 { b'}' } else { b']' };
                if self.peek() != Some(close) {
                    if kind == 1 {
                        self.skip_key()?;
                    }
                    continue;
                }
                self.at += 1;
                objects >>= 1;
                depth -= 1;
            } else {
                self.scalar()?;
            }
            loop {
                if depth == 0 {
                    self.first = first;
                    return Ok(());
                }
                self.skip_whitespace();
                let in_object = objects & 1 == 1;
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        self.skip_whitespace();
                        if in_object {
                            self.skip_key()?;
                        }
                        break;
                    }
                    Some(b'}') if in_object => self.at += 1,
                    Some(b']') if !in_object => self.at += 1,
                    _ => return Err(self.expected(if in_object { "',' or '}'" } else { "',' or ']'" })),
                }
                objects >>= 1;
                depth -= 1;
            }
        }
    }

    fn skip_key(&mut self) -> Result<()> {
        self.string()?;
        self.skip_whitespace();
        self.take(b':', "':'")?;
        self.skip_whitespace();
        Ok(())
    }

    fn scalar(&mut self) -> Result<()> {
        let rest = &self.bytes[self.at..];
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'-' | b'0'..=b'9') => {
                if !self.number()?.is_finite() {
                    return Err(ScanError::new(self.at, "a number beyond the range of a double"));
                }
                Ok(())
            }
            _ => {
                let word = [&b"true"[..], b"false", b"null"].into_iter().find(|word| rest.starts_with(word));
                self.at += word.ok_or_else(|| self.expected("a value"))?.len();
                Ok(())
            }
        }
    }
}
