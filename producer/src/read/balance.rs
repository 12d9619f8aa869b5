//! Where a JSON object or array ends, in bytes that come in pieces.

/// Follows one object or array. Only what can hide or close it is looked at: for an object, braces and strings, so
/// that coordinates are passed over at the speed of a vector search; for an array, its brackets as well.
#[derive(Clone, Copy, Debug)]
pub(super) struct Balance {
    open: u8,
    close: u8,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Balance {
    /// Follows the object or array whose first byte comes next.
    pub(super) fn of(first: u8) -> Self {
        let close = if first == b'{' { b'}' } else { b']' };
        Self { open: first, close, depth: 0, in_string: false, escaped: false }
    }

    /// Takes the next piece. Returns how many of its bytes belong to the value when it ends there.
    pub(super) fn feed(&mut self, piece: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < piece.len() {
            if self.escaped {
                self.escaped = false;
                at += 1;
                continue;
            }
            if self.in_string {
                at += memchr::memchr2(b'"', b'\\', &piece[at..])? + 1;
                match piece[at - 1] {
                    b'"' => self.in_string = false,
                    _ => self.escaped = true,
                }
                continue;
            }
            at += memchr::memchr3(self.open, self.close, b'"', &piece[at..])? + 1;
            match piece[at - 1] {
                b'"' => self.in_string = true,
                byte if byte == self.open => self.depth += 1,
                _ => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at);
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_however_the_bytes_are_cut() {
        let text = br#"{"a}\"":[1,{"b":"\\"}],"c":"{"} rest"#;
        let end = text.len() - " rest".len();
        for cut in 1..end {
            let mut balance = Balance::of(b'{');
            let first = balance.feed(&text[..cut]);
            assert_eq!(first, None, "{cut}");
            assert_eq!(balance.feed(&text[cut..]), Some(end - cut), "{cut}");
        }
        assert_eq!(Balance::of(b'[').feed(b"[[{\"]\":1}],2],"), Some(13));
    }
}
