//! Finds loopback ports that a component can have and keep.
//!
//! The usual way, binding port 0, hands out *ephemeral* ports, from the range that the kernel also
//! takes for the near end of outgoing connections. A component that is stopped and started again on
//! such a port may find it taken by its own client, which on loopback can even connect to itself
//! while it retries. So ports come from below that range, are handed out once in a process, and are
//! tried at a random place so that processes that run side by side rarely meet. They can: whoever
//! starts a component tries again with other ports when one is taken.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Below the ephemeral ranges of Linux (32,768 up) and macOS (49,152 up), above the well-known ports.
const RANGE: Range<u16> = 14_000..32_000;

static HANDED_OUT: LazyLock<Mutex<HashSet<u16>>> = LazyLock::new(Mutex::default);

/// Finds `count` different ports on which nothing listens, none of them given before.
///
/// # Errors
///
/// When the range is exhausted.
pub fn free(count: usize) -> io::Result<Vec<u16>> {
    let mut handed_out = HANDED_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    let span = u64::from(RANGE.end - RANGE.start);
    let first = RandomState::new().hash_one(std::process::id()) % span;
    let mut found = Vec::with_capacity(count);
    for step in 0..span {
        if found.len() == count {
            break;
        }
        let offset = u16::try_from((first + step) % span).unwrap_or_default();
        let port = RANGE.start + offset;
        if !handed_out.contains(&port) && is_free(port) {
            handed_out.insert(port);
            found.push(port);
        }
    }
    if found.len() < count {
        return Err(io::Error::other(format!("fewer than {count} loopback ports are free")));
    }
    Ok(found)
}

/// Tries the wildcard address too: a server that is bound to it owns the port on loopback as well.
fn is_free(port: u16) -> bool {
    let binds = |address: Ipv4Addr| TcpListener::bind((address, port)).is_ok();
    binds(Ipv4Addr::LOCALHOST) && binds(Ipv4Addr::UNSPECIFIED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_twice() {
        let mut ports = free(40).unwrap();
        ports.extend(free(40).unwrap());
        let different: HashSet<u16> = ports.iter().copied().collect();
        assert_eq!(different.len(), 80);
        assert!(ports.iter().all(|port| RANGE.contains(port)));
    }

    #[test]
    fn a_port_with_a_listener_is_not_free() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(!is_free(listener.local_addr().unwrap().port()));
    }
}
