//! Spill files: bytes on disk, in files without names, compressed if that is faster.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use lz4_flex::block;

use super::compression::CompressionPolicy;
use crate::error::{Error, Result};
use crate::options::{SpillCompression, SpillSpace};

/// The runs that share a file. A process may have only so many files open.
const FILE_RUNS_MAX: usize = 8;

/// The files that runs are written to, one after the other.
#[derive(Debug)]
pub(crate) struct SpillFiles {
    store: Arc<SpillStore>,
    file: Option<Arc<SpillFile>>,
    runs_in_file: usize,
}

impl SpillFiles {
    /// Files in `folder`, limited by `space`. `written` counts the bytes that are written.
    pub fn new(
        folder: PathBuf,
        space: Arc<SpillSpace>,
        compression: SpillCompression,
        written: Arc<AtomicU64>,
    ) -> Self {
        let store = Arc::new(SpillStore {
            folder,
            space,
            written,
            page_compression: CompressionPolicy::new(compression),
            key_compression: CompressionPolicy::new(compression),
            large_pages: Mutex::default(),
        });
        Self { store, file: None, runs_in_file: 0 }
    }

    pub fn store(&self) -> &Arc<SpillStore> {
        &self.store
    }

    /// The file of the next run.
    pub fn next_file(&mut self) -> Result<Arc<SpillFile>> {
        let file = match self.file.take().filter(|_| self.runs_in_file < FILE_RUNS_MAX) {
            Some(file) => file,
            None => {
                self.runs_in_file = 0;
                self.store.create()?
            }
        };
        self.runs_in_file += 1;
        self.file = Some(file.clone());
        Ok(file)
    }

    /// Puts the next run into a new file. The file of the last run is deleted when its runs are
    /// dropped.
    pub fn close_file(&mut self) {
        self.file = None;
    }
}

/// Writes to spill files, from any thread.
#[derive(Debug)]
pub(crate) struct SpillStore {
    folder: PathBuf,
    space: Arc<SpillSpace>,
    /// All bytes that were ever written.
    written: Arc<AtomicU64>,
    /// Pages and keys compress differently.
    pub page_compression: CompressionPolicy,
    pub key_compression: CompressionPolicy,
    /// The file of large pages, which outlive the runs that they are first written for.
    large_pages: Mutex<Option<Arc<SpillFile>>>,
}

/// A file without a name. The system deletes it when the last extent in it is dropped.
#[derive(Debug)]
pub(crate) struct SpillFile {
    file: File,
    len: AtomicU64,
    space: Arc<SpillSpace>,
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        self.space.release(*self.len.get_mut());
    }
}

impl SpillStore {
    fn create(&self) -> Result<Arc<SpillFile>> {
        let file = tempfile::tempfile_in(&self.folder).map_err(Error::spill("create"))?;
        Ok(Arc::new(SpillFile { file, len: AtomicU64::new(0), space: self.space.clone() }))
    }

    /// The file of large pages.
    pub fn large_pages(&self) -> Result<Arc<SpillFile>> {
        let mut file = self.large_pages.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(match &*file {
            Some(file) => file.clone(),
            None => file.insert(self.create()?).clone(),
        })
    }

    /// Appends bytes to a file, to which other threads may append at the same time. `compressed` is
    /// a buffer for compressed bytes.
    ///
    /// # Errors
    /// [`Error::SpillLimit`] beyond the limit of spill files, [`Error::Spill`] if writing fails.
    pub fn write(
        &self,
        file: &Arc<SpillFile>,
        policy: &CompressionPolicy,
        bytes: &[u8],
        compressed: &mut Vec<u8>,
    ) -> Result<Extent> {
        let mut stored = bytes;
        if policy.compresses(bytes.len()) {
            let start = Instant::now();
            let buffer_bytes = block::get_maximum_output_size(bytes.len());
            compressed.resize(compressed.len().max(buffer_bytes), 0);
            let compressed_bytes = block::compress_into(bytes, compressed).unwrap_or(bytes.len());
            policy.record_compression(bytes.len(), compressed_bytes, start.elapsed());
            stored = compressed
                .get(..compressed_bytes)
                .filter(|compressed| compressed.len() < bytes.len())
                .unwrap_or(bytes);
        }
        let stored_bytes = stored.len() as u64;
        if !self.space.try_take(stored_bytes) {
            return Err(Error::SpillLimit { spill_bytes_max: self.space.bytes_max() });
        }
        // Counted before writing can fail, so that the file releases what was taken.
        let at = file.len.fetch_add(stored_bytes, Ordering::Relaxed);
        let start = Instant::now();
        file.file.write_all_at(stored, at).map_err(Error::spill("write"))?;
        policy.record_write(stored.len(), start.elapsed());
        self.written.fetch_add(stored_bytes, Ordering::Relaxed);
        Ok(Extent { file: file.clone(), at, stored_bytes: stored.len(), bytes: bytes.len() })
    }
}

/// Bytes in a spill file.
#[derive(Debug, Clone)]
pub(crate) struct Extent {
    file: Arc<SpillFile>,
    at: u64,
    /// The bytes on disk, which are compressed if they are fewer than `bytes`.
    stored_bytes: usize,
    bytes: usize,
}

impl Extent {
    /// The number of bytes, uncompressed.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The memory that reading takes on top of the bytes: 0 unless they are compressed.
    pub fn compressed_bytes(&self) -> usize {
        if self.stored_bytes < self.bytes { self.stored_bytes } else { 0 }
    }

    /// Reads all bytes into a buffer of their size.
    pub fn read(&self, bytes: &mut [u8]) -> Result<()> {
        debug_assert_eq!(bytes.len(), self.bytes);
        let read = |stored: &mut [u8]| {
            debug_assert!(
                self.at + stored.len() as u64 <= self.file.len.load(Ordering::Relaxed),
                "an extent is within its file"
            );
            self.file.file.read_exact_at(stored, self.at).map_err(Error::spill("read"))
        };
        if self.compressed_bytes() == 0 {
            return read(bytes);
        }
        let mut compressed = vec![0; self.stored_bytes];
        read(&mut compressed)?;
        match block::decompress_into(&compressed, bytes) {
            Ok(decompressed) if decompressed == self.bytes => Ok(()),
            _ => Err(Error::Damaged(format!(
                "{} bytes do not decompress to {}",
                self.stored_bytes, self.bytes
            ))),
        }
    }

    /// Asks the system to read the bytes ahead. Runs share files, so the system can't predict the
    /// next read by itself.
    pub fn read_ahead(&self) {
        #[cfg(target_os = "linux")]
        {
            let bytes = std::num::NonZeroU64::new(self.stored_bytes as u64);
            // Only a hint: reading reports errors.
            let _ =
                rustix::fs::fadvise(&self.file.file, self.at, bytes, rustix::fs::Advice::WillNeed);
        }
    }
}
