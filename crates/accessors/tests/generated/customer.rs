// Written by `dray accessors` for one schema. Write it anew rather than change it.

#[allow(unused_imports)]
use ::dray_page::generated as g;

/// The schema, as Dray encodes it.
#[allow(dead_code)]
pub const SCHEMA: &[u8] = &[
    3, 0, 0, 0, 3, 0, 0, 0, 107, 101, 121, 0, 4, 0, 0, 4,
    0, 0, 0, 110, 97, 109, 101, 0, 26, 0, 0, 6, 0, 0, 0, 111,
    114, 100, 101, 114, 115, 0, 29, 5, 0, 0, 0, 111, 114, 100, 101, 114,
    0, 31, 2, 0, 0, 0, 4, 0, 0, 0, 100, 97, 116, 101, 1, 17,
    0, 0, 5, 0, 0, 0, 105, 116, 101, 109, 115, 0, 29, 4, 0, 0,
    0, 105, 116, 101, 109, 0, 31, 2, 0, 0, 0, 4, 0, 0, 0, 112,
    97, 114, 116, 0, 4, 0, 0, 8, 0, 0, 0, 113, 117, 97, 110, 116,
    105, 116, 121, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];

/// The SHA-256 of the schema, by which a file is known.
#[allow(dead_code)]
pub const SCHEMA_DIGEST: [u8; 32] = [
    62, 215, 226, 112, 79, 84, 160, 52, 87, 170, 150, 157, 210, 147, 223, 215,
    204, 119, 94, 247, 52, 37, 254, 120, 99, 202, 142, 33, 62, 231, 218, 17,
];

/// An object.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub struct Customer<'a> {
    extent: &'a [u8],
    record: &'a [u8; 36],
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'a> Customer<'a> {
    /// An object of a verified page.
    ///
    /// # Errors
    /// When it is of another schema.
    pub fn of(object: ::dray_page::Object<'a>) -> ::dray_page::Result<Self> {
        object.layout().check_schema(SCHEMA)?;
        Ok(Self::in_extent(object.bytes()))
    }

    #[inline(always)]
    fn in_extent(extent: &'a [u8]) -> Self {
        Self { extent, record: g::record(extent) }
    }

    /// The field "key".
    #[inline(always)]
    pub fn key(&self) -> i32 {
        i32::from_le_bytes(g::word(self.record, 32))
    }

    /// The field "name".
    #[inline(always)]
    pub fn name(&self) -> &'a str {
        g::text(self.extent, self.record, 8)
    }

    /// The field "name", without a check for UTF-8.
    #[inline(always)]
    pub fn name_bytes(&self) -> &'a [u8] {
        g::bytes(self.extent, self.record, 8)
    }

    /// The field "orders".
    #[inline(always)]
    pub fn orders(&self) -> g::List<'a, OrdersItem<'a>, 24> {
        g::list(self.extent, self.record, 24)
    }

}

impl ::core::fmt::Debug for Customer<'_> {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let mut shown = f.debug_struct("Customer");
        shown.field("key", &self.key());
        shown.field("name", &self.name());
        shown.field("orders", &self.orders());
        shown.finish()
    }
}

/// An item, `orders.[]`.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub struct OrdersItem<'a> {
    extent: &'a [u8],
    record: &'a [u8; 24],
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'a> OrdersItem<'a> {
    /// The field "date".
    #[inline(always)]
    pub fn date(&self) -> Option<i32> {
        let is_present = g::is_set(self.record, 0, 1);
        is_present.then(|| i32::from_le_bytes(g::word(self.record, 16)))
    }

    /// The field "items".
    #[inline(always)]
    pub fn items(&self) -> g::List<'a, ItemsItem<'a>, 12> {
        g::list(self.extent, self.record, 8)
    }

}

impl<'a> g::Element<'a, 24> for OrdersItem<'a> {
    #[inline(always)]
    fn of(extent: &'a [u8], record: &'a [u8; 24]) -> Self {
        Self { extent, record }
    }
}

impl ::core::fmt::Debug for OrdersItem<'_> {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let mut shown = f.debug_struct("OrdersItem");
        shown.field("date", &self.date());
        shown.field("items", &self.items());
        shown.finish()
    }
}

/// An item, `orders.[].items.[]`.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub struct ItemsItem<'a> {
    extent: &'a [u8],
    record: &'a [u8; 12],
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'a> ItemsItem<'a> {
    /// The field "part".
    #[inline(always)]
    pub fn part(&self) -> i32 {
        i32::from_le_bytes(g::word(self.record, 4))
    }

    /// The field "quantity".
    #[inline(always)]
    pub fn quantity(&self) -> Option<i16> {
        let is_present = g::is_set(self.record, 0, 1);
        is_present.then(|| i16::from_le_bytes(g::word(self.record, 8)))
    }

}

impl<'a> g::Element<'a, 12> for ItemsItem<'a> {
    #[inline(always)]
    fn of(extent: &'a [u8], record: &'a [u8; 12]) -> Self {
        Self { extent, record }
    }
}

impl ::core::fmt::Debug for ItemsItem<'_> {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let mut shown = f.debug_struct("ItemsItem");
        shown.field("part", &self.part());
        shown.field("quantity", &self.quantity());
        shown.finish()
    }
}

/// The objects of a page.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub struct CustomerPage<'a> {
    page: &'a ::dray_page::VerifiedPage,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'a> CustomerPage<'a> {
    /// The objects of a page that was verified.
    ///
    /// # Errors
    /// When they are of another schema.
    pub fn of(page: &'a ::dray_page::VerifiedPage) -> ::dray_page::Result<Self> {
        page.layout().check_schema(SCHEMA)?;
        Ok(Self { page })
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.page.len()
    }

    /// Object `i`, if there is one.
    #[inline]
    pub fn get(&self, i: usize) -> Option<Customer<'a>> {
        self.page.object(i).map(|object| Customer::in_extent(object.bytes()))
    }

    /// All objects, in order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Customer<'a>> + Clone + use<'a> {
        self.page.objects().map(|object| Customer::in_extent(object.bytes()))
    }
}


/// A file of objects.
#[allow(dead_code)]
#[derive(Debug)]
pub struct CustomerFile {
    file: ::dray_pagefile::PageFile,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl CustomerFile {
    /// Maps a file.
    ///
    /// # Errors
    /// When it can't be read, or has another schema than this code was made for.
    pub fn open(path: impl AsRef<::std::path::Path>) -> ::dray_pagefile::Result<Self> {
        let file = ::dray_pagefile::PageFile::open_for(path, &SCHEMA_DIGEST)?;
        Ok(Self { file })
    }

    /// The file itself.
    pub fn file(&self) -> &::dray_pagefile::PageFile {
        &self.file
    }

    /// The number of objects.
    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// The object with this number.
    ///
    /// # Errors
    /// When there is none, or its page is damaged.
    #[inline]
    pub fn get(&self, ordinal: u64) -> ::dray_pagefile::Result<Customer<'_>> {
        Ok(Customer::in_extent(self.file.object(ordinal)?.bytes()))
    }

    /// All pages, in order. Each is checked when it comes for the first time.
    pub fn pages(
        &self,
    ) -> impl ExactSizeIterator<Item = ::dray_pagefile::Result<CustomerPage<'_>>> {
        self.file.pages().map(|page| page.map(|page| CustomerPage { page }))
    }

    /// All objects, in order. A page that is damaged is an error in place of its objects.
    pub fn iter(&self) -> impl Iterator<Item = ::dray_pagefile::Result<Customer<'_>>> {
        self.pages().flat_map(|page| {
            let (page, error) = match page {
                Ok(page) => (Some(page), None),
                Err(error) => (None, Some(Err(error))),
            };
            page.into_iter().flat_map(|page| page.iter().map(Ok)).chain(error)
        })
    }


    /// The objects with this key, in the order of their numbers.
    ///
    /// # Errors
    /// When the file has no index of this key, or a page is damaged.
    pub fn find(
        &self,
        key: i32,
    ) -> ::dray_pagefile::Result<Vec<Customer<'_>>> {
        const KEY: &[&[&str]] = &[
            &["key"],
        ];
        let values = [
            ::dray_pagefile::KeyValue::Integer(key.into()),
        ];
        let found = self.file.find_by(KEY, &values)?;
        found.into_iter().map(|ordinal| self.get(ordinal)).collect()
    }

}

/// The mutators of all fields, which are looked up once.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct CustomerFields {
    layout: ::std::sync::Arc<::dray_page::Layout>,
    f0_key: ::dray_page::Mutator<i32>,
    f0_name: ::dray_page::Mutator<str>,
    f0_orders: ::dray_page::ListMutator,
    f1_date: ::dray_page::Mutator<i32>,
    f1_items: ::dray_page::ListMutator,
    f2_part: ::dray_page::Mutator<i32>,
    f2_quantity: ::dray_page::Mutator<i16>,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl CustomerFields {
    fn new() -> ::dray_page::Result<Self> {
        let layout = ::dray_page::Layout::decode(SCHEMA)?;
        Ok(Self {
            f0_key: layout.mutator(&["key"])?,
            f0_name: layout.mutator(&["name"])?,
            f0_orders: layout.list_mutator(&["orders"])?,
            f1_date: layout.mutator(&["orders", "[]", "date"])?,
            f1_items: layout.list_mutator(&["orders", "[]", "items"])?,
            f2_part: layout.mutator(&["orders", "[]", "items", "[]", "part"])?,
            f2_quantity: layout.mutator(&["orders", "[]", "items", "[]", "quantity"])?,
            layout,
        })
    }

    /// All mutators.
    ///
    /// # Errors
    /// Never, unless this code was changed.
    pub fn get() -> ::dray_page::Result<&'static Self> {
        static FIELDS: ::std::sync::OnceLock<CustomerFields> = ::std::sync::OnceLock::new();
        match FIELDS.get() {
            Some(fields) => Ok(fields),
            None => {
                let fields = Self::new()?;
                Ok(FIELDS.get_or_init(|| fields))
            }
        }
    }

    /// The layout of the objects.
    pub fn layout(&self) -> &::std::sync::Arc<::dray_page::Layout> {
        &self.layout
    }
}

/// Builds an object.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct CustomerBuilder<'b, 'r> {
    object: &'b mut ::dray_page::ObjectBuilder<'r>,
    fields: &'static CustomerFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'r> CustomerBuilder<'_, 'r> {
    /// Appends an object to a page. `build` writes its fields: strings and lists in the
    /// order of the schema, numbers in any order. What it does not write is missing if it
    /// may be, and otherwise 0 or empty.
    ///
    /// # Errors
    /// Those of `build`, and when there is no memory. Nothing is appended then.
    pub fn build(
        pages: &mut ::dray_page::PageBuilder,
        build: impl FnOnce(&mut CustomerBuilder<'_, '_>) -> ::dray_page::Result<()>,
    ) -> ::dray_page::Result<()> {
        let fields = CustomerFields::get()?;
        pages.build(|object| build(&mut CustomerBuilder { object, fields }))
    }

    /// Appends an object to a page file, as `build` does to a page.
    ///
    /// # Errors
    /// Those of `build`, and when the file can't be written.
    pub fn write<W: ::std::io::Write>(
        file: &mut ::dray_pagefile::PageFileWriter<W>,
        build: impl FnOnce(&mut CustomerBuilder<'_, '_>) -> ::dray_page::Result<()>,
    ) -> ::dray_pagefile::Result<()> {
        let fields = CustomerFields::get()?;
        file.build(|object| build(&mut CustomerBuilder { object, fields }))
    }

    /// Sets the field "key".
    #[inline]
    pub fn set_key(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_key, value)
    }

    /// Sets the field "name".
    #[inline]
    pub fn set_name(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_name, value)
    }

    /// Writes the list "orders" of `count` items. `each` writes one, given its number.
    #[inline]
    pub fn orders(
        &mut self,
        count: usize,
        mut each: impl FnMut(&mut OrdersItemBuilder<'_, '_>, usize) -> ::dray_page::Result<()>,
    ) -> ::dray_page::Result<()> {
        let fields = self.fields;
        self.object.list(&fields.f0_orders, count, |object, i| {
            each(&mut OrdersItemBuilder { object, fields }, i)
        })
    }

}

/// Changes an object in place.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct CustomerMut<'e> {
    item: ::dray_page::ItemMut<'e>,
    fields: &'static CustomerFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'e> CustomerMut<'e> {
    /// Object `i` of a page, if there is one.
    ///
    /// # Errors
    /// When the page's objects are of another schema.
    pub fn of(
        editor: &'e mut ::dray_page::PageEditor,
        i: usize,
    ) -> ::dray_page::Result<Option<Self>> {
        editor.layout().check_schema(SCHEMA)?;
        let fields = CustomerFields::get()?;
        Ok(editor.object_mut(i).map(|item| Self { item, fields }))
    }

    /// What it is now. An item that is missing is read as 0 and empty.
    #[inline]
    pub fn as_ref(&self) -> Customer<'_> {
        let (extent, record) = g::of_item(&self.item);
        Customer { extent, record: g::record::<36>(record) }
    }

    /// Changes the field "key".
    #[inline]
    pub fn set_key(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_key, value)
    }

    /// Changes the field "name".
    #[inline]
    pub fn set_name(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_name, value)
    }

    /// Replaces items of the list "orders" by `count` new ones, missing, 0 or empty.
    #[inline]
    pub fn splice_orders(
        &mut self,
        items: ::core::ops::Range<usize>,
        count: usize,
    ) -> ::dray_page::Result<()> {
        self.item.splice(&self.fields.f0_orders, items, count)
    }

    /// Item `i` of the list "orders", if there is one.
    #[inline]
    pub fn orders_item(&mut self, i: usize) -> Option<OrdersItemMut<'_>> {
        let fields = self.fields;
        self.item.item(&self.fields.f0_orders, i).map(|item| OrdersItemMut { item, fields })
    }

}

/// Builds an item, `orders.[]`.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct OrdersItemBuilder<'b, 'r> {
    object: &'b mut ::dray_page::ObjectBuilder<'r>,
    fields: &'static CustomerFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'r> OrdersItemBuilder<'_, 'r> {
    /// Sets the field "date".
    #[inline]
    pub fn set_date(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f1_date, value)
    }

    /// Writes the list "items" of `count` items. `each` writes one, given its number.
    #[inline]
    pub fn items(
        &mut self,
        count: usize,
        mut each: impl FnMut(&mut ItemsItemBuilder<'_, '_>, usize) -> ::dray_page::Result<()>,
    ) -> ::dray_page::Result<()> {
        let fields = self.fields;
        self.object.list(&fields.f1_items, count, |object, i| {
            each(&mut ItemsItemBuilder { object, fields }, i)
        })
    }

}

/// Changes an item, `orders.[]` in place.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct OrdersItemMut<'e> {
    item: ::dray_page::ItemMut<'e>,
    fields: &'static CustomerFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'e> OrdersItemMut<'e> {
    /// What it is now. An item that is missing is read as 0 and empty.
    #[inline]
    pub fn as_ref(&self) -> OrdersItem<'_> {
        let (extent, record) = g::of_item(&self.item);
        OrdersItem { extent, record: g::record::<24>(record) }
    }

    /// Changes the field "date".
    #[inline]
    pub fn set_date(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f1_date, value)
    }

    /// Makes the field "date" missing.
    #[inline]
    pub fn clear_date(&mut self) -> ::dray_page::Result<()> {
        self.item.clear(&self.fields.f1_date)
    }

    /// Replaces items of the list "items" by `count` new ones, missing, 0 or empty.
    #[inline]
    pub fn splice_items(
        &mut self,
        items: ::core::ops::Range<usize>,
        count: usize,
    ) -> ::dray_page::Result<()> {
        self.item.splice(&self.fields.f1_items, items, count)
    }

    /// Item `i` of the list "items", if there is one.
    #[inline]
    pub fn items_item(&mut self, i: usize) -> Option<ItemsItemMut<'_>> {
        let fields = self.fields;
        self.item.item(&self.fields.f1_items, i).map(|item| ItemsItemMut { item, fields })
    }

}

/// Builds an item, `orders.[].items.[]`.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct ItemsItemBuilder<'b, 'r> {
    object: &'b mut ::dray_page::ObjectBuilder<'r>,
    fields: &'static CustomerFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'r> ItemsItemBuilder<'_, 'r> {
    /// Sets the field "part".
    #[inline]
    pub fn set_part(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f2_part, value)
    }

    /// Sets the field "quantity".
    #[inline]
    pub fn set_quantity(&mut self, value: i16) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f2_quantity, value)
    }

}

/// Changes an item, `orders.[].items.[]` in place.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct ItemsItemMut<'e> {
    item: ::dray_page::ItemMut<'e>,
    fields: &'static CustomerFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'e> ItemsItemMut<'e> {
    /// What it is now. An item that is missing is read as 0 and empty.
    #[inline]
    pub fn as_ref(&self) -> ItemsItem<'_> {
        let (extent, record) = g::of_item(&self.item);
        ItemsItem { extent, record: g::record::<12>(record) }
    }

    /// Changes the field "part".
    #[inline]
    pub fn set_part(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f2_part, value)
    }

    /// Changes the field "quantity".
    #[inline]
    pub fn set_quantity(&mut self, value: i16) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f2_quantity, value)
    }

    /// Makes the field "quantity" missing.
    #[inline]
    pub fn clear_quantity(&mut self) -> ::dray_page::Result<()> {
        self.item.clear(&self.fields.f2_quantity)
    }

}
