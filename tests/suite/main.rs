//! The integration suite, one binary. Suites against the embedded broker and a local or in-memory store need nothing
//! installed; those against Apache Kafka and SeaweedFS run wherever `tests/setup` could bring them.

mod architecture;
mod cli;
mod contracts;
mod copies;
mod countries;
mod covers;
mod crashes;
mod crs;
mod damage;
mod demo;
mod effects;
mod exits;
mod extents;
mod faults;
mod filter;
mod flow;
mod interop;
mod kept;
mod leases;
mod lost_answers;
mod order;
mod points;
mod protocol;
mod rebalances;
mod redrive;
mod relied_on;
mod reload;
mod replay;
mod reread;
mod side_effects;
mod sinks;
mod soak;
mod support;
mod sweep;
mod topics;
