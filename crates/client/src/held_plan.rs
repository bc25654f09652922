//! Parts of a statement that this process reads, over connections that it holds: of databases whose
//! snapshots can't be handed to another process.

use std::borrow::{Borrow, BorrowMut};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use dray_wire::{Estimate, Known};

use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Result};
use crate::options::QueryOptions;
use crate::results::Results;
use crate::source::{HeldParts, cancelled};
use crate::stats::Progress;
use crate::watch::{Verdict, Watch};

/// How often a reader that waits for a connection looks whether anybody waits for it.
const TICK: Duration = Duration::from_millis(10);

/// How a statement is divided into held parts.
#[derive(Debug, Clone)]
pub struct HoldOptions {
    /// The most parts; None leaves the number to the size of the table.
    pub at_most: Option<u32>,
    /// The most connections to hold, from 1 on.
    pub connections_max: usize,
    /// How long they are held at most.
    pub lease: Duration,
    /// As for [`OtherConnections`](crate::OtherConnections), where the number of parts is left to
    /// the size of the table.
    pub may_lock: bool,
}

/// A statement as parts, each of which can be read as often as wanted and by several threads at a
/// time. The connections that see the snapshot are closed when it is dropped.
#[derive(Debug)]
pub struct HeldPlan {
    statements: Vec<String>,
    schema: SchemaRef,
    estimates: Vec<Estimate>,
    reason: Option<String>,
    connections: Vec<Mutex<Connection>>,
}

impl HeldPlan {
    fn new(parts: HeldParts) -> Self {
        let HeldParts { connections, statements, schema, estimate, reason } = parts;
        let share = |known: Known| match known.value() {
            Some(all) => Known::Estimate(all / statements.len().max(1) as u64),
            None => Known::Unknown,
        };
        let estimate = Estimate { rows: share(estimate.rows), bytes: share(estimate.bytes) };
        Self {
            estimates: vec![estimate; statements.len()],
            statements,
            schema,
            reason,
            connections: connections.into_iter().map(Connection::over).map(Mutex::new).collect(),
        }
    }

    /// The columns of each part.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// What is expected of each part.
    pub fn estimates(&self) -> &[Estimate] {
        &self.estimates
    }

    /// Why there is only one part; None if there are several.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// How many connections are held.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Starts reading a part, once a connection is free.
    ///
    /// # Errors
    /// When there is no such part, the connections that see the snapshot are lost, the statement
    /// fails, or the watch says that nobody waits any longer.
    pub fn read(
        &self,
        part: usize,
        options: &QueryOptions,
        mut watch: Watch,
    ) -> Result<Results<Lent<'_>>> {
        let Some(sql) = self.statements.get(part) else {
            let what = format!("part {part} of a plan of {}", self.statements.len());
            return Err(Error::usage(what));
        };
        let connection = self.lend(&mut watch)?;
        Connection::query_with(connection, sql, options, Some(watch))
    }

    /// A connection that is free, once there is one.
    fn lend(&self, watch: &mut Watch) -> Result<Lent<'_>> {
        loop {
            let mut lost = 0;
            for connection in &self.connections {
                let free = match connection.try_lock() {
                    Ok(free) => free,
                    Err(TryLockError::Poisoned(free)) => free.into_inner(),
                    Err(TryLockError::WouldBlock) => continue,
                };
                match free.is_usable() {
                    true => return Ok(Lent(free)),
                    false => lost += 1,
                }
            }
            if lost == self.connections.len() {
                let what = "the connections that saw the plan's snapshot are lost";
                return Err(Error::new(ErrorKind::Execution, what).with_hint("make a new plan"));
            }
            if watch(&Progress::default()) != Verdict::Continue {
                return Err(cancelled());
            }
            std::thread::sleep(TICK);
        }
    }
}

/// A connection of a plan, for as long as a part is read over it.
#[derive(Debug)]
pub struct Lent<'a>(MutexGuard<'a, Connection>);

impl Borrow<Connection> for Lent<'_> {
    fn borrow(&self) -> &Connection {
        &self.0
    }
}

impl BorrowMut<Connection> for Lent<'_> {
    fn borrow_mut(&mut self) -> &mut Connection {
        &mut self.0
    }
}

impl Connection {
    /// Divides a statement into parts that this process reads, all of the same data. A statement
    /// that can't be divided becomes one part. For MySQL and MariaDB; parts of others are read by
    /// their descriptors ([`Connection::partitions`]).
    ///
    /// # Errors
    /// When the statement is not a query or does not plan, other sessions would not see what this
    /// one sees, or no other connection can be made.
    pub fn hold_parts(
        &mut self,
        sql: &str,
        query: &QueryOptions,
        hold: &HoldOptions,
        cancel: &mut dyn FnMut() -> Verdict,
    ) -> Result<HeldPlan> {
        self.check_own()?;
        if hold.connections_max == 0 || hold.at_most == Some(0) {
            return Err(Error::usage("a plan without connections or without parts"));
        }
        let held = self.source().hold_parts(sql, query, hold, cancel);
        held.map(HeldPlan::new).map_err(|error| match cancel() {
            Verdict::Continue => error,
            _ => Error::new(ErrorKind::Cancelled, "planning was cancelled"),
        })
    }
}
