//! Where the libraries' log events go: standard error, as text or JSON.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::args::{LogArgs, LogFormat};

/// Subscribes to log events. Warnings by default; `GEOCLAIM_LOG` takes the usual filter syntax.
pub(crate) fn subscribe(args: &LogArgs) {
    let filter = EnvFilter::try_from_env("GEOCLAIM_LOG").unwrap_or_else(|_| EnvFilter::new(args.level()));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let subscribed = match args.log_format {
        LogFormat::Text => builder.with_ansi(colour).with_target(false).try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    if let Err(error) = subscribed {
        crate::console::note(&format!("no log: {error}"));
    }
}
