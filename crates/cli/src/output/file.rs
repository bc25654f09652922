//! An output file on this host, and its atomic replacement.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use dray_server::stale_files;
use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::interrupt::{Interrupt, Unfinished};

/// The ending of incomplete files.
const UNFINISHED: &str = ".unfinished";

/// A temporary file that replaces the output file once it is complete. Dropping it before that
/// removes it.
pub(crate) struct LocalFile<'a> {
    temporary: NamedTempFile,
    target: PathBuf,
    /// Its folder; None if this user may write there and not read.
    folder: Option<File>,
    /// The metadata of the file to replace.
    replaced: Option<Metadata>,
    interrupt: &'a Interrupt,
}

impl<'a> LocalFile<'a> {
    pub(super) fn create(path: &Path, interrupt: &'a Interrupt) -> Result<Self, Failure> {
        let failed =
            |cause: io::Error| Failure::Output(format!("can't write {}: {cause}", path.display()));
        let refused =
            |what: &str| Err(Failure::Output(format!("can't write {}: {what}", path.display())));
        // Links are followed: their target is replaced. Reading the metadata first makes the kernel
        // refuse links that another user put into a world-writable folder.
        let (target, replaced) = match path.metadata() {
            Ok(metadata) if !metadata.is_file() => return refused("it is not a regular file"),
            Ok(metadata) => (path.canonicalize().map_err(failed)?, Some(metadata)),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
                return refused("it is a link to a file that is not there");
            }
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => (path.to_owned(), None),
            Err(cause) => return Err(failed(cause)),
        };
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let prefix = format!(".{name}.");
        // A replacement is private until it gets the file's owner and mode. The mode of a new file
        // is reduced by the umask.
        let mode = if replaced.is_some() { 0o600 } else { 0o666 };
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(UNFINISHED).permissions(Permissions::from_mode(mode));
        let temporary = loop {
            let temporary = builder.tempfile_in(folder(&target)).map_err(failed)?;
            if stale_files::claim(temporary.as_file(), temporary.path()) {
                break temporary;
            }
        };
        interrupt.set_unfinished(Some(Unfinished::File(temporary.path().to_owned())));
        // Opened before the file is replaced, after which nothing should fail.
        let folder_file = match File::open(folder(&target)) {
            Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => None,
            opened => Some(opened.map_err(failed)?),
        };
        stale_files::remove(
            folder(&target),
            |name| {
                name.strip_prefix(&prefix)
                    .and_then(|name| name.strip_suffix(UNFINISHED))
                    .is_some_and(is_random)
            },
            |path| {
                eprintln!("removed {}, left behind by a program that was killed", path.display())
            },
        );
        Ok(Self { temporary, target, folder: folder_file, replaced, interrupt })
    }

    pub(super) fn open(&self) -> io::Result<File> {
        self.temporary.as_file().try_clone()
    }

    /// The path of the file that it becomes.
    pub(super) fn target(&self) -> String {
        self.target.display().to_string()
    }

    /// Replaces the output file, durably. Returns its size in bytes.
    pub(super) fn finish(self) -> Result<u64, Failure> {
        let failed = |cause: io::Error| {
            Failure::Output(format!("can't write {}: {cause}", self.target.display()))
        };
        if let Some(replaced) = &self.replaced {
            copy_owner_and_mode(self.temporary.as_file(), replaced).map_err(failed)?;
        }
        self.temporary.as_file().sync_all().map_err(failed)?;
        let bytes = self.temporary.as_file().metadata().map_err(failed)?.len();
        self.temporary.persist(&self.target).map_err(|cause| failed(cause.error))?;
        self.interrupt.set_unfinished(None);
        self.folder.as_ref().map_or(Ok(()), sync_folder).map_err(|cause| {
            Failure::Output(format!(
                "{} is written, but the host could lose it in a crash: its folder can't be synced: \
                 {cause}",
                self.target.display()
            ))
        })?;
        Ok(bytes)
    }
}

/// Makes the names in a folder durable, unless its file system has no means for that.
fn sync_folder(folder: &File) -> io::Result<()> {
    match folder.sync_all() {
        Err(cause)
            if matches!(cause.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
        {
            Ok(())
        }
        synced => synced,
    }
}

/// Gives the file the owner, group and mode of the one that it replaces, as far as this user may.
/// If the group can't be kept, its permissions are dropped.
fn copy_owner_and_mode(file: &File, replaced: &Metadata) -> io::Result<()> {
    let now = file.metadata()?;
    let mut mode = replaced.mode() & 0o777;
    if replaced.gid() != now.gid() && fchown(file, None, Some(replaced.gid())).is_err() {
        // The file's own group may do no more than everybody may.
        mode = mode & !0o070 | (mode & 0o007) << 3 & mode;
    }
    if replaced.uid() != now.uid() {
        // Only root may. For other users the file becomes their own, as with an editor.
        let _ = fchown(file, Some(replaced.uid()), None);
    }
    // After the change of owner, which may clear permissions.
    file.set_permissions(Permissions::from_mode(mode))
}

/// Whether this may be the random part of a name by [`tempfile`].
fn is_random(text: &str) -> bool {
    text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::OpenOptionsExt;

    use super::*;

    #[test]
    fn a_folder_that_can_t_be_synced_is_none_that_failed_to() {
        // A device takes no sync, as the folders of some file systems.
        let device = File::open("/dev/null").unwrap();
        assert_eq!(device.sync_all().unwrap_err().kind(), io::ErrorKind::InvalidInput);
        sync_folder(&device).unwrap();
        let path = tempfile::tempdir().unwrap();
        sync_folder(&File::open(path.path()).unwrap()).unwrap();
        let unread = File::options().read(true).custom_flags(libc::O_PATH).open(path.path());
        assert_eq!(sync_folder(&unread.unwrap()).unwrap_err().raw_os_error(), Some(libc::EBADF));
    }
}
