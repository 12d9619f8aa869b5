//! Putting a very large body in parts: a part that fails is sent again by the client, and not the whole.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use geoclaim_common::{Body, limits, store::Store};
use object_store::{MultipartUpload, ObjectStoreExt as _, PutPayload};

/// How many parts are on their way at once.
const AT_ONCE: usize = 4;

/// Writes a body. Nothing is seen under its key before all of it is there. An upload that fails is given up; one that is cut
/// off by a crash is found by the audit and removed by the janitor.
pub(super) async fn write(store: &Store, body: &Body) -> object_store::Result<()> {
    let mut upload = store.put_multipart(&body.claim().key()).await?;
    let sent = send(upload.as_mut(), body).await;
    if sent.is_err() {
        // What was wrong is told by the first error.
        let _ = upload.abort().await;
    }
    sent
}

async fn send(upload: &mut dyn MultipartUpload, body: &Body) -> object_store::Result<()> {
    let starts = (0..body.stored().len()).step_by(limits::PART_BYTES);
    // Begun one by one, for they are numbered as they begin.
    let parts = starts.map(|start| {
        let end = body.stored().len().min(start + limits::PART_BYTES);
        upload.put_part(PutPayload::from_bytes(body.stored().slice(start..end)))
    });
    stream::iter(parts).buffered(AT_ONCE).try_collect::<()>().await?;
    upload.complete().await.map(drop)
}
