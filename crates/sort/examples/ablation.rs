//! The worth of each technique of the sort: `cargo run --release -p dray-sort --example ablation
//! [scale [rounds]]`.
//!
//! One thread sorts TPC-H's lineitem in memory, from columns to columns: once with all techniques,
//! and then with each in turn replaced by an alternative:
//!
//! ```text
//!   columns ──▶ keys ──▶ sorted runs of entries ──▶ merge ──▶ columns, gathered batch by batch
//!               │        │                          │         ├─ 8,192 rows at a time, as they are
//!               │        │                          │         │  merged (Arrow's interleave)
//!               │        │                          │         └─ from rows in pages
//!               │        │                          ├─ a cascade of 2-way merges by whole keys
//!               │        │                          ├─ whole keys, no offset-value codes
//!               │        │                          └─ by two threads (Merge Path)
//!               │        └─ whole keys instead of words; radix sort first
//!               └─ none: columns are compared
//! ```
//!
//! The sort of entries, their codes, the loser tree and the gathering of columns are the sort's own
//! files. Words are those of whole keys, not of varying bytes. Printed are the seconds of each
//! stage, medians of all rounds, in which the variants alternate.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "a measurement stops by them, and uses only some of the modules' items"
)]

use std::cmp::Ordering;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ord::ord::{DynComparator, make_comparator};
use arrow_schema::SortOptions;
use arrow_select::concat::concat;
use arrow_select::interleave::interleave_record_batch;
use dray_format::arrow::{batch_from_arrow, schema_from_arrow};
use dray_format::{Batch, Checksum, Schema};
use dray_page::{ColumnsBuilder, Layout, PageBuilder, VerifiedPage};
use dray_sort::{KeyEncoder, KeyPurpose, Keys, SortColumn};
use tpchgen::generators::LineItemGenerator;
use tpchgen_arrow::LineItemArrow;

#[path = "../src/key/differences.rs"]
mod differences;
#[path = "../src/key/entry.rs"]
mod entry;
#[path = "../src/run/entry_sort.rs"]
mod entry_sort;
#[path = "../src/error.rs"]
mod error;
#[path = "../src/memory/gather.rs"]
mod gather;
/// The items of the sort's module `key` that the files below use.
mod key {
    pub(crate) use crate::entry::Entry;
    pub(crate) use crate::offset_value::OffsetValueCode;
    pub(crate) use crate::varying::VaryingBytes;
    pub(crate) use crate::word::{first_difference, has_next_word, word};
}
#[path = "../src/merge/loser_tree.rs"]
mod loser_tree;
/// The items of the sort's module `memory` that the files below use.
mod memory {
    pub(crate) use crate::rows::{RowLocation, RowSizes};
}
#[path = "../src/memory/moves.rs"]
mod moves;
#[path = "../src/key/offset_value.rs"]
mod offset_value;
#[path = "../src/memory/rows.rs"]
mod rows;
#[path = "../src/key/varying.rs"]
mod varying;
#[path = "../src/key/word.rs"]
mod word;

use gather::BatchGatherer;
use key::{Entry, OffsetValueCode};
use loser_tree::{LoserTree, Player};
use memory::{RowLocation, RowSizes};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The rows of a batch, which fit in one page, and the batches of a run.
const BATCH_ROWS: usize = 8 << 10;
const PAGE_BYTES: usize = 4 << 20;
const RUN_BATCHES: usize = 16;
/// The rows that are gathered at a time, from columns and from pages.
const GATHERED_ROWS: usize = 256 << 10;
const GATHERED: usize = 128;
/// The orders: their names, and the columns to sort by.
const ORDERS: [(&str, &[usize]); 3] =
    [("shipdate, orderkey", &[10, 0]), ("comment", &[15]), ("returnflag, linestatus", &[8, 9])];

/// What replaces a technique of the sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Nothing,
    /// Columns are compared, one after the other, without keys.
    NoKeys,
    /// Whole keys are compared, without words in the entries.
    NoWords,
    /// First words are sorted by radix, from their last byte to the first.
    Radix,
    /// Columns are gathered in the order of the result, not batch by batch.
    Interleave,
    /// Columns are converted to rows in pages first.
    Rows,
    /// Runs are merged two at a time, until one is left.
    Cascade,
    /// The same, and each merge copies the rows.
    CascadeOfRows,
    /// The tree compares whole keys.
    NoCodes,
    /// Two threads merge and gather one half of the result each.
    TwoThreads,
}

const VARIANTS: [(Variant, &str); 10] = [
    (Variant::Nothing, "all parts"),
    (Variant::NoKeys, "columns compared, no keys"),
    (Variant::NoWords, "whole keys compared in runs"),
    (Variant::Radix, "radix sort of first words"),
    (Variant::Interleave, "columns gathered as merged"),
    (Variant::Rows, "rows in pages"),
    (Variant::Cascade, "cascade of 2-way merges, entries"),
    (Variant::CascadeOfRows, "cascade of 2-way merges, rows"),
    (Variant::NoCodes, "no offset-value codes"),
    (Variant::TwoThreads, "Merge Path, 2 threads"),
];
const STAGES: [&str; 5] = ["keys", "rows", "runs", "merge", "gather"];

/// The rows to sort.
struct Input {
    schema: Schema,
    arrow: Vec<RecordBatch>,
    batches: Vec<Batch>,
    by: Vec<usize>,
}

/// What sorting and merging compare.
enum Order {
    Keys(Vec<Keys>),
    /// Comparators of the columns, by row number, and the number of the first row of each batch.
    Columns(Vec<DynComparator>, Vec<usize>),
}

impl Order {
    fn of(input: &Input, variant: Variant) -> Self {
        if variant == Variant::NoKeys {
            let column = |column: &usize| -> DynComparator {
                let arrays: Vec<&dyn arrow_array::Array> =
                    input.arrow.iter().map(|batch| batch.column(*column).as_ref()).collect();
                let all: ArrayRef = concat(&arrays).unwrap();
                make_comparator(&all, &all, SortOptions::default()).unwrap()
            };
            let firsts = input.batches.iter().scan(0, |rows, batch| {
                let first = *rows;
                *rows += batch.rows;
                Some(first)
            });
            return Self::Columns(input.by.iter().map(column).collect(), firsts.collect());
        }
        let by = input.by.iter().map(|column| SortColumn {
            column: *column,
            descending: false,
            nulls_first: false,
        });
        let encoder =
            KeyEncoder::new(&input.schema, &by.collect::<Vec<_>>(), KeyPurpose::Order).unwrap();
        Self::Keys(input.batches.iter().map(|batch| encoder.encode(batch)).collect())
    }

    fn key(&self, entry: Entry) -> &[u8] {
        let (batch, row) = entry.location();
        match self {
            Self::Keys(keys) => keys[batch].get(row),
            Self::Columns(..) => &[],
        }
    }

    fn compare(&self, a: Entry, b: Entry) -> Ordering {
        let of_rows = match self {
            Self::Keys(_) => self.key(a).cmp(self.key(b)),
            Self::Columns(comparators, firsts) => {
                let [a, b] = [a, b].map(|entry| firsts[entry.location().0] + entry.location().1);
                comparators
                    .iter()
                    .map(|compare| compare(a, b))
                    .find(|order| order.is_ne())
                    .unwrap_or(Ordering::Equal)
            }
        };
        of_rows.then(a.location().cmp(&b.location()))
    }
}

/// The sorted entries of some batches, of which the first has number `first`.
fn sorted_run(order: &Order, batches: &[Batch], first: usize, variant: Variant) -> Vec<Entry> {
    let locations = batches
        .iter()
        .enumerate()
        .flat_map(|(i, batch)| (0..batch.rows).map(move |row| (first + i, row)));
    let mut entries: Vec<Entry> = locations.map(|(batch, row)| Entry::new(0, batch, row)).collect();
    if matches!(variant, Variant::NoKeys | Variant::NoWords) {
        entries.sort_unstable_by(|a, b| order.compare(*a, *b));
        return coded(order, entries);
    }
    entries.iter_mut().for_each(|entry| *entry = entry.with_word(key::word(order.key(*entry), 0)));
    if variant == Variant::Radix {
        radix(&mut entries);
    }
    entry_sort::sort(&mut entries, |entry| Some(order.key(entry)), None).unwrap();
    entries
}

/// Gives sorted entries their offset-value codes.
fn coded(order: &Order, entries: Vec<Entry>) -> Vec<Entry> {
    let before = [None].into_iter().chain(entries.iter().copied().map(Some));
    let code = |(before, entry): (Option<Entry>, &Entry)| {
        let Some(before) = before else {
            return entry.with_code(0, key::word(order.key(*entry), 0));
        };
        match key::first_difference(order.key(before), order.key(*entry), 0) {
            Some((offset, _, word)) => entry.with_code(offset, word),
            None => entry.with_code_equal(),
        }
    };
    before.zip(&entries).map(code).collect()
}

/// Sorts by the bytes of words, the last byte first. Bytes that all words share are skipped.
fn radix(entries: &mut Vec<Entry>) {
    let mut other = entries.clone();
    for shift in (0..u64::BITS).step_by(8) {
        let byte = |entry: Entry| (entry.word() >> shift) as usize & 0xFF;
        let mut ends = [0_usize; 256];
        entries.iter().for_each(|entry| ends[byte(*entry)] += 1);
        if ends.contains(&entries.len()) {
            continue;
        }
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        for entry in entries.iter() {
            let at = &mut ends[byte(*entry)];
            other[*at] = *entry;
            *at += 1;
        }
        std::mem::swap(entries, &mut other);
    }
}

/// Merges all runs at once, with a loser tree.
fn merged(order: &Order, runs: &[&[Entry]], with_codes: bool, out: &mut Vec<Entry>) {
    let code_of = |entry: Entry| match with_codes {
        true => entry.code().unwrap_or_else(|| panic!("an offset too large for an entry")),
        // Equal codes make every comparison a tie.
        false => OffsetValueCode::EQUAL,
    };
    let mut at = vec![0; runs.len()];
    let first = |run: &&[Entry]| match (run.first(), with_codes) {
        (None, _) => OffsetValueCode::END,
        (Some(entry), true) => OffsetValueCode::new(0, key::word(order.key(*entry), 0)),
        (Some(_), false) => OffsetValueCode::EQUAL,
    };
    let codes: Vec<OffsetValueCode> = runs.iter().map(first).collect();
    let break_tie = |at: &[usize], a: Player, b: Player| {
        if a.code == OffsetValueCode::END {
            return Ok((true, OffsetValueCode::END));
        }
        let [of_a, of_b] =
            [a, b].map(|player| runs[player.source as usize][at[player.source as usize]]);
        if !with_codes {
            return Ok((order.compare(of_a, of_b).is_lt(), OffsetValueCode::EQUAL));
        }
        if a.code != OffsetValueCode::EQUAL
            && let Some((offset, word_a, word_b)) =
                key::first_difference(order.key(of_a), order.key(of_b), a.code.offset() + 1)
        {
            return Ok((word_a < word_b, OffsetValueCode::new(offset, word_a.max(word_b))));
        }
        Ok((of_a.location() < of_b.location(), OffsetValueCode::EQUAL))
    };
    let mut tree = LoserTree::new(&codes, &mut |a, b| break_tie(&at, a, b)).unwrap();
    while let Some(winner) = tree.winner().filter(|winner| winner.code != OffsetValueCode::END) {
        let source = winner.source as usize;
        out.push(runs[source][at[source]]);
        at[source] += 1;
        let code =
            runs[source].get(at[source]).map_or(OffsetValueCode::END, |entry| code_of(*entry));
        tree.replace(code, &mut |a, b| break_tie(&at, a, b)).unwrap();
    }
}

/// Merges two runs at a time. With pages, each merge copies the rows.
fn cascaded(order: &Order, mut runs: Vec<Vec<Entry>>, mut pages: Option<&mut Rows>) -> Vec<Entry> {
    while runs.len() > 1 {
        let mut next = Vec::with_capacity(runs.len().div_ceil(2));
        for pair in runs.chunks(2) {
            let [a, b] = pair else {
                next.push(pair[0].clone());
                continue;
            };
            let (mut out, mut i, mut j) = (Vec::with_capacity(a.len() + b.len()), 0, 0);
            while let (Some(of_a), Some(of_b)) = (a.get(i), b.get(j)) {
                let a_is_less = order.compare(*of_a, *of_b).is_lt();
                out.push(if a_is_less { *of_a } else { *of_b });
                i += usize::from(a_is_less);
                j += usize::from(!a_is_less);
            }
            out.extend_from_slice(&a[i..]);
            out.extend_from_slice(&b[j..]);
            if let Some(rows) = &mut pages {
                rows.copy(&out);
            }
            next.push(out);
        }
        runs = next;
    }
    runs.pop().unwrap_or_default()
}

/// Rows in pages, one for each batch.
struct Rows {
    layout: Arc<Layout>,
    pages: Vec<VerifiedPage>,
}

impl Rows {
    fn of(input: &Input) -> Self {
        let layout = Layout::new(input.schema.clone()).unwrap();
        let mut builder = PageBuilder::new(layout.clone(), PAGE_BYTES, Checksum::None).unwrap();
        let page = |batch: &Batch| {
            builder.append(batch).unwrap();
            let mut pages = builder.finish();
            assert_eq!(pages.len(), 1, "a batch takes more than a page");
            pages.pop().unwrap()
        };
        let pages = input.batches.iter().map(page).collect();
        Self { layout, pages }
    }

    /// Copies rows, as a merge that moves them does. The originals stay for the next merge.
    fn copy(&self, entries: &[Entry]) {
        let mut builder =
            PageBuilder::new(self.layout.clone(), PAGE_BYTES, Checksum::None).unwrap();
        let mut pages = Vec::new();
        for entry in entries {
            let (page, row) = entry.location();
            builder.copy(self.pages[page].object(row).unwrap()).unwrap();
            pages.extend(builder.pop());
        }
        std::hint::black_box(builder.finish());
    }

    fn gather(&self, entries: &[Entry]) -> usize {
        let mut columns = ColumnsBuilder::new(self.layout.clone(), u64::MAX);
        let mut rows = 0;
        for batch in entries.chunks(BATCH_ROWS) {
            for some in batch.chunks(GATHERED) {
                let object = |entry: &Entry| {
                    self.pages[entry.location().0].object(entry.location().1).unwrap()
                };
                let objects: Vec<_> = some.iter().map(object).collect();
                columns.append(objects).unwrap();
            }
            rows += std::hint::black_box(columns.finish()).rows;
        }
        rows
    }
}

fn gather_columns(input: &Input, entries: &[Entry]) -> usize {
    let mut batches = BatchGatherer::default();
    // The sizes of rows are not used here.
    input
        .batches
        .iter()
        .for_each(|batch| batches.push(batch, &RowSizes::Equal { bytes: 0, rows: batch.rows }));
    let gather = |entries: &[Entry]| {
        let location = |entry: &Entry| {
            let (block, row) = entry.location();
            RowLocation { block: block as u32, row: row as u32 }
        };
        let locations: Vec<_> = entries.iter().map(location).collect();
        std::hint::black_box(batches.gather(&locations).unwrap()).rows
    };
    entries.chunks(GATHERED_ROWS).map(gather).sum()
}

fn interleave(input: &Input, entries: &[Entry]) -> usize {
    let all: Vec<&RecordBatch> = input.arrow.iter().collect();
    let gather = |entries: &[Entry]| {
        let locations: Vec<_> = entries.iter().map(|entry| entry.location()).collect();
        std::hint::black_box(interleave_record_batch(&all, &locations).unwrap()).num_rows()
    };
    entries.chunks(BATCH_ROWS).map(gather).sum()
}

/// Divides each run at the median of samples of all runs.
fn halves<'r>(order: &Order, runs: &'r [Vec<Entry>]) -> [Vec<&'r [Entry]>; 2] {
    let mut samples: Vec<Entry> =
        runs.iter().flat_map(|run| run.iter().step_by(1024).copied()).collect();
    samples.sort_unstable_by(|a, b| order.compare(*a, *b));
    let middle = samples[samples.len() / 2];
    let divided = runs.iter().map(|run| {
        run.split_at(run.partition_point(|entry| order.compare(*entry, middle).is_lt()))
    });
    let (low, high) = divided.unzip();
    [low, high]
}

/// Sorts. Returns the seconds of each stage, the number of rows, and a checksum of their order.
fn run(input: &Input, variant: Variant) -> ([f64; 5], [usize; 2]) {
    let mut took = [0.0; 5];
    let mut stage = 0;
    let mut last = Instant::now();
    let mut ended = || {
        took[stage] = last.elapsed().as_secs_f64();
        stage += 1;
        last = Instant::now();
    };
    let order = Order::of(input, variant);
    ended();
    let mut rows =
        matches!(variant, Variant::Rows | Variant::CascadeOfRows).then(|| Rows::of(input));
    ended();
    let chunks = input.batches.chunks(RUN_BATCHES).enumerate();
    let runs: Vec<Vec<Entry>> =
        chunks.map(|(i, batches)| sorted_run(&order, batches, i * RUN_BATCHES, variant)).collect();
    ended();
    let count: usize = runs.iter().map(Vec::len).sum();
    let mut out = Vec::with_capacity(count);
    let gathered;
    if variant == Variant::TwoThreads {
        // Merging and gathering are one stage: each half is gathered as soon as it is merged.
        let divided = halves(&order, &runs);
        let half = |runs: &Vec<&[Entry]>| {
            let mut out = Vec::with_capacity(count);
            merged(&order, runs, true, &mut out);
            (gather_columns(input, &out), out)
        };
        let (low, high) = std::thread::scope(|scope| {
            let high = scope.spawn(|| half(&divided[1]));
            (half(&divided[0]), high.join().unwrap())
        });
        gathered = low.0 + high.0;
        out = low.1;
        out.extend(high.1);
        ended();
    } else {
        match variant {
            Variant::Cascade => out = cascaded(&order, runs, None),
            Variant::CascadeOfRows => out = cascaded(&order, runs, rows.as_mut()),
            _ => {
                let runs: Vec<&[Entry]> = runs.iter().map(Vec::as_slice).collect();
                merged(
                    &order,
                    &runs,
                    !matches!(variant, Variant::NoCodes | Variant::NoKeys),
                    &mut out,
                );
            }
        }
        ended();
        gathered = match &rows {
            Some(rows) => rows.gather(&out),
            None if variant == Variant::Interleave => interleave(input, &out),
            None => gather_columns(input, &out),
        };
        ended();
    }
    assert_eq!((gathered, out.len()), (count, count));
    let number = |entry: &Entry| entry.location().0 * BATCH_ROWS + entry.location().1;
    // Depends on the order, which is the same for all variants.
    let checksum =
        out.iter().fold(0_usize, |sum, entry| sum.wrapping_mul(31).wrapping_add(number(entry)));
    (took, [count, checksum])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<f64>());
    let scale = arguments.next().transpose()?.unwrap_or(0.2);
    let rounds = arguments.next().transpose()?.map_or(3, |rounds| rounds as usize).max(1);
    let rows = LineItemArrow::new(LineItemGenerator::new(scale, 1, 1)).with_batch_size(BATCH_ROWS);
    let arrow: Vec<RecordBatch> = rows.collect::<Result<_, _>>()?;
    let schema = schema_from_arrow(&arrow[0].schema())?;
    let batches: Vec<Batch> = arrow.iter().map(batch_from_arrow).collect::<Result<_, _>>()?;
    let mut input = Input { schema, arrow, batches, by: Vec::new() };
    for (name, by) in ORDERS {
        input.by = by.to_vec();
        let mut took = vec![Vec::new(); VARIANTS.len()];
        let mut expected = None;
        // The first run touches fresh memory, and is not counted.
        run(&input, Variant::Nothing);
        for round in 0..rounds {
            for i in 0..VARIANTS.len() {
                // No variant always follows the same one.
                let i = (i + round) % VARIANTS.len();
                let (variant, name) = VARIANTS[i];
                let (stages, found) = run(&input, variant);
                assert_eq!(*expected.get_or_insert(found), found, "{name}");
                took[i].push(stages);
            }
        }
        println!(
            "by {name}: {} rows, {rounds} rounds, medians in seconds",
            expected.map_or(0, |[rows, _]| rows)
        );
        print!("{:36}", "");
        STAGES.iter().for_each(|stage| print!("{stage:>9}"));
        println!("{:>9}{:>9}", "all", "of all");
        let total =
            |took: &[[f64; 5]]| median(took.iter().map(|stages| stages.iter().sum()).collect());
        let least = total(&took[0]);
        for ((_, name), took) in VARIANTS.iter().zip(&took) {
            print!("{name:36}");
            (0..STAGES.len()).for_each(|i| {
                print!("{:>9.3}", median(took.iter().map(|stages| stages[i]).collect()))
            });
            println!("{:>9.3}{:>9.2}", total(took), total(took) / least);
        }
        println!();
    }
    Ok(())
}
