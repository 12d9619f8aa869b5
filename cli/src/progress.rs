//! Progress on a terminal, none in a pipe.

use std::{io::IsTerminal, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

/// A line that is kept up to date while a command works.
#[derive(Clone, Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Shows progress towards a number of bytes, or a spinner when that is not known.
    pub(crate) fn of_bytes(total: Option<u64>) -> Self {
        let bar = match total {
            Some(total) => ProgressBar::new(total).with_style(style("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {msg}")),
            None => ProgressBar::new_spinner().with_style(style("{spinner} {bytes} {bytes_per_sec} {msg}")),
        };
        Self::shown(bar)
    }

    /// Shows what has been done.
    pub(crate) fn of_work() -> Self {
        Self::shown(ProgressBar::new_spinner().with_style(style("{spinner} [{elapsed}] {msg}")))
    }

    fn shown(bar: ProgressBar) -> Self {
        if !std::io::stderr().is_terminal() {
            bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
        }
        Self(bar)
    }

    /// Says on the line how far it is.
    pub(crate) fn message(&self, message: &str) {
        self.0.set_message(message.to_owned());
    }

    /// Says something above the line.
    pub(crate) fn say(&self, say: impl FnOnce()) {
        self.0.suspend(say);
    }

    /// Runs `work` and lets `look` update the line ten times a second.
    pub(crate) async fn during<T>(&self, work: impl Future<Output = T>, look: impl Fn(&ProgressBar)) -> T {
        let mut work = std::pin::pin!(work);
        let mut ticks = tokio::time::interval(Duration::from_millis(100));
        let done = loop {
            tokio::select! {
                done = &mut work => break done,
                _ = ticks.tick() => {
                    look(&self.0);
                    self.0.tick();
                }
            }
        };
        self.0.finish_and_clear();
        done
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
