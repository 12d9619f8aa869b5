//! SIGINT and SIGTERM: the first asks for a clean stop, the second leaves at once.

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::console;

/// Listens for both signals from now on and returns a future that completes at the first. Nothing is lost at the
/// second either: what was not acknowledged comes again.
pub(crate) fn shutdown() -> impl Future<Output = ()> + Send + use<> {
    let (sender, mut receiver) = watch::channel(false);
    tokio::spawn(async move {
        let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) else {
            return;
        };
        let mut count = 0;
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            count += 1;
            if count > 1 {
                std::process::exit(130);
            }
            console::note("stopping after what is in flight; once more to leave at once");
            let _ = sender.send(true);
        }
    });
    async move {
        // When the listener is gone, no signal comes.
        if receiver.wait_for(|stopping| *stopping).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
