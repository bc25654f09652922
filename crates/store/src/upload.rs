//! Writing an object, part by part, so that it appears as a whole or not at all.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt, ObjectStoreScheme};

use crate::{Location, Store, StoreError, StoreErrorKind, runtime};

/// The bytes of a part. Some stores want all but the last to be equal.
const PART_BYTES: usize = 16 << 20;
/// The most parts that the stores allow.
const PARTS_MAX: usize = 10_000;
/// Parts that are sent at the same time, once the line has shown to be fast. One more is being
/// filled.
const IN_FLIGHT_MAX: usize = 3;
/// A part that took longer is followed by one part at a time: several would share the line, and
/// none would arrive within the time of a request. Until a part has arrived, there is one, too.
const SLOW_PART: Duration = Duration::from_secs(60);
/// How long an abort may take.
const ABORT_TIMEOUT: Duration = Duration::from_secs(20);

/// The store's side of an upload. Clones are of the same upload.
#[derive(Debug, Clone)]
pub struct Uploading {
    store: Store,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// None once it is finished or aborted.
    upload: Option<Box<dyn MultipartUpload>>,
    /// Parts that have not ended, also one that the writer waits for.
    in_flight: VecDeque<Part>,
}

/// A part on its way, and how long it took. The writer and an abort may wait for it.
type Part = Shared<BoxFuture<'static, Result<Duration, StoreError>>>;

impl Uploading {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends an upload that is not finished: its parts are removed, except from Azure, which drops
    /// them after a week. Does nothing to one that is.
    ///
    /// # Errors
    /// If the store can't be reached. Then its parts stay until the store's own rules remove them.
    pub fn abort(&self) -> Result<(), StoreError> {
        // Locked to the end, so that whoever writes or aborts meanwhile waits for the outcome.
        let mut state = self.lock();
        let State { upload, in_flight } = mem::take(&mut *state);
        let Some(mut upload) = upload else { return Ok(()) };
        let store = self.store.clone();
        runtime::wait(async move {
            let aborting = async {
                // A part that arrives after the abort would stay.
                for part in in_flight {
                    let _ = part.await;
                }
                upload.abort().await
            };
            let late = || StoreError::new(StoreErrorKind::Unreachable, "the store does not answer");
            let ended = tokio::time::timeout(ABORT_TIMEOUT, aborting).await;
            ended.map_err(|_| late())?.map_err(|cause| store.error(&cause))
        })
    }
}

/// An object that is being written. Dropping it before [`Upload::finish`] aborts it.
#[derive(Debug)]
pub struct Upload {
    uploading: Uploading,
    buffer: Vec<u8>,
    parts: usize,
    /// Parts that may be sent at the same time.
    in_flight_max: usize,
    bytes: u64,
}

impl Upload {
    /// Starts to write the object at a location. The store is asked, so wrong credentials are found
    /// here; of Azure, whether they allow writing turns out with the first part. An object that is
    /// there stays until [`Self::finish`].
    ///
    /// # Errors
    /// If the location is no object's, or the store can't be written to.
    pub fn start(location: &Location) -> Result<Self, StoreError> {
        if location.is_folder() {
            return Err(StoreError::new(StoreErrorKind::Usage, "it names no object"));
        }
        let store = Store::open(location)?;
        let (client, path) = (store.client().clone(), location.path.clone());
        let asking = store.clone();
        let is_azure = location.scheme == ObjectStoreScheme::MicrosoftAzure;
        let upload = runtime::wait(async move {
            if is_azure {
                ask_azure(&asking, &path).await?;
            }
            client.put_multipart(&path).await.map_err(|cause| match cause {
                object_store::Error::NotImplemented { .. } => StoreError::new(
                    StoreErrorKind::Usage,
                    "files can't be written by HTTP; write to s3://, gs:// or az://",
                ),
                object_store::Error::NotFound { .. } => {
                    StoreError::new(StoreErrorKind::NoBucket, "there is no such bucket")
                }
                cause => asking.error(&cause),
            })
        })?;
        let state = State { upload: Some(upload), in_flight: VecDeque::new() };
        let uploading = Uploading { store, state: Arc::new(Mutex::new(state)) };
        Ok(Self { uploading, buffer: Vec::new(), parts: 0, in_flight_max: 1, bytes: 0 })
    }

    /// The store's side, by which another thread can abort the upload.
    pub fn uploading(&self) -> Uploading {
        self.uploading.clone()
    }

    /// Sends the buffer as a part, once fewer than the most are on their way.
    fn send(&mut self) -> Result<(), StoreError> {
        if self.parts == PARTS_MAX {
            let most = PARTS_MAX as u64 * PART_BYTES as u64;
            let what = format!("an object can have {most} bytes; write several");
            return Err(StoreError::new(StoreErrorKind::Usage, what));
        }
        while let Some(oldest) = self.oldest(self.in_flight_max) {
            self.wait_for(oldest)?;
        }
        let part = mem::take(&mut self.buffer);
        self.parts += 1;
        self.bytes += part.len() as u64;
        let store = self.uploading.store.clone();
        let mut state = self.uploading.lock();
        let Some(upload) = &mut state.upload else { return Err(aborted()) };
        let sending = upload.put_part(part.into());
        let sent = runtime::handle()?.spawn(async move {
            let start = Instant::now();
            sending.await.map(|()| start.elapsed()).map_err(|cause| store.error(&cause))
        });
        let sent = sent.map(|ended| ended.unwrap_or_else(|_| Err(aborted())));
        state.in_flight.push_back(sent.boxed().shared());
        Ok(())
    }

    /// The part that was sent first, if at least `count` are on their way.
    fn oldest(&self, count: usize) -> Option<Part> {
        let state = self.uploading.lock();
        state.in_flight.front().filter(|_| state.in_flight.len() >= count).cloned()
    }

    /// Waits for the oldest part.
    fn wait_for(&mut self, part: Part) -> Result<(), StoreError> {
        let took = runtime::wait(part)?;
        // Not before: an abort waits for the parts that are there.
        self.uploading.lock().in_flight.pop_front();
        self.in_flight_max = if took > SLOW_PART { 1 } else { IN_FLIGHT_MAX };
        Ok(())
    }

    /// Makes the object visible. Returns its size in bytes.
    ///
    /// # Errors
    /// If a part could not be written. Then there is no new object.
    pub fn finish(mut self) -> Result<u64, StoreError> {
        if !self.buffer.is_empty() {
            self.send()?;
        }
        while let Some(part) = self.oldest(1) {
            self.wait_for(part)?;
        }
        // Locked to the end, so that an abort waits for the outcome.
        let mut state = self.uploading.lock();
        let Some(mut upload) = state.upload.take() else { return Err(aborted()) };
        let (upload, completed) = runtime::wait(async move {
            let completed = upload.complete().await;
            Ok((upload, completed))
        })?;
        if let Err(cause) = completed {
            // For the abort when this is dropped.
            state.upload = Some(upload);
            return Err(self.uploading.store.error(&cause));
        }
        drop(state);
        Ok(self.bytes)
    }
}

/// Asks for an object that may be there. Azure's uploads begin without a request, so the first part
/// would be the first to fail.
async fn ask_azure(store: &Store, path: &Path) -> Result<(), StoreError> {
    // Not a HEAD, whose answer does not tell a missing container from a missing object. The body
    // is not read.
    let Err(cause) = store.client().get(path).await else { return Ok(()) };
    let error = store.error(&cause);
    // Who may not read may still write.
    let may_write = cause.to_string().contains("<Code>AuthorizationPermissionMismatch</Code>");
    match error.kind() {
        StoreErrorKind::NotFound => Ok(()),
        _ if may_write => Ok(()),
        _ => Err(error),
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // A failure has no place to go. The store's own rules remove the parts.
        let _ = self.uploading.abort();
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.capacity() == 0 {
            self.buffer.reserve_exact(PART_BYTES);
        }
        let count = bytes.len().min(PART_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(bytes.get(..count).unwrap_or_default());
        if self.buffer.len() == PART_BYTES {
            self.send()?;
        }
        Ok(count)
    }

    /// Does nothing: only whole parts are sent.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn aborted() -> StoreError {
    StoreError::new(StoreErrorKind::Other, "the upload was aborted")
}
