//! Headers out of the receive buffer.

use bytes::Bytes;
use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};

use crate::stream::Header;

pub(super) fn owned_headers(message: &BorrowedMessage<'_>) -> Vec<Header> {
    let headers = message.headers().into_iter().flat_map(|headers| headers.iter());
    headers.map(|header| (header.key.to_owned(), header.value.map(Bytes::copy_from_slice))).collect()
}
