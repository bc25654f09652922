//! Partition plans: a statement becomes parts that other processes read, on other hosts, all of the
//! same data (`spec/partitions.md`). PostgreSQL holds a snapshot for them; the tables of a Dray
//! server don't change while it runs.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use dray_client::{ConnectOptions, Connection, Part, PlanOptions, QueryOptions, Verdict};
//!
//! let (connect, query) = (ConnectOptions::default(), QueryOptions::default());
//! let mut connection = Connection::connect("postgresql://localhost/shop", &connect)?;
//! let lease = Duration::from_secs(60);
//! let plan = PlanOptions { at_most: Some(4), lease, ..PlanOptions::default() };
//! let sql = "SELECT * FROM orders";
//! let plan = connection.partitions(sql, &query, &plan, &mut || Verdict::Continue)?;
//! let mut receipts = Vec::new();
//! for descriptor in plan.partitions() {
//!     // In another process, on another host:
//!     let part = Part::decode(descriptor)?;
//!     let mut reader = Connection::connect(&part.connect_uri(None), &connect)?;
//!     let mut results = reader.read_partition(&part, &query)?;
//!     results.read_all()?;
//!     receipts.extend(results.receipt());
//! }
//! println!("{} rows", plan.verify(&receipts)?.rows);
//! # Ok::<(), dray_client::Error>(())
//! ```

mod digest;
mod verify;

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use arrow::datatypes::{Schema, SchemaRef};
use dray_format::arrow::{StringLayout, schema_to_arrow};
use dray_wire::partition::{DrayPart, PARTS_MAX, PartDescriptor, PartSource, RandomId};
use dray_wire::{Estimate, Known};

pub(crate) use self::digest::RowDigest;
pub use self::verify::Proof;
use self::verify::verify;
use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Result};
use crate::options::QueryOptions;
use crate::source::{Holder, PlannedParts, Uri};
use crate::watch::Verdict;

/// The longest lease. A snapshot keeps the server from removing dead rows.
pub(crate) const LEASE_MAX: Duration = Duration::from_secs(24 * 3600);

/// How a statement is divided into parts.
#[derive(Debug, Clone)]
pub struct PlanOptions {
    /// The most parts, from 1 to 65,536; None leaves the number to the size of the table.
    pub at_most: Option<u32>,
    /// How long parts can be read, at most a day.
    pub lease: Duration,
    /// Whether descriptors have the password of a connection to PostgreSQL. Without it, readers log
    /// in by what their own environment has. Those of a Dray server have a pass, which is only for
    /// their plan, and never the server's token.
    pub include_password: bool,
    /// Any part of an earlier plan whose snapshot this one is to have, too: then both see the same
    /// state of the database. The earlier plan must still be held; once this one is made, it holds
    /// the snapshot itself. None takes a new snapshot.
    pub snapshot: Option<Part>,
    /// Whether a statement that aggregates a table may be divided into partial aggregates
    /// (`spec/partitions.md` section 3.1), which the caller puts together. PostgreSQL then divides
    /// no other statement. Elsewhere it means nothing: the rows of all parts are the statement's.
    pub partial: bool,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            at_most: None,
            lease: Duration::from_secs(600),
            include_password: false,
            snapshot: None,
            partial: false,
        }
    }
}

impl PlanOptions {
    fn check(&self) -> Result<()> {
        if let Some(count) = self.at_most.filter(|count| !(1..=PARTS_MAX).contains(count)) {
            return Err(Error::usage(format!("at most {count} parts, expected 1 to {PARTS_MAX}")));
        }
        match self.lease {
            lease if lease < Duration::from_millis(1) || lease > LEASE_MAX => {
                Err(Error::usage(format!("a lease of {lease:?}, expected more, and at most a day")))
            }
            _ => Ok(()),
        }
    }
}

/// A statement as parts that other processes read. A database's snapshot is held until all parts
/// are verified, the plan is released or dropped, or its lease has ended. Of its own tables a Dray
/// server keeps nothing for a plan: its parts can be read until the lease has ended.
pub struct Plan {
    id: RandomId,
    schema: SchemaRef,
    partitions: Vec<Vec<u8>>,
    estimates: Vec<Estimate>,
    reason: Option<String>,
    /// When the lease is over, by this process's clock.
    until: Instant,
    /// None once it is released.
    holder: Mutex<Option<Held>>,
}

/// Without the descriptors, which may have a password or a pass.
impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("id", &self.id)
            .field("parts", &self.partitions.len())
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

/// What a plan holds: at a Dray server, nothing.
#[derive(Debug)]
struct Held {
    _snapshot: Option<Box<dyn Holder>>,
}

impl Plan {
    fn new(planned: PlannedParts, lease: Duration) -> Result<Self> {
        let PlannedParts { parts, schema, reason, holder } = planned;
        Ok(Self {
            id: parts.first().map_or(RandomId([0; 16]), |part| part.plan),
            schema,
            estimates: parts.iter().map(estimate).collect(),
            partitions: parts.iter().map(PartDescriptor::encode).collect::<Result<_, _>>()?,
            reason,
            until: Instant::now() + lease,
            holder: Mutex::new(Some(Held { _snapshot: holder })),
        })
    }

    /// The columns of each part, with strings of the query's layout.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The descriptors of the parts, for [`Part::decode`] in any process.
    pub fn partitions(&self) -> &[Vec<u8>] {
        &self.partitions
    }

    /// What the server's planner expects of each part.
    pub fn estimates(&self) -> &[Estimate] {
        &self.estimates
    }

    /// Why the plan has one part; None if it has several.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Gives a database's snapshot up. Parts that nobody has begun to read are then errors. Those
    /// of a Dray server's own tables can be read on until the lease ends.
    pub fn release(&self) {
        let holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Outside of the lock: it waits for the server.
        drop(holder);
    }

    /// Whether the plan was released.
    pub fn is_released(&self) -> bool {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Whether the lease is over, so that no part can be read.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Checks that the receipts prove the plan read whole, each part once, and releases the
    /// snapshot.
    ///
    /// # Errors
    /// When a receipt is damaged or of another plan, when parts have none, and when a part was read
    /// twice.
    pub fn verify<R: AsRef<[u8]>>(&self, receipts: &[R]) -> Result<Proof> {
        let proof = verify(self.id, self.partitions.len(), receipts)?;
        self.release();
        Ok(proof)
    }
}

fn estimate(part: &PartDescriptor) -> Estimate {
    let known = |number: Option<u64>| number.map_or(Known::Unknown, Known::Estimate);
    Estimate { rows: known(part.rows), bytes: known(part.bytes) }
}

/// A part of a plan, as its descriptor says.
#[derive(Debug, Clone)]
pub struct Part(pub(crate) PartDescriptor);

impl Part {
    /// Reads a descriptor.
    ///
    /// # Errors
    /// Usage, if the bytes are not a descriptor of this version, or were changed.
    pub fn decode(descriptor: &[u8]) -> Result<Self> {
        let part = PartDescriptor::decode(descriptor);
        part.map(Self).map_err(|cause| {
            Error::usage(format!("not a part that can be read: {cause}"))
                .with_hint("hand over the descriptor's bytes as the plan has them")
        })
    }

    /// Where the part is read, without a pass, and without a password, unless the plan was asked
    /// for it.
    pub fn uri(&self) -> &str {
        self.0.uri.reveal()
    }

    /// What to connect to for reading the part: this uri, or else the descriptor's. The uri of a
    /// Dray server gets the plan's pass, unless it has a token.
    pub fn connect_uri(&self, uri: Option<&str>) -> String {
        let uri = uri.unwrap_or_else(|| self.uri());
        let PartSource::Dray(DrayPart { pass, .. }) = &self.0.source else { return uri.to_owned() };
        match uri.parse::<Uri>() {
            Ok(parsed) if !parsed.has_token() => {
                let before = if uri.contains('?') { '&' } else { '?' };
                format!("{uri}{before}token={}", pass.reveal())
            }
            // Connecting says what is wrong with the uri.
            _ => uri.to_owned(),
        }
    }

    /// The part's number, from 0, and the number of parts of its plan.
    pub fn place(&self) -> (u32, u32) {
        (self.0.index, self.0.count)
    }

    /// What the server's planner expects of the part.
    pub fn estimate(&self) -> Estimate {
        estimate(&self.0)
    }

    /// The columns, with strings of this layout.
    pub fn schema(&self, strings: StringLayout) -> Schema {
        schema_to_arrow(&self.0.schema, strings)
    }
}

impl Connection {
    /// Divides a statement into parts that other processes read, all of the same data. A statement
    /// that can't be divided becomes one part. PostgreSQL's snapshot is held over another
    /// connection, so this one stays free. MySQL and MariaDB have no snapshots for other processes
    /// ([`Connection::hold_parts`]).
    ///
    /// # Errors
    /// When the statement is not a query or does not plan, when other sessions may not see what
    /// this one sees, when another connection can't be made, and over one to MySQL. With
    /// [`PlanOptions::snapshot`], also when that snapshot has ended (SQLSTATE 72000), when a table
    /// was changed since it was taken, and when the source has no snapshots that plans can share.
    pub fn partitions(
        &mut self,
        sql: &str,
        query: &QueryOptions,
        plan: &PlanOptions,
        cancel: &mut dyn FnMut() -> Verdict,
    ) -> Result<Plan> {
        self.check_own()?;
        plan.check()?;
        let planned = self.source().plan_parts(sql, query, plan, cancel);
        let planned = planned.map_err(|error| match cancel() {
            Verdict::Continue => error,
            _ => Error::new(ErrorKind::Cancelled, "planning was cancelled"),
        });
        Plan::new(planned?, plan.lease)
    }
}
