//! What a Kafka error means.

use rdkafka::{error::KafkaError, types::RDKafkaErrorCode as Code};

use crate::{Fault, FaultKind};

/// Sorts a Kafka error by what is done next.
pub(super) fn fault_of(error: &KafkaError) -> Fault {
    let kind = match error {
        KafkaError::ClientConfig(..) | KafkaError::ClientCreation(..) | KafkaError::Subscription(..) | KafkaError::Nul(..) => {
            FaultKind::Configuration
        }
        KafkaError::MessageConsumptionFatal(_) => FaultKind::Configuration,
        other => other.rdkafka_error_code().map_or(FaultKind::Unavailable, kind_of),
    };
    Fault::new(kind, format!("Kafka: {error}"))
}

fn kind_of(code: Code) -> FaultKind {
    match code {
        Code::UnknownTopicOrPartition
        | Code::UnknownTopic
        | Code::UnknownPartition
        | Code::InvalidTopic
        | Code::TopicAuthorizationFailed
        | Code::GroupAuthorizationFailed
        | Code::ClusterAuthorizationFailed
        | Code::SaslAuthenticationFailed
        | Code::UnsupportedSASLMechanism
        | Code::Authentication
        | Code::PolicyViolation
        | Code::InvalidConfig
        | Code::InconsistentGroupProtocol
        | Code::FencedInstanceId
        | Code::AutoOffsetReset => FaultKind::Configuration,
        Code::MessageSizeTooLarge | Code::InvalidRecord => FaultKind::TooLarge,
        _ => FaultKind::Unavailable,
    }
}
