//! What refers to the bodies of a store: topics and archives, as flags.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use geoclaim_common::{
    Fault,
    kafka::{KafkaSettings, topic_facts},
    store::{Bucket, Lifecycle},
};
use geoclaim_producer::sweep::{ArchiveLog, Log, TopicLog};

use crate::{
    console,
    failure::Failure,
    topics::{SECONDS_A_DAY, dead_letters_of},
};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "What refers to bodies")]
pub(crate) struct ReferrerArgs {
    /// The topic of the dead letters [default: TOPIC.dead-letters]
    #[arg(long, env = "GEOCLAIM_DEAD_LETTER_TOPIC", value_name = "TOPIC")]
    dead_letter_topic: Option<String>,
    /// A further topic with envelopes of this store: of another publisher, of retries, of a kafka: sink, or their dead letters
    #[arg(long, value_name = "TOPIC")]
    also_topic: Vec<String>,
    /// A file of envelopes from which they may be sent again, one JSON a line, as inspect --json writes it
    #[arg(long, value_name = "FILE")]
    archive: Vec<PathBuf>,
    /// After how many days the bucket deletes bodies by itself, or never; for a store that does not say (S3 does)
    #[arg(long, value_name = "DAYS", value_parser = lifecycle)]
    body_lifecycle: Option<Lifecycle>,
}

fn lifecycle(text: &str) -> Result<Lifecycle, String> {
    match text {
        "never" => Ok(Lifecycle::Never),
        _ => text
            .parse::<u64>()
            .map(|days| Lifecycle::After(std::time::Duration::from_secs(days.saturating_mul(SECONDS_A_DAY))))
            .map_err(|_| "expected a number of days, or never".to_owned()),
    }
}

impl ReferrerArgs {
    /// Returns the topics: that of the envelopes first, the one of their dead letters next where there is one.
    pub(crate) async fn topics(&self, kafka: &KafkaSettings, topic: &str) -> Result<Vec<String>, Failure> {
        let mut topics = vec![topic.to_owned()];
        match &self.dead_letter_topic {
            Some(letters) => topics.push(letters.clone()),
            None => topics.extend(self.usual_letters(kafka, topic).await?),
        }
        topics.extend(self.also_topic.iter().cloned());
        let mut seen = std::collections::BTreeSet::new();
        topics.retain(|topic| seen.insert(topic.clone()));
        Ok(topics)
    }

    /// The topic that dead letters go to when nothing is said; there is none before a consumer has been started.
    async fn usual_letters(&self, kafka: &KafkaSettings, topic: &str) -> Result<Option<String>, Failure> {
        let letters = dead_letters_of(topic);
        let (kafka, name) = (kafka.clone(), letters.clone());
        let look = tokio::task::spawn_blocking(move || topic_facts(&kafka, &name));
        if look.await.map_err(|error| Failure::wrong(error.to_string()))??.is_some() {
            return Ok(Some(letters));
        }
        console::note(&format!("there is no topic {letters}; if dead letters go elsewhere, name it by --dead-letter-topic"));
        Ok(None)
    }

    /// Returns everything that refers to bodies.
    pub(crate) async fn logs(&self, kafka: &KafkaSettings, topic: &str) -> Result<Vec<Arc<dyn Log>>, Failure> {
        let topics = self.topics(kafka, topic).await?;
        let topics = topics.into_iter().map(|topic| Arc::new(TopicLog { kafka: kafka.clone(), topic }) as Arc<dyn Log>);
        let archives = self.archive.iter().map(|path| Arc::new(ArchiveLog::new(path.clone())) as Arc<dyn Log>);
        Ok(topics.chain(archives).collect())
    }

    /// Returns when the bucket deletes bodies by itself: as it says itself and as is said of it, whichever is earlier.
    pub(crate) async fn lifecycle(&self, store: &str) -> Result<Lifecycle, Fault> {
        let told = Bucket::open(store)?.lifecycle().await;
        Ok(match (told, self.body_lifecycle.clone()) {
            (told, None) => told,
            (Lifecycle::After(told), Some(Lifecycle::After(said))) => Lifecycle::After(told.min(said)),
            (told @ Lifecycle::After(_), Some(_)) => told,
            (_, Some(said)) => said,
        })
    }
}
