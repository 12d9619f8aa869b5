//! What an error of PostgreSQL means.

use geoclaim_common::{Fault, FaultKind};
use tokio_postgres::{Error, error::SqlState};

/// Sorts an error by what is to be done. [`FaultKind::Rejected`] is an error of the rows that were given: of the batch,
/// at least one cannot be stored.
pub(crate) fn fault_of(error: &Error) -> Fault {
    let detail = match error.as_db_error() {
        Some(told) => {
            let more = told.detail().map(|more| format!(" ({more})")).unwrap_or_default();
            format!("PostgreSQL: {}{more} [{}]", told.message(), told.code().code())
        }
        None => format!("PostgreSQL: {}", with_sources(error)),
    };
    Fault::new(error.code().map_or_else(|| without_code(error), kind_of), detail)
}

/// As [`fault_of`], for what is done at start-up: whatever is wrong with what was asked is a person's to mend.
pub(crate) fn cannot(what: &str, error: &Error) -> Fault {
    let fault = fault_of(error);
    let kind = if fault.kind == FaultKind::Unavailable { fault.kind } else { FaultKind::Configuration };
    Fault::new(kind, format!("cannot {what}: {}", fault.detail))
}

fn without_code(error: &Error) -> FaultKind {
    let text = with_sources(error);
    // Of its own, the client tells only settings apart by their words.
    let is_setting = text.contains("invalid configuration") || text.contains("password missing") || text.contains("TLS");
    if is_setting { FaultKind::Configuration } else { FaultKind::Unavailable }
}

fn kind_of(code: &SqlState) -> FaultKind {
    match code.code().split_at_checked(2).map_or("", |(class, _)| class) {
        // Serialisation and deadlock, connection, resources, operator's intervention, system; and a lock not had.
        "40" | "08" | "53" | "57" | "58" => FaultKind::Unavailable,
        _ if *code == SqlState::LOCK_NOT_AVAILABLE || *code == SqlState::OBJECT_IN_USE => FaultKind::Unavailable,
        // The transaction had ended when the statement came: the next one begins anew.
        "25" => FaultKind::Unavailable,
        // Data, constraints, limits of the program; and what PostGIS says of a geometry.
        "22" | "23" | "54" | "XX" => FaultKind::Rejected,
        _ => FaultKind::Configuration,
    }
}

fn with_sources(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
