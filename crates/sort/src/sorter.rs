//! Takes rows in, on several threads, and decides when they go to disk.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use dray_format::{Batch, Schema};
use dray_page::{HEADER_BYTES, Layout, Measured, PageBuilder};

use crate::context::{Kept, Plan};
use crate::error::{Error, Result};
use crate::key::{KeyEncoder, Purpose, SortColumn};
use crate::memory::{Reservation, Stock};
use crate::merge::{Runs, is_table};
use crate::options::{Distinct, Options};
use crate::run::{Cutoff, OpenPiece, Piece, ROW_BITS, Spill};
use crate::sorted::Sorted;

/// Pages that are reserved for writing a run: the one that is filled, the one that is written,
/// their keys, and what is packed.
const RESERVED_PAGES: usize = 5;
/// Of the memory, such a part is reserved for rows that are gathered before they are written, and
/// at most so many bytes.
const GATHERED_SHARE: usize = 32;
const GATHERED_BYTES_MAX: usize = 32 << 20;
/// If several threads write, this is at most such a part of the memory.
const RESERVED_SHARE: usize = 8;
/// A piece takes at most this part of the memory, divided by the writers: what others have not
/// sorted yet is sorted by the one who spills.
const PIECE_SHARE: usize = 8;
/// A piece has at most so many rows.
const PIECE_ROWS_MAX: usize = 1 << 20;
/// So many rows are appended at a time, if they are not large.
const STRIP_ROWS: usize = 1024;
/// Of the memory, so much is reserved at a time for rows to append.
const STRIP_SHARE: usize = 32;

/// Of the memory, such a part may be held for nothing.
const SURPLUS_SHARE: usize = 8;

/// So often memory is looked for that other writers may have taken in between.
const ATTEMPTS: usize = 100;
/// The bytes of a page besides those of one object: its slot.
const SLOT_BYTES: usize = 4;

/// Sorts rows that come from any number of threads, in memory and on disk.
///
/// ```text
///   Writer ──▶ open piece ──sort──┐                      ┌─▶ Sorted: batches
///   Writer ──▶ open piece ──sort──┼─▶ pieces ──merge─────┤
///   Writer ──▶ open piece ──sort──┘     │                └── runs, merged with them
///                                       └──merge (memory is short)──▶ run on disk
/// ```
#[derive(Debug)]
pub struct Sorter {
    shared: Arc<Shared>,
}

/// How far a sort is.
#[derive(Debug, Clone)]
pub struct Progress {
    rows: Arc<AtomicU64>,
    spilled: Arc<AtomicU64>,
}

impl Progress {
    /// How many rows came in.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// How many bytes were written to disk.
    pub fn spilled_bytes(&self) -> u64 {
        self.spilled.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct Shared {
    plan: Arc<Plan>,
    /// Measures batches, and is given none.
    measure: PageBuilder,
    /// A place for each writer's open piece.
    open: Mutex<Vec<Arc<Mutex<Option<OpenPiece>>>>>,
    writers: AtomicUsize,
    /// Whether batches are kept as they came. When memory is short, they go to disk, and those
    /// behind them into pages.
    keeps: AtomicBool,
    pieces: Mutex<Vec<Arc<Piece>>>,
    /// Rows that need not be kept.
    cutoff: Mutex<Option<Cutoff>>,
    /// Whoever has it spills.
    runs: Mutex<Runs>,
    /// For writing runs, with the size of the largest page.
    reserve: Mutex<(Reservation, usize)>,
    finished: AtomicBool,
    /// What rows were lost by: there is no result without them.
    failed: OnceLock<Error>,
    rows: Arc<AtomicU64>,
    spilled: Arc<AtomicU64>,
}

/// The lock of what stays whole even if a thread panicked with it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sorter {
    /// A sort of rows of this schema.
    ///
    /// # Errors
    /// When there is no such column to sort by, the schema has no pages, a setting can't be, or the
    /// memory is less than sixteen pages of 4 KiB.
    pub fn new(schema: Schema, options: Options) -> Result<Self> {
        let page_bytes = options.check()?;
        let (by, purpose) = match options.distinct {
            Distinct::No => (options.by, Purpose::Order),
            Distinct::Keys => (options.by, Purpose::Distinct),
            Distinct::Rows => {
                (with_all_columns(options.by, schema.fields.len()), Purpose::Distinct)
            }
        };
        let encoder = KeyEncoder::new(&schema, &by, purpose)?;
        let layout = Layout::new(schema)?;
        // Of rows that may be dropped, nothing is to stay.
        let keeps = is_table(layout.schema())
            && options.distinct == Distinct::No
            && options.limit.is_none();
        let gathered_bytes =
            (options.memory.bytes_max() / GATHERED_SHARE).clamp(page_bytes, GATHERED_BYTES_MAX);
        let gathered_bytes = if keeps { gathered_bytes } else { 0 };
        let bytes = writing_bytes(page_bytes, gathered_bytes);
        let may_spill = options.spill_folder.is_some();
        let refused =
            || Error::Memory { needed: bytes, bytes_max: options.memory.bytes_max(), may_spill };
        let reserve = Reservation::try_new(&options.memory, bytes).ok_or_else(refused)?;
        let spilled = Arc::new(AtomicU64::new(0));
        let (space, compression) = (options.spill_space, options.spill_compression);
        let spill = options
            .spill_folder
            .map(|folder| Spill::new(folder, space, compression, spilled.clone()));
        let kept = Kept {
            distinct: options.distinct != Distinct::No,
            limit: options.limit.unwrap_or(u64::MAX),
        };
        let measure = PageBuilder::new(layout.clone(), page_bytes, false)?;
        let plan = Arc::new(Plan {
            layout,
            encoder,
            page_bytes,
            gathered_bytes,
            stock: Arc::new(Stock::new(&options.memory, page_bytes)),
            memory: options.memory,
            fan_in_max: options.fan_in_max,
            batch_rows: options.batch_rows,
            kept,
            cancel: options.cancel,
        });
        Ok(Self {
            shared: Arc::new(Shared {
                plan,
                measure,
                open: Mutex::default(),
                writers: AtomicUsize::new(0),
                keeps: AtomicBool::new(keeps),
                pieces: Mutex::default(),
                cutoff: Mutex::default(),
                runs: Mutex::new(Runs::new(spill)),
                reserve: Mutex::new((reserve, page_bytes)),
                finished: AtomicBool::new(false),
                failed: OnceLock::new(),
                rows: Arc::default(),
                spilled,
            }),
        })
    }

    /// Whether rows of this schema can be sorted.
    ///
    /// # Errors
    /// When it has no pages.
    pub fn check_schema(schema: &Schema) -> Result<()> {
        Layout::new(schema.clone())?;
        Ok(())
    }

    /// Where one thread puts rows in.
    pub fn writer(&self) -> Writer {
        let open = Arc::default();
        lock(&self.shared.open).push(Arc::clone(&open));
        let writers = self.shared.writers.fetch_add(1, Ordering::Relaxed) + 1;
        self.shared.reserve_for_writers(writers);
        Writer { shared: self.shared.clone(), open, sequence_next: 0 }
    }

    /// So many bytes may batches hold together for nothing: for what is more, they are better
    /// copied.
    pub fn surplus_bytes_max(&self) -> usize {
        self.shared.plan.memory.bytes_max() / SURPLUS_SHARE
    }

    /// How far this is, from now on and while it finishes.
    pub fn progress(&self) -> Progress {
        Progress { rows: self.shared.rows.clone(), spilled: self.shared.spilled.clone() }
    }

    /// The sorted rows, merged by so many threads, or by the one that asks for them if that is 1.
    /// Writers that are still there take no more.
    ///
    /// # Errors
    /// When memory does not suffice, spilling fails, the sort was cancelled, or a writer has
    /// failed.
    pub fn finish(self, threads: usize) -> Result<Sorted> {
        let shared = &self.shared;
        shared.finished.store(true, Ordering::Relaxed);
        let mut runs = lock(&shared.runs);
        shared.check_whole()?;
        shared.close_all()?;
        // What is free may be reserved for the merge.
        shared.plan.stock.leave(usize::MAX);
        let pieces = std::mem::take(&mut *lock(&shared.pieces));
        let runs = std::mem::replace(&mut *runs, Runs::new(None));
        let writers = shared.spill_threads(threads);
        let none = Reservation::none(&shared.plan.memory);
        let (reserve, largest) = std::mem::replace(&mut *lock(&shared.reserve), (none, 0));
        let counted = (shared.rows.load(Ordering::Relaxed), shared.spilled.clone());
        Sorted::new(
            shared.plan.clone(),
            (pieces, runs),
            (reserve, writers, largest),
            threads,
            counted,
        )
    }
}

/// What a thread takes that writes a run of such pages.
fn writing_bytes(page_bytes: usize, gathered_bytes: usize) -> usize {
    let gathered = if gathered_bytes > 0 { gathered_bytes.max(page_bytes) } else { 0 };
    RESERVED_PAGES * page_bytes + gathered
}

/// Sorts by all columns, these first.
fn with_all_columns(mut by: Vec<SortColumn>, columns: usize) -> Vec<SortColumn> {
    for column in 0..columns {
        if by.iter().all(|by| by.column != column) {
            by.push(SortColumn { column, descending: false, nulls_first: false });
        }
    }
    by
}

/// Where one thread puts rows in.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
    open: Arc<Mutex<Option<OpenPiece>>>,
    sequence_next: u64,
}

impl Writer {
    /// Takes the rows of batch number `sequence`, which is larger than those that this writer took
    /// before and below 2³³. Rows that are equal come in the order of these numbers, whichever
    /// writer took them. The batch's buffers may be kept, so they should have little else than its
    /// rows; otherwise see [`append_held`](Self::append_held).
    ///
    /// # Errors
    /// When the batch does not fit the schema, memory does not suffice, spilling fails, or the sort
    /// was cancelled or finished. Rows may be lost by all but the first: then all writers and
    /// [`Sorter::finish`] fail with the same error from now on.
    pub fn append(&mut self, sequence: u64, batch: &Batch) -> Result<()> {
        self.append_held(sequence, batch, batch.plain_bytes(0, batch.rows) as usize)
    }

    /// The same for a batch that holds so many bytes of memory, those not counted that batches
    /// before it hold as well.
    ///
    /// # Errors
    /// As [`append`](Self::append) has them.
    pub fn append_held(&mut self, sequence: u64, batch: &Batch, held_bytes: usize) -> Result<()> {
        let shared = &*self.shared;
        shared.check_whole()?;
        if sequence < self.sequence_next || sequence >> (u64::BITS - ROW_BITS) > 0 {
            return Err(Error::Sequence { sequence, expected: self.sequence_next });
        }
        let measured = shared.measure.measure(batch)?;
        self.sequence_next = sequence + 1;
        shared.failing(self.take((batch, held_bytes), &measured, sequence << ROW_BITS))
    }

    fn take(
        &self,
        (batch, held_bytes): (&Batch, usize),
        measured: &Measured<'_>,
        tag: u64,
    ) -> Result<()> {
        let shared = &*self.shared;
        shared.reserve_for(measured.sizes().iter().max().copied().unwrap_or(0))?;
        let mut from = 0;
        while from < batch.rows {
            shared.plan.cancel.check()?;
            let keeps = shared.keeps.load(Ordering::Relaxed);
            let strip =
                shared.strip(measured, from, if keeps { PIECE_ROWS_MAX } else { STRIP_ROWS });
            let end = strip.end;
            let needed = if keeps {
                self.keep_strip((batch, held_bytes), measured, strip, tag)?
            } else {
                self.append_strip(batch, measured, strip, tag)?
            };
            match needed {
                // How rows are taken may have changed with it.
                Some(needed) => shared.make_room(needed)?,
                None => from = end,
            }
        }
        Ok(())
    }

    /// Counts rows that were taken, as long as nobody else has the open piece: as many come out
    /// again.
    fn count(&self, rows: usize) {
        self.shared.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Says what memory is missing if the rows were not kept.
    fn keep_strip(
        &self,
        (batch, held_bytes): (&Batch, usize),
        measured: &Measured<'_>,
        rows: Range<usize>,
        tag: u64,
    ) -> Result<Option<usize>> {
        let mut open = self.open()?;
        if !self.shared.keeps.load(Ordering::Relaxed) {
            // Since just now, and what is in memory is on its way to disk.
            return Ok(Some(0));
        }
        let strip = batch.slice(rows.start, rows.len());
        let held_bytes = held_bytes / batch.rows * rows.len() + held_bytes % batch.rows;
        let sizes = &measured.sizes()[rows.clone()];
        let piece = self.piece(&mut open)?;
        let needed = piece.keep(
            &self.shared.plan.encoder,
            (&strip, held_bytes),
            sizes,
            tag + rows.start as u64,
        )?;
        if needed.is_none() {
            self.count(rows.len());
            self.close_if_large(&mut open)?;
        }
        Ok(needed)
    }

    /// Says what memory is missing if the rows were not appended.
    fn append_strip(
        &self,
        batch: &Batch,
        measured: &Measured<'_>,
        rows: Range<usize>,
        tag: u64,
    ) -> Result<Option<usize>> {
        let plan = &self.shared.plan;
        let mut open = self.open()?;
        if open.as_ref().is_some_and(OpenPiece::is_kept) {
            self.shared.close(&mut open)?;
        }
        let piece = self.piece(&mut open)?;
        let cutoff = lock(&self.shared.cutoff).clone();
        if !piece.append(&plan.encoder, (batch, measured), rows.clone(), tag, cutoff.as_ref())? {
            return Ok(Some(piece.needed(&plan.encoder, measured, rows)));
        }
        self.count(rows.len());
        self.close_if_large(&mut open)?;
        Ok(None)
    }

    /// The place of the open piece, as long as rows are taken.
    fn open(&self) -> Result<MutexGuard<'_, Option<OpenPiece>>> {
        let open = lock(&self.open);
        if self.shared.finished.load(Ordering::Relaxed) { Err(Error::Finished) } else { Ok(open) }
    }

    fn piece<'o>(&self, open: &'o mut Option<OpenPiece>) -> Result<&'o mut OpenPiece> {
        let plan = &self.shared.plan;
        Ok(match open {
            Some(piece) => piece,
            none => none.insert(OpenPiece::new(
                &plan.layout,
                &plan.stock,
                plan.encoder.width(),
                &plan.memory,
            )?),
        })
    }

    fn close_if_large(&self, open: &mut Option<OpenPiece>) -> Result<()> {
        let writers = self.shared.writers.load(Ordering::Relaxed).max(1);
        let bytes_max = self.shared.plan.memory.bytes_max() / (PIECE_SHARE * writers);
        let is_large =
            |piece: &OpenPiece| piece.rows() >= PIECE_ROWS_MAX || piece.bytes() > bytes_max;
        if open.as_ref().is_some_and(is_large) { self.shared.close(open) } else { Ok(()) }
    }

    /// Sorts what this writer has, in this thread; nothing more comes.
    ///
    /// # Errors
    /// When the keys of a page are larger than 4 GiB.
    pub fn finish(self) -> Result<()> {
        self.shared.failing(self.shared.close(&mut lock(&self.open)))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.writers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    /// An error if rows were lost.
    fn check_whole(&self) -> Result<()> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// The result of something by which rows are lost if it fails.
    fn failing(&self, result: Result<()>) -> Result<()> {
        result.map_err(|error| self.failed.get_or_init(|| error).clone())
    }

    /// Rows of a batch that are taken at once, from this one on.
    fn strip(&self, measured: &Measured<'_>, from: usize, rows_max: usize) -> Range<usize> {
        let bytes_max = self.plan.memory.bytes_max() / STRIP_SHARE;
        let key_bytes = self.plan.encoder.width().unwrap_or(0);
        let sizes = &measured.sizes()[from..];
        let mut bytes = 0;
        let fits = |size: &&u32| {
            bytes += **size as usize + key_bytes;
            bytes <= bytes_max
        };
        from..from + sizes.iter().take(rows_max).take_while(fits).count().max(1)
    }

    /// Sorts an open piece. Its lock is held until it is among the others, so that who looks for
    /// memory to free finds it here or there.
    fn close(&self, open: &mut Option<OpenPiece>) -> Result<()> {
        let Some(piece) = open.take().filter(|piece| piece.rows() > 0) else { return Ok(()) };
        let piece = piece.sort(self.plan.kept)?;
        if piece.rows() as u64 == self.plan.kept.limit {
            self.cut_off(
                piece.entries().last().and_then(|last| piece.key(*last)).map(Cutoff::behind),
            );
        }
        lock(&self.pieces).push(Arc::new(piece));
        // Rows that are not kept have left theirs.
        self.plan.stock.keep();
        Ok(())
    }

    fn cut_off(&self, cutoff: Option<Cutoff>) {
        if let Some(cutoff) = cutoff {
            let mut least = lock(&self.cutoff);
            *least = Some(cutoff.or(least.take()));
        }
    }

    fn close_all(&self) -> Result<()> {
        let all = lock(&self.open).clone();
        all.iter().try_for_each(|open| self.close(&mut lock(open)))
    }

    /// Makes sure that a run with objects of this size could be written.
    fn reserve_for(&self, object_bytes: u32) -> Result<()> {
        let page_bytes = (HEADER_BYTES + object_bytes as usize + SLOT_BYTES)
            .next_multiple_of(self.plan.page_bytes);
        loop {
            let mut reserve = lock(&self.reserve);
            let more = writing_bytes(page_bytes, self.plan.gathered_bytes)
                .saturating_sub(reserve.0.bytes());
            if more == 0 || reserve.0.try_grow(more) {
                reserve.1 = reserve.1.max(page_bytes);
                return Ok(());
            }
            drop(reserve);
            self.make_room(more)?;
        }
    }

    /// Makes it possible that as many threads write a run as put rows in, if that is no large part
    /// of the memory.
    fn reserve_for_writers(&self, writers: usize) {
        let (reserve, page_bytes) = &mut *lock(&self.reserve);
        let wanted = writing_bytes(*page_bytes, self.plan.gathered_bytes) * writers;
        if wanted <= self.plan.memory.bytes_max() / RESERVED_SHARE {
            // Without it, fewer threads write.
            let _ = reserve.try_grow(wanted.saturating_sub(reserve.bytes()));
        }
    }

    /// How many threads can write a run, if so many are there.
    fn spill_threads(&self, threads: usize) -> usize {
        let (reserve, page_bytes) = &*lock(&self.reserve);
        let each = writing_bytes(*page_bytes, self.plan.gathered_bytes);
        (reserve.bytes() / each).min(threads).max(1)
    }

    /// Writes all that is in memory as one run, unless so much memory is free by now.
    fn make_room(&self, needed: usize) -> Result<()> {
        let mut runs = lock(&self.runs);
        for _ in 0..ATTEMPTS {
            if Reservation::try_new(&self.plan.memory, needed).is_some() {
                return Ok(());
            }
            if self.plan.stock.clear() {
                continue;
            }
            if !runs.may_spill() {
                break;
            }
            // Before the open pieces are closed, so that no batch is kept behind those that are
            // spilled now.
            self.keeps.store(false, Ordering::Relaxed);
            self.close_all()?;
            let pieces = std::mem::take(&mut *lock(&self.pieces));
            if pieces.is_empty() {
                // Another writer may have taken memory since.
                std::thread::yield_now();
            } else {
                let writers = self.writers.load(Ordering::Relaxed);
                runs.spill(&self.plan, pieces, self.spill_threads(writers))?;
                self.plan.stock.keep();
                self.cut_off(runs.cutoff(self.plan.kept));
            }
        }
        Err(runs.refused(&self.plan, needed + lock(&self.reserve).0.bytes()))
    }
}
