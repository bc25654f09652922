//! Plans of parts: how a statement is divided, and the plan of one part.
//!
//! A part is planned anew when it is read. It has the partitions that the ticket names, if the plan
//! is the same as before: tables never change while the server runs, the number of partitions is in
//! the ticket, and a digest of the plan proves it.

use std::ops::Range;
use std::sync::Arc;

use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use dray_format::Schema;
use dray_wire::{ErrorKind, Estimate, Known, PARTS_MAX, Query, ServerError};

use super::divide::{self, Divided, Footers, Undivided};
use super::{Analyzed, Engine, Plan, analyze, describe, error, execution_error, physical_plan};
use crate::functions;
use crate::planning::Planning;

/// The bytes of a table in a part, if the client does not say how many parts there are.
const PART_BYTES: u64 = 64 << 20;

/// A statement as parts.
pub(crate) struct Division {
    /// The columns of each part.
    pub(crate) schema: Arc<Schema>,
    /// Why there is one part.
    pub(crate) reason: Option<String>,
    /// What each part reads, and its expected size.
    pub(crate) parts: Vec<(Option<Portion>, Estimate)>,
}

/// What a part reads of a divided plan. Without one, it is the whole statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Portion {
    /// Into how many partitions each scan was to be divided.
    pub(crate) target: u32,
    /// The plan's partitions that are the part.
    pub(crate) partitions: Range<u32>,
    /// The digest of the plan.
    pub(crate) digest: [u8; 32],
}

/// The settings of parts: streams don't take files from each other, and nothing but this module
/// divides a scan.
pub(super) fn without_sharing(mut config: SessionConfig) -> SessionConfig {
    config.options_mut().execution.enable_file_stream_work_stealing = false;
    config
}

/// A divided plan.
struct Parts {
    plan: Plan,
    weights: Vec<u64>,
    target: usize,
}

/// Divides a statement into at most `count` parts.
pub(crate) async fn plan_parts(
    engine: &Engine,
    query: &Query,
    count: Option<u32>,
    planning: &Arc<Planning>,
) -> Result<Division, ServerError> {
    let divided = match count {
        Some(1) => Err(Undivided::Because("one part was asked for".to_owned())),
        _ => enter(planning, parts_of(engine, query, count, planning)).await?,
    };
    match divided {
        Ok(parts) => Ok(parts.division(count)),
        Err(Undivided::Failed(cause)) => Err(execution_error(cause)),
        Err(Undivided::Because(why)) => {
            let plan = super::plan(engine, query, planning).await?;
            let estimate = plan.estimate;
            Ok(Division { schema: plan.schema, reason: Some(why), parts: vec![(None, estimate)] })
        }
    }
}

/// The plan of a part, for one run.
pub(crate) async fn plan_part(
    engine: &Engine,
    query: &Query,
    portion: &Portion,
    planning: &Arc<Planning>,
) -> Result<Plan, ServerError> {
    let Portion { target, partitions, digest } = portion;
    let divided = enter(planning, parts_of(engine, query, Some(*target), planning)).await?;
    let parts = match divided {
        Ok(parts) if divide::digest(&parts.plan.plan) == *digest => parts,
        Err(Undivided::Failed(cause)) => return Err(execution_error(cause)),
        Ok(_) | Err(Undivided::Because(_)) => {
            let what =
                "the engine plans the statement in another way than when its parts were made";
            return Err(error(ErrorKind::Execution, "55000", what, "make a new plan"));
        }
    };
    let partitions = partitions.start as usize..partitions.end as usize;
    debug_assert!(partitions.end <= parts.weights.len(), "the digest covers their number");
    let estimate = parts.estimate(&partitions);
    Ok(Plan { partitions: Some(partitions), estimate, ..parts.plan })
}

/// Runs a step of planning on this thread, as [`super::plan`] does.
async fn enter<T>(
    planning: &Arc<Planning>,
    step: impl Future<Output = Result<T, ServerError>>,
) -> Result<T, ServerError> {
    let _entered = planning.enter();
    let planned = functions::while_planning(step).await;
    planned.map_err(|error| planning.refusal().unwrap_or(error))
}

async fn parts_of(
    engine: &Engine,
    query: &Query,
    count: Option<u32>,
    planning: &Arc<Planning>,
) -> Result<Result<Parts, Undivided>, ServerError> {
    let Analyzed { mut state, logical, is_immutable } = analyze(engine, query, planning).await?;
    if !is_immutable {
        let why = "it calls functions like now() or random(), whose values would differ from part \
                   to part";
        return Ok(Err(Undivided::Because(why.to_owned())));
    }
    // With one partition, the engine's own rules divide and exchange nothing.
    *state.config_mut() = without_sharing(state.config().clone()).with_target_partitions(1);
    let plan = physical_plan(engine, &state, &logical, planning).await?;
    let divided = divided(engine, &plan, count).await;
    Ok(match divided {
        Err(undivided) => Err(undivided),
        Ok((Divided { plan: divided, weights, .. }, target)) => {
            let task = match super::passes_on_memory(plan.as_ref()) {
                true => engine.large_batches.clone(),
                false => engine.of_parts.clone(),
            };
            // Known of the whole, which the engine has statistics of.
            let whole = describe(engine, &logical, plan, task)?;
            Ok(Parts { plan: Plan { plan: divided, ..whole }, weights, target })
        }
    })
}

async fn divided(
    engine: &Engine,
    plan: &Arc<dyn ExecutionPlan>,
    count: Option<u32>,
) -> Result<(Divided, usize), Undivided> {
    let scans = divide::scans(plan)?;
    let (mut bytes, mut footers) = (0_u64, Footers::default());
    let runtime = engine.context.runtime_env();
    let cache = runtime.cache_manager.get_file_metadata_cache();
    for scan in scans {
        let Some(files) = divide::files(scan) else {
            if let Some(memory) = scan.data_source().downcast_ref::<MemorySourceConfig>() {
                let batches = memory.partitions().iter().flatten();
                bytes += batches.map(|batch| batch.get_array_memory_size() as u64).sum::<u64>();
            }
            continue;
        };
        for file in files {
            let meta = &file.object_meta;
            bytes += meta.size;
            if divide::is_parquet(scan) && !footers.contains_key(&meta.location) {
                let store = runtime.object_store(store_of(scan)?)?;
                let footer = DFParquetMetadata::new(store.as_ref(), meta)
                    .with_file_metadata_cache(Some(cache.clone()))
                    .fetch_metadata()
                    .await?;
                footers.insert(meta.location.clone(), footer);
            }
        }
    }
    let target = count.map_or(bytes.div_ceil(PART_BYTES), u64::from).clamp(1, PARTS_MAX.into());
    let target = usize::try_from(target).unwrap_or(usize::MAX);
    let divided = divide::divide(plan, target, &footers)?;
    match divided.weights.len() {
        0 | 1 => Err(Undivided::Because(
            "its table is small, or one file of a kind that is only read whole".to_owned(),
        )),
        _ => Ok((divided, target)),
    }
}

/// Where the files of a scan are.
fn store_of(
    scan: &datafusion::catalog::memory::DataSourceExec,
) -> datafusion::common::Result<ObjectStoreUrl> {
    use datafusion::common::DataFusionError;
    use datafusion::datasource::physical_plan::FileScanConfig;
    let files = scan.data_source().downcast_ref::<FileScanConfig>();
    files
        .map(|files| files.object_store_url.clone())
        .ok_or_else(|| DataFusionError::Internal("a scan of files has a store".to_owned()))
}

impl Parts {
    fn division(self, count: Option<u32>) -> Division {
        let partitions = self.weights.len();
        // A union has more partitions than each of its tables.
        let count = count.map_or(partitions, |count| partitions.min(count as usize));
        let count = count.min(PARTS_MAX as usize);
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let digest = divide::digest(&self.plan.plan);
        let parts = (0..count).map(|i| {
            let some = partitions * i / count..partitions * (i + 1) / count;
            let estimate = self.estimate(&some);
            let partitions = number(some.start)..number(some.end);
            (Some(Portion { target: number(self.target), partitions, digest }), estimate)
        });
        let parts = parts.collect();
        Division { schema: self.plan.schema, reason: None, parts }
    }

    /// The expected size of some partitions: their share of the whole.
    fn estimate(&self, partitions: &Range<usize>) -> Estimate {
        let sum = |weights: &[u64]| weights.iter().map(|weight| u128::from(*weight)).sum::<u128>();
        let (some, all) = (sum(&self.weights[partitions.clone()]), sum(&self.weights).max(1));
        let share = |known: Known| match known.value() {
            Some(whole) => {
                Known::Estimate(u64::try_from(u128::from(whole) * some / all).unwrap_or(whole))
            }
            None => Known::Unknown,
        };
        let Estimate { rows, bytes } = self.plan.estimate;
        Estimate { rows: share(rows), bytes: share(bytes) }
    }
}
