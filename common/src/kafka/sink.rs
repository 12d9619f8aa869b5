//! The sink: an idempotent producer that keeps the order, awaits every delivery, and is rebuilt when it fails for good.
//!
//! One task owns the client. Records wait in flight in the order they were handed over; a fatal error of the client
//! (its sequence numbers are out of step with the broker's) settles what was delivered, makes a new client, and sends
//! the rest again in the same order with the same bytes, so that every event keeps its identity.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use rdkafka::{
    error::KafkaError,
    producer::{DeliveryFuture, FutureProducer, FutureRecord, Producer},
    types::RDKafkaErrorCode as Code,
};
use tokio::sync::{mpsc, oneshot};

use super::{KafkaSettings, fault::fault_of, headers::outgoing_headers};
use crate::{
    Fault, FaultKind,
    stream::{EnvelopeSink, OutgoingRecord, Receipt},
    telemetry,
};

/// How many records may be in flight; more wait in [`EnvelopeSink::send`].
const IN_FLIGHT_RECORDS: usize = 1_000;

/// How often the client is made anew before a record is delivered in between.
const REBUILDS: u32 = 5;

/// Writes records to one topic.
#[derive(Debug)]
pub struct KafkaSink {
    commands: mpsc::Sender<Command>,
    rebuilt: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Command {
    Send(OutgoingRecord, Settle),
    Flush(oneshot::Sender<()>),
}

type Settle = oneshot::Sender<Result<(), Fault>>;

impl KafkaSink {
    /// Makes a sink for `topic`, which takes records of up to `message_bytes`. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The settings are wrong.
    pub fn open(settings: &KafkaSettings, topic: &str, message_bytes: usize) -> Result<Self, Fault> {
        settings.validate()?;
        let client = Client { config: settings.producer(message_bytes), topic: topic.to_owned() };
        let producer = client.build()?;
        let (commands, received) = mpsc::channel(64);
        let rebuilt = Arc::new(AtomicU64::new(0));
        let driver = Driver { client, producer, in_flight: VecDeque::new(), rebuilds: 0, rebuilt: Arc::clone(&rebuilt) };
        tokio::spawn(driver.run(received));
        Ok(Self { commands, rebuilt })
    }

    /// Returns how often the client has failed for good and been made anew.
    pub fn rebuilt(&self) -> u64 {
        self.rebuilt.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl EnvelopeSink for KafkaSink {
    async fn send(&self, record: OutgoingRecord) -> Receipt {
        let (settle, receipt) = Receipt::new();
        // When the driver is gone, the receipt says so.
        let _ = self.commands.send(Command::Send(record, settle)).await;
        receipt
    }

    async fn flush(&self, within: Duration) -> Result<(), Fault> {
        let (done, flushed) = oneshot::channel();
        let flush = async {
            let _ = self.commands.send(Command::Flush(done)).await;
            let _ = flushed.await;
        };
        tokio::time::timeout(within, flush).await.map_err(|_| Fault::unavailable("Kafka did not take all records in time"))
    }
}

/// What makes a producer.
struct Client {
    config: rdkafka::ClientConfig,
    topic: String,
}

impl Client {
    fn build(&self) -> Result<FutureProducer, Fault> {
        self.config.create().map_err(|error| fault_of(&error))
    }
}

struct InFlight {
    record: OutgoingRecord,
    delivery: Delivery,
    settle: Settle,
}

/// The fate of a record that the client has taken.
enum Delivery {
    Pending(DeliveryFuture),
    Known(Result<(), KafkaError>),
}

impl Delivery {
    /// Waits for the fate. May be dropped and called again.
    async fn wait(&mut self) -> &Result<(), KafkaError> {
        if let Self::Pending(future) = self {
            let fate = match future.await {
                Ok(Ok(_delivered)) => Ok(()),
                Ok(Err((error, _message))) => Err(error),
                Err(_canceled) => Err(KafkaError::Canceled),
            };
            *self = Self::Known(fate);
        }
        match self {
            Self::Known(fate) => fate,
            Self::Pending(_) => &Err(KafkaError::Canceled),
        }
    }
}

struct Driver {
    client: Client,
    producer: FutureProducer,
    in_flight: VecDeque<InFlight>,
    /// How often in a row, without a delivery in between.
    rebuilds: u32,
    rebuilt: Arc<AtomicU64>,
}

impl Driver {
    async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        loop {
            let has_room = self.in_flight.len() < IN_FLIGHT_RECORDS;
            tokio::select! {
                biased;
                command = commands.recv(), if has_room => match command {
                    Some(Command::Send(record, settle)) => self.send(record, settle).await,
                    Some(Command::Flush(done)) => {
                        while !self.in_flight.is_empty() {
                            self.settle_first().await;
                        }
                        let _ = done.send(());
                    }
                    None => break,
                },
                () = first_settles(&mut self.in_flight), if !self.in_flight.is_empty() => self.settle_first().await,
            }
        }
        while !self.in_flight.is_empty() {
            self.settle_first().await;
        }
        // Dropping the client waits for its threads: off the async ones.
        tokio::task::spawn_blocking(move || drop(self.producer));
    }

    async fn send(&mut self, record: OutgoingRecord, settle: Settle) {
        loop {
            match enqueue(&self.producer, &self.client.topic, &record) {
                Ok(delivery) => return self.in_flight.push_back(InFlight { record, delivery, settle }),
                Err(error) if error.rdkafka_error_code() == Some(Code::QueueFull) => {
                    // Back-pressure, not failure.
                    if self.in_flight.is_empty() {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    } else {
                        self.settle_first().await;
                    }
                }
                Err(error) if self.is_fatal() => {
                    if let Err(fault) = self.rebuild(&error).await {
                        let _ = settle.send(Err(fault));
                        return;
                    }
                }
                Err(error) => {
                    let _ = settle.send(Err(fault_of(&error)));
                    return;
                }
            }
        }
    }

    /// Waits for the oldest record and settles it, or makes the client anew and sends what was not delivered again.
    async fn settle_first(&mut self) {
        let Some(mut first) = self.in_flight.pop_front() else { return };
        let fate = first.delivery.wait().await.clone();
        match fate {
            Ok(()) => {
                self.rebuilds = 0;
                let _ = first.settle.send(Ok(()));
            }
            Err(error) if self.is_fatal() => {
                self.in_flight.push_front(first);
                if let Err(fault) = self.rebuild(&error).await {
                    for record in self.in_flight.drain(..) {
                        let _ = record.settle.send(Err(fault.clone()));
                    }
                }
            }
            Err(error) => {
                let _ = first.settle.send(Err(fault_of(&error)));
            }
        }
    }

    fn is_fatal(&self) -> bool {
        self.producer.client().fatal_error().is_some()
    }

    /// Makes a new client and sends again, in order, what the old one did not deliver.
    async fn rebuild(&mut self, cause: &KafkaError) -> Result<(), Fault> {
        self.rebuilds += 1;
        if self.rebuilds > REBUILDS {
            return Err(Fault::new(
                FaultKind::Unavailable,
                format!("the Kafka producer failed {REBUILDS} times in a row: {cause}"),
            ));
        }
        self.rebuilt.fetch_add(1, Ordering::Relaxed);
        telemetry::producer_rebuilt(cause, self.in_flight.len());
        let undelivered = self.undelivered().await;
        tokio::time::sleep(Duration::from_millis(100 << self.rebuilds)).await;
        let old = std::mem::replace(&mut self.producer, self.client.build()?);
        tokio::task::spawn_blocking(move || drop(old));
        for (record, settle) in undelivered {
            match enqueue(&self.producer, &self.client.topic, &record) {
                Ok(delivery) => self.in_flight.push_back(InFlight { record, delivery, settle }),
                Err(error) => {
                    let _ = settle.send(Err(fault_of(&error)));
                }
            }
        }
        Ok(())
    }

    /// Settles what the old client delivered and returns the rest in order.
    async fn undelivered(&mut self) -> Vec<(OutgoingRecord, Settle)> {
        let mut undelivered = Vec::new();
        for InFlight { record, mut delivery, settle } in std::mem::take(&mut self.in_flight) {
            match delivery.wait().await {
                Ok(()) => drop(settle.send(Ok(()))),
                Err(_) => undelivered.push((record, settle)),
            }
        }
        undelivered
    }
}

async fn first_settles(in_flight: &mut VecDeque<InFlight>) {
    if let Some(first) = in_flight.front_mut() {
        first.delivery.wait().await;
    }
}

fn enqueue(producer: &FutureProducer, topic: &str, record: &OutgoingRecord) -> Result<Delivery, KafkaError> {
    let mut outgoing = FutureRecord::<[u8], [u8]>::to(topic);
    outgoing.key = record.key.as_deref();
    outgoing.payload = record.value.as_deref();
    if !record.headers.is_empty() {
        outgoing = outgoing.headers(outgoing_headers(&record.headers));
    }
    producer.send_result(outgoing).map(Delivery::Pending).map_err(|(error, _)| error)
}
