//! Parameters of a statement.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use dray_driver::failed;
use rusqlite::Statement;
use rusqlite::types::Value;

use crate::error::{End, of_statement};

/// Binds the values of a row to a statement of the source `name`: to `?` in order, and to `?N`,
/// `$N`, `:N` and `@N` by their number, counted from 1.
///
/// # Errors
/// If there are more or fewer than the statement takes, SQLite has no such values, or they are too
/// long.
pub(crate) fn bind(
    name: &str,
    statement: &mut Statement<'_>,
    parameters: Option<&RecordBatch>,
) -> Result<(), End> {
    let expected = statement.parameter_count();
    let given = parameters.map_or(0, RecordBatch::num_columns);
    if expected != given {
        let message = format!("the statement has {expected} parameters, and {given} are given");
        return Err(failed("07001", message).into());
    }
    let Some(parameters) = parameters else { return Ok(()) };
    for index in 1..=expected {
        let column = column_of(statement.parameter_name(index), index)
            .filter(|column| *column < given)
            .ok_or_else(|| {
                let name = statement.parameter_name(index).unwrap_or_default();
                failed("07001", format!("there is no value for the parameter {name}"))
            })?;
        let value = value(parameters.column(column).as_ref()).ok_or_else(|| {
            let data_type = parameters.column(column).data_type().clone();
            let number = column + 1;
            let what = format!("parameter {number}: SQLite has no values of the type {data_type}");
            failed("07006", format!("{what}; convert it to text"))
        })?;
        let bound = statement.raw_bind_parameter(index, value);
        bound.map_err(|cause| of_statement(name, &cause))?;
    }
    Ok(())
}

/// Which value a parameter gets.
fn column_of(name: Option<&str>, index: usize) -> Option<usize> {
    match name {
        None => Some(index - 1),
        Some(name) => name.get(1..)?.parse::<usize>().ok()?.checked_sub(1),
    }
}

/// The first value of an array; None if SQLite can't hold it.
fn value(array: &dyn Array) -> Option<Value> {
    if array.is_empty() || array.is_null(0) || array.data_type() == &DataType::Null {
        return Some(Value::Null);
    }
    Some(match array.data_type() {
        DataType::Boolean => Value::Integer(array.as_boolean().value(0).into()),
        DataType::Int8 => Value::Integer(array.as_primitive::<Int8Type>().value(0).into()),
        DataType::Int16 => Value::Integer(array.as_primitive::<Int16Type>().value(0).into()),
        DataType::Int32 => Value::Integer(array.as_primitive::<Int32Type>().value(0).into()),
        DataType::Int64 => Value::Integer(array.as_primitive::<Int64Type>().value(0)),
        DataType::UInt8 => Value::Integer(array.as_primitive::<UInt8Type>().value(0).into()),
        DataType::UInt16 => Value::Integer(array.as_primitive::<UInt16Type>().value(0).into()),
        DataType::UInt32 => Value::Integer(array.as_primitive::<UInt32Type>().value(0).into()),
        DataType::UInt64 => {
            Value::Integer(i64::try_from(array.as_primitive::<UInt64Type>().value(0)).ok()?)
        }
        DataType::Float32 => real(array.as_primitive::<Float32Type>().value(0).into())?,
        DataType::Float64 => real(array.as_primitive::<Float64Type>().value(0))?,
        DataType::Utf8 => Value::Text(array.as_string::<i32>().value(0).to_owned()),
        DataType::LargeUtf8 => Value::Text(array.as_string::<i64>().value(0).to_owned()),
        DataType::Utf8View => Value::Text(array.as_string_view().value(0).to_owned()),
        DataType::Binary => Value::Blob(array.as_binary::<i32>().value(0).to_vec()),
        DataType::LargeBinary => Value::Blob(array.as_binary::<i64>().value(0).to_vec()),
        DataType::BinaryView => Value::Blob(array.as_binary_view().value(0).to_vec()),
        DataType::FixedSizeBinary(_) => Value::Blob(array.as_fixed_size_binary().value(0).to_vec()),
        _ => return None,
    })
}

/// SQLite makes NULL of NaN.
fn real(value: f64) -> Option<Value> {
    (!value.is_nan()).then_some(Value::Real(value))
}
