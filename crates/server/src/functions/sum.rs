//! `sum()` that fails if and only if the result doesn't fit its type: intermediate sums have twice
//! as many bits.
//!
//! The engine's own `sum()` adds in the result's type, and wraps. It is still used for floats,
//! intervals, and decimals whose sums are wide enough for any number of rows.

mod groups;

use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, PrimitiveArray,
};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal32Type, Decimal64Type, Decimal128Type,
    Decimal256Type, DecimalType, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Field, FieldRef, Int64Type, TimeUnit, UInt64Type,
    i256,
};
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, SetMonotonicity,
    Signature,
};

use self::groups::Groups;

/// Digits that the engine adds to the precision of a sum of decimals.
const SUM_DIGITS: u8 = 10;

/// A type that is summed here.
trait Summand: ArrowPrimitiveType<Native: Eq + Hash> {
    /// The type of intermediate sums.
    type Wide: DecimalType;
    /// The type of the result.
    type Out: ArrowPrimitiveType;

    fn widen(value: Self::Native) -> <Self::Wide as ArrowPrimitiveType>::Native;

    /// None if the sum doesn't fit.
    fn narrow(
        sum: <Self::Wide as ArrowPrimitiveType>::Native,
    ) -> Option<<Self::Out as ArrowPrimitiveType>::Native>;
}

type Wide<T> = <<T as Summand>::Wide as ArrowPrimitiveType>::Native;

macro_rules! summands {
    ($($summand:ty => $wide:ty => $out:ty, $widened:expr, $narrowed:expr;)*) => {
        $(impl Summand for $summand {
            type Wide = $wide;
            type Out = $out;

            fn widen(value: Self::Native) -> Wide<Self> {
                $widened(value)
            }

            fn narrow(sum: Wide<Self>) -> Option<<$out as ArrowPrimitiveType>::Native> {
                $narrowed(sum)
            }
        })*
    };
}

summands! {
    Int64Type => Decimal128Type => Int64Type, i128::from, |sum| i64::try_from(sum).ok();
    UInt64Type => Decimal128Type => UInt64Type, i128::from, |sum| u64::try_from(sum).ok();
    DurationSecondType => Decimal128Type => DurationSecondType,
        i128::from, |sum| i64::try_from(sum).ok();
    DurationMillisecondType => Decimal128Type => DurationMillisecondType,
        i128::from, |sum| i64::try_from(sum).ok();
    DurationMicrosecondType => Decimal128Type => DurationMicrosecondType,
        i128::from, |sum| i64::try_from(sum).ok();
    DurationNanosecondType => Decimal128Type => DurationNanosecondType,
        i128::from, |sum| i64::try_from(sum).ok();
    Decimal32Type => Decimal128Type => Decimal128Type, i128::from, Some;
    Decimal64Type => Decimal128Type => Decimal128Type, i128::from, Some;
    Decimal128Type => Decimal256Type => Decimal128Type, i256::from_i128, |sum: i256| {
        sum.to_i128().filter(|sum| {
            Decimal128Type::is_valid_decimal_precision(*sum, DECIMAL128_MAX_PRECISION)
        })
    };
}

/// Calls a generic function with the summed type, or evaluates `$engine` for types that the engine
/// sums.
macro_rules! by_type {
    ($data_type:expr, $function:ident($($argument:expr),*), $engine:expr) => {
        match $data_type {
            DataType::Int64 => $function::<Int64Type>($($argument),*),
            DataType::UInt64 => $function::<UInt64Type>($($argument),*),
            DataType::Duration(TimeUnit::Second) => {
                $function::<DurationSecondType>($($argument),*)
            }
            DataType::Duration(TimeUnit::Millisecond) => {
                $function::<DurationMillisecondType>($($argument),*)
            }
            DataType::Duration(TimeUnit::Microsecond) => {
                $function::<DurationMicrosecondType>($($argument),*)
            }
            DataType::Duration(TimeUnit::Nanosecond) => {
                $function::<DurationNanosecondType>($($argument),*)
            }
            DataType::Decimal32(..) => $function::<Decimal32Type>($($argument),*),
            DataType::Decimal64(..) => $function::<Decimal64Type>($($argument),*),
            DataType::Decimal128(digits, _) if *digits > DECIMAL128_MAX_PRECISION - SUM_DIGITS => {
                $function::<Decimal128Type>($($argument),*)
            }
            _ => $engine,
        }
    };
}

/// The function `sum()`.
#[derive(Debug)]
pub(super) struct Sum {
    engine: Arc<dyn AggregateUDFImpl>,
}

impl Sum {
    pub(super) fn new(engine: Arc<dyn AggregateUDFImpl>) -> Self {
        Self { engine }
    }
}

impl PartialEq for Sum {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Sum {}

impl Hash for Sum {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

/// Does not delegate the engine's statistics and arithmetic rules, which wrap too.
impl AggregateUDFImpl for Sum {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn signature(&self) -> &Signature {
        self.engine.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [DataType::Decimal32(digits, scale) | DataType::Decimal64(digits, scale)] => {
                Ok(DataType::Decimal128(*digits + SUM_DIGITS, *scale))
            }
            _ => self.engine.return_type(arguments),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        by_type!(summed_type(&args)?, accumulator(&args), self.engine.accumulator(args))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        by_type!(
            summed_type(&args)?,
            accumulator(&args),
            self.engine.create_sliding_accumulator(args)
        )
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        by_type!(summed_type(&args)?, groups(&args), self.engine.create_groups_accumulator(args))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let [input] = args.input_fields else {
            return internal_err!("sum() of {} columns", args.input_fields.len());
        };
        by_type!(input.data_type(), state_fields(&args, input), self.engine.state_fields(args))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.engine.reverse_expr()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.engine.order_sensitivity()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.engine.documentation()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.engine.set_monotonicity(data_type)
    }
}

/// The type of the argument.
fn summed_type<'a>(args: &AccumulatorArgs<'a>) -> Result<&'a DataType> {
    match args.expr_fields {
        [input] => Ok(input.data_type()),
        inputs => internal_err!("sum() of {} columns", inputs.len()),
    }
}

fn accumulator<T: Summand>(args: &AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
    let out = args.return_field.data_type().clone();
    Ok(match args.is_distinct {
        true => Box::new(Distinct::<T> {
            data_type: summed_type(args)?.clone(),
            out,
            counts: HashMap::new(),
            sum: Wide::<T>::ZERO,
        }),
        false => Box::new(Total::<T> {
            wide: wide_type::<T>(summed_type(args)?),
            out,
            sum: Wide::<T>::ZERO,
            count: 0,
        }),
    })
}

fn groups<T: Summand>(args: &AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
    let out = args.return_field.data_type().clone();
    Ok(Box::new(Groups::<T>::new(wide_type::<T>(summed_type(args)?), out)))
}

fn state_fields<T: Summand>(args: &StateFieldsArgs, input: &FieldRef) -> Result<Vec<FieldRef>> {
    let field = if args.is_distinct {
        let entry = Field::new_list_field(input.data_type().clone(), true);
        Field::new_list(format_state_name(args.name, "sum distinct"), entry, false)
    } else {
        Field::new(format_state_name(args.name, "sum"), wide_type::<T>(input.data_type()), true)
    };
    Ok(vec![Arc::new(field)])
}

/// The type of intermediate sums.
fn wide_type<T: Summand>(data_type: &DataType) -> DataType {
    let scale = match data_type {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale) => *scale,
        _ => 0,
    };
    T::Wide::TYPE_CONSTRUCTOR(T::Wide::MAX_PRECISION, scale)
}

fn fitting<T: Summand>(
    sum: Wide<T>,
    out: &DataType,
) -> Result<<T::Out as ArrowPrimitiveType>::Native> {
    let name = super::checked::type_name(out);
    T::narrow(sum).ok_or_else(|| {
        DataFusionError::Execution(format!("a sum of {sum:?} is out of range of {name}"))
    })
}

/// The sum of all rows, or of a moving window frame.
struct Total<T: Summand> {
    wide: DataType,
    out: DataType,
    sum: Wide<T>,
    /// The number of values that are not NULL.
    count: u64,
}

/// The sum of an array's values, and their count.
fn total_of<T: ArrowPrimitiveType, W: ArrowNativeTypeOp>(
    array: &ArrayRef,
    widened: impl Fn(T::Native) -> W,
) -> (W, u64) {
    let array = array.as_primitive::<T>();
    let count = (array.len() - array.null_count()) as u64;
    let add = |sum: W, value: T::Native| sum.add_wrapping(widened(value));
    let sum = match array.null_count() {
        0 => array.values().iter().copied().fold(W::ZERO, add),
        _ => array.iter().flatten().fold(W::ZERO, add),
    };
    (sum, count)
}

impl<T: Summand> Accumulator for Total<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for array in values {
            let (sum, count) = total_of::<T, _>(array, T::widen);
            self.sum = self.sum.add_wrapping(sum);
            self.count += count;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for array in values {
            let (sum, count) = total_of::<T, _>(array, T::widen);
            self.sum = self.sum.sub_wrapping(sum);
            self.count -= count;
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for array in states {
            let (sum, count) = total_of::<T::Wide, _>(array, |sum| sum);
            self.sum = self.sum.add_wrapping(sum);
            self.count += count;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::new_primitive::<T::Wide>(
            (self.count > 0).then_some(self.sum),
            &self.wide,
        )?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = (self.count > 0).then(|| fitting::<T>(self.sum, &self.out)).transpose()?;
        ScalarValue::new_primitive::<T::Out>(sum, &self.out)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The sum of distinct values, with the number of times that each is in the window frame.
struct Distinct<T: Summand> {
    data_type: DataType,
    out: DataType,
    counts: HashMap<T::Native, u64>,
    sum: Wide<T>,
}

impl<T: Summand> Distinct<T> {
    fn add(&mut self, values: &PrimitiveArray<T>) {
        for value in values.iter().flatten() {
            let count = self.counts.entry(value).or_default();
            if *count == 0 {
                self.sum = self.sum.add_wrapping(T::widen(value));
            }
            *count += 1;
        }
    }
}

impl<T: Summand> Accumulator for Distinct<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        values.iter().for_each(|array| self.add(array.as_primitive()));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values.iter().flat_map(|array| array.as_primitive::<T>().iter().flatten()) {
            if let Some(count) = self.counts.get_mut(&value) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&value);
                    self.sum = self.sum.sub_wrapping(T::widen(value));
                }
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states.iter().flat_map(|lists| lists.as_list::<i32>().iter().flatten()) {
            self.add(list.as_primitive());
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = self
            .counts
            .keys()
            .map(|value| ScalarValue::new_primitive::<T>(Some(*value), &self.data_type));
        let values = values.collect::<Result<Vec<_>>>()?;
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &self.data_type))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum =
            (!self.counts.is_empty()).then(|| fitting::<T>(self.sum, &self.out)).transpose()?;
        ScalarValue::new_primitive::<T::Out>(sum, &self.out)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.capacity() * size_of::<(T::Native, u64)>()
    }
}

impl<T: Summand> Debug for Total<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Total({})", self.out)
    }
}

impl<T: Summand> Debug for Distinct<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Distinct({})", self.out)
    }
}
