//! This process's spill folder. It is removed when it is no longer used, or, if the process was
//! killed, by the next process that spills to the same parent folder.

use std::fs::File;
use std::io;
use std::path::Path;

use tempfile::TempDir;

use crate::stale_files;

/// The prefix of spill folders' names.
const PREFIX: &str = "dray-spill-";

/// A spill folder, locked against removal by other processes. Dropping it removes the folder.
#[derive(Debug)]
pub(super) struct SpillFolder {
    folder: TempDir,
    _lock: File,
}

impl SpillFolder {
    /// Creates a spill folder in `parent`, and removes stale ones there.
    pub(super) fn create(parent: &Path) -> io::Result<Self> {
        let (folder, lock) = loop {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
            match File::open(folder.path()) {
                Ok(file) if stale_files::claim(&file, folder.path()) => break (folder, file),
                Ok(_) => {}
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
                Err(cause) => return Err(cause),
            }
        };
        stale_files::remove(
            parent,
            |name| name.starts_with(PREFIX),
            |path| {
                tracing::info!("removed {}, the spill folder of a killed process", path.display())
            },
        );
        Ok(Self { folder, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}
