//! The HTTP requests that the harness itself sends, over plain TCP.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// More than any reply has that is asked for.
const REPLY_LIMIT_BYTES: u64 = 4 << 20;

/// Sends a PUT on a connection of its own and returns the status; the rest of the reply is not kept.
pub(super) fn put(address: &str, path: &str, headers: &[(&str, &str)], body: &[u8], timeout: Duration) -> io::Result<u16> {
    send("PUT", address, path, headers, body, timeout)
}

/// As [`put`], with any method.
pub(super) fn send(
    method: &str,
    address: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
    timeout: Duration,
) -> io::Result<u16> {
    Ok(exchange(method, address, path, headers, body, timeout)?.0)
}

/// As [`send`], and returns what the reply carries.
pub(super) fn exchange(
    method: &str,
    address: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
    timeout: Duration,
) -> io::Result<(u16, String)> {
    let mut request = format!("{method} {path} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("Content-Length: {}\r\n\r\n", body.len());
    let mut connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(timeout))?;
    connection.set_write_timeout(Some(timeout))?;
    connection.write_all(request.as_bytes())?;
    connection.write_all(body)?;
    let mut reply = String::new();
    connection.take(REPLY_LIMIT_BYTES).read_to_string(&mut reply)?;
    let status = reply.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not an HTTP reply"))?;
    Ok((status, reply.split_once("\r\n\r\n").map_or_else(String::new, |(_, carried)| carried.to_owned())))
}
