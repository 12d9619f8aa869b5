//! Handing records over, and what becomes of them.

use std::{collections::HashSet, sync::Arc, time::Duration};

use geoclaim_common::{Body, Fault, FaultKind};
use tokio::task::JoinSet;

use super::{Publisher, Ready, report::add};
use crate::{
    put::{Putter, Seen},
    read::Place,
};

impl Publisher {
    /// Hands a record over, when its body has been seen so lately that it can be relied on until the delivery.
    pub(super) async fn send(
        &self,
        event: Ready,
        putter: &Arc<Putter>,
        held: &mut HashSet<String>,
        deliveries: &mut JoinSet<Delivered>,
    ) -> Option<Fault> {
        let Ready { source, place, feature_id, record, mut stored, share } = event;
        if held.contains(&feature_id) {
            let problem = "not published: an earlier event of the same feature was not; repeat the run".to_owned();
            let unready = self.unready(&source, place, problem, Some(feature_id));
            return self.failed(unready, held);
        }
        while let Some((body, seen)) = &mut stored
            && !seen.lasts(self.settings.delivery())
        {
            match self.put(putter, body).await {
                Ok(again) => *seen = again,
                Err(fault) => return self.failed(self.not_stored(&source, place, feature_id, fault), held),
            }
        }
        let receipt = self.sink.send(record).await;
        let putter = Arc::clone(putter);
        deliveries.spawn(async move {
            let is_stored = stored.is_some();
            let outcome = match receipt.acknowledged().await {
                Ok(()) => Ok(look_again(&putter, stored).await),
                Err(fault) => Err(fault),
            };
            drop(share);
            Delivered { source, place, feature_id, is_stored, outcome }
        });
        None
    }

    pub(super) fn delivered(
        &self,
        delivered: Result<Delivered, tokio::task::JoinError>,
        held: &mut HashSet<String>,
    ) -> Option<Fault> {
        let Ok(Delivered { source, place, feature_id, is_stored, outcome }) = delivered else { return None };
        let (problem, fault) = match outcome {
            Ok(Ok(())) => {
                add(&self.counters.published, 1);
                add(if is_stored { &self.counters.stored } else { &self.counters.inline }, 1);
                return None;
            }
            Ok(Err(fault)) => {
                ("acknowledged by the broker so late that its body may be gone, and it cannot be stored again", fault)
            }
            Err(fault) => ("not acknowledged by the broker", fault),
        };
        let mut unready = self.unready(&source, place, format!("{problem}: {}", fault.detail), Some(feature_id));
        unready.stop = Some(fault).filter(|fault| fault.kind == FaultKind::Configuration);
        self.failed(unready, held)
    }
}

/// Looks again after a late acknowledgement, and puts the body again if it is gone.
async fn look_again(putter: &Putter, stored: Option<(Body, Seen)>) -> Result<(), Fault> {
    match stored {
        Some((body, seen)) if !seen.lasts(Duration::ZERO) => putter.put(&body).await.map(drop),
        _ => Ok(()),
    }
}

/// What became of a record: whether it was acknowledged, and whether its body is still there.
pub(super) struct Delivered {
    source: Arc<str>,
    place: Place,
    feature_id: String,
    is_stored: bool,
    outcome: Result<Result<(), Fault>, Fault>,
}
