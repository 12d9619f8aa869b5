//! Records and the offsets of what they were made of, in one transaction.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rdkafka::{
    Offset, TopicPartitionList,
    consumer::ConsumerGroupMetadata,
    error::{KafkaError, RDKafkaError},
    producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer},
    types::RDKafkaErrorCode as Code,
};

use super::{KafkaSettings, fault::fault_of, headers::outgoing_headers, source::Membership};
use crate::{
    Fault, FaultKind,
    stream::{Assignment, OutgoingRecord},
    telemetry,
};

/// How long one step of a transaction waits for a broker's answer.
const STEP: Duration = Duration::from_secs(30);

/// How often a commit without an answer is asked for again; the broker does it once.
const COMMITS: u32 = 4;

/// How far a partition of the input has been worked through, to be committed with what was made of it.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The partition.
    pub partition: i32,
    /// The next offset to read.
    pub next: i64,
    /// The partition's assignment: once it is revoked, the work is somebody else's.
    pub assignment: Arc<Assignment>,
}

/// Where the input comes from.
#[derive(Clone, Debug)]
pub struct Input {
    /// The topic that is read.
    pub topic: String,
    /// The group's member that reads it.
    pub membership: Membership,
}

/// Writes records to one topic, in transactions. One at a time with one transactional id: whoever opens another with the
/// same id fences the first.
pub struct TransactionalSink {
    settings: KafkaSettings,
    topic: String,
    message_bytes: usize,
    transactional_id: String,
    input: Input,
    /// `None` until the first use, and after a failure that it does not survive.
    producer: Mutex<Option<ThreadedProducer<DefaultProducerContext>>>,
}

impl TransactionalSink {
    /// Makes a sink for `topic`, which takes records of up to `message_bytes`. The transactional id must stay the same when
    /// a member is started again, and be another one for each member. Connects and fences its predecessor. Blocks.
    ///
    /// # Errors
    /// The settings are wrong or no broker answers.
    pub fn open(
        settings: &KafkaSettings,
        (topic, message_bytes): (&str, usize),
        transactional_id: &str,
        input: Input,
    ) -> Result<Self, Fault> {
        settings.validate()?;
        input.membership.be_transactional();
        let (topic, transactional_id, settings) = (topic.to_owned(), transactional_id.to_owned(), settings.clone());
        let sink = Self { settings, topic, message_bytes, transactional_id, input, producer: Mutex::new(None) };
        *sink.producer.lock().unwrap_or_else(PoisonError::into_inner) = Some(sink.connect()?);
        Ok(sink)
    }

    /// Returns how many bytes a record may have, as the broker counts them.
    pub fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    /// Returns the member whose progress is committed.
    pub fn membership(&self) -> &Membership {
        &self.input.membership
    }

    /// Writes records and progress in one transaction, and returns when it is committed. Blocks.
    ///
    /// # Errors
    /// [`FaultKind::Fenced`]: another has the transactional id. [`FaultKind::Unavailable`]: nothing of it is to be taken for
    /// written, nor for not written: a reader of what is committed can tell.
    pub fn write(&self, records: &[OutgoingRecord], progress: &[Progress]) -> Result<(), Fault> {
        let mut slot = self.producer.lock().unwrap_or_else(PoisonError::into_inner);
        // In this order: a generation of the group that is asked for before the partitions are seen to be ours is none in
        // which they are another's.
        let member = self.input.membership.metadata();
        if progress.iter().any(|progress| progress.assignment.is_revoked()) {
            return Err(Fault::unavailable("a partition was revoked before its transaction"));
        }
        let producer = match slot.take() {
            Some(producer) => producer,
            None => self.connect()?,
        };
        let written = self.transact(&producer, records, (progress, member));
        match &written {
            Ok(()) => *slot = Some(producer),
            // One that can abort can go on; any other is made anew, and the broker aborts what it left.
            Err(fault) if fault.kind != FaultKind::Fenced && producer.abort_transaction(STEP).is_ok() => *slot = Some(producer),
            Err(_) => {}
        }
        written
    }

    /// Leaves; nothing is written afterwards but by a producer that is made anew. Blocks.
    pub fn close(&self) {
        drop(self.producer.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn connect(&self) -> Result<ThreadedProducer<DefaultProducerContext>, Fault> {
        let mut config = self.settings.producer(self.message_bytes);
        config
            .set("transactional.id", &self.transactional_id)
            .set("transaction.timeout.ms", "60000")
            .set("message.timeout.ms", "50000");
        let producer: ThreadedProducer<DefaultProducerContext> = config.create().map_err(|error| fault_of(&error))?;
        producer.init_transactions(STEP).map_err(|error| self.told("begin transactions", &error))?;
        Ok(producer)
    }

    fn transact(
        &self,
        producer: &ThreadedProducer<DefaultProducerContext>,
        records: &[OutgoingRecord],
        (progress, member): (&[Progress], Option<ConsumerGroupMetadata>),
    ) -> Result<(), Fault> {
        producer.begin_transaction().map_err(|error| self.told("begin a transaction", &error))?;
        records.iter().try_for_each(|record| self.enqueue(producer, record))?;
        if let Some(member) = member.filter(|_| !progress.is_empty()) {
            let mut offsets = TopicPartitionList::new();
            for Progress { partition, next, .. } in progress {
                let added = offsets.add_partition_offset(&self.input.topic, *partition, Offset::Offset(*next));
                added.map_err(|error| fault_of(&error))?;
            }
            let sent = producer.send_offsets_to_transaction(&offsets, &member, STEP);
            sent.map_err(|error| self.told("send offsets to the transaction", &error))?;
        }
        self.commit(producer)
    }

    fn enqueue(&self, producer: &ThreadedProducer<DefaultProducerContext>, record: &OutgoingRecord) -> Result<(), Fault> {
        loop {
            let mut outgoing = BaseRecord::<[u8], [u8]>::to(&self.topic);
            outgoing.key = record.key.as_deref();
            outgoing.payload = record.value.as_deref();
            outgoing.headers = (!record.headers.is_empty()).then(|| outgoing_headers(&record.headers));
            match producer.send(outgoing) {
                Ok(()) => return Ok(()),
                // Back-pressure, not failure.
                Err((KafkaError::MessageProduction(Code::QueueFull), _)) => std::thread::sleep(Duration::from_millis(5)),
                Err((error, _)) => return Err(self.told("write a record", &error)),
            }
        }
    }

    fn commit(&self, producer: &ThreadedProducer<DefaultProducerContext>) -> Result<(), Fault> {
        let mut failures = 0;
        loop {
            let Err(error) = producer.commit_transaction(STEP) else { return Ok(()) };
            failures += 1;
            let fault = self.told("commit a transaction", &error);
            let is_retriable = matches!(&error, KafkaError::Transaction(told) if told.is_retriable());
            if !is_retriable || failures >= COMMITS {
                return Err(fault);
            }
            telemetry::retried("commit a transaction", &fault, failures);
        }
    }

    fn told(&self, what: &str, error: &KafkaError) -> Fault {
        let fault = fault_of(error);
        let is_fenced =
            |told: &RDKafkaError| matches!(told.code(), Code::Fenced | Code::ProducerFenced | Code::InvalidProducerEpoch);
        match error {
            KafkaError::Transaction(told) if is_fenced(told) => {
                let advice = "another consumer with it has started (give each its own), or this one stood still for longer than a transaction may \
                     take (start it again)";
                let id = &self.transactional_id;
                Fault::new(
                    FaultKind::Fenced,
                    format!("cannot {what}: transactional id {id:?} is fenced ({}); {advice}", fault.detail),
                )
            }
            _ => Fault::new(fault.kind, format!("cannot {what}: {}", fault.detail)),
        }
    }
}

impl fmt::Debug for TransactionalSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, transactional_id, .. } = self;
        f.debug_struct("TransactionalSink")
            .field("topic", topic)
            .field("transactional_id", transactional_id)
            .finish_non_exhaustive()
    }
}
