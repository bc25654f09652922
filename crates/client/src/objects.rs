//! A statement's result as objects: pages as they come, or built of batches.

use std::borrow::BorrowMut;
use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use dray_format::Checksum;
use dray_format::arrow::batch_from_arrow;
use dray_page::{Layout, PageBuilder, VerifiedPage};

use crate::connection::Connection;
use crate::error::Result;
use crate::memory::page_pool;
use crate::options::QueryOptions;
use crate::results::{Received, Results};
use crate::stats::{Progress, Stats};
use crate::watch::Watch;

/// The most bytes of pages that are built before the first of them is handed out.
const AHEAD_BYTES: usize = 64 << 20;

impl Connection {
    /// Runs a statement whose rows are read as whole objects. A Dray server sends pages or chunks,
    /// whichever costs less on this line ([`QueryOptions::objects`]); of chunks, and of what
    /// databases send, pages are built here.
    ///
    /// # Errors
    /// Those of [`Connection::query`], and when the columns' types have no pages.
    pub fn objects(&mut self, sql: &str, options: &QueryOptions) -> Result<Objects<&mut Self>> {
        Self::objects_with(self, sql, options, None)
    }

    /// Like [`Connection::objects`], for a watched result, or one that owns the connection or
    /// shares it in its own way.
    ///
    /// # Errors
    /// Those of [`Connection::objects`], and Cancelled if the watch says so.
    pub fn objects_with<C: BorrowMut<Self>>(
        connection: C,
        sql: &str,
        options: &QueryOptions,
        watch: Option<Watch>,
    ) -> Result<Objects<C>> {
        let (results, layout) = Results::start_objects(connection, sql, options, watch)?;
        let builder = PageBuilder::with_pool(layout, &page_pool(), Checksum::None)?;
        Ok(Objects { results, builder, rest: None, built: VecDeque::new() })
    }
}

/// The result of a statement as pages of objects, in the order in which its rows come. `C` is as in
/// [`Results`].
#[derive(Debug)]
pub struct Objects<C: BorrowMut<Connection>> {
    results: Results<C>,
    builder: PageBuilder,
    /// Rows of the last batch that are in no page yet.
    rest: Option<RecordBatch>,
    /// Pages of its other rows.
    built: VecDeque<VerifiedPage>,
}

impl<C: BorrowMut<Connection>> Objects<C> {
    /// The objects' layout.
    pub fn layout(&self) -> &Arc<Layout> {
        self.builder.layout()
    }

    /// The objects' fields.
    pub fn schema(&self) -> SchemaRef {
        self.results.schema()
    }

    /// How far the statement is.
    pub fn progress(&self) -> Progress {
        self.results.progress()
    }

    /// Where time and bytes went so far; complete after the last page.
    pub fn stats(&self) -> &Stats {
        self.results.stats()
    }

    /// Whether everything has arrived and was handed out, so that the connection is free.
    pub fn is_complete(&self) -> bool {
        self.built.is_empty() && self.rest.is_none() && self.results.is_complete()
    }

    /// The next page; None at the end. It does not wait for more rows than have arrived.
    ///
    /// # Errors
    /// Those of [`Results::next_batch`].
    pub fn next_page(&mut self) -> Result<Option<VerifiedPage>> {
        loop {
            if let Some(page) = self.built.pop_front() {
                return Ok(Some(page));
            }
            if let Some(batch) = self.rest.take() {
                let builder = &mut self.builder;
                match self.results.decoding(|| build(builder, &batch)) {
                    Ok((pages, rest)) => {
                        self.built.extend(pages);
                        self.rest = rest;
                    }
                    Err(error) => {
                        self.results.fail();
                        return Err(error);
                    }
                }
                continue;
            }
            match self.results.next_received()? {
                None => return Ok(None),
                Some(Received::Page(page)) => return Ok(Some(page)),
                Some(Received::Batch(batch)) => self.rest = Some(batch),
            }
        }
    }

    /// Stops the statement if it still runs. The connection is usable afterwards. Reading on is an
    /// error, unless all was handed out before.
    pub fn cancel(&mut self) {
        let is_complete =
            self.rest.is_none() && self.built.is_empty() && self.results.is_complete();
        self.rest = None;
        self.built.clear();
        self.results.cancel_unless(is_complete);
    }
}

impl<C: BorrowMut<Connection>> Iterator for Objects<C> {
    type Item = Result<VerifiedPage>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_page().transpose()
    }
}

/// Builds pages of the first rows of a batch, of at most [`AHEAD_BYTES`] but at least of one row.
/// Returns the other rows, too. Objects can be much larger than their columns.
fn build(
    builder: &mut PageBuilder,
    batch: &RecordBatch,
) -> Result<(Vec<VerifiedPage>, Option<RecordBatch>)> {
    let mut count = batch.num_rows();
    loop {
        let first = batch_from_arrow(&batch.slice(0, count))?;
        let measured = builder.measure(&first)?;
        if count > 1 && builder.page_bytes_of(&measured, 0..count) > AHEAD_BYTES {
            count /= 2;
            continue;
        }
        builder.append_rows(&measured, 0..count)?;
        let rest = batch.num_rows() - count;
        return Ok((builder.finish(), (rest > 0).then(|| batch.slice(count, rest))));
    }
}
