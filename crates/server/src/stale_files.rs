//! Temporary files and folders of killed processes, and how the next process removes them.
//!
//! A process locks (flock) what it creates. The lock ends with the process, however that ends, so
//! an unlocked file is stale. systemd-tmpfiles respects these locks too. On a file system without
//! locks, nothing is removed.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Locks a file or folder that this process has just created, until `file` is closed.
///
/// Returns false if another process saw it unlocked and removed it as stale: the caller must
/// create another one.
pub fn claim(file: &File, path: &Path) -> bool {
    match file.try_lock() {
        Ok(()) => path.symlink_metadata().is_ok(),
        Err(TryLockError::WouldBlock) => false,
        // Without locks on this file system, no other process can lock and remove it either.
        Err(TryLockError::Error(_)) => true,
    }
}

/// Removes this user's stale files and folders in `folder`.
///
/// `is_ours` selects names; `on_removed` is called with the path of each one removed.
pub fn remove(folder: &Path, is_ours: impl Fn(&str) -> bool, on_removed: impl Fn(&Path)) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_name().to_str().is_some_and(&is_ours) {
            continue;
        }
        let path = entry.path();
        let Some(found) = entry.metadata().ok().filter(|found| found.uid() == user) else {
            continue;
        };
        let locked = |file: File| file.try_lock().is_ok().then_some(file);
        let removed = if found.is_dir() {
            File::open(&path)
                .ok()
                .and_then(locked)
                .is_some_and(|_lock| fs::remove_dir_all(&path).is_ok())
        } else if found.is_file() {
            // NFS locks only files that are open for writing.
            let file = File::options().write(true).open(&path);
            file.ok().and_then(locked).is_some_and(|_lock| fs::remove_file(&path).is_ok())
        } else {
            false
        };
        if removed {
            on_removed(&path);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use std::fs::{self, File};

    use super::{claim, remove};

    #[test]
    fn unclaimed_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["ours-file-used", "ours-file-left", "theirs-file"] {
            fs::write(path(name), "rows").unwrap();
        }
        for name in ["ours-folder-used", "ours-folder-left", "theirs-folder"] {
            fs::create_dir(path(name)).unwrap();
            fs::write(path(name).join("within"), "rows").unwrap();
        }
        std::os::unix::fs::symlink(path("theirs-folder"), path("ours-link")).unwrap();
        let used = ["ours-file-used", "ours-folder-used"]
            .map(|name| (File::open(path(name)).unwrap(), path(name)));
        assert!(used.iter().all(|(file, path)| claim(file, path)));
        assert!(
            used.iter().all(|(_, path)| !claim(&File::open(path).unwrap(), path)),
            "claimed twice"
        );
        let told = std::cell::RefCell::new(Vec::new());
        remove(
            folder.path(),
            |name| name.starts_with("ours"),
            |path| told.borrow_mut().push(path.to_owned()),
        );
        let mut told = told.into_inner();
        told.sort();
        assert_eq!(told, [path("ours-file-left"), path("ours-folder-left")]);
        let mut left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(
            left,
            ["ours-file-used", "ours-folder-used", "ours-link", "theirs-file", "theirs-folder"]
        );
        assert!(path("theirs-folder").join("within").exists());
        // Removed between its creation and its claim.
        let gone = File::create(path("gone")).unwrap();
        fs::remove_file(path("gone")).unwrap();
        assert!(!claim(&gone, &path("gone")));
    }
}
