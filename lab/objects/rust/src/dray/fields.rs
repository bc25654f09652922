//! Where the fields of objects are in pages: how they are read and written there.

use dray_format::{Field, Type};
use dray_page::{
    Access, Accessor, Change, Item, Layout, ListAccessor, ListMutator, Mutator, ObjectBuilder,
};

use crate::Failure;
use crate::checksum::Checksum;
use crate::model as own;

/// A field that is read as one type and written as another: strings are read as bytes, since those
/// of a verified page need no further check.
pub struct Place<R: ?Sized, W: ?Sized> {
    pub accessor: Accessor<R>,
    pub mutator: Mutator<W>,
}

impl<R: Access + ?Sized, W: Change + ?Sized> Place<R, W> {
    fn of(layout: &Layout, path: &[&str]) -> Result<Self, Failure> {
        Ok(Self { accessor: layout.accessor(path)?, mutator: layout.mutator(path)? })
    }

    #[inline(always)]
    pub fn get<'a>(&self, item: Item<'a>) -> Option<R::Value<'a>> {
        self.accessor.get(item)
    }
}

/// A list and the fields of its items.
pub struct ListPlace<F> {
    pub accessor: ListAccessor,
    pub mutator: ListMutator,
    pub item: F,
}

/// The fields of an object, or of an item of a list.
pub trait Fields: Sized + Send + Sync {
    type Own;

    /// The schema.
    fn schema() -> Vec<Field>;
    /// The fields of what has this path.
    fn of(layout: &Layout, path: &[&str]) -> Result<Self, Failure>;
    fn sum(&self, item: Item<'_>, h: &mut Checksum);
    fn copy(&self, item: Item<'_>) -> Self::Own;
    fn build(&self, own: &Self::Own, to: &mut ObjectBuilder<'_>) -> dray_page::Result<()>;
    /// Builds an object as it is in a page, with the items of another one's lists behind its own.
    fn build_item(
        &self,
        item: Item<'_>,
        more: Option<&Self::Own>,
        to: &mut ObjectBuilder<'_>,
    ) -> dray_page::Result<()>;
}

fn field(name: &str, data_type: Type) -> Field {
    Field { name: name.to_owned(), data_type, nullable: false, metadata: Vec::new() }
}

macro_rules! place {
    (str) => {
        Place<[u8], str>
    };
    ($number:ident) => {
        Place<$number, $number>
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
macro_rules! text_or_number {
    (str, $v:expr) => {
        std::str::from_utf8($v.unwrap_or_default()).unwrap_or_default()
    };
    ($number:ident, $v:expr) => {
        $v.unwrap_or_default()
    };
}
macro_rules! borrowed {
    (str, $v:expr) => {
        &*$v
    };
    ($number:ident, $v:expr) => {
        $v
    };
}
macro_rules! fields {
    ($own:ident { $($name:ident: $kind:ident),* }
     structs { $($child:ident: $of:ident),* } lists { $($list:ident: $item:ident),* }) => {
        pub struct $own {
            $(pub $name: place!($kind),)*
            $($child: $of,)*
            $(pub $list: ListPlace<$item>,)*
        }

        #[allow(unused_variables, reason = "not every object has strings, structs and lists")]
        impl Fields for $own {
            type Own = own::$own;

            fn schema() -> Vec<Field> {
                vec![
                    $(field(stringify!($name), data_type!($kind)),)*
                    $(field(stringify!($child), Type::Struct($of::schema())),)*
                    $(field(stringify!($list), Type::List(Box::new(
                        field("item", Type::Struct($item::schema()))))),)*
                ]
            }

            fn of(layout: &Layout, path: &[&str]) -> Result<Self, Failure> {
                Ok(Self {
                    $($name: Place::of(layout, &[path, &[stringify!($name)]].concat())?,)*
                    $($child: $of::of(layout, &[path, &[stringify!($child)]].concat())?,)*
                    $($list: {
                        let path = [path, &[stringify!($list)]].concat();
                        ListPlace {
                            accessor: layout.list_accessor(&path)?,
                            mutator: layout.list_mutator(&path)?,
                            item: $item::of(layout, &[&path[..], &["[]"]].concat())?,
                        }
                    },)*
                })
            }

            #[inline]
            fn sum(&self, item: Item<'_>, h: &mut Checksum) {
                $(h.$kind(self.$name.get(item).unwrap_or_default());)*
                $(self.$child.sum(item, h);)*
                $(if let Some(items) = self.$list.accessor.get(item) {
                    h.word(items.len() as u64);
                    items.for_each(|item| self.$list.item.sum(item, h));
                })*
            }

            fn copy(&self, item: Item<'_>) -> own::$own {
                own::$own {
                    $($name: text_or_number!($kind, self.$name.get(item)).into(),)*
                    $($child: self.$child.copy(item),)*
                    $($list: self.$list.accessor.get(item).into_iter().flatten()
                        .map(|item| self.$list.item.copy(item)).collect(),)*
                }
            }

            fn build(&self, own: &own::$own, to: &mut ObjectBuilder<'_>) -> dray_page::Result<()> {
                $(to.set(&self.$name.mutator, borrowed!($kind, own.$name))?;)*
                $(self.$child.build(&own.$child, to)?;)*
                $(to.list(&self.$list.mutator, own.$list.len(), |to, i| {
                    self.$list.item.build(&own.$list[i], to)
                })?;)*
                Ok(())
            }

            fn build_item(
                &self,
                item: Item<'_>,
                more: Option<&own::$own>,
                to: &mut ObjectBuilder<'_>,
            ) -> dray_page::Result<()> {
                $(let value = self.$name.get(item);
                  to.set(&self.$name.mutator, text_or_number!($kind, value))?;)*
                $(self.$child.build_item(item, None, to)?;)*
                $(let mut items = self.$list.accessor.get(item).into_iter().flatten();
                  let count = self.$list.accessor.get(item).map_or(0, |items| items.len());
                  let more = more.map_or(&[][..], |more| &more.$list);
                  to.list(&self.$list.mutator, count + more.len(), |to, i| match items.next() {
                      Some(item) => self.$list.item.build_item(item, None, to),
                      None => self.$list.item.build(&more[i - count], to),
                  })?;)*
                Ok(())
            }
        }
    };
}
own::objects!(fields);
