//! What runs on a statement's own threads: its planning, and its producers, the first of which may
//! end right there.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dray_transfer::{Adaptive, Receiver, Settings, Times, queue};
use dray_wire::{CompressionChoice, Query, ServerError};
use tokio::runtime::Handle;

use super::produce::{Producers, start_producers};
use super::settings::{chunks_made, resolved, settings};
use crate::admission::{Admission, Admitted, Need};
use crate::connection::ns_since;
use crate::engine::{self, Engine, Plan};
use crate::planning::Planning;
use crate::socket::Link;

/// The queue holds at least this many bytes of chunks, so that small chunks don't starve the
/// socket.
const QUEUE_BYTES_MIN: u64 = 2 << 20;
/// What the queue of a stream that adapts holds, in time on the way and in bytes, least and most:
/// of what is in it λ learns late, and a quick way takes a chunk in less time than threads need to
/// take turns.
const ADAPTIVE_QUEUE_NS: f64 = 50e6;
const ADAPTIVE_QUEUE_BYTES: (u32, u32) = (2 << 20, 16 << 20);
/// The highest level of zstd that a stream which adapts goes to: the ones above take much more
/// memory.
const LEVEL_MAX: i32 = 19;
/// What a statement's connection knows of the way to its client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub(super) link: Link,
    pub(super) round_trip: Duration,
    /// λ at the end of the last statement that adapted.
    pub(super) price_ns: Option<f64>,
}

/// A statement that is planned, and runs if it is to.
pub(super) struct Begun {
    pub(super) plan: Plan,
    pub(super) plan_ns: u64,
    pub(super) compression: CompressionChoice,
    pub(super) checksums: bool,
    pub(super) running: Option<Running>,
}

/// What makes a statement's chunks.
pub(super) struct Running {
    pub(super) producers: Producers,
    pub(super) chunks: Receiver,
    pub(super) adaptive: Option<Arc<Adaptive>>,
    pub(super) times: Arc<Times>,
    /// The memory that it was given, until it ends.
    pub(super) admitted: Admitted,
}

/// What all statements are planned and run with.
pub(super) struct Begin<'a> {
    pub(super) workers: &'a Handle,
    pub(super) engine: &'a Engine,
    pub(super) admission: &'a Admission,
    pub(super) planning: &'a Arc<Planning>,
}

impl Begin<'_> {
    /// Plans a statement, and starts it.
    pub(super) fn statement(&self, query: &Query, line: Line) -> Result<Begun, ServerError> {
        self.workers.block_on(async {
            let started = Instant::now();
            let plan = engine::plan(self.engine, query, self.planning).await?;
            self.planning.ended();
            let plan_ns = ns_since(started);
            let settings = settings(query, line.link, self.admission, plan.threads());
            let compression = resolved(query.compression, line.link);
            let running = match query.plan_only {
                true => None,
                false => Some(self.run(&plan, line, settings, compression).await?),
            };
            Ok(Begun { plan, plan_ns, compression, checksums: settings.checksum, running })
        })
    }

    async fn run(
        &self,
        plan: &Plan,
        line: Line,
        settings: Settings,
        compression: CompressionChoice,
    ) -> Result<Running, ServerError> {
        let price_ns = line.price_ns.unwrap_or_else(|| Adaptive::price_guess_ns(line.round_trip));
        let adaptive = (compression == CompressionChoice::Auto)
            .then(|| Arc::new(Adaptive::new(&plan.schema, price_ns, line.round_trip, LEVEL_MAX)));
        let chunk_bytes_max = settings.limits.chunk_bytes_max;
        let (bytes_max, chunks_min) = match adaptive {
            // Floats become whole numbers by saturation.
            Some(_) => (
                ((ADAPTIVE_QUEUE_NS / price_ns) as u32)
                    .clamp(ADAPTIVE_QUEUE_BYTES.0, ADAPTIVE_QUEUE_BYTES.1),
                2,
            ),
            None => {
                (u32::try_from((2 * chunk_bytes_max).max(QUEUE_BYTES_MIN)).unwrap_or(u32::MAX), 1)
            }
        };
        let need = Need {
            keeps_rows: plan.keeps_rows(),
            scan_bytes: plan.scan_bytes(),
            result_bytes: plan.result_bytes_max(
                u64::from(bytes_max) + chunks_made(plan.threads()) * chunk_bytes_max,
            ),
        };
        let admitted = tokio::select! {
            biased;
            admitted = self.admission.admit(need) => admitted?,
            stopped = self.planning.stopped() => return Err(stopped),
        };
        let (sender, chunks) = queue(bytes_max, chunks_min, plan.threads() + 1);
        let times = Arc::new(Times::default());
        let producers =
            start_producers(self.workers, plan, settings, adaptive.as_ref(), sender, &times)
                .await?;
        Ok(Running { producers, chunks, adaptive, times, admitted })
    }
}
