//! The accumulator of `sum()` with GROUP BY.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

use super::{Summand, Wide, fitting};

/// The sums of many groups.
pub(super) struct Groups<T: Summand> {
    wide: DataType,
    out: DataType,
    sums: Vec<Wide<T>>,
    /// Which groups have a value that is not NULL.
    seen: Vec<bool>,
}

impl<T: Summand> Groups<T> {
    /// No groups yet, with intermediate sums of type `wide` and results of type `out`.
    pub(super) fn new(wide: DataType, out: DataType) -> Self {
        Self { wide, out, sums: Vec::new(), seen: Vec::new() }
    }

    fn add<U: ArrowPrimitiveType>(
        &mut self,
        values: &ArrayRef,
        groups: &[usize],
        filter: Option<&BooleanArray>,
        groups_total: usize,
        widened: impl Fn(U::Native) -> Wide<T>,
    ) {
        self.sums.resize(groups_total, Wide::<T>::ZERO);
        self.seen.resize(groups_total, false);
        let values = values.as_primitive::<U>();
        debug_assert_eq!(values.len(), groups.len());
        let included = NullBuffer::union(values.nulls(), filter.map(passing).as_ref());
        let rows = groups.iter().zip(values.values());
        let mut add = |group: usize, value: U::Native| {
            self.sums[group] = self.sums[group].add_wrapping(widened(value));
            self.seen[group] = true;
        };
        match included.filter(|included| included.null_count() > 0) {
            None => rows.for_each(|(group, value)| add(*group, *value)),
            Some(included) => rows.zip(included.iter()).for_each(|((group, value), included)| {
                if included {
                    add(*group, *value);
                }
            }),
        }
    }

    fn take(&mut self, emit: EmitTo) -> (Vec<Wide<T>>, NullBuffer) {
        (emit.take_needed(&mut self.sums), emit.take_needed(&mut self.seen).into())
    }
}

/// The rows that pass a filter.
fn passing(filter: &BooleanArray) -> NullBuffer {
    match filter.nulls() {
        None => NullBuffer::new(filter.values().clone()),
        Some(known) => NullBuffer::new(filter.values() & known.inner()),
    }
}

impl<T: Summand> GroupsAccumulator for Groups<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        groups_total: usize,
    ) -> Result<()> {
        values
            .iter()
            .for_each(|values| self.add::<T>(values, groups, filter, groups_total, T::widen));
        Ok(())
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        groups_total: usize,
    ) -> Result<()> {
        values
            .iter()
            .for_each(|values| self.add::<T::Wide>(values, groups, None, groups_total, |sum| sum));
        Ok(())
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let (sums, seen) = self.take(emit);
        let sums =
            sums.into_iter().map(|sum| fitting::<T>(sum, &self.out)).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(
            PrimitiveArray::<T::Out>::new(sums.into(), Some(seen)).with_data_type(self.out.clone()),
        ))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let (sums, seen) = self.take(emit);
        let sums = PrimitiveArray::<T::Wide>::new(sums.into(), Some(seen))
            .with_data_type(self.wide.clone());
        Ok(vec![Arc::new(sums)])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let states = values.iter().map(|values| {
            let sums = values.as_primitive::<T>().unary::<_, T::Wide>(T::widen);
            let included = NullBuffer::union(sums.nulls(), filter.map(passing).as_ref());
            let sums = PrimitiveArray::<T::Wide>::new(sums.values().clone(), included);
            Arc::new(sums.with_data_type(self.wide.clone())) as ArrayRef
        });
        Ok(states.collect())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sums.capacity() * size_of::<Wide<T>>() + self.seen.capacity()
    }
}
