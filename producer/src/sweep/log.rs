//! What refers to bodies.

use std::{
    fmt,
    fs::File,
    io::{BufRead as _, BufReader},
    ops::ControlFlow,
    path::PathBuf,
    time::Duration,
};

use geoclaim_common::{
    Digest, Envelope, Fault,
    envelope::Content,
    kafka::{KafkaSettings, read_everything},
    retention::Evidence,
};

/// A record that may refer to a body.
#[derive(Clone, Copy, Debug)]
pub struct Reference<'a> {
    /// Its partition.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// An envelope; `None` for a tombstone.
    pub value: Option<&'a [u8]>,
}

/// A log that refers to bodies. Its methods block.
pub trait Log: Send + Sync + fmt::Debug {
    /// Returns its name, as places in it are named by.
    fn name(&self) -> &str;

    /// Says how long its records can be read.
    ///
    /// # Errors
    /// What is not known.
    fn evidence(&self) -> Result<Evidence, Fault>;

    /// Gives every record that can be read, up to the end as of now.
    ///
    /// # Errors
    /// Some of it cannot be read; what `visit` fails with.
    fn read(&self, visit: &mut dyn FnMut(Reference<'_>) -> Result<(), Fault>) -> Result<(), Fault>;
}

/// A topic: of envelopes, of dead letters, of retries.
#[derive(Clone, Debug)]
pub struct TopicLog {
    /// How to reach it.
    pub kafka: KafkaSettings,
    /// Its name.
    pub topic: String,
}

impl Log for TopicLog {
    fn name(&self) -> &str {
        &self.topic
    }

    fn evidence(&self) -> Result<Evidence, Fault> {
        Evidence::of_topic(&self.kafka, &self.topic)
    }

    fn read(&self, visit: &mut dyn FnMut(Reference<'_>) -> Result<(), Fault>) -> Result<(), Fault> {
        let mut failed = None;
        read_everything(&self.kafka, &self.topic, |record| {
            let reference = Reference { partition: record.partition, offset: record.offset, value: record.value.as_deref() };
            match visit(reference) {
                Ok(()) => ControlFlow::Continue(()),
                Err(fault) => {
                    failed = Some(fault);
                    ControlFlow::Break(())
                }
            }
        })?;
        failed.map_or(Ok(()), Err)
    }
}

/// A file of envelopes, one a line, from which they can be sent again.
#[derive(Clone, Debug)]
pub struct ArchiveLog {
    name: String,
    path: PathBuf,
}

impl ArchiveLog {
    /// Names a file. `geoclaim inspect --json` writes such.
    pub fn new(path: PathBuf) -> Self {
        Self { name: path.display().to_string(), path }
    }

    fn lines(&self) -> Result<impl Iterator<Item = Result<(i64, Vec<u8>), Fault>>, Fault> {
        let failed =
            |error: &std::io::Error| Fault::configuration(format!("archive {} cannot be read: {error}", self.path.display()));
        let file = File::open(&self.path).map_err(|error| failed(&error))?;
        let lines = (1..).zip(BufReader::new(file).split(b'\n'));
        Ok(lines.map(move |(number, line)| line.map(|line| (number, line)).map_err(|error| failed(&error))))
    }
}

impl Log for ArchiveLog {
    fn name(&self) -> &str {
        &self.name
    }

    fn evidence(&self) -> Result<Evidence, Fault> {
        let mut earliest = None;
        for line in self.lines()? {
            let (number, line) = line?;
            if line.trim_ascii().is_empty() {
                continue;
            }
            let occurred_at = Envelope::decode(&line).ok().and_then(|envelope| envelope.occurred_at);
            let missing = || Fault::configuration(format!("archive {}, line {number}: no envelope with a time", self.name));
            earliest = earliest.into_iter().chain(Some(occurred_at.ok_or_else(missing)?)).min();
        }
        Ok(Evidence { name: format!("archive {}", self.name), kept: Duration::ZERO, earliest })
    }

    fn read(&self, visit: &mut dyn FnMut(Reference<'_>) -> Result<(), Fault>) -> Result<(), Fault> {
        for line in self.lines()? {
            let (offset, line) = line?;
            visit(Reference {
                partition: 0,
                offset,
                value: Some(&line).filter(|line| !line.trim_ascii().is_empty()).map(Vec::as_slice),
            })?;
        }
        Ok(())
    }
}

/// Returns the body that an envelope refers to, if any.
///
/// # Errors
/// It cannot be decoded, and so may refer to anything.
pub(crate) fn referred(value: &[u8]) -> Result<Option<Digest>, Fault> {
    match Envelope::decode(value)?.content {
        Content::Claim(claim) => Ok(Some(claim.digest)),
        Content::Inline(_) | Content::Deleted => Ok(None),
    }
}

/// Returns everything in a record that looks like a digest: 64 hexadecimal digits in lower case, wherever they begin.
pub(crate) fn lookalikes(value: &[u8]) -> impl Iterator<Item = Digest> + '_ {
    const DIGITS: usize = 64;
    value.windows(DIGITS).filter_map(|window| std::str::from_utf8(window).ok()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digest_in_a_damaged_record_counts_as_a_reference() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let damaged = format!("{{\"body_sha256\":\"{a}\",\"body_key\":\"geom/{}/{b}.json\",\"cut", b.shard());
        assert!(referred(damaged.as_bytes()).is_err());
        let found: Vec<_> = lookalikes(damaged.as_bytes()).collect();
        assert!(found.contains(&a) && found.contains(&b), "{found:?}");
    }
}
