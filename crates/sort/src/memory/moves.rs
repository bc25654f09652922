//! Which rows go where, and the columns that this makes.
//!
//! The values of a column are read in the order in which they lie, and scattered to their new rows:
//!
//! ```text
//!   batch 0 │ a b c d … │ ──▶ a, d ──▶ ┌───────────────┐
//!   batch 1 │ e f g h … │ ──▶ f    ──▶ │ d   a     f   │   the column that is written
//!                                      └───────────────┘   stays in the processor's cache
//! ```

use std::ops::Range;

use bytes::Bytes;
use dray_format::{Bitmap, Column, Values, copy_short};

use crate::error::{Error, Result};
use crate::memory::{RowLocation, RowSizes};

/// The moves of a batch are put into the order of its rows by a table of all its rows, if it has at
/// most this many rows, and at most this many for each move.
const TABLE_ROWS_MAX: usize = 256 << 10;
const TABLE_ROWS_PER_MOVE: usize = 16;
/// Other batches of up to this many rows stay in the processor's cache, and are read in any order.
const CACHED_ROWS: usize = 64 << 10;
/// The place in the table of a row that isn't gathered.
const UNMOVED: u32 = u32::MAX;
/// The bytes of a decimal of 128 bits.
const DECIMAL_BYTES: usize = 16;

/// Which rows go where, batch by batch.
pub(super) struct Moves {
    /// Batches that rows come from, and the range of their moves.
    batches: Vec<(usize, Range<usize>)>,
    /// Ordered by batch.
    moves: Vec<Move>,
}

/// A row of a batch, and its row in the gathered batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Move {
    from: u32,
    to: u32,
}

impl Moves {
    /// # Errors
    /// [`Error::Internal`] for the location of a row that is not in `batches`, which has the sizes
    /// of the rows of each batch.
    pub(super) fn new(batches: &[RowSizes], locations: &[RowLocation]) -> Result<Self> {
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
        let mut table = Vec::new();
        for (batch, span) in &spans {
            order_by_row(&mut moves[span.clone()], batches[*batch].len(), &mut table);
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
    pub(super) fn column(&self, columns: &[Column]) -> Result<Column> {
        let mut nulls = Nulls { rows: self.rows(), validity: Vec::new() };
        let values = match columns.first().map(|column| &column.values) {
            Some(Values::Boolean(_)) => self.booleans(columns, &mut nulls)?,
            Some(Values::Fixed { .. } | Values::Narrow { .. }) => {
                self.fixed(columns, &mut nulls)?
            }
            Some(Values::Bytes { .. }) => self.strings(columns, &mut nulls)?,
            Some(Values::Null) => {
                self.by_batch(columns)
                    .for_each(|(column, moves)| each(column, moves, &mut nulls, |_, _| {}));
                Values::Null
            }
            _ => return Err(other_type()),
        };
        Ok(Column { rows: self.rows(), validity: nulls.validity(), values })
    }

    fn booleans(&self, columns: &[Column], nulls: &mut Nulls) -> Result<Values> {
        let mut bits = vec![0; self.rows().div_ceil(8)];
        for (column, moves) in self.by_batch(columns) {
            let Values::Boolean(values) = &column.values else { return Err(other_type()) };
            each(column, moves, nulls, |from, to| {
                bits[to / 8] |= u8::from(values.bit(from)) << (to % 8);
            });
        }
        Ok(Values::Boolean(Bitmap { bytes: bits.into(), offset: 0, len: self.rows() }))
    }

    fn fixed(&self, columns: &[Column], nulls: &mut Nulls) -> Result<Values> {
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
                    1 => put::<1>(&mut bytes, from, column, moves, nulls),
                    2 => put::<2>(&mut bytes, from, column, moves, nulls),
                    4 => put::<4>(&mut bytes, from, column, moves, nulls),
                    8 => put::<8>(&mut bytes, from, column, moves, nulls),
                    16 => put::<16>(&mut bytes, from, column, moves, nulls),
                    32 => put::<32>(&mut bytes, from, column, moves, nulls),
                    width => each(column, moves, nulls, |from_row, to_row| {
                        bytes[to_row * width..][..width]
                            .copy_from_slice(&from[from_row * width..][..width]);
                    }),
                },
                Values::Narrow { width: narrow, bytes: from } if width == DECIMAL_BYTES => {
                    each(column, moves, nulls, |from_row, to_row| {
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

    fn strings(&self, columns: &[Column], nulls: &mut Nulls) -> Result<Values> {
        // Where each string begins, in the order of the moves, and where it ends when gathered.
        let mut starts = vec![0; self.rows()];
        let mut ends = vec![0_u32; self.rows() + 1];
        let mut rest = &mut starts[..];
        for (column, moves) in self.by_batch(columns) {
            let Values::Bytes { offsets, .. } = &column.values else { return Err(other_type()) };
            let offsets = offsets.as_chunks().0;
            let of_batch = rest.split_off_mut(..moves.len()).unwrap_or_default();
            for (row, start) in moves.iter().zip(of_batch) {
                let is_valid =
                    column.validity.as_ref().is_none_or(|bits| bits.bit(row.from as usize));
                if is_valid {
                    let string = span(offsets, row.from as usize);
                    *start = string.start as u32;
                    ends[row.to as usize + 1] = string.len() as u32;
                } else {
                    nulls.add(row.to as usize);
                }
            }
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

/// Puts the moves of a batch of `rows` rows into the order of its rows, if that is worth it: the
/// processor then fetches values before they are needed.
fn order_by_row(moves: &mut [Move], rows: usize, table: &mut Vec<u32>) {
    if rows > TABLE_ROWS_MAX || rows > TABLE_ROWS_PER_MOVE * moves.len() {
        if rows > CACHED_ROWS {
            moves.sort_unstable_by_key(|row| row.from);
        }
        return;
    }
    table.clear();
    table.resize(rows, UNMOVED);
    for row in &*moves {
        let place = &mut table[row.from as usize];
        if *place != UNMOVED {
            // It goes to two places, and the table has one.
            moves.sort_unstable_by_key(|row| row.from);
            return;
        }
        *place = row.to;
    }
    let mut ordered = 0;
    for (from, to) in (0..).zip(table) {
        // Written over by the next one if it isn't a move. Without branches, since there is no
        // telling which rows are.
        let Some(place) = moves.get_mut(ordered) else { break };
        *place = Move { from, to: *to };
        ordered += usize::from(*to != UNMOVED);
    }
    debug_assert_eq!(ordered, moves.len(), "each move is in the table");
}

/// Which gathered rows are null.
struct Nulls {
    rows: usize,
    /// A bit for each row, 0 for a null; no bits until there is a null.
    validity: Vec<u8>,
}

impl Nulls {
    #[inline(always)]
    fn add(&mut self, row: usize) {
        if self.validity.is_empty() {
            self.begin();
        }
        self.validity[row / 8] &= !(1 << (row % 8));
    }

    #[cold]
    fn begin(&mut self) {
        self.validity = vec![u8::MAX; self.rows.div_ceil(8)];
    }

    /// The validity of the gathered column; `None` if it has no nulls.
    fn validity(self) -> Option<Bitmap> {
        let Self { rows, validity } = self;
        (!validity.is_empty()).then(|| Bitmap { bytes: validity.into(), offset: 0, len: rows })
    }
}

/// Batches were checked against the schema, so the columns of a field have one type.
fn other_type() -> Error {
    Error::Internal("a column that is gathered is of another type".to_owned())
}

/// Calls `put` with the old and the new row of each value that is not null, and counts the others
/// among `nulls`.
#[inline(always)]
fn each(column: &Column, moves: &[Move], nulls: &mut Nulls, mut put: impl FnMut(usize, usize)) {
    match column.validity.as_ref().filter(|bits| bits.ones() < bits.len) {
        None => moves.iter().for_each(|row| put(row.from as usize, row.to as usize)),
        Some(Bitmap { bytes, offset, .. }) => {
            let bytes: &[u8] = bytes;
            for row in moves {
                let (from, to) = (row.from as usize, row.to as usize);
                let bit = offset + from;
                if bytes[bit / 8] >> (bit % 8) & 1 == 1 {
                    put(from, to);
                } else {
                    nulls.add(to);
                }
            }
        }
    }
}

fn put<const N: usize>(
    to: &mut [u8],
    from: &[u8],
    column: &Column,
    moves: &[Move],
    nulls: &mut Nulls,
) {
    let (to, from) = (to.as_chunks_mut::<N>().0, from.as_chunks::<N>().0);
    each(column, moves, nulls, |from_row, to_row| to[to_row] = from[from_row]);
}

/// The bytes of a string.
#[inline(always)]
pub(super) fn span(offsets: &[[u8; 4]], row: usize) -> Range<usize> {
    let offset = |row: usize| u32::from_le_bytes(offsets[row]) as usize;
    offset(row)..offset(row + 1)
}

#[cfg(test)]
mod tests {
    use super::{Move, order_by_row};

    #[test]
    fn moves_are_in_the_order_of_rows() {
        let mut table = Vec::new();
        for (rows, step) in [(1, 1), (100, 7), (8192, 5), (70_000, 3), (300_000, 11)] {
            for count in [0, 1, rows / 100, rows / 3, rows] {
                let at = |to: usize| Move { from: (to * step % rows) as u32, to: to as u32 };
                let mut moves: Vec<Move> = (0..count).map(at).collect();
                let mut expected = moves.clone();
                expected.sort_by_key(|row| row.from);
                order_by_row(&mut moves, rows, &mut table);
                let is_left = rows <= 64 << 10 && count * 16 < rows;
                if is_left {
                    expected.sort_by_key(|row| row.to);
                }
                assert_eq!(moves, expected, "{count} of {rows} rows");
            }
        }
    }

    #[test]
    fn a_row_may_go_to_two_places() {
        let mut moves = [(3, 0), (1, 1), (3, 2)].map(|(from, to)| Move { from, to });
        order_by_row(&mut moves, 4, &mut Vec::new());
        moves.sort_unstable_by_key(|row| row.to);
        assert_eq!(moves.map(|row| (row.from, row.to)), [(3, 0), (1, 1), (3, 2)]);
    }
}
