//! What bodies may take of memory and of the disk, before anything is fetched.

use geoclaim_common::{Budget, ClaimCheck, Fault, FaultKind, Spool, budget::Share, encoding, limits};

/// What bodies may take.
#[derive(Debug)]
pub struct Allowance {
    most_bytes: u64,
    memory: Budget,
    spool: Spool,
    files: Budget,
}

/// What one body takes; dropping it gives it back.
#[derive(Debug)]
pub struct Shares {
    #[allow(dead_code, reason = "held for its drop")]
    memory: Share,
    #[allow(dead_code, reason = "held for its drop")]
    files: Option<Share>,
}

impl Allowance {
    /// Allows bodies of up to `most_bytes`, in so many bytes of memory. What would take more than a quarter of them is
    /// spooled.
    pub fn new(most_bytes: u64, memory_bytes: u64, spool: Spool) -> Self {
        let spool = Spool { from_bytes: spool.from_bytes.min(memory_bytes / 4), ..spool };
        let (memory, files) = (Budget::new(memory_bytes), Budget::new(spool.most_bytes));
        Self { most_bytes, memory, spool, files }
    }

    /// Checks the declared length and waits for what the body takes, and for the `applying` bytes that the sink needs beside
    /// it. Shares are taken in the order of the records, so that the first of them can always go on.
    ///
    /// # Errors
    /// [`FaultKind::TooLarge`], before anything is fetched or allocated: the body is above the limit, or the sink would need
    /// more for it than there is in all.
    pub async fn admit(&self, claim: ClaimCheck, applying: u64) -> Result<Shares, Fault> {
        let too_large = |most: u64, of: &str| {
            Fault::new(FaultKind::TooLarge, format!("body of {} bytes declared, {most} at most by {of}", claim.length))
        };
        if claim.length > self.most_bytes {
            return Err(too_large(self.most_bytes, "the limit for one body"));
        }
        if applying > 0 && claim.length > self.memory.all_bytes() {
            return Err(too_large(self.memory.all_bytes(), "the memory budget, since this sink takes it apart in memory"));
        }
        let is_spooled = self.spool.takes(claim.length);
        // Who waits for memory holds nothing that those who have it wait for.
        let files = if is_spooled { Some(self.files.take(claim.length).await) } else { None };
        let decoding = claim.encoded.map_or(0, |_| claim.length.min(encoding::DECODER_BYTES));
        let held = decoding + if is_spooled { limits::SPOOLED_COST_BYTES } else { claim.length };
        let memory = self.memory.take(held.saturating_add(applying)).await;
        Ok(Shares { memory, files })
    }

    /// Returns where the body is to be kept, if not in memory.
    pub(super) fn spool_for(&self, claim: ClaimCheck) -> Option<&Spool> {
        Some(&self.spool).filter(|spool| spool.takes(claim.length))
    }
}

#[cfg(test)]
mod tests {
    use geoclaim_common::Digest;

    use super::*;

    #[tokio::test]
    async fn a_giant_takes_little_memory_unless_the_sink_takes_it_apart() {
        let allowance = Allowance::new(1 << 40, 400 << 20, Spool { most_bytes: 1 << 30, ..Spool::default() });
        let giant = ClaimCheck::new(Digest::of(b""), 1 << 30);
        let shares = allowance.admit(giant, 0).await.unwrap();
        assert_eq!(allowance.memory.free_bytes(), (400 << 20) - limits::SPOOLED_COST_BYTES);
        assert_eq!(allowance.files.free_bytes(), 0);
        drop(shares);
        assert_eq!(allowance.admit(giant, 1).await.unwrap_err().kind, FaultKind::TooLarge);
        let small = ClaimCheck { length: 1 << 20, ..giant };
        let _shares = allowance.admit(small, 2 << 20).await.unwrap();
        assert_eq!((allowance.memory.free_bytes(), allowance.files.free_bytes()), (397 << 20, 1 << 30));
    }
}
