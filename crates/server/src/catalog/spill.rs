//! The folder of this process for what is spilled to disk, which is removed with all that is in it
//! when nobody needs it any more; and if the process was killed, by the next one that spills to the
//! same place.

use std::fs::File;
use std::io;
use std::path::Path;

use tempfile::TempDir;

use crate::stale_files;

/// How the names of such folders begin.
const PREFIX: &str = "dray-spill-";

/// A folder that nobody else removes as long as this is there.
#[derive(Debug)]
pub(super) struct SpillFolder {
    folder: TempDir,
    _claim: File,
}

impl SpillFolder {
    /// Makes a folder in this one, and removes those that were left behind there.
    pub(super) fn create(parent: &Path) -> io::Result<Self> {
        let (folder, claim) = loop {
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
                tracing::info!(
                    "removed {}, which a process that was killed had spilled",
                    path.display()
                )
            },
        );
        Ok(Self { folder, _claim: claim })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}
