//! Objects as columns: structs of arrays, and lists of them.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int32Array, ListArray, StringArray, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};

use crate::Failure;
use crate::checksum::Checksum;
use crate::model as own;

/// What columns are kept in.
pub trait Side {
    type Int: Send + Sync;
    type Float: Send + Sync;
    type Text: Send + Sync;
    type Offsets: Send + Sync;
}
pub struct Reading;
impl Side for Reading {
    type Int = Int32Array;
    type Float = Float64Array;
    type Text = StringArray;
    type Offsets = OffsetBuffer<i32>;
}
pub struct Writing;
impl Side for Writing {
    type Int = Vec<i32>;
    type Float = Vec<f64>;
    type Text = StringBuilder;
    type Offsets = Vec<i32>;
}

/// Lists: where each begins, and their items one after the other.
pub struct Lists<S: Side, C> {
    pub offsets: S::Offsets,
    pub items: C,
}

/// Columns that are read.
pub trait Read: Sized + Send + Sync {
    type Own;

    fn of(columns: &StructArray) -> Result<Self, Failure>;
    fn sum(&self, row: usize, h: &mut Checksum);
    fn copy(&self, row: usize) -> Self::Own;
    fn equal(&self, row: usize, other: (&Self, usize)) -> bool;
}

/// Columns that are being built.
pub trait Build: Default {
    type Own;
    type Read;

    fn push(&mut self, own: &Self::Own);
    /// Appends a row, with the items of another object's lists behind its own.
    fn push_row(&mut self, from: &Self::Read, row: usize, more: Option<&Self::Own>);
    /// The bytes of all values.
    fn bytes(&self) -> usize;
    fn finish(self) -> Result<StructArray, Failure>;
}

macro_rules! column {
    ($side:ident, i32) => {
        $side::Int
    };
    ($side:ident, f64) => {
        $side::Float
    };
    ($side:ident, str) => {
        $side::Text
    };
}
macro_rules! downcast {
    (i32, $column:expr) => {
        $column.as_primitive_opt::<Int32Type>()
    };
    (f64, $column:expr) => {
        $column.as_primitive_opt::<Float64Type>()
    };
    (str, $column:expr) => {
        $column.as_string_opt::<i32>()
    };
}
macro_rules! sum {
    (str, $h:ident, $v:expr) => {
        $h.str($v.as_bytes())
    };
    ($number:ident, $h:ident, $v:expr) => {
        $h.$number($v)
    };
}
macro_rules! push {
    (str, $to:expr, $v:expr) => {
        $to.append_value($v)
    };
    ($number:ident, $to:expr, $v:expr) => {
        $to.push($v)
    };
}
macro_rules! own_value {
    (str, $v:expr) => {
        &$v
    };
    ($number:ident, $v:expr) => {
        $v
    };
}
macro_rules! bytes {
    (i32, $v:expr) => {
        4 * $v.len()
    };
    (f64, $v:expr) => {
        8 * $v.len()
    };
    (str, $v:expr) => {
        4 * $v.offsets_slice().len() + $v.values_slice().len()
    };
}
macro_rules! array {
    (i32, $v:expr) => {
        Arc::new(Int32Array::from($v))
    };
    (f64, $v:expr) => {
        Arc::new(Float64Array::from($v))
    };
    (str, $v:ident . $name:ident) => {
        Arc::new({ $v.$name }.finish())
    };
}
macro_rules! columns {
    ($own:ident { $($name:ident: $kind:ident),* }
     structs { $($child:ident: $of:ident),* } lists { $($list:ident: $item:ident),* }) => {
        pub struct $own<S: Side> {
            $(pub $name: column!(S, $kind),)*
            $(pub $child: $of<S>,)*
            $(pub $list: Lists<S, $item<S>>,)*
        }

        impl Read for $own<Reading> {
            type Own = own::$own;

            fn of(columns: &StructArray) -> Result<Self, Failure> {
                let column = |name| {
                    columns.column_by_name(name).ok_or_else(|| format!("there is no column {name}"))
                };
                Ok(Self {
                    $($name: downcast!($kind, column(stringify!($name))?)
                        .ok_or("a column has another type")?.clone(),)*
                    $($child: $of::of(column(stringify!($child))?
                        .as_struct_opt().ok_or("a column has another type")?)?,)*
                    $($list: {
                        let lists = column(stringify!($list))?
                            .as_list_opt::<i32>().ok_or("a column has another type")?;
                        let items = lists.values().as_struct_opt();
                        Lists {
                            offsets: lists.offsets().clone(),
                            items: $item::of(items.ok_or("a column has another type")?)?,
                        }
                    },)*
                })
            }

            #[inline]
            fn sum(&self, row: usize, h: &mut Checksum) {
                $(sum!($kind, h, self.$name.value(row));)*
                $(self.$child.sum(row, h);)*
                $(let items = self.$list.range(row);
                  h.word(items.len() as u64);
                  items.for_each(|item| self.$list.items.sum(item, h));)*
            }

            fn copy(&self, row: usize) -> own::$own {
                own::$own {
                    $($name: self.$name.value(row).into(),)*
                    $($child: self.$child.copy(row),)*
                    $($list: self.$list.range(row)
                        .map(|item| self.$list.items.copy(item)).collect(),)*
                }
            }

            fn equal(&self, row: usize, (other, other_row): (&Self, usize)) -> bool {
                true
                    $(&& self.$name.value(row) == other.$name.value(other_row))*
                    $(&& self.$child.equal(row, (&other.$child, other_row)))*
                    $(&& {
                        let (a, b) = (self.$list.range(row), other.$list.range(other_row));
                        let same = |(a, b)| self.$list.items.equal(a, (&other.$list.items, b));
                        a.len() == b.len() && a.zip(b).all(same)
                    })*
            }
        }

        impl Default for $own<Writing> {
            fn default() -> Self {
                Self {
                    $($name: Default::default(),)*
                    $($child: Default::default(),)*
                    $($list: Lists { offsets: vec![0], items: Default::default() },)*
                }
            }
        }

        impl Build for $own<Writing> {
            type Own = own::$own;
            type Read = $own<Reading>;

            fn push(&mut self, own: &own::$own) {
                $(push!($kind, self.$name, own_value!($kind, own.$name));)*
                $(self.$child.push(&own.$child);)*
                $(own.$list.iter().for_each(|item| self.$list.items.push(item));
                  self.$list.end(own.$list.len());)*
            }

            #[allow(unused_variables, reason = "not every object has lists")]
            fn push_row(&mut self, from: &$own<Reading>, row: usize, more: Option<&own::$own>) {
                $(push!($kind, self.$name, from.$name.value(row));)*
                $(self.$child.push_row(&from.$child, row, None);)*
                $(let items = from.$list.range(row);
                  let more = more.map_or(&[][..], |more| &more.$list);
                  self.$list.end(items.len() + more.len());
                  items.for_each(|item| {
                      self.$list.items.push_row(&from.$list.items, item, None);
                  });
                  more.iter().for_each(|item| self.$list.items.push(item));)*
            }

            fn bytes(&self) -> usize {
                0 $(+ bytes!($kind, self.$name))*
                    $(+ self.$child.bytes())*
                    $(+ 4 * self.$list.offsets.len() + self.$list.items.bytes())*
            }

            fn finish(self) -> Result<StructArray, Failure> {
                let columns: Vec<(&str, ArrayRef)> = vec![
                    $((stringify!($name), array!($kind, self.$name)),)*
                    $((stringify!($child), Arc::new(self.$child.finish()?)),)*
                    $((stringify!($list), self.$list.finish()?),)*
                ];
                let of = |(name, column): &(&str, ArrayRef)| {
                    Field::new(*name, column.data_type().clone(), false)
                };
                let fields: Vec<Field> = columns.iter().map(of).collect();
                let columns = columns.into_iter().map(|(_, column)| column).collect();
                Ok(StructArray::try_new(fields.into(), columns, None)?)
            }
        }
    };
}
own::objects!(columns);

impl<C> Lists<Reading, C> {
    /// The items of a row's list.
    #[inline]
    pub fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }
}

impl<C: Build> Lists<Writing, C> {
    /// Ends a list of so many items.
    fn end(&mut self, count: usize) {
        let start = self.offsets.last().copied().unwrap_or_default();
        self.offsets.push(start + count as i32);
    }

    fn finish(self) -> Result<ArrayRef, Failure> {
        let items = self.items.finish()?;
        let field = Field::new("item", DataType::Struct(items.fields().clone()), false);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        Ok(Arc::new(ListArray::try_new(Arc::new(field), offsets, Arc::new(items), None)?))
    }
}
