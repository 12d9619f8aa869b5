//! Records of a topic, and bodies that they refer to, for a person who looks.

use std::{ops::ControlFlow, sync::Arc};

use geoclaim_common::{
    Fault, Spool,
    clock::SystemClock,
    fault::RetrySettings,
    kafka::{KafkaSettings, StoredRecord, read_topic},
    limits,
    store::{self, LocalDirectory},
};
use geoclaim_consumer::resolve::{Allowance, Resolver};
use tokio::sync::mpsc;

use crate::failure::Failure;

/// Reads a topic to its end on a thread of its own and gives the records that `wants` says yes to; it ends early when
/// that breaks, or when nobody listens any more.
pub(crate) fn read(
    kafka: &KafkaSettings,
    topic: &str,
    mut wants: impl FnMut(&StoredRecord) -> ControlFlow<(), bool> + Send + 'static,
) -> mpsc::Receiver<Result<StoredRecord, Fault>> {
    let (kafka, topic) = (kafka.clone(), topic.to_owned());
    let (sender, receiver) = mpsc::channel(64);
    tokio::task::spawn_blocking(move || {
        let ended = read_topic(&kafka, &topic, |record| {
            if wants(&record)? && sender.blocking_send(Ok(record)).is_err() {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        if let Err(fault) = ended {
            let _ = sender.blocking_send(Err(fault));
        }
    });
    receiver
}

/// Opens a store to look for bodies in it.
pub(crate) async fn resolver(url: &str) -> Result<Resolver, Failure> {
    let store = store::open(url, LocalDirectory::Expect)?;
    store::check(&store).await?;
    let allowance = Allowance::new(limits::BODY_BYTES, limits::CONSUME_IN_FLIGHT_BYTES, Spool::default());
    Ok(Resolver::new(store, Arc::new(SystemClock), (RetrySettings::default(), allowance), Arc::default()))
}
