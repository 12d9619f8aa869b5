//! Leases on an object store alone, by conditional creates, which every store has, a local directory too.
//!
//! Each fence of a job has a `claim`, written by the one who created it, a `beat` that only that one overwrites, and an
//! `end` that is created once: as *committed* by its owner, or as *lapsed* by whoever takes the job over. Two who would
//! decide the same fence differently create the same object, and the store lets one of them.
//!
//! Time is the store's: a lease has lapsed when an object that is written now is younger than the last sign of its owner
//! by the lease's length. No worker's clock is asked.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::{Error, ObjectMeta, ObjectStore as _, ObjectStoreExt as _, PutMode, path::Path};
use uuid::Uuid;

use super::{Claim, Lease, Leases};
use crate::{
    Digest, Fault, FaultKind,
    store::{self, Store, StoreClock, fault_of},
};

/// Folder of the objects of leases.
pub const LEASES: &str = "leases";

/// How often a claim is tried while others change what it looks at.
const TURNS: usize = 10;

/// Most that is read of an object of a lease.
const NOTE_BYTES: u64 = 256;

const COMMITTED: &str = "committed";
const LAPSED: &str = "lapsed";

/// Grants leases by objects under `leases/` of a store.
#[derive(Clone, Debug)]
pub struct StoreLeases {
    store: Store,
    lasts: Duration,
    clock: Arc<StoreClock>,
}

/// What the store has of a job.
#[derive(Debug, Default)]
struct Found {
    fence: u64,
    last_sign: Option<i64>,
    is_ended: bool,
}

impl StoreLeases {
    /// Grants leases that last so long without a renewal; at least a few seconds, for stores tell time in seconds.
    pub fn new(store: Store, lasts: Duration) -> Self {
        Self { clock: Arc::new(StoreClock::new(store.clone())), store, lasts }
    }

    fn folder(job: Digest) -> Path {
        Path::from(format!("{LEASES}/{}/{job}", job.shard()))
    }

    fn key(job: Digest, fence: u64, what: &str) -> Path {
        Path::from(format!("{}/{fence:020}.{what}", Self::folder(job)))
    }

    /// Creates an object, or finds what another, or this one before its answer was lost, has created. `None`: neither.
    async fn decide(&self, key: &Path, text: &str) -> Result<Option<String>, Fault> {
        let created = self.store.put_opts(key, Bytes::copy_from_slice(text.as_bytes()).into(), PutMode::Create.into()).await;
        match created {
            Ok(_) => return Ok(Some(text.to_owned())),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {}
            Err(error) if fault_of(&error).kind != FaultKind::Unavailable => return Err(fault_of(&error)),
            // It may have been done.
            Err(error) => return self.read(key).await?.map(Some).ok_or_else(|| fault_of(&error)),
        }
        self.read(key).await
    }

    async fn read(&self, key: &Path) -> Result<Option<String>, Fault> {
        let text = store::read(&self.store, key, NOTE_BYTES).await.map_err(|fault| match fault.kind {
            FaultKind::TooLarge => Fault::configuration(format!("{}: it is no object of a lease", fault.detail)),
            _ => fault,
        })?;
        Ok(text.map(|text| String::from_utf8_lossy(&text).into_owned()))
    }

    async fn find(&self, job: Digest) -> Result<Found, Fault> {
        let objects: Vec<ObjectMeta> =
            self.store.list(Some(&Self::folder(job))).try_collect().await.map_err(|error| fault_of(&error))?;
        let mut found = Found::default();
        for object in objects {
            let Some((fence, what)) = object.location.filename().and_then(|name| name.split_once('.')) else { continue };
            let Ok(fence) = fence.parse::<u64>() else { continue };
            if fence > found.fence {
                found = Found { fence, ..Found::default() };
            }
            if fence == found.fence {
                found.is_ended |= what == "end";
                found.last_sign = found.last_sign.max(Some(object.last_modified.timestamp_millis()));
            }
        }
        Ok(found)
    }

    async fn has_lapsed(&self, found: &Found) -> Result<bool, Fault> {
        let silence = self.clock.ask().await?.as_millis().saturating_sub(found.last_sign.unwrap_or(i64::MAX));
        Ok(i64::try_from(self.lasts.as_millis()).is_ok_and(|lasts| silence > lasts))
    }

    /// Looks once, and claims where that can be done; `None` when others have changed what was seen.
    async fn turn(&self, job: Digest, token: &str) -> Result<Option<Claim>, Fault> {
        let found = self.find(job).await?;
        if found.fence > 0 {
            if !found.is_ended {
                if !self.has_lapsed(&found).await? {
                    return Ok(Some(Claim::Held));
                }
                self.decide(&Self::key(job, found.fence, "end"), LAPSED).await?;
            }
            match self.read(&Self::key(job, found.fence, "end")).await? {
                Some(end) if end.starts_with(COMMITTED) => return Ok(Some(Claim::Committed)),
                Some(_) => {}
                None => return Ok(None),
            }
        }
        let fence = found.fence + 1;
        let owner = self.decide(&Self::key(job, fence, "claim"), token).await?;
        let is_ours = owner.as_deref() == Some(token);
        Ok(is_ours.then(|| Claim::Won(Lease { job, fence, token: token.to_owned() })))
    }
}

#[async_trait]
impl Leases for StoreLeases {
    async fn claim(&self, job: Digest) -> Result<Claim, Fault> {
        let token = Uuid::now_v7().to_string();
        for _ in 0..TURNS {
            if let Some(claim) = self.turn(job, &token).await? {
                return Ok(claim);
            }
        }
        Ok(Claim::Held)
    }

    async fn renew(&self, lease: &Lease) -> Result<(), Fault> {
        if self.read(&Self::key(lease.job, lease.fence, "end")).await?.is_some() {
            return Err(lease.lost());
        }
        let beat = Self::key(lease.job, lease.fence, "beat");
        self.store.put(&beat, Bytes::copy_from_slice(lease.token.as_bytes()).into()).await.map_err(|error| fault_of(&error))?;
        Ok(())
    }

    async fn commit(&self, lease: Lease) -> Result<(), Fault> {
        let end = Self::key(lease.job, lease.fence, "end");
        let ours = format!("{COMMITTED} {}", lease.token);
        for _ in 0..TURNS {
            match self.decide(&end, &ours).await? {
                Some(decided) if decided == ours => return Ok(()),
                Some(_) => return Err(lease.lost()),
                // A conflict with nothing there.
                None => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        Err(Fault::unavailable(format!("the store neither takes nor shows the end of job {}", lease.job)))
    }

    async fn release(&self, lease: Lease) -> Result<(), Fault> {
        self.decide(&Self::key(lease.job, lease.fence, "end"), LAPSED).await.map(drop)
    }

    fn lasts(&self) -> Duration {
        self.lasts
    }
}
