//! An output object in a store.

use std::error::Error;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use dray_store::{Location, StoreError, Upload, shown};

use crate::failure::Failure;
use crate::interrupt::{Interrupt, Unfinished};

/// An object that appears once it is complete. Dropping it before that removes its parts.
pub(crate) struct StoredObject<'a> {
    url: String,
    /// None once it is finished. The writer has it, too.
    upload: Arc<Mutex<Option<Upload>>>,
    interrupt: &'a Interrupt,
}

impl<'a> StoredObject<'a> {
    /// Begins to write the object. The store is asked whether it may be.
    pub(super) fn create(url: &str, interrupt: &'a Interrupt) -> Result<Self, Failure> {
        let started = Location::parse(url).and_then(|location| Upload::start(&location));
        let upload = started.map_err(|cause| failed(&shown(url), &cause))?;
        interrupt.set_unfinished(Some(Unfinished::Object(upload.uploading())));
        Ok(Self { url: url.to_owned(), upload: Arc::new(Mutex::new(Some(upload))), interrupt })
    }

    pub(super) fn writer(&self) -> ObjectWriter {
        ObjectWriter(Arc::clone(&self.upload))
    }

    /// The failure to write it. An interrupt may have aborted the upload.
    pub(super) fn failure(&self, cause: &(dyn Error + 'static)) -> Failure {
        match self.interrupt.is_raised() {
            true => Failure::Interrupted,
            false => Failure::output(&self.url, cause),
        }
    }

    pub(super) fn finish(self) -> Result<u64, Failure> {
        let upload = self.upload.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(upload) = upload else {
            return Err(Failure::Output(format!("can't write {}: it is closed", self.url)));
        };
        let bytes = upload.finish().map_err(|cause| self.failure(&cause))?;
        self.interrupt.set_unfinished(None);
        Ok(bytes)
    }
}

impl Drop for StoredObject<'_> {
    fn drop(&mut self) {
        // Before the program ends, also if a writer is still there.
        drop(self.upload.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.interrupt.set_unfinished(None);
    }
}

/// Writes an object. It fails after the object is finished.
pub(crate) struct ObjectWriter(Arc<Mutex<Option<Upload>>>);

impl Write for ObjectWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(upload) => upload.write(bytes),
            None => Err(io::Error::other("the output is closed")),
        }
    }

    /// Only whole parts are sent.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn failed(url: &str, cause: &StoreError) -> Failure {
    Failure::Output(format!("can't write {url}: {cause}"))
}
