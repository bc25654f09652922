//! Divides a physical plan into partitions that can be run alone, each in another place.
//!
//! Only plans whose output partition *i* depends on partition *i* of each input are divided: scans,
//! filters, projections and unions. A scan is divided by what it is made of, in its order:
//!
//! ```text
//!   Parquet: row groups       JSON lines, Arrow files: byte ranges of their files
//!   others: whole files       tables in memory: batches, or slices of them
//! ```

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::catalog::memory::{DataSourceExec, MemorySourceConfig};
use datafusion::common::DataFusionError;
use datafusion::datasource::listing::{FileRange, PartitionedFile};
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, ParquetSource,
};
use datafusion::object_store::path::Path;
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use ring::digest::{Context, SHA256};

use crate::catalog::RowCountExec;

/// The fewest bytes of a file, and rows of a batch, that are worth a piece of their own.
const PIECE_BYTES_MIN: u64 = 64 << 10;
const PIECE_ROWS_MIN: usize = 8192;
/// Ranges of files and batches are cut into this many pieces for each partition, so that partitions
/// become about the same size. Neighbours are joined again.
const PIECES_OF_PART: usize = 4;

/// The footers of Parquet files.
pub(super) type Footers = HashMap<Path, Arc<ParquetMetaData>>;

/// A plan that is divided.
pub(super) struct Divided {
    pub(super) plan: Arc<dyn ExecutionPlan>,
    /// What each output partition has to read, in rows or bytes.
    pub(super) weights: Vec<u64>,
    /// The rows of each partition, if they are known.
    rows: Option<Vec<u64>>,
}

/// Why a plan is not divided.
pub(super) enum Undivided {
    /// It can't be, for this reason.
    Because(String),
    Failed(DataFusionError),
}

impl From<DataFusionError> for Undivided {
    fn from(cause: DataFusionError) -> Self {
        Self::Failed(cause)
    }
}

/// The scans of a plan that can be divided.
pub(super) fn scans(plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<&DataSourceExec>, Undivided> {
    let because = |why: String| Err(Undivided::Because(why));
    if plan.fetch().is_some() {
        return because("it has a LIMIT".to_owned());
    }
    if plan.output_partitioning().partition_count() == 0 {
        return because("it has no rows".to_owned());
    }
    match plan.name() {
        "DataSourceExec" => match plan.downcast_ref::<DataSourceExec>() {
            Some(scan) => Ok(vec![scan]),
            None => because("its table is not one of files or batches".to_owned()),
        },
        "CoalesceBatchesExec"
        | "CooperativeExec"
        | "FilterExec"
        | "ProjectionExec"
        | "RowCountExec"
        | "UnionExec" => {
            let children = plan.children().into_iter().map(scans);
            Ok(children.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }
        name => because(match name {
            "AggregateExec" => "it groups or aggregates rows".to_owned(),
            "EmptyExec" | "PlaceholderRowExec" => "it reads no table".to_owned(),
            "GlobalLimitExec" | "LocalLimitExec" => "it has a LIMIT".to_owned(),
            "ExternalSortExec" | "SortExec" | "SortPreservingMergeExec" => {
                "it sorts rows".to_owned()
            }
            _ if name.contains("Join") => "it joins tables".to_owned(),
            _ if name.contains("Window") => "it has window functions".to_owned(),
            _ => format!("its plan has the operator {name}"),
        }),
    }
}

/// The files of a scan; None for a table in memory.
pub(super) fn files(scan: &DataSourceExec) -> Option<impl Iterator<Item = &PartitionedFile>> {
    let scan = scan.data_source().downcast_ref::<FileScanConfig>()?;
    Some(scan.file_groups.iter().flat_map(FileGroup::iter))
}

/// Whether a scan reads Parquet.
pub(super) fn is_parquet(scan: &DataSourceExec) -> bool {
    scan.downcast_to_file_source::<ParquetSource>().is_some()
}

/// Divides the scans of a plan, which [`scans`] has found, into at most `target` partitions each.
pub(super) fn divide(
    plan: &Arc<dyn ExecutionPlan>,
    target: usize,
    footers: &Footers,
) -> Result<Divided, Undivided> {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        return divide_scan(scan, target, footers);
    }
    let mut children = Vec::new();
    let (mut weights, mut rows) = (Vec::new(), Some(Vec::new()));
    for child in plan.children() {
        let divided = divide(child, target, footers)?;
        children.push(divided.plan);
        weights.extend(divided.weights);
        rows = rows.zip(divided.rows).map(|(mut all, some)| {
            all.extend(some);
            all
        });
    }
    let plan = match (plan.name(), children.pop()) {
        ("RowCountExec", Some(child)) => {
            let Some(rows) = rows.clone() else {
                let why = "the rows of its Parquet files are not known".to_owned();
                return Err(Undivided::Because(why));
            };
            Arc::new(RowCountExec::of_partitions(child, rows)) as _
        }
        (name, child) => {
            children.extend(child);
            if name == "FilterExec" {
                rows = None;
            }
            with_children(plan, children)?
        }
    };
    debug_assert_eq!(plan.output_partitioning().partition_count(), weights.len());
    Ok(Divided { plan, weights, rows })
}

/// The operator over other inputs.
fn with_children(
    plan: &Arc<dyn ExecutionPlan>,
    children: Vec<Arc<dyn ExecutionPlan>>,
) -> datafusion::common::Result<Arc<dyn ExecutionPlan>> {
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    plan.clone().replace_children(children, options)
}

fn divide_scan(
    scan: &DataSourceExec,
    target: usize,
    footers: &Footers,
) -> Result<Divided, Undivided> {
    if let Some(memory) = scan.data_source().downcast_ref::<MemorySourceConfig>() {
        return divide_memory(memory, target);
    }
    let Some(of_files) = scan.data_source().downcast_ref::<FileScanConfig>() else {
        return Err(Undivided::Because("its table is not one of files or batches".to_owned()));
    };
    let pieces = file_pieces(of_files, target, footers);
    let known = pieces.iter().map(|piece| piece.rows).collect::<Option<Vec<_>>>();
    let weights = known.clone().unwrap_or_else(|| pieces.iter().map(Piece::bytes).collect());
    let groups = balance(&weights, target);
    let sum = |numbers: &[u64], group: &Range<usize>| numbers[group.clone()].iter().sum::<u64>();
    let file_groups = groups.iter().map(|group| merged(&pieces[group.clone()]));
    let source = FileScanConfigBuilder::from(of_files.clone())
        .with_file_groups(file_groups.collect())
        .build();
    Ok(Divided {
        plan: DataSourceExec::from_data_source(source),
        weights: groups.iter().map(|group| sum(&weights, group)).collect(),
        rows: known.map(|rows| groups.iter().map(|group| sum(&rows, group)).collect()),
    })
}

/// A file, or a part of it that one partition reads.
struct Piece {
    file: PartitionedFile,
    rows: Option<u64>,
}

impl Piece {
    fn range_of(file: &PartitionedFile, range: Range<u64>, rows: Option<u64>) -> Option<Self> {
        let (start, end) = (i64::try_from(range.start).ok()?, i64::try_from(range.end).ok()?);
        Some(Self {
            file: PartitionedFile { range: Some(FileRange { start, end }), ..file.clone() },
            rows,
        })
    }

    fn bytes(&self) -> u64 {
        match &self.file.range {
            Some(range) => range.end.abs_diff(range.start),
            None => self.file.object_meta.size,
        }
    }
}

fn file_pieces(scan: &FileScanConfig, target: usize, footers: &Footers) -> Vec<Piece> {
    let files = || scan.file_groups.iter().flat_map(FileGroup::iter);
    let total: u64 = files().map(|file| file.object_meta.size).sum();
    let piece_bytes = (total / target.saturating_mul(PIECES_OF_PART) as u64).max(PIECE_BYTES_MIN);
    let source = scan.file_source();
    let (parquet, has_ranges) =
        (source.downcast_ref::<ParquetSource>().is_some(), source.supports_repartitioning());
    let mut pieces = Vec::new();
    for file in files() {
        let file = &without_idle_range(file);
        let footer = footers.get(&file.object_meta.location).filter(|_| parquet);
        let parts = match footer {
            // A range is not divided again.
            _ if file.range.is_some() => None,
            Some(footer) => row_groups(file, footer),
            None if !parquet && has_ranges => ranges(file, piece_bytes),
            None => None,
        };
        let rows = footer.filter(|_| file.range.is_none()).map(|footer| footer_rows(footer));
        pieces.extend(parts.unwrap_or_else(|| vec![Piece { file: file.clone(), rows }]));
    }
    pieces
}

/// The file, without a range of all its bytes: the engine makes one even for a single partition.
fn without_idle_range(file: &PartitionedFile) -> PartitionedFile {
    let size = i64::try_from(file.object_meta.size).unwrap_or(i64::MAX);
    let is_idle = |range: &FileRange| range.start == 0 && range.end == size;
    PartitionedFile { range: file.range.clone().filter(|range| !is_idle(range)), ..file.clone() }
}

fn footer_rows(footer: &ParquetMetaData) -> u64 {
    footer.row_groups().iter().map(|group| group.num_rows().unsigned_abs()).sum()
}

/// The row groups of a Parquet file. A row group belongs to the range with its first page.
fn row_groups(file: &PartitionedFile, footer: &ParquetMetaData) -> Option<Vec<Piece>> {
    let size = file.object_meta.size;
    let starts = footer.row_groups().iter().map(|group| {
        let column = group.columns().first()?;
        let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
        u64::try_from(start).ok()
    });
    let starts = starts.collect::<Option<Vec<u64>>>()?;
    // Otherwise two row groups would be in one range, or one in none.
    let is_in_order =
        starts.is_sorted_by(|a, b| a < b) && starts.last().is_some_and(|at| *at < size);
    if !is_in_order {
        return None;
    }
    let pieces = footer.row_groups().iter().enumerate().map(|(i, group)| {
        let from = if i == 0 { 0 } else { starts[i] };
        let to = starts.get(i + 1).copied().unwrap_or(size);
        Piece::range_of(file, from..to, Some(group.num_rows().unsigned_abs()))
    });
    pieces.collect()
}

/// Ranges of a file of about `piece_bytes`.
fn ranges(file: &PartitionedFile, piece_bytes: u64) -> Option<Vec<Piece>> {
    let size = file.object_meta.size;
    let count = (size / piece_bytes).max(1);
    // In 128 bits, no product is too large.
    let bound = |i: u64| {
        u64::try_from(u128::from(size) * u128::from(i) / u128::from(count)).unwrap_or(size)
    };
    (0..count).map(|i| Piece::range_of(file, bound(i)..bound(i + 1), None)).collect()
}

/// Pieces of one partition, those of a file that adjoin as one.
fn merged(pieces: &[Piece]) -> FileGroup {
    let mut files: Vec<PartitionedFile> = Vec::new();
    for Piece { file, .. } in pieces {
        if let Some(last) = files.last_mut()
            && last.object_meta.location == file.object_meta.location
            && let (Some(before), Some(range)) = (&mut last.range, &file.range)
            && before.end == range.start
        {
            before.end = range.end;
        } else {
            files.push(file.clone());
        }
    }
    FileGroup::new(files)
}

fn divide_memory(memory: &MemorySourceConfig, target: usize) -> Result<Divided, Undivided> {
    let batches = || memory.partitions().iter().flatten();
    let total: usize = batches().map(RecordBatch::num_rows).sum();
    let piece_rows = (total / target.saturating_mul(PIECES_OF_PART)).max(PIECE_ROWS_MIN);
    let mut pieces = Vec::new();
    for batch in batches() {
        let count = (batch.num_rows() / piece_rows).max(1);
        let bound = |i: usize| batch.num_rows() / count * i;
        for i in 0..count {
            let end = if i + 1 < count { bound(i + 1) } else { batch.num_rows() };
            pieces.push((batch, bound(i)..end));
        }
    }
    let weights = pieces.iter().map(|(_, rows)| rows.len() as u64).collect::<Vec<_>>();
    let groups = balance(&weights, target);
    let partitions = groups.iter().map(|group| slices(&pieces[group.clone()])).collect::<Vec<_>>();
    let rows = groups.iter().map(|group| weights[group.clone()].iter().sum()).collect::<Vec<u64>>();
    let source = MemorySourceConfig::try_new(
        &partitions,
        memory.original_schema(),
        memory.projection().clone(),
    )?;
    let plan = DataSourceExec::from_data_source(source);
    Ok(Divided { plan, weights: rows.clone(), rows: Some(rows) })
}

/// The rows of one partition, those of a batch as one slice.
fn slices(pieces: &[(&RecordBatch, Range<usize>)]) -> Vec<RecordBatch> {
    let of_batches = pieces.chunk_by(|(one, _), (next, _)| std::ptr::eq(*one, *next));
    let slices = of_batches.filter_map(|some| {
        let ((batch, first), (_, last)) = (some.first()?, some.last()?);
        Some(batch.slice(first.start, last.end - first.start))
    });
    slices.collect()
}

/// Groups neighbours to at most `count` groups of about the same weight, none of them empty. There
/// is one group, perhaps an empty one, if there is no weight.
fn balance(weights: &[u64], count: usize) -> Vec<Range<usize>> {
    let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let mut groups: Vec<Range<usize>> = Vec::new();
    let (mut before, mut last) = (0_u128, None);
    for (i, weight) in weights.iter().enumerate() {
        let middle = 2 * before + u128::from(*weight);
        let place = (middle * count as u128).checked_div(2 * total);
        match groups.last_mut() {
            Some(group) if place == last => group.end = i + 1,
            _ => groups.push(i..i + 1),
        }
        last = place;
        before += u128::from(*weight);
    }
    if groups.is_empty() {
        groups.push(0..0);
    }
    debug_assert!(groups.len() <= count.max(1));
    groups
}

/// Identifies what each partition of a divided plan reads. Two plans of a statement with the same
/// digest have the same rows in the same partitions.
pub(super) fn digest(plan: &Arc<dyn ExecutionPlan>) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    add(plan, &mut context);
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

fn add(plan: &Arc<dyn ExecutionPlan>, context: &mut Context) {
    let mut number = |number: u64| context.update(&number.to_le_bytes());
    number(plan.children().len() as u64);
    number(plan.output_partitioning().partition_count() as u64);
    number(plan.name().len() as u64);
    context.update(plan.name().as_bytes());
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        add_scan(scan, context);
    }
    plan.children().into_iter().for_each(|child| add(child, context));
}

fn add_scan(scan: &DataSourceExec, context: &mut Context) {
    let mut words: Vec<u64> = Vec::new();
    if let Some(files) = scan.data_source().downcast_ref::<FileScanConfig>() {
        for group in &files.file_groups {
            words.push(group.len() as u64);
            for file in group.iter() {
                let location = file.object_meta.location.as_ref();
                let range = file.range.as_ref().map_or((-1, -1), |range| (range.start, range.end));
                words.extend([location.len() as u64, file.object_meta.size]);
                words.extend([range.0.cast_unsigned(), range.1.cast_unsigned()]);
                context.update(location.as_bytes());
            }
        }
    } else if let Some(memory) = scan.data_source().downcast_ref::<MemorySourceConfig>() {
        for partition in memory.partitions() {
            words.push(partition.len() as u64);
            words.extend(partition.iter().map(|batch| batch.num_rows() as u64));
        }
    }
    words.iter().for_each(|word| context.update(&word.to_le_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_in_order_whole_and_at_most_as_many_as_asked_for() {
        let cases: [&[u64]; 6] =
            [&[], &[0, 0], &[7], &[1; 10], &[100, 1, 1, 1, 50], &[u64::MAX, 1, u64::MAX]];
        for weights in cases {
            for count in 1..12 {
                let groups = balance(weights, count);
                assert!(groups.len() <= count, "{groups:?} of {weights:?}");
                assert_eq!(groups.first().map(|group| group.start), Some(0));
                assert_eq!(groups.last().map(|group| group.end), Some(weights.len()));
                assert!(groups.windows(2).all(|pair| pair[0].end == pair[1].start), "{groups:?}");
            }
        }
        assert_eq!(balance(&[1; 10], 5), [0..2, 2..4, 4..6, 6..8, 8..10]);
    }
}
