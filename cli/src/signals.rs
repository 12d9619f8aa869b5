//! SIGINT and SIGTERM: the first asks for a clean stop, the second leaves at once.

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::console;

/// Whether a stop has been asked for.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Listens for both signals from now on.
    pub(crate) fn listen() -> Self {
        let (sender, receiver) = watch::channel(false);
        tokio::spawn(listen(sender));
        Self(receiver)
    }

    /// Completes when a stop is asked for, at once when it has been.
    pub(crate) fn requested(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut receiver = self.0.clone();
        async move {
            // When the listener is gone, no signal comes.
            if receiver.wait_for(|stopping| *stopping).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// Listens for both signals from now on and returns a future that completes at the first.
pub(crate) fn shutdown() -> impl Future<Output = ()> + Send + use<> {
    Stop::listen().requested()
}

/// Nothing is lost at the second signal either: what was not acknowledged comes again.
async fn listen(sender: watch::Sender<bool>) {
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
}
