//! Headers out of the receive buffer, and into a record.

use bytes::Bytes;
use rdkafka::message::{BorrowedMessage, Header as KafkaHeader, Headers as _, Message as _, OwnedHeaders};

use crate::stream::Header;

pub(super) fn owned_headers(message: &BorrowedMessage<'_>) -> Vec<Header> {
    let headers = message.headers().into_iter().flat_map(|headers| headers.iter());
    headers.map(|header| (header.key.to_owned(), header.value.map(Bytes::copy_from_slice))).collect()
}

pub(super) fn outgoing_headers(headers: &[Header]) -> OwnedHeaders {
    let empty = OwnedHeaders::new_with_capacity(headers.len());
    headers.iter().fold(empty, |all, (key, value)| all.insert(KafkaHeader { key, value: value.as_deref() }))
}
