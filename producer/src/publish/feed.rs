//! The reading side of a publisher: a thread that reads sources and takes from the budget before it hands a body on.

use std::{fs::File, io, path::Path, sync::Arc};

use bytes::Bytes;
use geoclaim_common::{Budget, budget::Share};
use tokio::{runtime::Handle, sync::mpsc};

use crate::read::{RawBody, ReadOptions, ReadProblem, Reader};

type Opened = io::Result<Box<dyn io::Read + Send>>;

/// Something to read, opened when its turn comes.
pub struct Source {
    name: String,
    open: Box<dyn FnOnce() -> Opened + Send>,
}

impl Source {
    /// Reads a file.
    pub fn file(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_owned();
        let name = path.display().to_string();
        Self { name, open: Box::new(move || Ok(Box::new(File::open(path)?))) }
    }

    /// Reads standard input.
    pub fn stdin() -> Self {
        Self { name: "-".to_owned(), open: Box::new(|| Ok(Box::new(io::stdin()))) }
    }

    /// Reads bytes.
    pub fn bytes(name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        let bytes: Bytes = bytes.into();
        Self { name: name.into(), open: Box::new(move || Ok(Box::new(io::Cursor::new(bytes)))) }
    }

    /// Returns the name, which is part of every event's identity.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Opens the source for reading.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(self) -> Opened {
        (self.open)()
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Source({})", self.name)
    }
}

/// A body with its share of the budget, or a problem.
#[derive(Debug)]
pub(super) struct Fed {
    pub(super) source: Arc<str>,
    pub(super) run_place: u64,
    pub(super) item: Result<(RawBody, Share), ReadProblem>,
}

/// Reads all sources on a thread of its own, in order.
pub(super) fn read_all(sources: Vec<Source>, options: ReadOptions, budget: Budget) -> mpsc::Receiver<Fed> {
    let (sender, receiver) = mpsc::channel(256);
    let spool = options.spool.clone();
    let spool_budget = Budget::new(spool.most_bytes);
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || {
        let mut run_place = 0;
        for source in sources {
            let name: Arc<str> = source.name().into();
            let items = match source.open() {
                Ok(opened) => boxed(Reader::new(opened, options.clone())),
                Err(error) => {
                    let problem = ReadProblem { place: Default::default(), problem: format!("cannot be opened: {error}") };
                    boxed(std::iter::once(Err(problem)))
                }
            };
            for item in items {
                let item = match item {
                    Ok(raw) => {
                        let length = raw.bytes.len() as u64;
                        let budget = if spool.takes(length) { &spool_budget } else { &budget };
                        let share = runtime.block_on(budget.take(length));
                        Ok((raw, share))
                    }
                    Err(problem) => Err(problem),
                };
                let fed = Fed { source: Arc::clone(&name), run_place, item };
                run_place += 1;
                if sender.blocking_send(fed).is_err() {
                    return;
                }
            }
        }
    });
    receiver
}

type Items = Box<dyn Iterator<Item = Result<RawBody, ReadProblem>>>;

fn boxed(items: impl Iterator<Item = Result<RawBody, ReadProblem>> + 'static) -> Items {
    Box::new(items)
}
