//! Facts about the server and the driver, as `GetInfo` returns them.

use std::collections::HashSet;
use std::sync::Arc;

use adbc_core::constants::ADBC_VERSION_1_1_0;
use adbc_core::error::Result;
use adbc_core::options::InfoCode;
use adbc_core::schemas::GET_INFO_SCHEMA;
use arrow::array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, UInt32Array, UnionArray,
    new_empty_array,
};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use dray_client::SourceKind;

use crate::error::bad_data;

enum Value {
    Text(String),
    Bool(bool),
    Int(i64),
}

/// A row for each fact that was asked for; all facts if `codes` is None. Codes without a fact have
/// no row.
///
/// # Errors
/// When Arrow can't make the batch.
pub(crate) fn batch(
    server: &str,
    kind: SourceKind,
    codes: Option<&HashSet<InfoCode>>,
) -> Result<RecordBatch> {
    let mut facts = facts(server, kind);
    facts.retain(|(code, _)| codes.is_none_or(|codes| codes.contains(code)));
    encode(&facts).map_err(|error| bad_data(&error))
}

fn facts(server: &str, kind: SourceKind) -> Vec<(InfoCode, Value)> {
    // `PostgreSQL 15.14 (Debian …)`, `dray 0.1.0`
    let version = server.split_once(' ').map_or("", |(_, version)| version);
    let name = match kind {
        SourceKind::Postgres => "PostgreSQL",
        // Both speak the protocol, and say which they are.
        SourceKind::Mysql if server.starts_with("MariaDB") => "MariaDB",
        SourceKind::Mysql => "MySQL",
        SourceKind::Dray | SourceKind::Other => "Dray",
    };
    let text = |text: &str| Value::Text(text.to_owned());
    vec![
        (InfoCode::VendorName, text(name)),
        (InfoCode::VendorVersion, text(version)),
        (InfoCode::VendorSql, Value::Bool(true)),
        (InfoCode::VendorSubstrait, Value::Bool(false)),
        (InfoCode::DriverName, text("Dray ADBC driver")),
        (InfoCode::DriverVersion, text(env!("CARGO_PKG_VERSION"))),
        (InfoCode::DriverArrowVersion, Value::Text(format!("v{}", arrow::ARROW_VERSION))),
        (InfoCode::DriverAdbcVersion, Value::Int(ADBC_VERSION_1_1_0.into())),
    ]
}

fn encode(facts: &[(InfoCode, Value)]) -> std::result::Result<RecordBatch, ArrowError> {
    let DataType::Union(fields, _) = GET_INFO_SCHEMA.field(1).data_type() else {
        return Err(ArrowError::SchemaError("the values of facts are no union".to_owned()));
    };
    let (mut texts, mut bools, mut ints) = (Vec::new(), Vec::new(), Vec::new());
    let (mut types, mut offsets) = (Vec::new(), Vec::new());
    for (_, value) in facts {
        let (union_type, offset) = match value {
            Value::Text(text) => {
                texts.push(text.as_str());
                (0, texts.len())
            }
            Value::Bool(value) => {
                bools.push(*value);
                (1, bools.len())
            }
            Value::Int(value) => {
                ints.push(*value);
                (2, ints.len())
            }
        };
        types.push(union_type);
        offsets.push(i32::try_from(offset - 1).unwrap_or_default());
    }
    let empty = fields.iter().skip(3).map(|(_, field)| new_empty_array(field.data_type()));
    let mut children: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(texts)),
        Arc::new(BooleanArray::from(bools)),
        Arc::new(Int64Array::from(ints)),
    ];
    children.extend(empty);
    let values = UnionArray::try_new(fields.clone(), types.into(), Some(offsets.into()), children)?;
    let codes = facts.iter().map(|(code, _)| u32::from(code));
    let codes = UInt32Array::from_iter_values(codes);
    RecordBatch::try_new(GET_INFO_SCHEMA.clone(), vec![Arc::new(codes), Arc::new(values)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::AsArray;

    #[test]
    fn facts_are_filtered() {
        let server = "PostgreSQL 15.14 (Debian 15.14-0)";
        let all = batch(server, SourceKind::Postgres, None).unwrap();
        assert_eq!(all.num_rows(), facts(server, SourceKind::Postgres).len());
        let asked = HashSet::from([InfoCode::VendorVersion, InfoCode::Other(5000)]);
        let some = batch(server, SourceKind::Postgres, Some(&asked)).unwrap();
        assert_eq!(some.num_rows(), 1);
        let values = some.column(1).as_any().downcast_ref::<UnionArray>().unwrap();
        assert_eq!(values.value(0).as_string::<i32>().value(0), "15.14 (Debian 15.14-0)");
    }
}
