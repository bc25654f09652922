//! What goes wrong is one clear error, and nothing is left behind.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use dray_format::{Batch, Column, Field, Schema, Type, Values};
use dray_sort::{Budget, Cancel, Error, Options, Result, SortColumn, Sorted, Sorter};

const BATCHES: u64 = 40;
const BATCH_ROWS: usize = 1000;

fn schema() -> Schema {
    let field = Field { name: "n".into(), data_type: Type::Int64, nullable: false, metadata: vec![] };
    Schema { fields: vec![field] }
}

fn batch(number: u64) -> Batch {
    let value = |row: u64| (number * BATCH_ROWS as u64 + row).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let bytes = (0..BATCH_ROWS as u64).flat_map(|row| value(row).to_le_bytes()).collect::<Vec<u8>>().into();
    let column = Column { rows: BATCH_ROWS, validity: None, values: Values::Fixed { width: 8, bytes } };
    Batch { rows: BATCH_ROWS, columns: vec![column] }
}

fn options(budget: &Arc<Budget>, folder: Option<&Path>) -> Options {
    let by = vec![SortColumn { column: 0, descending: false, nulls_first: false }];
    Options { spill_folder: folder.map(Path::to_path_buf), ..Options::new(by, budget.clone()) }
}

fn fill(sorter: &Sorter) -> Result<()> {
    let mut writer = sorter.writer();
    (0..BATCHES).try_for_each(|number| writer.append(number, &batch(number)))?;
    writer.finish()
}

/// Sorts more than there is memory for.
fn sort(options: Options, threads: usize) -> Result<Sorted> {
    let sorter = Sorter::new(schema(), options)?;
    fill(&sorter)?;
    assert!(sorter.spilled_bytes() > 0);
    sorter.finish(threads)
}

fn small() -> Arc<Budget> {
    Budget::new(200 << 10)
}

/// The files without a name that this process has open in a folder.
fn unnamed_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let beginning = folder.to_str().unwrap();
    let is_in = |link: &Path| std::fs::read_link(link).is_ok_and(|to| to.to_str().unwrap().starts_with(beginning));
    let links = std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    links.filter(|link| is_in(link)).collect()
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
    assert_eq!(budget.taken(), 0);
}

#[test]
fn less_memory_than_a_sort_can_do_with() {
    let folder = tempfile::tempdir().unwrap();
    let error = Sorter::new(schema(), options(&Budget::new(60 << 10), Some(folder.path()))).unwrap_err();
    assert_eq!(error, Error::Memory { needed: 64 << 10, bytes_max: 60 << 10, may_spill: true });
}

#[test]
fn a_folder_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let budget = small();
    let error = sort(options(&budget, Some(&folder.path().join("not"))), 1).unwrap_err();
    let Error::Spill { doing: "create", kind: io::ErrorKind::NotFound, .. } = error else { panic!("{error}") };
    assert_eq!(budget.taken(), 0);
}

#[test]
fn more_than_may_be_spilled() {
    let folder = tempfile::tempdir().unwrap();
    let budget = small();
    let options = Options { spill_bytes_max: 100 << 10, ..options(&budget, Some(folder.path())) };
    assert_eq!(sort(options, 1).unwrap_err(), Error::SpillLimit { spill_bytes_max: 100 << 10 });
    assert_eq!(budget.taken(), 0);
    assert!(unnamed_files(folder.path()).is_empty());
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
        let Error::Spill { doing: "read", kind: io::ErrorKind::UnexpectedEof, .. } = error else { panic!("{error}") };
        assert_eq!(budget.taken(), 0);
        assert!(unnamed_files(folder.path()).is_empty());
    }
}

#[test]
fn a_byte_that_was_changed() {
    let mut found = [false; 2];
    for at in (100..100_000).step_by(997) {
        let folder = tempfile::tempdir().unwrap();
        let sorted = sort(options(&small(), Some(folder.path())), 1).unwrap();
        let links = unnamed_files(folder.path());
        let file = OpenOptions::new().read(true).write(true).open(&links[0]).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 4], at).unwrap();
        match count(sorted) {
            Err(Error::Page(_)) => found[0] = true,
            Err(Error::Damaged { .. }) => found[1] = true,
            // The block was read before.
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
        let with = || Options { cancel: cancel.clone(), batch_rows: 1000, ..options(&budget, Some(folder.path())) };
        let mut sorted = sort(with(), threads).unwrap();
        assert!((1..=1000).contains(&sorted.next().unwrap().unwrap().rows));
        cancel.cancel();
        assert_eq!(sorted.find_map(Result::err).unwrap(), Error::Cancelled);
        drop(sorted);
        assert_eq!(sort(with(), threads).unwrap_err(), Error::Cancelled);
        assert_eq!(budget.taken(), 0);
        assert!(unnamed_files(folder.path()).is_empty());
    }
}

#[test]
fn dropped_before_the_end() {
    for threads in [1, 2, 4] {
        let folder = tempfile::tempdir().unwrap();
        let budget = Budget::new(1 << 20);
        let options = Options { batch_rows: 100, page_bytes: Some(4096), ..options(&budget, Some(folder.path())) };
        let mut sorted = sort(options, threads).unwrap();
        assert!((1..=100).contains(&sorted.next().unwrap().unwrap().rows));
        drop(sorted);
        assert_eq!(budget.taken(), 0);
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
