//! Bytes on disk: in files without names, and as LZ4 where the disk is slower than that.

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

/// So many runs share a file, since a process may not have many open.
const RUNS_A_FILE: usize = 8;

/// Where runs are written.
#[derive(Debug)]
pub(crate) struct SpillFiles {
    disk: Arc<SpillStore>,
    file: Option<Arc<SpillFile>>,
    runs_in_file: usize,
}

impl SpillFiles {
    pub fn new(
        folder: PathBuf,
        space: Arc<SpillSpace>,
        compression: SpillCompression,
        written: Arc<AtomicU64>,
    ) -> Self {
        let [pages, keys] =
            [CompressionPolicy::new(compression), CompressionPolicy::new(compression)];
        let disk =
            Arc::new(SpillStore { folder, space, written, pages, keys, large: Mutex::default() });
        Self { disk, file: None, runs_in_file: 0 }
    }

    pub fn disk(&self) -> &Arc<SpillStore> {
        &self.disk
    }

    /// The file for the next run.
    pub fn begin(&mut self) -> Result<Arc<SpillFile>> {
        let file = match self.file.take().filter(|_| self.runs_in_file < RUNS_A_FILE) {
            Some(file) => file,
            None => {
                self.runs_in_file = 0;
                self.disk.create()?
            }
        };
        self.runs_in_file += 1;
        self.file = Some(file.clone());
        Ok(file)
    }

    /// Forgets the file that the next run would have gone to, so that it goes when its runs do.
    pub fn close_file(&mut self) {
        self.file = None;
    }
}

/// What all who write know.
#[derive(Debug)]
pub(crate) struct SpillStore {
    folder: PathBuf,
    space: Arc<SpillSpace>,
    /// All bytes that were ever written.
    written: Arc<AtomicU64>,
    /// Pages and what is beside them are not alike.
    pub pages: CompressionPolicy,
    pub keys: CompressionPolicy,
    /// Large pages stay where they are, whatever run they belong to; so they have a file of their
    /// own.
    large: Mutex<Option<Arc<SpillFile>>>,
}

/// A file without a name, which is gone when nothing in it is wanted any more.
#[derive(Debug)]
pub(crate) struct SpillFile {
    file: File,
    len: AtomicU64,
    space: Arc<SpillSpace>,
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        self.space.give_back(*self.len.get_mut());
    }
}

impl SpillStore {
    fn create(&self) -> Result<Arc<SpillFile>> {
        let file = tempfile::tempfile_in(&self.folder).map_err(Error::spill("create"))?;
        Ok(Arc::new(SpillFile { file, len: AtomicU64::new(0), space: self.space.clone() }))
    }

    /// The file of large pages.
    pub fn large(&self) -> Result<Arc<SpillFile>> {
        let mut large = self.large.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(match &*large {
            Some(file) => file.clone(),
            None => large.insert(self.create()?).clone(),
        })
    }

    /// Writes bytes to the end of a file, of which several threads may write there. `packed` is
    /// memory to pack them in.
    pub fn write(
        &self,
        file: &Arc<SpillFile>,
        policy: &CompressionPolicy,
        bytes: &[u8],
        packed: &mut Vec<u8>,
    ) -> Result<Extent> {
        let mut stored = bytes;
        if policy.packs(bytes.len()) {
            let start = Instant::now();
            packed.resize(packed.len().max(block::get_maximum_output_size(bytes.len())), 0);
            let compressed_bytes = block::compress_into(bytes, packed).unwrap_or(bytes.len());
            policy.packed(bytes.len(), compressed_bytes, start.elapsed());
            stored = packed
                .get(..compressed_bytes)
                .filter(|packed| packed.len() < bytes.len())
                .unwrap_or(bytes);
        }
        let stored_bytes = stored.len() as u64;
        if !self.space.take(stored_bytes) {
            return Err(Error::SpillLimit { spill_bytes_max: self.space.bytes_max() });
        }
        // Counted at once, so that the file gives back what was counted.
        let at = file.len.fetch_add(stored_bytes, Ordering::Relaxed);
        let start = Instant::now();
        file.file.write_all_at(stored, at).map_err(Error::spill("write"))?;
        policy.written(stored.len(), start.elapsed());
        self.written.fetch_add(stored_bytes, Ordering::Relaxed);
        Ok(Extent { file: file.clone(), at, stored_bytes: stored.len(), bytes: bytes.len() })
    }
}

/// Bytes that were written.
#[derive(Debug, Clone)]
pub(crate) struct Extent {
    file: Arc<SpillFile>,
    at: u64,
    /// As they are on disk: packed if these are fewer.
    stored_bytes: usize,
    bytes: usize,
}

impl Extent {
    /// How many there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The memory that reading them takes besides.
    pub fn compressed_bytes(&self) -> usize {
        if self.stored_bytes < self.bytes { self.stored_bytes } else { 0 }
    }

    /// Reads them all to memory of their size.
    pub fn read(&self, bytes: &mut [u8]) -> Result<()> {
        let read = |stored: &mut [u8]| {
            self.file.file.read_exact_at(stored, self.at).map_err(Error::spill("read"))
        };
        if self.compressed_bytes() == 0 {
            return read(bytes);
        }
        let mut packed = vec![0; self.stored_bytes];
        read(&mut packed)?;
        match block::decompress_into(&packed, bytes) {
            Ok(unpacked) if unpacked == self.bytes => Ok(()),
            _ => Err(Error::Damaged(format!(
                "{} bytes do not unpack to {}",
                self.stored_bytes, self.bytes
            ))),
        }
    }

    /// Has the system begin to read them: runs share files, so it can't tell by itself what is
    /// wanted next.
    pub fn read_ahead(&self) {
        #[cfg(target_os = "linux")]
        {
            let bytes = std::num::NonZeroU64::new(self.stored_bytes as u64);
            // They are read in any case.
            let _ =
                rustix::fs::fadvise(&self.file.file, self.at, bytes, rustix::fs::Advice::WillNeed);
        }
    }
}
