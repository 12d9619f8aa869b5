//! The few requests that the harness itself sends to a broker, over plain TCP.
//!
//! Kafka's own command for them is a Java program that takes two seconds to start, and a client
//! library would make the harness depend on what it is there to test. Field by field as in the
//! protocol guide of Apache Kafka, in the oldest versions that 4.x still speaks.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const METADATA: (i16, i16) = (3, 1);
const API_VERSIONS: (i16, i16) = (18, 0);
const CREATE_TOPICS: (i16, i16) = (19, 2);

const CORRELATION_ID: i32 = 7;
const REPLY_LIMIT_BYTES: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(15);

/// Tells whether the broker answers, which it does only once it has started in full.
pub(super) fn answers(broker: &str) -> bool {
    let reply = call(broker, API_VERSIONS, &[], Duration::from_secs(1));
    reply.and_then(|reply| Reader(&reply).i16()).is_ok_and(|error| error == 0)
}

/// Creates a topic without replicas.
pub(super) fn create_topic(broker: &str, name: &str, partitions: i32, configs: &[(&str, &str)]) -> io::Result<()> {
    let mut body = Vec::new();
    put_length(&mut body, 1);
    put_string(&mut body, name);
    body.extend(partitions.to_be_bytes());
    body.extend(1_i16.to_be_bytes()); // replication factor
    put_length(&mut body, 0); // no assignment by hand
    put_length(&mut body, configs.len());
    for (key, value) in configs {
        put_string(&mut body, key);
        put_string(&mut body, value);
    }
    body.extend(10_000_i32.to_be_bytes()); // the broker's own timeout, in milliseconds
    body.push(0); // not only to validate
    let reply = call(broker, CREATE_TOPICS, &body, TIMEOUT)?;
    let mut reply = Reader(&reply);
    let (_throttle_ms, _topics, _name) = (reply.i32()?, reply.i32()?, reply.string()?);
    match (reply.i16()?, reply.string()?) {
        (0, _) => Ok(()),
        (code, text) => Err(io::Error::other(format!("cannot create topic {name}: error {code} {text}"))),
    }
}

/// Counts the partitions of a topic that have a leader; none when the broker does not know it yet.
pub(super) fn partitions_with_leader(broker: &str, topic: &str) -> io::Result<usize> {
    let mut body = Vec::new();
    put_length(&mut body, 1);
    put_string(&mut body, topic);
    let reply = call(broker, METADATA, &body, TIMEOUT)?;
    let mut reply = Reader(&reply);
    for _broker in 0..reply.i32()? {
        let (_id, _host, _port, _rack) = (reply.i32()?, reply.string()?, reply.i32()?, reply.string()?);
    }
    let (_controller, _topics, error) = (reply.i32()?, reply.i32()?, reply.i16()?);
    let (_name, _internal) = (reply.string()?, reply.take(1)?);
    let mut led = 0;
    for _partition in 0..reply.i32()? {
        let (partition_error, _index, leader) = (reply.i16()?, reply.i32()?, reply.i32()?);
        for _list in ["replicas", "in sync"] {
            let nodes = usize::try_from(reply.i32()?).unwrap_or_default();
            reply.take(4 * nodes)?;
        }
        led += usize::from(error == 0 && partition_error == 0 && leader >= 0);
    }
    Ok(led)
}

/// Sends one request on a connection of its own and returns the reply behind its header.
fn call(broker: &str, (key, version): (i16, i16), body: &[u8], timeout: Duration) -> io::Result<Vec<u8>> {
    let mut request = Vec::new();
    request.extend(key.to_be_bytes());
    request.extend(version.to_be_bytes());
    request.extend(CORRELATION_ID.to_be_bytes());
    put_string(&mut request, "geoclaim-tests");
    request.extend(body);
    let mut framed = Vec::new();
    put_length(&mut framed, request.len());
    framed.extend(request);

    let mut connection = TcpStream::connect(broker)?;
    connection.set_read_timeout(Some(timeout))?;
    connection.set_write_timeout(Some(timeout))?;
    connection.write_all(&framed)?;
    let mut header = [0; 8];
    connection.read_exact(&mut header)?;
    let mut header = Reader(&header);
    let length = usize::try_from(header.i32()?).unwrap_or_default();
    if header.i32()? != CORRELATION_ID || !(4..REPLY_LIMIT_BYTES).contains(&length) {
        return Err(malformed());
    }
    let mut reply = vec![0; length - 4];
    connection.read_exact(&mut reply)?;
    Ok(reply)
}

fn put_length(to: &mut Vec<u8>, length: usize) {
    to.extend(i32::try_from(length).unwrap_or(i32::MAX).to_be_bytes());
}

fn put_string(to: &mut Vec<u8>, text: &str) {
    to.extend(i16::try_from(text.len()).unwrap_or(i16::MAX).to_be_bytes());
    to.extend(text.as_bytes());
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the broker's reply is malformed")
}

/// Reads big-endian fields off the front of a reply.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| malformed())
    }

    fn i16(&mut self) -> io::Result<i16> {
        self.array().map(i16::from_be_bytes)
    }

    fn i32(&mut self) -> io::Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    /// A null string has the length −1 and reads as empty.
    fn string(&mut self) -> io::Result<String> {
        let length = usize::try_from(self.i16()?).unwrap_or_default();
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }
}
