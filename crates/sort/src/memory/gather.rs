//! Gathers rows from the batches that they came in, column by column.
//!
//! Rows are gathered by the hundred thousand. The values of a column are read in the order in which
//! they lie, and scattered to their new rows:
//!
//! ```text
//!   batch 0 │ a b c d … │ ──▶ a, d ──▶ ┌───────────────┐
//!   batch 1 │ e f g h … │ ──▶ f    ──▶ │ d   a     f   │   the column that is written
//!                                      └───────────────┘   stays in the processor's cache
//! ```

use std::ops::Range;

use bytes::Bytes;
use dray_format::{Batch, Bitmap, Column, Schema, Type, Values, copy_short};

use crate::error::{Error, Result};
use crate::memory::{RowLocation, RowSizes};

/// Values of a batch with more rows are read in the order in which they lie. Those of smaller ones
/// stay in the processor's cache.
const CACHED_ROWS: usize = 64 << 10;
/// The bytes of a decimal of 128 bits.
const DECIMAL_BYTES: usize = 16;

/// Whether all columns are flat, so that rows can be gathered.
pub(crate) fn can_gather(schema: &Schema) -> bool {
    let is_flat = |data_type: &Type| {
        let is_string = matches!(data_type, Type::Utf8 | Type::Binary);
        data_type.width().is_some() || is_string || matches!(data_type, Type::Null | Type::Boolean)
    };
    schema.fields.iter().all(|field| is_flat(&field.data_type))
}

/// The batches that rows are gathered from.
#[derive(Debug, Default)]
pub(crate) struct BatchGatherer {
    /// For each field, its column in every batch.
    fields: Vec<Vec<Column>>,
    /// For each batch, the bytes of its rows as objects. Their values in columns take no more.
    row_bytes: Vec<RowSizes>,
}

impl BatchGatherer {
    /// Adds a batch, with the bytes of each of its rows as an object.
    pub fn push(&mut self, batch: &Batch, row_bytes: &RowSizes) {
        debug_assert_eq!(batch.rows, row_bytes.len(), "each row has a size");
        self.fields.resize_with(batch.columns.len(), Vec::new);
        self.fields
            .iter_mut()
            .zip(&batch.columns)
            .for_each(|(field, column)| field.push(column.clone()));
        self.row_bytes.push(row_bytes.clone());
    }

    pub fn is_empty(&self) -> bool {
        self.row_bytes.is_empty()
    }

    /// The bytes of a row as an object.
    #[inline]
    pub fn row_bytes(&self, RowLocation { block, row }: RowLocation) -> Result<usize> {
        let batch = self.row_bytes.get(block as usize);
        let bytes = batch.and_then(|row_bytes| row_bytes.get(row as usize));
        bytes.map(|bytes| bytes as usize).ok_or_else(|| Error::missing("a row that is gathered"))
    }

    /// The rows at these locations, in their order: fewer than 2³² rows, and than 2³¹ bytes.
    pub fn gather(&self, locations: &[RowLocation]) -> Result<Batch> {
        Ok(Batch { rows: locations.len(), columns: self.gather_columns(locations, |_| true)? })
    }

    /// The columns that `is_wanted` by their index in the schema, of the rows at these locations.
    /// The limits are those of [`gather`](Self::gather).
    pub fn gather_columns(
        &self,
        locations: &[RowLocation],
        is_wanted: impl Fn(usize) -> bool,
    ) -> Result<Vec<Column>> {
        let moves = Moves::new(&self.row_bytes, locations)?;
        let wanted = self.fields.iter().enumerate().filter(|(column, _)| is_wanted(*column));
        wanted.map(|(_, columns)| moves.column(columns)).collect()
    }
}

/// Rows of a batch. Their strings are cut out: otherwise a consumer that validates strings
/// would validate those of the whole batch with each slice.
pub(crate) fn slice(batch: &Batch, from: usize, rows: usize) -> Batch {
    let mut slice = batch.slice(from, rows);
    for column in &mut slice.columns {
        if let Values::Bytes { offsets, data } = &mut column.values {
            let all = offsets.as_chunks().0;
            let start = span(all, 0).start;
            let rebased =
                all.iter().map(|offset| (u32::from_le_bytes(*offset) - start as u32).to_le_bytes());
            *data = data.slice(start..span(all, rows.saturating_sub(1)).end);
            *offsets = rebased.collect::<Vec<_>>().into_flattened().into();
        }
    }
    slice
}

/// Which rows go where, batch by batch.
struct Moves {
    /// Batches that rows come from, and the range of their moves.
    batches: Vec<(usize, Range<usize>)>,
    /// Ordered by batch.
    moves: Vec<Move>,
}

/// A row of a batch, and its row in the gathered batch.
#[derive(Clone, Copy, Default)]
struct Move {
    from: u32,
    to: u32,
}

impl Moves {
    /// # Errors
    /// [`Error::Internal`] for the location of a row that is not in `batches`, which has the sizes
    /// of the rows of each batch.
    fn new(batches: &[RowSizes], locations: &[RowLocation]) -> Result<Self> {
        let mut starts = vec![0; batches.len() + 1];
        for RowLocation { block, row } in locations {
            if batches.get(*block as usize).is_none_or(|rows| *row as usize >= rows.len()) {
                return Err(Error::missing("a row that is gathered"));
            }
            starts[*block as usize + 1] += 1;
        }
        for batch in 1..starts.len() {
            starts[batch] += starts[batch - 1];
        }
        let spans = starts.windows(2).enumerate().map(|(batch, ends)| (batch, ends[0]..ends[1]));
        let spans: Vec<_> = spans.filter(|(_, span)| !span.is_empty()).collect();
        let mut moves = vec![Move::default(); locations.len()];
        for (to, RowLocation { block, row }) in locations.iter().enumerate() {
            let start = &mut starts[*block as usize];
            moves[*start] = Move { from: *row, to: to as u32 };
            *start += 1;
        }
        for (batch, span) in &spans {
            if batches[*batch].len() > CACHED_ROWS {
                moves[span.clone()].sort_unstable_by_key(|row| row.from);
            }
        }
        Ok(Self { batches: spans, moves })
    }

    fn rows(&self) -> usize {
        self.moves.len()
    }

    /// The columns that rows come from, each with its moves. `columns` has one of every batch.
    fn by_batch<'a>(
        &'a self,
        columns: &'a [Column],
    ) -> impl Iterator<Item = (&'a Column, &'a [Move])> {
        self.batches.iter().map(move |(batch, span)| (&columns[*batch], &self.moves[span.clone()]))
    }

    /// The gathered column. Nulls have zeros as values, or no bytes.
    fn column(&self, columns: &[Column]) -> Result<Column> {
        let values = match columns.first().map(|column| &column.values) {
            Some(Values::Boolean(_)) => self.booleans(columns)?,
            Some(Values::Fixed { .. } | Values::Narrow { .. }) => self.fixed(columns)?,
            Some(Values::Bytes { .. }) => self.strings(columns)?,
            Some(Values::Null) => Values::Null,
            _ => return Err(other_type()),
        };
        Ok(Column { rows: self.rows(), validity: self.validity(columns), values })
    }

    /// The validity of the gathered column; `None` if it has no nulls.
    fn validity(&self, columns: &[Column]) -> Option<Bitmap> {
        let mut bits = None;
        for (column, moves) in self.by_batch(columns) {
            let Some(validity) = &column.validity else { continue };
            for row in moves.iter().filter(|row| !validity.bit(row.from as usize)) {
                let bits = bits.get_or_insert_with(|| vec![u8::MAX; self.rows().div_ceil(8)]);
                bits[row.to as usize / 8] &= !(1 << (row.to % 8));
            }
        }
        bits.map(|bits| Bitmap { bytes: bits.into(), offset: 0, len: self.rows() })
    }

    fn booleans(&self, columns: &[Column]) -> Result<Values> {
        let mut bits = vec![0; self.rows().div_ceil(8)];
        for (column, moves) in self.by_batch(columns) {
            let Values::Boolean(values) = &column.values else { return Err(other_type()) };
            for row in moves.iter().filter(|row| column.is_valid(row.from as usize)) {
                bits[row.to as usize / 8] |=
                    u8::from(values.bit(row.from as usize)) << (row.to % 8);
            }
        }
        Ok(Values::Boolean(Bitmap { bytes: bits.into(), offset: 0, len: self.rows() }))
    }

    fn fixed(&self, columns: &[Column]) -> Result<Values> {
        let width_of = |column: &Column| match column.values {
            Values::Fixed { width, .. } => width,
            // Narrow values are decimals in fewer bytes.
            _ => DECIMAL_BYTES,
        };
        let width = columns.first().map_or(0, width_of);
        let mut bytes = vec![0; width * self.rows()];
        for (column, moves) in self.by_batch(columns) {
            match &column.values {
                Values::Fixed { width: own, bytes: from } if *own == width => match width {
                    1 => put::<1>(&mut bytes, from, column, moves),
                    2 => put::<2>(&mut bytes, from, column, moves),
                    4 => put::<4>(&mut bytes, from, column, moves),
                    8 => put::<8>(&mut bytes, from, column, moves),
                    16 => put::<16>(&mut bytes, from, column, moves),
                    32 => put::<32>(&mut bytes, from, column, moves),
                    width => each(column, moves, |from_row, to_row| {
                        bytes[to_row * width..][..width]
                            .copy_from_slice(&from[from_row * width..][..width]);
                    }),
                },
                Values::Narrow { width: narrow, bytes: from } if width == DECIMAL_BYTES => {
                    each(column, moves, |from_row, to_row| {
                        let from = &from[from_row * narrow..][..*narrow];
                        let to = &mut bytes[to_row * DECIMAL_BYTES..][..DECIMAL_BYTES];
                        to[..from.len()].copy_from_slice(from);
                        to[from.len()..].fill(if from.last().is_some_and(|byte| byte >> 7 == 1) {
                            u8::MAX
                        } else {
                            0
                        });
                    })
                }
                _ => return Err(other_type()),
            }
        }
        Ok(Values::Fixed { width, bytes: bytes.into() })
    }

    fn strings(&self, columns: &[Column]) -> Result<Values> {
        // Where each string begins, in the order of the moves, and where it ends when gathered.
        let mut starts = Vec::with_capacity(self.rows());
        let mut ends = vec![0_u32; self.rows() + 1];
        for (column, moves) in self.by_batch(columns) {
            let Values::Bytes { offsets, .. } = &column.values else { return Err(other_type()) };
            let offsets = offsets.as_chunks().0;
            starts.extend(moves.iter().map(|row| {
                let is_valid =
                    column.validity.as_ref().is_none_or(|bits| bits.bit(row.from as usize));
                let string = if is_valid { span(offsets, row.from as usize) } else { 0..0 };
                ends[row.to as usize + 1] = string.len() as u32;
                string.start as u32
            }));
        }
        for row in 1..ends.len() {
            ends[row] += ends[row - 1];
        }
        let mut data = vec![0; ends.last().map_or(0, |end| *end as usize)];
        let mut starts = starts.into_iter();
        for (column, moves) in self.by_batch(columns) {
            let Values::Bytes { data: from, .. } = &column.values else { return Err(other_type()) };
            for (row, start) in moves.iter().zip(&mut starts) {
                let to =
                    &mut data[ends[row.to as usize] as usize..ends[row.to as usize + 1] as usize];
                copy_short(to, &from[start as usize..][..to.len()]);
            }
        }
        let offsets: Vec<[u8; 4]> = ends.into_iter().map(u32::to_le_bytes).collect();
        Ok(Values::Bytes { offsets: Bytes::from(offsets.into_flattened()), data: data.into() })
    }
}

/// Batches were checked against the schema, so the columns of a field have one type.
fn other_type() -> Error {
    Error::Internal("a column that is gathered is of another type".to_owned())
}

/// Calls `put` with the old and the new row of each value that is not null.
#[inline(always)]
fn each(column: &Column, moves: &[Move], mut put: impl FnMut(usize, usize)) {
    match &column.validity {
        None => moves.iter().for_each(|row| put(row.from as usize, row.to as usize)),
        Some(bits) => {
            let valid = moves.iter().filter(|row| bits.bit(row.from as usize));
            valid.for_each(|row| put(row.from as usize, row.to as usize));
        }
    }
}

fn put<const N: usize>(to: &mut [u8], from: &[u8], column: &Column, moves: &[Move]) {
    let (to, from) = (to.as_chunks_mut::<N>().0, from.as_chunks::<N>().0);
    each(column, moves, |from_row, to_row| to[to_row] = from[from_row]);
}

/// The bytes of a string.
#[inline(always)]
fn span(offsets: &[[u8; 4]], row: usize) -> Range<usize> {
    let offset = |row: usize| u32::from_le_bytes(offsets[row]) as usize;
    offset(row)..offset(row + 1)
}
