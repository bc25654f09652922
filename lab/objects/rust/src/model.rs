//! The objects, once: the language's own, and how each field of them is read from a page and from
//! what rkyv archived.
#![allow(clippy::too_many_arguments, reason = "generated")]

use dray_format::{Field, Type};
use dray_page::{Accessor, Item, Layout, ListAccessor};
use rkyv::{Archive, Deserialize, Serialize};

use crate::Failure;
use crate::checksum::Checksum;
use crate::record::{Builder, Reader, field};

/// A path of names, for accessors.
type Path<'a> = Vec<&'a str>;
/// The keys by which objects are sorted; the second is 0 where one is enough.
pub type Key = (i32, i32);

macro_rules! own {
    (i32) => {
        i32
    };
    (f64) => {
        f64
    };
    (str) => {
        String
    };
}
macro_rules! read_as {
    (i32) => {
        i32
    };
    (f64) => {
        f64
    };
    (str) => {
        [u8]
    };
}
macro_rules! data_type {
    (i32) => {
        Type::Int32
    };
    (f64) => {
        Type::Float64
    };
    (str) => {
        Type::Utf8
    };
}
macro_rules! sum_own {
    (i32, $h:ident, $v:expr) => {
        $h.i32($v)
    };
    (f64, $h:ident, $v:expr) => {
        $h.f64($v)
    };
    (str, $h:ident, $v:expr) => {
        $h.str($v.as_bytes())
    };
}
macro_rules! sum_archived {
    (i32, $h:ident, $v:expr) => {
        $h.i32($v.to_native())
    };
    (f64, $h:ident, $v:expr) => {
        $h.f64($v.to_native())
    };
    (str, $h:ident, $v:expr) => {
        $h.str($v.as_bytes())
    };
}
macro_rules! copy_field {
    (i32, $v:expr) => {
        $v.unwrap_or_default()
    };
    (f64, $v:expr) => {
        $v.unwrap_or_default()
    };
    (str, $v:expr) => {
        String::from_utf8_lossy($v.unwrap_or_default()).into_owned()
    };
}
macro_rules! object {
    ($own:ident $archived:ident $fields:ident,
     { $($name:ident: $kind:ident),* },
     structs { $($child:ident: $child_own:ident $child_fields:ident),* },
     lists { $($list:ident: $item:ident $item_fields:ident),* }) => {
        /// One of the language's own objects.
        #[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Default)]
        #[rkyv(derive(PartialEq))]
        pub struct $own {
            $(pub $name: own!($kind),)*
            $(pub $child: $child_own,)*
            $(pub $list: Vec<$item>,)*
        }

        impl $own {
            pub fn read(reader: &mut Reader<'_>) -> Result<Self, Failure> {
                Ok(Self {
                    $($name: reader.$kind()?,)*
                    $($child: $child_own::read(reader)?,)*
                    $($list: (0..reader.count()?)
                        .map(|_| $item::read(reader))
                        .collect::<Result<_, _>>()?,)*
                })
            }

            pub fn sum(&self, h: &mut Checksum) {
                $(sum_own!($kind, h, self.$name);)*
                $(self.$child.sum(h);)*
                $(h.word(self.$list.len() as u64);
                  self.$list.iter().for_each(|item| item.sum(h));)*
            }

            /// Appends this to columns.
            pub fn push(&self, to: &mut Builder) {
                let mut i = 0..;
                let mut next = || i.next().unwrap_or_default();
                $(to.field(next()).$kind(&self.$name);)*
                $(self.$child.push(to.field(next()));)*
                $(let items = to.field(next()).list(self.$list.len());
                  self.$list.iter().for_each(|item| item.push(items));)*
            }

            pub fn fields() -> Vec<Field> {
                vec![
                    $(field(stringify!($name), data_type!($kind)),)*
                    $(field(stringify!($child), Type::Struct($child_own::fields())),)*
                    $(field(stringify!($list), Type::List(Box::new(
                        field("item", Type::Struct($item::fields()))))),)*
                ]
            }
        }

        impl $archived {
            pub fn sum(&self, h: &mut Checksum) {
                $(sum_archived!($kind, h, self.$name);)*
                $(self.$child.sum(h);)*
                $(h.word(self.$list.len() as u64);
                  self.$list.iter().for_each(|item| item.sum(h));)*
            }
        }

        /// The places of the fields in objects of pages.
        pub struct $fields {
            $(pub $name: Accessor<read_as!($kind)>,)*
            $($child: $child_fields,)*
            $($list: (ListAccessor, $item_fields),)*
        }

        impl $fields {
            pub fn of(layout: &Layout, path: &mut Path<'static>) -> Result<Self, Failure> {
                Ok(Self {
                    $($name: {
                        path.push(stringify!($name));
                        let found = layout.accessor(path)?;
                        path.pop();
                        found
                    },)*
                    $($child: {
                        path.push(stringify!($child));
                        let found = $child_fields::of(layout, path)?;
                        path.pop();
                        found
                    },)*
                    $($list: {
                        path.push(stringify!($list));
                        let list = layout.list_accessor(path)?;
                        path.push("[]");
                        let found = $item_fields::of(layout, path)?;
                        path.truncate(path.len() - 2);
                        (list, found)
                    },)*
                })
            }

            #[inline]
            pub fn sum<'a>(&self, item: Item<'a>, h: &mut Checksum) {
                $(h.$kind(self.$name.get(item).unwrap_or_default());)*
                $(self.$child.sum(item, h);)*
                $(if let Some(items) = self.$list.0.get(item) {
                    h.word(items.len() as u64);
                    items.for_each(|item| self.$list.1.sum(item, h));
                })*
            }

            pub fn copy(&self, item: Item<'_>) -> $own {
                $own {
                    $($name: copy_field!($kind, self.$name.get(item)),)*
                    $($child: self.$child.copy(item),)*
                    $($list: self.$list.0.get(item).into_iter().flatten()
                        .map(|item| self.$list.1.copy(item)).collect(),)*
                }
            }
        }
    };
}

object!(Part ArchivedPart PartFields, {
    part_key: i32, name: str, mfgr: str, brand: str, type_name: str, size: i32, container: str,
    retail_price: f64, comment: str
}, structs {}, lists {});

object!(Supplier ArchivedSupplier SupplierFields, {
    supplier_key: i32, name: str, address: str, nation_key: i32, phone: str, acctbal: f64,
    comment: str
}, structs {}, lists {});

object!(LineItem ArchivedLineItem LineItemFields, {
    order_key: i32, line_number: i32, quantity: f64, extended_price: f64, discount: f64, tax: f64,
    return_flag: str, line_status: str, ship_date: i32, commit_date: i32, receipt_date: i32,
    ship_instruct: str, ship_mode: str, comment: str
}, structs {
    supplier: Supplier SupplierFields, part: Part PartFields
}, lists {});

object!(Order ArchivedOrder OrderFields, {
    order_key: i32, cust_key: i32, order_status: str, total_price: f64, order_date: i32,
    order_priority: str, clerk: str, ship_priority: i32, comment: str
}, structs {}, lists { line_items: LineItem LineItemFields });

object!(Customer ArchivedCustomer CustomerFields, {
    cust_key: i32, name: str, address: str, nation_key: i32, phone: str, acctbal: f64,
    mkt_segment: str, comment: str
}, structs {}, lists { orders: Order OrderFields });

object!(Entry ArchivedEntry EntryFields, { position: i32, value: f64 }, structs {}, lists {});

object!(SparseVector ArchivedSparseVector SparseVectorFields, {
}, structs {}, lists { entries: Entry EntryFields });

/// What experiments do with one of the language's own objects.
pub trait Study: Sized + Default + Clone + PartialEq + Send + Sync + 'static {
    /// The places of the fields in pages.
    type Fields: Send + Sync;

    fn read(reader: &mut Reader<'_>) -> Result<Self, Failure>;
    fn sum(&self) -> u64;
    fn push(&self, to: &mut Builder);
    fn fields() -> Vec<Field>;
    /// Adds 1 to the field that the phase `mutate` changes.
    fn change(&mut self);
    /// Appends what the phase `grow` appends, if there is a list.
    fn grow(&mut self) -> bool;

    fn fields_of(layout: &Layout) -> Result<Self::Fields, Failure>;
    fn sum_of(fields: &Self::Fields, item: Item<'_>) -> u64;
    fn key_of(fields: &Self::Fields, item: Item<'_>) -> Key;
    fn copy_of(fields: &Self::Fields, item: Item<'_>) -> Self;
}

macro_rules! study {
    ($own:ident $fields:ident, $first:ident, $second_of:expr,
     $changed:ident, $grow:expr) => {
        impl Study for $own {
            type Fields = $fields;

            fn read(reader: &mut Reader<'_>) -> Result<Self, Failure> {
                Self::read(reader)
            }
            fn sum(&self) -> u64 {
                let mut h = Checksum::default();
                self.sum(&mut h);
                h.0
            }
            fn push(&self, to: &mut Builder) {
                self.push(to);
            }
            fn fields() -> Vec<Field> {
                Self::fields()
            }
            fn change(&mut self) {
                self.$changed += 1.0;
            }
            fn grow(&mut self) -> bool {
                let grow: fn(&mut Self) -> bool = $grow;
                grow(self)
            }

            fn fields_of(layout: &Layout) -> Result<Self::Fields, Failure> {
                $fields::of(layout, &mut Vec::new())
            }
            #[inline]
            fn sum_of(fields: &Self::Fields, item: Item<'_>) -> u64 {
                let mut h = Checksum::default();
                fields.sum(item, &mut h);
                h.0
            }
            #[inline]
            fn key_of(fields: &Self::Fields, item: Item<'_>) -> Key {
                let second: fn(&$fields, Item<'_>) -> i32 = $second_of;
                (fields.$first.get(item).unwrap_or_default(), second(fields, item))
            }
            fn copy_of(fields: &Self::Fields, item: Item<'_>) -> Self {
                fields.copy(item)
            }
        }
    };
}

study!(Part PartFields, part_key, |_, _| 0, retail_price, |_| false);
study!(
    LineItem LineItemFields, order_key,
    |fields, item| fields.line_number.get(item).unwrap_or_default(),
    extended_price, |_| false
);
study!(
    Customer CustomerFields, cust_key, |_, _| 0, acctbal, |own| {
        own.orders.push(Order {
            order_key: -1,
            cust_key: own.cust_key,
            order_status: "O".to_owned(),
            total_price: 1.0,
            order_date: 0,
            order_priority: "5-LOW".to_owned(),
            clerk: "Clerk#000000001".to_owned(),
            ship_priority: 0,
            comment: "grown".to_owned(),
            line_items: Vec::new(),
        });
        true
    }
);
