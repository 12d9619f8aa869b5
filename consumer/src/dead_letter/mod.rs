//! Setting an envelope aside with its reason.
//!
//! A dead letter is the record as it came (key, value and headers untouched) with headers that say why and from where:
//! under names of geoclaim's own, and once more under those that the tools of Kafka Connect show.
//!
//! | Header | Value |
//! | --- | --- |
//! | `geoclaim.reason` | the stable name of the fault, such as `body_missing` |
//! | `geoclaim.class` | `missing`, `damaged`, `poison`, `transient`, `outcome`, `fenced` or `configuration` |
//! | `geoclaim.detail` | one line for people, at most 256 bytes |
//! | `geoclaim.attempts` | how often it was tried |
//! | `geoclaim.feature_id`, `geoclaim.event_id` | of the envelope, where it could be read |
//! | `geoclaim.topic`, `.partition`, `.offset`, `.timestamp` | where the record stood, and the broker's time in ms |
//! | `geoclaim.version` | of the consumer |
//! | `__connect.errors.*` | the same, as Kafka Connect names it |

mod letter;

use std::sync::Arc;

use geoclaim_common::{
    Fault,
    stream::{EnvelopeSink, OutgoingRecord},
};

pub use letter::{Failed, HEADER_PREFIX, Letter, Origin, REDRIVES, letter, redriven, redriven_from};

/// Takes dead letters.
#[derive(Clone, Debug)]
pub struct DeadLetters {
    sink: Arc<dyn EnvelopeSink>,
}

impl DeadLetters {
    /// Writes letters to `sink`.
    pub fn new(sink: Arc<dyn EnvelopeSink>) -> Self {
        Self { sink }
    }

    /// Writes a letter and waits until it is durable. Only then may the offset advance.
    ///
    /// # Errors
    /// The letter may not have been written: the consumer must stop.
    pub async fn set_aside(&self, record: OutgoingRecord, origin: &Origin, failed: &Failed) -> Result<(), Fault> {
        let letter = letter(record, origin, failed);
        self.sink.send(letter).await.acknowledged().await.map_err(|error| {
            Fault::new(error.kind, format!("a dead letter could not be written, so the consumer stops: {}", error.detail))
        })
    }
}
