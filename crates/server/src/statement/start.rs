//! Plans a statement and starts its producers. Runs on the statement's own threads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dray_chooser::{Chooser, Line};
use dray_transfer::{PAGES_TIMES_CHUNK, Receiver, Settings, Times, queue};
use dray_wire::{CompressionChoice, Query, RowLayout, ServerError};
use tokio::runtime::Handle;

use super::produce::{Output, Producers, start_producers};
use super::settings::{chunks_in_progress, pages, resolve_compression, settings};
use super::work::Work;
use crate::admission::{Admission, MemoryGrant, MemoryNeed};
use crate::connection::ns_since;
use crate::engine::{self, Engine, Portion};
use crate::known_costs::KnownCosts;
use crate::planning::Planning;
use crate::socket::PeerLocality;

/// The queue holds at least this much, so that small chunks don't starve the socket.
const QUEUE_BYTES_MIN: u64 = 2 << 20;
/// The queue of an adaptive transfer holds chunks for 50 ms at the first λ, within these bounds.
/// More would delay λ, which is measured behind the queue. With less, a fast network would take a
/// chunk before a thread switch could bring the next.
const ADAPTIVE_QUEUE_NS: f64 = 50e6;
const ADAPTIVE_QUEUE_BYTES_MIN: u32 = 2 << 20;
const ADAPTIVE_QUEUE_BYTES_MAX: u32 = 16 << 20;
/// The highest zstd level of an adaptive transfer. Higher ones take much more memory.
const ADAPTIVE_ZSTD_LEVEL_MAX: i32 = 19;

/// What is known of the network between server and client.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerNetwork {
    pub(super) locality: PeerLocality,
    pub(super) round_trip: Duration,
    /// What the last adaptive transfer left.
    pub(super) line: Option<Line>,
}

/// A planned statement, which runs unless its query asks for the plan only.
pub(super) struct StartedStatement {
    pub(super) work: Work,
    pub(super) plan_ns: u64,
    pub(super) compression: CompressionChoice,
    pub(super) checksums: bool,
    pub(super) execution: Option<Execution>,
}

/// The producers of a running statement, and what they share with the writer.
pub(super) struct Execution {
    pub(super) producers: Producers,
    pub(super) chunks: Receiver,
    pub(super) chooser: Option<Arc<Chooser>>,
    pub(super) times: Arc<Times>,
    pub(super) memory: MemoryGrant,
}

/// What planning and starting a statement needs.
pub(super) struct Starter<'a> {
    pub(super) workers: &'a Handle,
    pub(super) engine: &'a Engine,
    pub(super) admission: &'a Admission,
    pub(super) known_costs: &'a KnownCosts,
    pub(super) planning: &'a Arc<Planning>,
}

impl Starter<'_> {
    /// Plans a statement, or a portion of it, and starts it. Blocks until then.
    pub(super) fn start(
        &self,
        query: &Query,
        portion: Option<&Portion>,
        network: PeerNetwork,
    ) -> Result<StartedStatement, ServerError> {
        self.workers.block_on(async {
            let started = Instant::now();
            let plan = match portion {
                None => engine::plan(self.engine, query, self.planning).await?,
                Some(portion) => {
                    engine::plan_part(self.engine, query, portion, self.planning).await?
                }
            };
            self.planning.finish();
            self.start_work(Work::Engine(plan), ns_since(started), query, network).await
        })
    }

    /// Starts work, which took `plan_ns` nanoseconds to plan.
    pub(super) async fn start_work(
        &self,
        work: Work,
        plan_ns: u64,
        query: &Query,
        network: PeerNetwork,
    ) -> Result<StartedStatement, ServerError> {
        let settings = settings(query, network.locality, self.admission, work.threads());
        let compression = resolve_compression(query.compression, network.locality);
        let execution = match query.plan_only {
            true => None,
            false => {
                let row_layout = query.layout;
                Some(self.execute(&work, network, settings, compression, row_layout).await?)
            }
        };
        let checksums = settings.checksum;
        Ok(StartedStatement { work, plan_ns, compression, checksums, execution })
    }

    async fn execute(
        &self,
        work: &Work,
        network: PeerNetwork,
        settings: Settings,
        compression: CompressionChoice,
        row_layout: RowLayout,
    ) -> Result<Execution, ServerError> {
        let PeerNetwork { round_trip, line, .. } = network;
        let line = line.unwrap_or_else(|| Line::guessed(round_trip));
        let adapts = compression == CompressionChoice::Auto && row_layout != RowLayout::Pages;
        let chooser = adapts.then(|| {
            let known = self.known_costs.of(work.tables(), work.schema());
            let known = |column: usize| known.get(column).cloned().flatten();
            let level_max = ADAPTIVE_ZSTD_LEVEL_MAX;
            Arc::new(Chooser::with_costs(work.schema(), line, round_trip, level_max, known))
        });
        let chunk_bytes_max = match row_layout {
            RowLayout::Chunks => settings.limits.chunk_bytes_max,
            _ => PAGES_TIMES_CHUNK * settings.limits.chunk_bytes_max,
        };
        let (bytes_max, chunks_min) = match chooser {
            // `as` saturates.
            Some(_) => (
                ((ADAPTIVE_QUEUE_NS / line.price_ns) as u32)
                    .clamp(ADAPTIVE_QUEUE_BYTES_MIN, ADAPTIVE_QUEUE_BYTES_MAX),
                2,
            ),
            None => {
                (u32::try_from((2 * chunk_bytes_max).max(QUEUE_BYTES_MIN)).unwrap_or(u32::MAX), 1)
            }
        };
        let need = MemoryNeed {
            buffers_rows: work.buffers_rows(),
            scan_bytes: work.scan_bytes(),
            reads_source: matches!(work, Work::Source(_)),
            result_bytes: work.result_bytes_max(
                u64::from(bytes_max) + chunks_in_progress(work.threads()) * chunk_bytes_max,
            ),
        };
        let memory = tokio::select! {
            biased;
            memory = self.admission.admit(need) => memory?,
            cancelled = self.planning.cancelled() => return Err(cancelled),
        };
        let (sender, chunks) = queue(bytes_max, chunks_min, work.threads() + 1);
        let times = Arc::new(Times::default());
        let output = Output {
            settings,
            pages: pages(work.schema(), row_layout, compression, chooser.as_ref())?,
            chooser: chooser.clone(),
            queue: sender,
            times: times.clone(),
        };
        let producers = start_producers(self.workers, work, output).await?;
        Ok(Execution { producers, chunks, chooser, times, memory })
    }
}
