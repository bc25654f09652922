//! Limits on functions whose results may be much larger than their arguments, and checks of results
//! that may not fit their type ([`checked`], [`sum`]).
//!
//! ```text
//!   rpad(name, 2000000000) ─▶ Limited: estimate the size ─▶ reserve it in the engine's pool
//!                                                            │         └▶ too little: an error
//!                                                            └▶ rpad ─▶ counted while it lives
//! ```
//!
//! The engine accounts for what its operators hold, not for what its functions allocate.
//! [`GROWING`] lists all functions of the engine whose result size is a number among the arguments,
//! a product of two arguments, or, in nested calls, exponential in the depth. Results of other
//! functions are at most a few times as large as their arguments.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::concat;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    AggregateUDF, ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::prelude::SessionContext;

use self::measure::{Measure, numbers, sizes};

pub(crate) mod checked;
mod constants;
pub(crate) mod counted;
mod measure;
mod sum;

/// Results up to this size are not reserved.
const UNRESERVED_BYTES_MAX: f64 = (1 << 20) as f64;
/// If only an upper bound of the size is known, rows are computed in slices with at most this
/// bound.
const SLICE_BYTES: f64 = (4 << 20) as f64;
/// The largest result of a call: offsets of strings and lists have 31 bits.
const CALL_BYTES_MAX: f64 = i32::MAX as f64;
/// The largest value that is computed during planning. It becomes part of the plan, where it is not
/// accounted for.
const FOLDED_BYTES_MAX: f64 = (16 << 10) as f64;
/// Maximum size of fixed-size values, which take their space also for NULL.
const FIXED_BYTES_MAX: i64 = 1 << 20;

/// How the size of a result depends on the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Growth {
    /// The sum of all arguments' sizes.
    Sum,
    /// The first argument, repeated as often as the second says.
    Repeat,
    /// Text with as many characters as the second argument says.
    Pad,
    /// The first argument, with each occurrence of the second replaced by the third.
    Replace,
    /// The first argument, with each match of a pattern replaced by the third.
    RegexpReplace,
    /// A list of values from the first argument to the second, in steps of the third.
    Range,
    /// A list with as many entries as the second argument says.
    Resize,
    /// The first argument's entries as text, with the second one between them.
    Join,
    /// The first argument's entries, each of which may become the third argument.
    ReplaceEntries,
    /// Text in the format of the second argument.
    Format,
    /// The size of the requested type's values.
    Type,
}

/// The engine's functions with large results.
const GROWING: &[(&str, Growth)] = &[
    ("array_append", Growth::Sum),
    ("array_concat", Growth::Sum),
    ("array_prepend", Growth::Sum),
    ("array_repeat", Growth::Repeat),
    ("array_replace", Growth::ReplaceEntries),
    ("array_replace_all", Growth::ReplaceEntries),
    ("array_replace_n", Growth::ReplaceEntries),
    ("array_resize", Growth::Resize),
    ("array_to_string", Growth::Join),
    ("arrow_cast", Growth::Type),
    ("arrow_try_cast", Growth::Type),
    ("concat", Growth::Sum),
    ("concat_ws", Growth::Sum),
    ("generate_series", Growth::Range),
    ("lpad", Growth::Pad),
    ("make_array", Growth::Sum),
    ("overlay", Growth::Sum),
    ("range", Growth::Range),
    ("regexp_replace", Growth::RegexpReplace),
    ("repeat", Growth::Repeat),
    ("replace", Growth::Replace),
    ("rpad", Growth::Pad),
    ("to_char", Growth::Format),
];

tokio::task_local! {
    static PLANNING: ();
}

/// Runs `planning` so that functions leave large values to execution.
pub(crate) async fn while_planning<T>(planning: impl Future<Output = T>) -> T {
    PLANNING.scope((), planning).await
}

fn is_planning() -> bool {
    PLANNING.try_with(|()| ()).is_ok()
}

/// Reserves memory in the engine's pool.
///
/// # Errors
/// If there is not enough, or a call may not allocate as much; the error names `what`.
fn reserve(pool: &Arc<dyn MemoryPool>, what: &str, bytes: f64) -> Result<MemoryReservation> {
    let reservation = MemoryConsumer::new(what).register(pool);
    // `as` saturates.
    if bytes <= CALL_BYTES_MAX && reservation.try_grow(bytes as usize).is_ok() {
        return Ok(reservation);
    }
    let message = format!(
        "{what} would allocate {:.0} MB at once, more than there is memory for",
        bytes / 1e6
    );
    Err(DataFusionError::ResourcesExhausted(message))
}

/// Replaces a session's functions by those with limits and checks.
pub(crate) fn install_limits(context: &SessionContext) {
    let pool = context.runtime_env().memory_pool.clone();
    context.add_optimizer_rule(Arc::new(constants::LargeConstants::new(&pool)));
    if let Some(engine) = context.state().aggregate_functions().get("sum") {
        context.register_udaf(AggregateUDF::new_from_impl(sum::Sum::new(engine.inner().clone())));
    }
    let functions = context.state().scalar_functions().clone();
    for (name, growth) in GROWING {
        if let Some(function) = functions.get(*name) {
            let inner = function.inner().clone();
            context.register_udf(ScalarUDF::new_from_impl(Limited {
                inner,
                growth: *growth,
                pool: pool.clone(),
            }));
        }
    }
}

/// A function that reserves memory for its result.
#[derive(Debug)]
struct Limited {
    inner: Arc<dyn ScalarUDFImpl>,
    growth: Growth,
    pool: Arc<dyn MemoryPool>,
}

impl PartialEq for Limited {
    fn eq(&self, other: &Self) -> bool {
        self.inner.name() == other.inner.name() && self.growth == other.growth
    }
}

impl Eq for Limited {}

impl Hash for Limited {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.name().hash(state);
    }
}

/// Delegates what affects planning to the engine's function, except for the checks by which the
/// engine would recognise its own function, and put it back.
impl ScalarUDFImpl for Limited {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = self.inner.return_field_from_args(args)?;
        check_type(field.data_type())?;
        Ok(field)
    }

    fn is_strict(&self) -> bool {
        self.inner.is_strict()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        if rows > 1 && args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_))) {
            // Constant arguments: compute the result once.
            return match self.invoke_with_args(ScalarFunctionArgs { number_rows: 1, ..args })? {
                ColumnarValue::Array(array) => {
                    Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
                }
                scalar => Ok(scalar),
            };
        }
        let Some(growth) = self.growth.estimate(&args.args, rows)? else {
            return self.inner.invoke_with_args(args);
        };
        let bytes = growth.sum(rows);
        if bytes <= FOLDED_BYTES_MAX {
            return self.inner.invoke_with_args(args);
        }
        if is_planning() {
            return exec_err!("{} is not computed during planning", self.name());
        }
        if bytes <= UNRESERVED_BYTES_MAX {
            return self.inner.invoke_with_args(args);
        }
        if !self.growth.is_exact() && rows > 1 && bytes > SLICE_BYTES {
            return self.in_slices(&args, &growth);
        }
        let reservation = reserve(&self.pool, self.name(), bytes)?;
        match self.inner.invoke_with_args(args)? {
            ColumnarValue::Array(array) => {
                Ok(ColumnarValue::Array(counted::counted(array, reservation)?))
            }
            // `constants.rs` accounts for it if it becomes a column.
            scalar => Ok(scalar),
        }
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arg_types)
    }

    /// Casts may be simplified: their types have been checked. Other calls must stay calls.
    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        match self.growth {
            Growth::Type => self.inner.simplify(args, context),
            _ => Ok(ExprSimplifyResult::Original(args)),
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

impl Limited {
    /// Computes a slice of rows at a time, and reserves what each really takes.
    fn in_slices(&self, args: &ScalarFunctionArgs, growth: &Measure) -> Result<ColumnarValue> {
        let mut reservations = Vec::new();
        let mut parts: Vec<ArrayRef> = Vec::new();
        let mut row = 0;
        while row < args.number_rows {
            let (mut rows, mut bytes) = (1, growth.at(row));
            while row + rows < args.number_rows && bytes + growth.at(row + rows) <= SLICE_BYTES {
                bytes += growth.at(row + rows);
                rows += 1;
            }
            let slice = |arg: &ColumnarValue| match arg {
                ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(row, rows)),
                scalar => scalar.clone(),
            };
            let reservation = reserve(&self.pool, self.name(), bytes)?;
            let slices = args.args.iter().map(slice).collect();
            let slice = ScalarFunctionArgs { args: slices, number_rows: rows, ..args.clone() };
            let part = self.inner.invoke_with_args(slice)?.into_array(rows)?;
            reservation.resize(part.get_array_memory_size());
            reservations.push(reservation);
            parts.push(part);
            row += rows;
        }
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        let bytes = reservations.iter().map(MemoryReservation::size).sum::<usize>();
        let reservation = reserve(&self.pool, self.name(), bytes as f64)?;
        Ok(ColumnarValue::Array(counted::counted(concat(&parts)?, reservation)?))
    }
}

impl Growth {
    /// Whether [`Self::estimate`] is the actual size, not an upper bound.
    fn is_exact(self) -> bool {
        !matches!(self, Self::Replace | Self::RegexpReplace | Self::ReplaceEntries | Self::Format)
    }

    /// Estimates the bytes of each row's result. None for unexpected arguments, which the function
    /// itself rejects.
    fn estimate(self, args: &[ColumnarValue], rows: usize) -> Result<Option<Measure>> {
        let size = |i: usize| args.get(i).map(|arg| sizes(arg, rows));
        let number = |i: usize| args.get(i).map_or(Ok(None), |arg| numbers(arg, rows));
        let measure = match self {
            Self::Type => return Ok(None),
            Self::Sum => {
                args.iter().map(|arg| sizes(arg, rows)).reduce(|a, b| a.zip(&b, |a, b| a + b))
            }
            Self::Repeat => {
                let (Some(size), Some(count)) = (size(0), number(1)?) else { return Ok(None) };
                Some(size.zip(&count, |size, count| size.max(1.0) * count.max(0.0)))
            }
            Self::Pad => {
                let (Some(size), Some(count)) = (size(0), number(1)?) else { return Ok(None) };
                // A fill character has up to four bytes.
                let fill = args.get(2).map_or(1.0, |_| 4.0);
                Some(size.zip(&count, |size, count| size + fill * count.max(0.0)))
            }
            Self::Replace => {
                let (Some(text), Some(from), Some(to)) = (size(0), size(1), size(2)) else {
                    return Ok(None);
                };
                let found = text.zip(&from, |text, from| text / from.max(1.0) + 1.0);
                Some(text.zip(&found.zip(&to, |found, to| found * to), |text, new| text + new))
            }
            Self::RegexpReplace => {
                let (Some(text), Some(to)) = (size(0), size(2)) else { return Ok(None) };
                // A reference to a group takes two bytes, and all matches of a group together are
                // not longer than the text.
                Some(text.zip(&to, |text, to| text + (text + 1.0) * to + text * to / 2.0))
            }
            Self::Range => range(args, rows)?,
            Self::Resize => {
                let (Some(list), Some(count)) = (size(0), number(1)?) else { return Ok(None) };
                let entry = args.get(2).map(|arg| sizes(arg, rows));
                let width = args.first().map_or(8.0, |arg| measure::entry_bytes(&arg.data_type()));
                let entry = entry
                    .map_or(Measure::One(width), |entry| entry.zip(&Measure::One(width), f64::max));
                Some(
                    list.zip(
                        &entry.zip(&count, |entry, count| entry * count.max(0.0)),
                        |list, new| list + new,
                    ),
                )
            }
            Self::Join => {
                let (Some(list), Some(between)) = (size(0), size(1)) else { return Ok(None) };
                let entries =
                    args.first().map_or(Measure::One(0.0), |arg| measure::entries(arg, rows));
                // An eight-byte number has up to 24 digits.
                Some(list.zip(
                    &entries.zip(&between, |entries, between| entries * (between + 24.0)),
                    |list, new| list + new,
                ))
            }
            Self::ReplaceEntries => {
                let (Some(list), Some(to)) = (size(0), size(2)) else { return Ok(None) };
                let entries =
                    args.first().map_or(Measure::One(0.0), |arg| measure::entries(arg, rows));
                Some(
                    list.zip(&entries.zip(&to, |entries, to| entries * to), |list, new| list + new),
                )
            }
            // `%c` becomes 24 characters or more.
            Self::Format => {
                size(1).map(|format| format.zip(&Measure::One(32.0), |format, each| format * each))
            }
        };
        Ok(measure)
    }
}

/// The size of a range, with entries of eight bytes.
fn range(args: &[ColumnarValue], rows: usize) -> Result<Option<Measure>> {
    let number = |i: usize| args.get(i).map_or(Ok(None), |arg| numbers(arg, rows));
    let (start, stop) = match args.len() {
        1 => (Some(Measure::One(0.0)), number(0)?),
        _ => (number(0)?, number(1)?),
    };
    let (Some(start), Some(stop)) = (start, stop) else { return Ok(None) };
    let step = if args.len() > 2 { number(2)? } else { Some(Measure::One(1.0)) };
    let Some(step) = step else { return Ok(None) };
    let steps = stop.zip(&start, |stop, start| stop - start).zip(&step, |span, step| span / step);
    // The function rejects a step of zero; a step away from the end gives an empty list.
    Ok(Some(steps.zip(&Measure::One(8.0), |steps, width| {
        if steps.is_finite() { (steps.max(0.0) + 1.0) * width } else { 0.0 }
    })))
}

/// Fails if each value of a type, including NULL, is large.
pub(crate) fn check_type(data_type: &DataType) -> Result<()> {
    let bytes = fixed_bytes(data_type);
    if bytes <= FIXED_BYTES_MAX {
        return Ok(());
    }
    Err(DataFusionError::Plan(format!(
        "each value of this type takes {bytes} bytes, even NULL; out of range: the maximum is \
         {FIXED_BYTES_MAX}"
    )))
}

fn fixed_bytes(data_type: &DataType) -> i64 {
    match data_type {
        DataType::FixedSizeBinary(bytes) => i64::from(*bytes),
        DataType::FixedSizeList(entry, entries) => {
            fixed_bytes(entry.data_type()).max(1).saturating_mul(i64::from(*entries))
        }
        DataType::Struct(fields) => {
            fields.iter().map(|field| fixed_bytes(field.data_type())).fold(0, i64::saturating_add)
        }
        DataType::List(entry) | DataType::LargeList(entry) => fixed_bytes(entry.data_type()),
        DataType::Dictionary(_, value) => fixed_bytes(value),
        _ => 8,
    }
}
