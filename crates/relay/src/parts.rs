//! Plans of databases that the client reads.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use dray_client::{Connection, HeldPlan, Part, Plan, Result};
use dray_driver::{ErrorKind, Estimate, Parts, ServerError, Sink, Statement, error};

use crate::database::Settings;
use crate::session::{End, query_options, send, watch};

/// A plan of PostgreSQL. A connection holds the snapshot, and each part is read over another.
#[derive(Debug)]
pub(crate) struct PostgresParts {
    database: Arc<Settings>,
    plan: Plan,
    parts: Vec<Part>,
}

impl PostgresParts {
    /// # Errors
    /// If a descriptor of the plan is damaged.
    pub(crate) fn new(database: Arc<Settings>, plan: Plan) -> Result<Self> {
        let parts = plan.partitions().iter().map(|descriptor| Part::decode(descriptor));
        let parts = parts.collect::<Result<_>>()?;
        Ok(Self { database, plan, parts })
    }
}

impl Parts for PostgresParts {
    fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    fn estimates(&self) -> &[Estimate] {
        self.plan.estimates()
    }

    fn reason(&self) -> Option<&str> {
        self.plan.reason()
    }

    fn connections(&self) -> usize {
        1
    }

    fn opens_connections(&self) -> bool {
        true
    }

    fn snapshot(&self) -> Option<&[u8]> {
        self.plan.partitions().first().map(Vec::as_slice)
    }

    fn run(
        &self,
        index: usize,
        statement: &Statement,
        sink: &mut dyn Sink,
    ) -> std::result::Result<(), ServerError> {
        let part = self.parts.get(index).ok_or_else(|| {
            error(ErrorKind::Internal, "XX000", format!("the plan has no part {index}"), "")
        })?;
        let stopped = sink.watch();
        let place = |uri: &str| part.connect_uri(Some(uri));
        let mut connection = self.database.connect(place, &mut || !stopped())?;
        let read = read(&mut connection, part, statement, sink);
        read.or_else(|end| end.into_answer(&self.database.name))
    }
}

fn read(
    connection: &mut Connection,
    part: &Part,
    statement: &Statement,
    sink: &mut dyn Sink,
) -> std::result::Result<(), End> {
    let (options, watch) = (query_options(statement), Some(watch(sink)));
    send(Connection::read_partition_with(connection, part, &options, watch)?, sink)
}

/// A plan of MySQL or MariaDB, whose parts are read over the connections that it holds.
#[derive(Debug)]
pub(crate) struct MysqlParts {
    database: Arc<Settings>,
    plan: HeldPlan,
}

impl MysqlParts {
    pub(crate) fn new(database: Arc<Settings>, plan: HeldPlan) -> Self {
        Self { database, plan }
    }
}

impl Parts for MysqlParts {
    fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    fn estimates(&self) -> &[Estimate] {
        self.plan.estimates()
    }

    fn reason(&self) -> Option<&str> {
        self.plan.reason()
    }

    fn connections(&self) -> usize {
        self.plan.connections()
    }

    fn opens_connections(&self) -> bool {
        false
    }

    fn run(
        &self,
        index: usize,
        statement: &Statement,
        sink: &mut dyn Sink,
    ) -> std::result::Result<(), ServerError> {
        let read = self.plan.read(index, &query_options(statement), watch(sink));
        let sent = read.map_err(End::from).and_then(|results| send(results, sink));
        sent.or_else(|end| end.into_answer(&self.database.name))
    }
}
