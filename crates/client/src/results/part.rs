//! The result of a part of a plan: it has a receipt once it was read to its end.

use std::borrow::BorrowMut;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use dray_wire::RowLayout;
use dray_wire::partition::{PartSource, RandomId, Receipt};

use super::{Results, look};
use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Result};
use crate::options::{Partitions, QueryOptions};
use crate::partition::{Part, RowDigest};
use crate::source::{cancelled, decode_parameters};
use crate::stats::Progress;
use crate::watch::{Verdict, Watch};

/// What a part's receipt says, so far.
pub(super) struct PartDigest {
    digest: RowDigest,
    receipt: Receipt,
    /// The plan's columns. The reader's may be known to have no NULL.
    schema: SchemaRef,
}

impl PartDigest {
    pub(super) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Adds rows that are handed out, and gives them the plan's columns.
    pub(super) fn add(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        self.digest.add(&batch)?;
        batch.with_schema(self.schema()).map_err(|cause| other_columns().with_cause(cause))
    }
}

impl Connection {
    /// Reads a part of a plan, over a connection to the plan's server. The options that decide what
    /// values become are the plan's.
    ///
    /// # Errors
    /// When the plan's lease is over or its snapshot is gone, and when this session would see
    /// something else than the planner.
    pub fn read_partition(
        &mut self,
        part: &Part,
        options: &QueryOptions,
    ) -> Result<Results<&mut Self>> {
        Self::read_partition_with(self, part, options, None)
    }

    /// Like [`Connection::read_partition`], for a watched result, or one that owns the connection
    /// or shares it in its own way.
    ///
    /// # Errors
    /// Those of [`Connection::read_partition`], and Cancelled if the watch says so.
    pub fn read_partition_with<C: BorrowMut<Self>>(
        mut connection: C,
        part: &Part,
        options: &QueryOptions,
        mut watch: Option<Watch>,
    ) -> Result<Results<C>> {
        let Part(part_of) = part;
        let mut options = options.clone();
        options.parameters = decode_parameters(&part_of.parameters)?;
        options.plan_only = false;
        if let PartSource::Postgres(of_server) = &part_of.source {
            options.postgres.partitions = Partitions::Exactly(1);
            options.postgres.partition_by = None;
            options.postgres.numeric = of_server.numeric.parse().map_err(Error::usage)?;
            options.postgres.nonfinite = of_server.nonfinite.parse().map_err(Error::usage)?;
        }
        let mut verdict = Verdict::default();
        let inner = connection.borrow_mut();
        inner.check_own()?;
        let mut cancel = || look(&mut watch, &Progress::default(), &mut verdict);
        let begun = inner.source().begin_part(part_of, &mut cancel);
        let sql = begun.map_err(|error| match verdict {
            Verdict::Continue => error,
            _ => cancelled(),
        })?;
        let mut results = Results::start(connection, &sql, &options, RowLayout::Chunks, watch)?;
        let schema = part.schema(options.strings);
        if !schema.contains(&results.schema) {
            return Err(other_columns());
        }
        results.part = Some(PartDigest {
            digest: RowDigest::default(),
            receipt: Receipt {
                plan: part_of.plan,
                index: part_of.index,
                count: part_of.count,
                rows: 0,
                digest: 0,
                reading: RandomId::random()?,
            },
            schema: schema.into(),
        });
        Ok(results)
    }
}

fn other_columns() -> Error {
    let what = "the columns are not those of the plan";
    Error::new(ErrorKind::Execution, what).with_hint("make a new plan")
}

impl<C: BorrowMut<Connection>> Results<C> {
    /// The receipt of a part of a plan, for [`crate::Plan::verify`]; None before the last batch was
    /// handed out, and for other results.
    pub fn receipt(&self) -> Option<Vec<u8>> {
        let PartDigest { digest, receipt, .. } = self.part.as_ref()?;
        let is_given_up = self.failed || self.cancelled;
        let whole = self.is_complete() && !is_given_up && digest.rows == self.stats.rows;
        whole.then(|| {
            let receipt = Receipt { rows: digest.rows, digest: digest.digest, ..*receipt };
            receipt.encode().to_vec()
        })
    }
}
