//! What encoding the columns of results cost, with which the next result that has them starts.
//!
//! A column is known by its name, its type, and the tables of its statement. Nothing of its values
//! is kept: costs are times and sizes, for each byte of the column.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dray_chooser::ColumnCosts;
use dray_format::{Field, Schema};

/// Columns to remember. The costs of each take less than 400 bytes.
const COLUMNS_MAX: usize = 4096;

/// The costs of columns of results.
#[derive(Default)]
pub(crate) struct KnownCosts {
    hasher: RandomState,
    columns: Mutex<Columns>,
}

#[derive(Default)]
struct Columns {
    /// By the hash of what a column is known by. Whoever can't see the keys can't make two equal.
    costs: HashMap<u64, KnownColumn>,
    /// Counts the results.
    results: u64,
}

struct KnownColumn {
    costs: ColumnCosts,
    /// The value of [`Columns::results`] when it was last set.
    last_set: u64,
}

impl KnownCosts {
    /// The costs of each column of a result from these tables, if they are known.
    pub(crate) fn of(&self, tables: &[String], schema: &Schema) -> Vec<Option<ColumnCosts>> {
        let keys = self.keys(tables, schema);
        let columns = self.lock();
        keys.iter().map(|key| columns.costs.get(key).map(|known| known.costs.clone())).collect()
    }

    /// Keeps the costs of the columns of a result.
    pub(crate) fn set(&self, tables: &[String], schema: &Schema, costs: Vec<ColumnCosts>) {
        debug_assert_eq!(costs.len(), schema.fields.len());
        let keys = self.keys(tables, schema);
        let mut columns = self.lock();
        columns.results += 1;
        let last_set = columns.results;
        for (key, costs) in keys.into_iter().zip(costs).take(COLUMNS_MAX / 2) {
            columns.costs.insert(key, KnownColumn { costs, last_set });
        }
        columns.forget();
    }

    fn keys(&self, tables: &[String], schema: &Schema) -> Vec<u64> {
        let key =
            |Field { name, data_type, .. }: &Field| self.hasher.hash_one((tables, name, data_type));
        schema.fields.iter().map(key).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Columns> {
        // A panic leaves at worst some columns too many.
        self.columns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Columns {
    /// Forgets the columns that have not come for longest, about half of them, if there are too
    /// many.
    fn forget(&mut self) {
        if self.costs.len() <= COLUMNS_MAX {
            return;
        }
        let mut last: Vec<u64> = self.costs.values().map(|known| known.last_set).collect();
        let (_, median, _) = last.select_nth_unstable(COLUMNS_MAX / 2);
        let median = *median;
        self.costs.retain(|_, known| known.last_set > median);
        debug_assert!(self.costs.len() <= COLUMNS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use dray_chooser::{Chooser, Line};
    use dray_format::Type;

    use super::*;

    fn schema(names: impl Iterator<Item = String>, data_type: &Type) -> Schema {
        let field = |name| Field {
            name,
            data_type: data_type.clone(),
            nullable: false,
            metadata: Vec::new(),
        };
        Schema { fields: names.map(field).collect() }
    }

    fn costs(schema: &Schema) -> Vec<ColumnCosts> {
        Chooser::new(schema, Line::of_price(8.0), std::time::Duration::ZERO, 3).costs()
    }

    #[test]
    fn a_column_is_known_by_tables_name_and_type() {
        let known = KnownCosts::default();
        let tables = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let column = |name: &str, data_type| schema([name.to_owned()].into_iter(), &data_type);
        let kept = column("a", Type::Int64);
        known.set(&tables(&["t"]), &kept, costs(&kept));
        let is_known = |names: &[&str], schema: &Schema| {
            known.of(&tables(names), schema).first().is_some_and(Option::is_some)
        };
        assert!(is_known(&["t"], &kept));
        assert!(!is_known(&["u"], &kept));
        assert!(!is_known(&["t", "u"], &kept));
        assert!(!is_known(&["t"], &column("b", Type::Int64)));
        assert!(!is_known(&["t"], &column("a", Type::Int32)));
    }

    #[test]
    fn the_latest_columns_are_remembered() {
        let known = KnownCosts::default();
        let result =
            |i: usize| schema((0..1000).map(|column| format!("{i}.{column}")), &Type::Int64);
        for i in 0..20 {
            let schema = result(i);
            known.set(&[], &schema, costs(&schema));
            assert!(known.lock().costs.len() <= COLUMNS_MAX);
            assert!(known.of(&[], &schema).iter().all(Option::is_some));
        }
        assert!(known.of(&[], &result(18)).iter().all(Option::is_some));
        assert!(known.of(&[], &result(10)).iter().all(Option::is_none));
        // Of a wider result, some.
        let wide = schema((0..5000).map(|column| column.to_string()), &Type::Int64);
        known.set(&[], &wide, costs(&wide));
        assert!(known.lock().costs.len() <= COLUMNS_MAX);
        assert!(known.of(&[], &wide).first().is_some_and(Option::is_some));
    }
}
