//! Each fault results in one clear error, and leaves nothing behind.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dray_format::{Batch, Column, Field, Schema, Type, Values};
use dray_sort::{
    Cancel, Error, FixedBudget, Options, Result, SortColumn, Sorted, Sorter, SpillCompression,
    SpillSpace,
};

const BATCHES: u64 = 40;
const BATCH_ROWS: usize = 1000;

fn schema() -> Schema {
    let field =
        Field { name: "n".into(), data_type: Type::Int64, nullable: false, metadata: vec![] };
    Schema { fields: vec![field] }
}

fn batch(number: u64) -> Batch {
    let value = |row: u64| (number * BATCH_ROWS as u64 + row).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let bytes =
        (0..BATCH_ROWS as u64).flat_map(|row| value(row).to_le_bytes()).collect::<Vec<u8>>().into();
    let column =
        Column { rows: BATCH_ROWS, validity: None, values: Values::Fixed { width: 8, bytes } };
    Batch { rows: BATCH_ROWS, columns: vec![column] }
}

fn options(budget: &Arc<FixedBudget>, folder: Option<&Path>) -> Options {
    let by = vec![SortColumn { column: 0, descending: false, nulls_first: false }];
    Options { spill_folder: folder.map(Path::to_path_buf), ..Options::new(by, budget.clone()) }
}

fn fill(sorter: &Sorter) -> Result<()> {
    let mut writer = sorter.writer();
    (0..BATCHES).try_for_each(|number| writer.append(number, &batch(number)))?;
    writer.finish()
}

/// Sorts more rows than the budget holds.
fn sort(options: Options, threads: usize) -> Result<Sorted> {
    let sorter = Sorter::new(schema(), options)?;
    fill(&sorter)?;
    assert!(sorter.progress().spilled_bytes() > 0);
    sorter.finish(threads)
}

fn small() -> Arc<FixedBudget> {
    FixedBudget::new(200 << 10)
}

/// The unnamed files in a folder that this process has open.
fn unnamed_files(folder: &Path) -> Vec<PathBuf> {
    unnamed_files_of("self", folder)
}

fn unnamed_files_of(process: &str, folder: &Path) -> Vec<PathBuf> {
    let is_in = |link: &Path| std::fs::read_link(link).is_ok_and(|to| to.starts_with(folder));
    let links = std::fs::read_dir(format!("/proc/{process}/fd"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    links.filter(|link| is_in(link)).collect()
}

fn names_in(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(30), "timed out: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn count(sorted: Sorted) -> Result<usize> {
    sorted.map(|batch| batch.map(|batch| batch.rows)).sum()
}

#[test]
fn too_little_memory_and_no_folder() {
    let budget = small();
    let error = sort(options(&budget, None), 1).unwrap_err();
    let Error::Memory { needed, bytes_max, may_spill: false } = error else { panic!("{error}") };
    assert!(needed > 0 && bytes_max == 200 << 10);
    assert!(error.to_string().contains("with a spill folder it needs less"), "{error}");
    assert_eq!(budget.reserved(), 0);
}

#[test]
fn less_memory_than_a_sort_can_do_with() {
    let folder = tempfile::tempdir().unwrap();
    let error = Sorter::new(schema(), options(&FixedBudget::new(60 << 10), Some(folder.path())))
        .unwrap_err();
    assert_eq!(error, Error::Memory { needed: 64 << 10, bytes_max: 60 << 10, may_spill: true });
}

#[test]
fn a_folder_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let budget = small();
    let error = sort(options(&budget, Some(&folder.path().join("not"))), 1).unwrap_err();
    let Error::Spill { doing: "create", kind: io::ErrorKind::NotFound, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(budget.reserved(), 0);
}

#[test]
fn more_than_may_be_spilled() {
    let folder = tempfile::tempdir().unwrap();
    let budget = small();
    let options = Options {
        spill_space: SpillSpace::new(100 << 10),
        ..options(&budget, Some(folder.path()))
    };
    assert_eq!(sort(options, 1).unwrap_err(), Error::SpillLimit { spill_bytes_max: 100 << 10 });
    assert_eq!(budget.reserved(), 0);
    assert!(unnamed_files(folder.path()).is_empty());
}

#[test]
fn sorts_share_what_may_be_spilled() {
    let folder = tempfile::tempdir().unwrap();
    let space = SpillSpace::new(2 << 20);
    let options =
        |budget| Options { spill_space: space.clone(), ..options(budget, Some(folder.path())) };
    let (first, second) = (small(), small());
    // Each alone fits within the limit.
    sort(options(&first), 1).unwrap();
    assert_eq!(space.bytes(), 0);
    let sorter = Sorter::new(schema(), options(&first)).unwrap();
    let mut writer = sorter.writer();
    (0..).find(|sequence| writer.append(*sequence, &batch(*sequence)).is_err()).unwrap();
    let full = Error::SpillLimit { spill_bytes_max: 2 << 20 };
    assert_eq!(sort(options(&second), 1).unwrap_err(), full);
    drop(writer);
    assert_eq!(sorter.finish(1).unwrap_err(), full);
    assert_eq!(space.bytes(), 0);
    sort(options(&second), 1).unwrap();
}

#[test]
fn rows_that_were_lost_are_not_forgotten() {
    for spill_bytes_max in [100 << 10, 1 << 20] {
        let folder = tempfile::tempdir().unwrap();
        let budget = small();
        let options = Options {
            spill_space: SpillSpace::new(spill_bytes_max),
            ..options(&budget, Some(folder.path()))
        };
        let sorter = Sorter::new(schema(), options).unwrap();
        let (mut writer, mut other) = (sorter.writer(), sorter.writer());
        let lost = Error::SpillLimit { spill_bytes_max };
        let failed =
            (0..).find(|sequence| writer.append(*sequence, &batch(*sequence)).is_err()).unwrap();
        assert_eq!(writer.append(failed + 1, &batch(failed + 1)).unwrap_err(), lost);
        assert_eq!(other.append(failed + 2, &batch(failed + 2)).unwrap_err(), lost);
        drop((writer, other));
        assert_eq!(sorter.finish(1).unwrap_err(), lost);
        assert_eq!(budget.reserved(), 0);
    }
}

#[test]
fn a_file_that_was_cut() {
    for threads in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        let budget = small();
        let sorted = sort(options(&budget, Some(folder.path())), threads).unwrap();
        for link in unnamed_files(folder.path()) {
            OpenOptions::new().write(true).open(link).unwrap().set_len(10_000).unwrap();
        }
        let error = count(sorted).unwrap_err();
        let Error::Spill { doing: "read", kind: io::ErrorKind::UnexpectedEof, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(budget.reserved(), 0);
        assert!(unnamed_files(folder.path()).is_empty());
    }
}

#[test]
fn a_byte_that_was_changed() {
    changed_bytes(SpillCompression::None);
    changed_bytes(SpillCompression::Lz4);
}

fn changed_bytes(spill_compression: SpillCompression) {
    let mut found = [false; 2];
    for at in (100..100_000).step_by(997) {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { spill_compression, ..options(&small(), Some(folder.path())) };
        let sorted = sort(options, 1).unwrap();
        let links = unnamed_files(folder.path());
        let file = OpenOptions::new().read(true).write(true).open(&links[0]).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 4], at).unwrap();
        match count(sorted) {
            Err(Error::Page(_)) => found[0] = true,
            Err(Error::Damaged(_)) => found[1] = true,
            // The block was read before the byte changed.
            Ok(rows) => assert_eq!(rows, BATCHES as usize * BATCH_ROWS),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(found, [true; 2]);
}

#[test]
fn cancelled() {
    for threads in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        let budget = small();
        let cancel = Cancel::default();
        let with = || Options {
            cancel: cancel.clone(),
            batch_rows: 1000,
            ..options(&budget, Some(folder.path()))
        };
        let mut sorted = sort(with(), threads).unwrap();
        assert!((1..=1000).contains(&sorted.next().unwrap().unwrap().rows));
        cancel.cancel();
        assert_eq!(sorted.find_map(Result::err).unwrap(), Error::Cancelled);
        drop(sorted);
        assert_eq!(sort(with(), threads).unwrap_err(), Error::Cancelled);
        assert_eq!(budget.reserved(), 0);
        assert!(unnamed_files(folder.path()).is_empty());
    }
}

#[test]
fn dropped_before_the_end() {
    for threads in [1, 2, 4] {
        let folder = tempfile::tempdir().unwrap();
        let budget = FixedBudget::new(1 << 20);
        let options = Options {
            batch_rows: 100,
            page_bytes: Some(4096),
            ..options(&budget, Some(folder.path()))
        };
        let mut sorted = sort(options, threads).unwrap();
        assert!((1..=100).contains(&sorted.next().unwrap().unwrap().rows));
        drop(sorted);
        assert_eq!(budget.reserved(), 0);
        assert!(unnamed_files(folder.path()).is_empty());
    }
}

#[test]
fn a_batch_of_another_schema() {
    let sorter = Sorter::new(schema(), options(&small(), None)).unwrap();
    let mut writer = sorter.writer();
    let error = writer.append(0, &Batch { rows: 0, columns: vec![] }).unwrap_err();
    assert!(matches!(error, Error::Page(_)), "{error}");
    writer.append(0, &batch(0)).unwrap();
    assert_eq!(count(sorter.finish(1).unwrap()).unwrap(), BATCH_ROWS);
}

/// The environment variable that names the folder to a test in a child process.
const FOLDER: &str = "DRAY_TEST_FOLDER";

/// The folder to sort in, if this is the child process of a test.
fn folder_of_child() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// A child process that runs one test of this program, through a shell that sets it up. In the
/// shell, `$0` is the folder, and `"$@"` the program.
fn again(command: &[&str], shell: &str, test: &str, folder: &Path) -> Command {
    let (first, rest) = command.split_first().unwrap();
    let mut again = Command::new(first);
    again.args(rest).args(["sh", "-c", shell]).arg(folder);
    again
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(FOLDER, folder);
    again
}

fn assert_passed(output: &Output) {
    let [said, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success() && said.contains("1 passed"), "{said}{errors}");
    assert!(!errors.contains("panicked"), "{errors}");
}

/// Sorts batches with several writers. An error comes with the stage that failed.
fn sort_batches(
    folder: &Path,
    batches: u64,
    threads: u64,
) -> std::result::Result<(), (&'static str, Error)> {
    let budget = FixedBudget::new(300 << 10);
    let sorted = sort_batches_within(&budget, folder, batches, threads);
    assert_eq!(budget.reserved(), 0);
    sorted
}

fn sort_batches_within(
    budget: &Arc<FixedBudget>,
    folder: &Path,
    batches: u64,
    threads: u64,
) -> std::result::Result<(), (&'static str, Error)> {
    let options = Options {
        page_bytes: Some(4096),
        fan_in_max: 2,
        batch_rows: 500,
        ..options(budget, Some(folder))
    };
    let sorter = Sorter::new(schema(), options).unwrap();
    let take_in = |first: u64| {
        let mut writer = sorter.writer();
        (first..batches)
            .step_by(threads as usize)
            .try_for_each(|number| writer.append(number, &batch(number)))?;
        writer.finish()
    };
    let taken_in = std::thread::scope(|scope| {
        let take_in = &take_in;
        let writers: Vec<_> =
            (0..threads).map(|first| scope.spawn(move || take_in(first))).collect();
        writers.into_iter().try_for_each(|writer| writer.join().unwrap())
    });
    taken_in.map_err(|error| ("taking in", error))?;
    let rows =
        sorter.finish(threads as usize).and_then(count).map_err(|error| ("merging", error))?;
    assert_eq!(rows, batches as usize * BATCH_ROWS);
    Ok(())
}

/// Sorts more and more batches until the disk is full while rows are taken in. Returns the stages
/// that have failed.
fn sort_until_full(folder: &Path, expected: io::ErrorKind, said: &str) -> BTreeSet<&'static str> {
    let sorts = |thread: &Path| {
        std::fs::read_to_string(thread.join("comm")).is_ok_and(|name| name.starts_with("dray-"))
    };
    let mut refused = BTreeSet::new();
    for threads in [1, 2] {
        for batches in (2..).step_by(2) {
            let sorted = sort_batches(folder, batches, threads);
            assert!(unnamed_files(folder).is_empty() && names_in(folder).is_empty());
            // The system may list a thread for a moment after it is joined.
            wait_until("all threads end", || {
                !names_in(Path::new("/proc/self/task")).iter().any(|thread| sorts(thread))
            });
            let Err((doing, error)) = sorted else { continue };
            assert!(
                error.to_string().starts_with(&format!("can't write a spill file: {said}")),
                "{error}"
            );
            let Error::Spill { doing: "write", kind, .. } = error else { panic!("{error}") };
            assert_eq!(kind, expected);
            refused.insert(doing);
            if doing == "taking in" {
                break;
            }
        }
        // The space of deleted files is free again.
        sort_batches(folder, 10, threads).unwrap();
    }
    refused
}

#[test]
fn a_full_disk() {
    if let Some(folder) = folder_of_child() {
        let refused =
            sort_until_full(&folder, io::ErrorKind::StorageFull, "No space left on device");
        // A merge needs space for its input and its output.
        assert_eq!(refused, BTreeSet::from(["merging", "taking in"]));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=4m none \"$0\"";
    let namespace = ["unshare", "--user", "--map-root-user", "--mount"];
    let possible = Command::new(namespace[0])
        .args(&namespace[1..])
        .args(["sh", "-c", mount])
        .arg(folder.path())
        .output();
    let refusal = match &possible {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(refusal) = refusal {
        // Not `eprintln!`, which the test harness captures.
        writeln!(
            io::stderr(),
            "a_full_disk is skipped: this machine does not allow private mounts ({refusal})"
        )
        .unwrap();
        return;
    }
    let mut child =
        again(&namespace, &format!("{mount} && exec \"$@\""), "a_full_disk", folder.path());
    assert_passed(&child.output().unwrap());
}

#[test]
fn files_that_may_not_grow() {
    if let Some(folder) = folder_of_child() {
        sort_until_full(&folder, io::ErrorKind::FileTooLarge, "File too large");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // 1 MiB, in blocks of 512 bytes. The signal would end the process, and is ignored.
    let shell = "trap '' XFSZ && ulimit -f 2048 && exec \"$@\"";
    let mut child = again(&["env"], shell, "files_that_may_not_grow", folder.path());
    assert_passed(&child.output().unwrap());
}

/// A process, killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_that_is_killed() {
    if let Some(folder) = folder_of_child() {
        // Ends by itself, in case the parent process dies before it kills this one.
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(60) {
            let sorted = sort(options(&small(), Some(&folder)), 2).unwrap();
            assert_eq!(count(sorted).unwrap(), BATCHES as usize * BATCH_ROWS);
        }
        panic!("nobody has killed this process");
    }
    let folder = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let mut child = again(&["env"], "exec \"$@\"", "a_process_that_is_killed", folder.path());
        let mut child = Running(child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let process = child.0.id().to_string();
        let is_written = |link: &PathBuf| std::fs::metadata(link).is_ok_and(|file| file.len() > 0);
        wait_until("rows are spilled", || {
            unnamed_files_of(&process, folder.path()).iter().any(is_written)
        });
        // Each round kills a little later: while the child spills, merges, or starts over.
        std::thread::sleep(Duration::from_millis(round));
        assert!(names_in(folder.path()).is_empty());
        child.0.kill().unwrap();
        assert_eq!(child.0.wait().unwrap().signal(), Some(9));
        assert!(names_in(folder.path()).is_empty());
    }
}
