//! Reading a topic again, and comparing what comes of it.

use std::path::PathBuf;

use clap::Args;
use geoclaim_common::{
    Timestamp,
    kafka::{KafkaSettings, ReplayFrom, begin_at},
};
use geoclaim_consumer::compare::{Comparison, compare};

use crate::{console, failure::Failure, sinks::SinkTarget, time};

#[derive(Debug, Args)]
#[command(next_help_heading = "Replay")]
#[group(skip)]
pub(crate) struct ReplayArgs {
    /// Read the topic from its start to its end, beside the group and its offsets; a ledger that knows an event does not
    /// apply it again
    #[arg(long, group = "replay")]
    from_start: bool,
    /// As --from-start, from the first records of this time on: RFC 3339, or an age such as 2h or 7d
    #[arg(long, value_name = "TIME", value_parser = time::moment, group = "replay")]
    from: Option<Timestamp>,
    /// As --from-start, from the offsets in this file on: topic,partition,offset a line, as kafka-consumer-groups exports them
    #[arg(long, value_name = "FILE", group = "replay")]
    from_offsets: Option<PathBuf>,
    /// Of the areas, look for these only: those that were added after the topic had been read
    #[arg(long, value_name = "ID", value_delimiter = ',', num_args = 1.., requires = "replay")]
    pub(super) areas_only: Vec<String>,
    /// After the replay, compare what the sink holds with what this one holds: gpkg:FILE or postgres://…
    #[arg(long, value_name = "SINK", requires = "replay")]
    compare: Option<SinkTarget>,
    /// The consumer whose features in the other sink are compared, where it holds those of several [default: the group]
    #[arg(long, value_name = "NAME", requires = "compare")]
    compare_consumer: Option<String>,
}

impl ReplayArgs {
    /// Tells whether the topic is read again.
    pub(super) fn is_given(&self) -> bool {
        self.from_start || self.from.is_some() || self.from_offsets.is_some()
    }

    /// Says where a group begins that nobody has joined yet.
    pub(super) async fn begin(&self, kafka: &KafkaSettings, topic: &str, group: &str) -> Result<(), Failure> {
        let from = match (&self.from_offsets, self.from) {
            (Some(file), _) => {
                let text = std::fs::read_to_string(file)
                    .map_err(|error| Failure::misuse(format!("offsets {}: {error}", file.display())))?;
                ReplayFrom::read_offsets(&text, topic)?
            }
            (None, Some(time)) => ReplayFrom::Time(time),
            (None, None) => ReplayFrom::Start,
        };
        let (kafka, topic, group) = (kafka.clone(), topic.to_owned(), group.to_owned());
        let begin = tokio::task::spawn_blocking(move || begin_at(&kafka, &topic, &group, &from));
        begin.await.map_err(|error| Failure::wrong(error.to_string()))??;
        Ok(())
    }

    /// Checks that both sinks can be compared, before anything is read.
    pub(super) fn check(&self, sink: &SinkTarget) -> Result<(), Failure> {
        let Some(other) = &self.compare else { return Ok(()) };
        if !(sink.keeps_state() && other.keeps_state()) {
            return Err(Failure::misuse("--compare is for sinks that keep features: gpkg:FILE or postgres://…"));
        }
        if sink == other && self.compare_consumer.is_none() {
            return Err(Failure::misuse("--compare names the sink that is written to: it would be compared with itself"));
        }
        Ok(())
    }

    /// Compares what the sink holds now with the other one.
    pub(super) async fn compared(&self, sink: &SinkTarget, consumer: &str, group: &str) -> Result<Option<Comparison>, Failure> {
        let Some(other) = &self.compare else { return Ok(None) };
        let new = sink.features(consumer).await?;
        let old = other.features(self.compare_consumer.as_deref().unwrap_or(group)).await?;
        Ok(Some(compare(new.as_ref(), old.as_ref()).await?))
    }
}

/// Says what a comparison came to.
pub(super) fn tell(comparison: &Comparison) {
    let Comparison { same, different, only_new, only_old, examples } = comparison;
    console::line(&format!(
        "compared: {same} features are the same, {different} different, {only_new} only in the new one, {only_old} only in the old one"
    ));
    for example in examples {
        console::line(&format!("  {}", console::printable(example)));
    }
}
