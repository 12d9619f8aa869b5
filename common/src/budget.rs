//! Memory as a setting: bytes are taken from a budget before they are read or fetched, and come back when they are dropped.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit of the budget, so that a semaphore can count it.
const UNIT_BYTES: u64 = 1_024;

/// A number of bytes that may be held at once. Waiting is fair: first come, first served.
#[derive(Clone, Debug)]
pub struct Budget {
    permits: Arc<Semaphore>,
    all: u32,
}

/// Bytes taken from a [`Budget`]; dropping them gives them back.
#[derive(Debug)]
pub struct Share(#[allow(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl Budget {
    /// Makes a budget of `bytes`, rounded up to KiB.
    pub fn new(bytes: u64) -> Self {
        let most = u32::MAX >> 4;
        let all = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(most).clamp(1, most);
        Self { permits: Arc::new(Semaphore::new(all as usize)), all }
    }

    /// Waits for `bytes`. What is larger than the whole budget waits for all of it, and so is held alone.
    ///
    /// To be free of deadlock, a task that needs several shares takes them in the order in which it gives them back.
    pub async fn take(&self, bytes: u64) -> Share {
        let wanted = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).clamp(1, self.all);
        loop {
            // The semaphore is never closed.
            if let Ok(permit) = Arc::clone(&self.permits).acquire_many_owned(wanted).await {
                return Share(permit);
            }
        }
    }

    /// Returns how many bytes there are in all.
    pub fn all_bytes(&self) -> u64 {
        u64::from(self.all) * UNIT_BYTES
    }

    /// Returns how many bytes are free.
    pub fn free_bytes(&self) -> u64 {
        self.permits.available_permits() as u64 * UNIT_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bytes_come_back_and_a_giant_is_held_alone() {
        let budget = Budget::new(10_240);
        let small = budget.take(1).await;
        assert_eq!(budget.free_bytes(), 9_216);
        let other = budget.clone();
        let giant = tokio::spawn(async move { other.take(1 << 40).await });
        tokio::task::yield_now().await;
        assert!(!giant.is_finished());
        drop(small);
        let giant = giant.await.unwrap();
        assert_eq!(budget.free_bytes(), 0);
        drop(giant);
        assert_eq!(budget.free_bytes(), 10_240);
    }
}
