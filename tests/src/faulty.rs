//! A store that records its calls and fails on demand, over any store.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt as _, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, path::Path,
};

/// What a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A conditional put.
    Create,
    /// An unconditional put.
    Overwrite,
    /// A look at an object's size.
    Head,
    /// A fetch.
    Get,
}

/// What a call comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// What the store under it says.
    Pass,
    /// An outage.
    Unavailable,
    /// It is not there.
    Missing,
    /// `AlreadyExists`, with nothing written: what a store says to a conflict.
    Conflict,
    /// Written, and the answer lost.
    DoneButLost,
    /// Written whatever is there: a store that takes a condition and ignores it.
    Careless,
    /// Written short, and called done.
    StoredShort(usize),
    /// Fetched with this many bytes fewer, and a length that agrees.
    Truncated(usize),
    /// Fetched with a byte more.
    Lengthened,
    /// Fetched with a bit flipped.
    Flipped,
    /// After this long, what the store under it says.
    Slow(Duration),
}

/// One call, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What it was.
    pub op: Op,
    /// The key.
    pub key: String,
}

type Script = dyn Fn(Op, &str, usize) -> Act + Send + Sync;

/// Wraps a store. The script is asked for each call: what it is, its key, and how often the same was called before.
#[derive(Clone)]
pub struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
    calls: Arc<Mutex<Vec<Call>>>,
    script: Arc<Script>,
}

impl FaultyStore {
    /// Wraps `inner` with a script.
    pub fn new(inner: Arc<dyn ObjectStore>, script: impl Fn(Op, &str, usize) -> Act + Send + Sync + 'static) -> Self {
        Self { inner, calls: Arc::default(), script: Arc::new(script) }
    }

    /// Wraps `inner` and only records.
    pub fn recording(inner: Arc<dyn ObjectStore>) -> Self {
        Self::new(inner, |_, _, _| Act::Pass)
    }

    /// Returns the calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// Returns how many calls of a kind there were.
    pub fn count(&self, op: Op) -> usize {
        self.calls().iter().filter(|call| call.op == op).count()
    }

    fn act(&self, op: Op, key: &Path) -> Act {
        let call = Call { op, key: key.to_string() };
        let mut calls = self.calls.lock().unwrap();
        let before = calls.iter().filter(|earlier| **earlier == call).count();
        calls.push(call);
        (self.script)(op, key.as_ref(), before)
    }
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultyStore({})", self.inner)
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

fn unavailable() -> Error {
    Error::Generic { store: "faulty", source: "503 Service Unavailable".into() }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(&self, key: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let op = if matches!(options.mode, PutMode::Create) { Op::Create } else { Op::Overwrite };
        match self.act(op, key) {
            Act::Unavailable => Err(unavailable()),
            Act::Conflict => Err(Error::AlreadyExists { path: key.to_string(), source: "409 ConditionalRequestConflict".into() }),
            Act::DoneButLost => {
                self.inner.put_opts(key, payload, options).await?;
                Err(unavailable())
            }
            Act::StoredShort(length) => {
                let bytes = Bytes::from(payload).slice(..length);
                self.inner.put_opts(key, bytes.into(), options).await
            }
            Act::Careless => self.inner.put(key, payload).await,
            Act::Slow(wait) => {
                tokio::time::sleep(wait).await;
                self.inner.put_opts(key, payload, options).await
            }
            _ => self.inner.put_opts(key, payload, options).await,
        }
    }

    async fn put_multipart_opts(&self, key: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(key, options).await
    }

    async fn get_opts(&self, key: &Path, options: GetOptions) -> Result<GetResult> {
        let head = options.head;
        let act = self.act(if head { Op::Head } else { Op::Get }, key);
        match act {
            Act::Unavailable => return Err(unavailable()),
            Act::Missing => return Err(Error::NotFound { path: key.to_string(), source: "404".into() }),
            Act::Slow(wait) => tokio::time::sleep(wait).await,
            _ => {}
        }
        let result = self.inner.get_opts(key, options).await?;
        if head || !matches!(act, Act::Truncated(_) | Act::Lengthened | Act::Flipped) {
            return Ok(result);
        }
        let (meta, attributes, extensions) = (result.meta.clone(), result.attributes.clone(), result.extensions.clone());
        let mut bytes = result.bytes().await?.to_vec();
        match act {
            Act::Truncated(fewer) => bytes.truncate(bytes.len() - fewer),
            Act::Lengthened => bytes.push(b' '),
            _ => {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
            }
        }
        let length = bytes.len() as u64;
        let payload = GetResultPayload::Stream(futures::stream::iter([Ok(Bytes::from(bytes))]).boxed());
        Ok(GetResult { payload, meta: ObjectMeta { size: length, ..meta }, range: 0..length, attributes, extensions })
    }

    async fn get_ranges(&self, key: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(key, ranges).await
    }

    fn delete_stream(&self, keys: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(keys)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// Returns how many objects a store holds.
pub async fn objects(store: &Arc<dyn ObjectStore>) -> usize {
    store.list(None).count().await
}

/// Puts bytes under a key whatever is there.
///
/// # Panics
/// The store refuses.
pub async fn overwrite(store: &Arc<dyn ObjectStore>, key: &Path, bytes: Vec<u8>) {
    store.put(key, bytes.into()).await.expect("the store takes it");
}
