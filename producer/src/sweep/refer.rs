//! Reading every reference.

use std::sync::Arc;

use geoclaim_common::Fault;

use super::{
    Log, SweepCounters, SweepSettings,
    log::{lookalikes, referred},
    spill::Spill,
};

/// Reads all logs to their ends, off the async threads, and spills what they refer to.
pub(super) async fn read_references(
    logs: Vec<Arc<dyn Log>>,
    mut spill: Spill,
    settings: &SweepSettings,
    counters: &Arc<SweepCounters>,
) -> Result<Spill, Fault> {
    let (looked_at, counters) = (settings.looked_at.clone(), Arc::clone(counters));
    let read = move || {
        for log in logs {
            let name = log.name().to_owned();
            log.read(&mut |record| {
                let Some(value) = record.value else { return Ok(()) };
                match referred(value) {
                    Ok(None) => {}
                    Ok(Some(digest)) => {
                        counters.reference();
                        spill.reference(&digest)?;
                    }
                    Err(fault) => {
                        let place = format!("{name}/{}/{}", record.partition, record.offset);
                        if !looked_at.contains(&place) {
                            return Err(undecodable(&place, &fault));
                        }
                        for digest in lookalikes(value) {
                            spill.reference(&digest)?;
                        }
                    }
                }
                Ok(())
            })?;
        }
        Ok(spill)
    };
    tokio::task::spawn_blocking(read).await.map_err(|error| Fault::unavailable(error.to_string()))?
}

fn undecodable(place: &str, fault: &Fault) -> Fault {
    Fault::configuration(format!(
        "record {place} cannot be decoded, and so may refer to any body: {}; look at it, and if it is nobody's, give --looked-at {place}",
        fault.one_line()
    ))
}
