//! What people see: styled lines on standard error, results on standard output.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use bytesize::ByteSize;
use serde::Serialize;

use crate::failure::Failure;

fn styled(style: Style, word: &str) -> String {
    let colour = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    if colour { format!("{style}{word}{style:#}") } else { word.to_owned() }
}

/// Says what went wrong.
pub(crate) fn error(message: &str) {
    let red = AnsiColor::Red.on_default().bold();
    eprintln!("{}: {}", styled(red, "error"), printable(message));
}

/// Says something in passing.
pub(crate) fn note(message: &str) {
    eprintln!("{}: {message}", styled(AnsiColor::Cyan.on_default().bold(), "geoclaim"));
}

/// Says a line of a summary.
pub(crate) fn line(message: &str) {
    eprintln!("{message}");
}

/// Emphasises a word of a summary.
pub(crate) fn strong(word: impl ToString) -> String {
    styled(Style::new().bold(), &word.to_string())
}

/// Prints one JSON object on a line of standard output. A reader that has gone away is no error of ours.
pub(crate) fn json<T: Serialize>(value: &T) -> Result<(), Failure> {
    let mut line = serde_json::to_string(value).map_err(|error| Failure::wrong(error.to_string()))?;
    line.push('\n');
    out(&line)
}

/// Prints to standard output.
pub(crate) fn out(text: &str) -> Result<(), Failure> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Failure::wrong(format!("standard output cannot be written: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Writes a number of bytes for people.
pub(crate) fn bytes(count: u64) -> String {
    ByteSize(count).display().si().to_string()
}

/// Escapes control characters, for a text may hold what somebody sent.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|character| {
            let escaped = character.is_control() && character != '\n';
            let plain = (!escaped).then_some(character);
            plain.into_iter().chain(escaped.then(|| character.escape_default()).into_iter().flatten())
        })
        .collect()
}
