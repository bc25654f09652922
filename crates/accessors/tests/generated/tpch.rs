// Written by `dray accessors` for one schema. Write it anew rather than change it.

#[allow(unused_imports)]
use ::dray_page::generated as g;

/// The schema, as Dray encodes it.
#[allow(dead_code)]
pub const SCHEMA: &[u8] = &[
    2, 0, 0, 0, 7, 0, 0, 0, 99, 117, 115, 116, 107, 101, 121, 0,
    5, 0, 0, 6, 0, 0, 0, 111, 114, 100, 101, 114, 115, 0, 29, 6,
    0, 0, 0, 111, 114, 100, 101, 114, 115, 0, 31, 2, 0, 0, 0, 8,
    0, 0, 0, 111, 114, 100, 101, 114, 107, 101, 121, 0, 5, 0, 0, 5,
    0, 0, 0, 105, 116, 101, 109, 115, 0, 29, 5, 0, 0, 0, 105, 116,
    101, 109, 115, 0, 31, 15, 0, 0, 0, 8, 0, 0, 0, 111, 114, 100,
    101, 114, 107, 101, 121, 0, 5, 0, 0, 7, 0, 0, 0, 112, 97, 114,
    116, 107, 101, 121, 0, 5, 0, 0, 7, 0, 0, 0, 115, 117, 112, 112,
    107, 101, 121, 0, 5, 0, 0, 13, 0, 0, 0, 101, 120, 116, 101, 110,
    100, 101, 100, 112, 114, 105, 99, 101, 0, 5, 0, 0, 8, 0, 0, 0,
    100, 105, 115, 99, 111, 117, 110, 116, 0, 5, 0, 0, 3, 0, 0, 0,
    116, 97, 120, 0, 5, 0, 0, 10, 0, 0, 0, 108, 105, 110, 101, 110,
    117, 109, 98, 101, 114, 0, 4, 0, 0, 8, 0, 0, 0, 115, 104, 105,
    112, 100, 97, 116, 101, 0, 17, 0, 0, 10, 0, 0, 0, 99, 111, 109,
    109, 105, 116, 100, 97, 116, 101, 0, 17, 0, 0, 11, 0, 0, 0, 114,
    101, 99, 101, 105, 112, 116, 100, 97, 116, 101, 0, 17, 0, 0, 10, 0,
    0, 0, 114, 101, 116, 117, 114, 110, 102, 108, 97, 103, 0, 26, 0, 0,
    10, 0, 0, 0, 108, 105, 110, 101, 115, 116, 97, 116, 117, 115, 0, 26,
    0, 0, 12, 0, 0, 0, 115, 104, 105, 112, 105, 110, 115, 116, 114, 117,
    99, 116, 0, 26, 0, 0, 8, 0, 0, 0, 115, 104, 105, 112, 109, 111,
    100, 101, 0, 26, 0, 0, 7, 0, 0, 0, 99, 111, 109, 109, 101, 110,
    116, 0, 26, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];

/// The SHA-256 of the schema, by which a file is known.
#[allow(dead_code)]
pub const SCHEMA_DIGEST: [u8; 32] = [
    21, 48, 215, 218, 137, 46, 139, 132, 189, 194, 79, 219, 181, 229, 163, 76,
    114, 126, 55, 42, 172, 29, 33, 131, 58, 186, 103, 89, 67, 11, 46, 182,
];

/// An object.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub struct Customer<'a> {
    extent: &'a [u8],
    record: &'a [u8; 24],
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

    /// The field "custkey".
    #[inline(always)]
    pub fn custkey(&self) -> i64 {
        i64::from_le_bytes(g::word(self.record, 8))
    }

    /// The field "orders".
    #[inline(always)]
    pub fn orders(&self) -> g::List<'a, OrdersItem<'a>, 16> {
        g::list(self.extent, self.record, 16)
    }

}

impl ::core::fmt::Debug for Customer<'_> {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let mut shown = f.debug_struct("Customer");
        shown.field("custkey", &self.custkey());
        shown.field("orders", &self.orders());
        shown.finish()
    }
}

/// An item, `orders.[]`.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub struct OrdersItem<'a> {
    extent: &'a [u8],
    record: &'a [u8; 16],
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'a> OrdersItem<'a> {
    /// The field "orderkey".
    #[inline(always)]
    pub fn orderkey(&self) -> i64 {
        i64::from_le_bytes(g::word(self.record, 0))
    }

    /// The field "items".
    #[inline(always)]
    pub fn items(&self) -> g::List<'a, ItemsItem<'a>, 144> {
        g::list(self.extent, self.record, 8)
    }

}

impl<'a> g::Element<'a, 16> for OrdersItem<'a> {
    #[inline(always)]
    fn of(extent: &'a [u8], record: &'a [u8; 16]) -> Self {
        Self { extent, record }
    }
}

impl ::core::fmt::Debug for OrdersItem<'_> {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let mut shown = f.debug_struct("OrdersItem");
        shown.field("orderkey", &self.orderkey());
        shown.field("items", &self.items());
        shown.finish()
    }
}

/// An item, `orders.[].items.[]`.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub struct ItemsItem<'a> {
    extent: &'a [u8],
    record: &'a [u8; 144],
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'a> ItemsItem<'a> {
    /// The field "orderkey".
    #[inline(always)]
    pub fn orderkey(&self) -> i64 {
        i64::from_le_bytes(g::word(self.record, 0))
    }

    /// The field "partkey".
    #[inline(always)]
    pub fn partkey(&self) -> i64 {
        i64::from_le_bytes(g::word(self.record, 8))
    }

    /// The field "suppkey".
    #[inline(always)]
    pub fn suppkey(&self) -> i64 {
        i64::from_le_bytes(g::word(self.record, 16))
    }

    /// The field "extendedprice".
    #[inline(always)]
    pub fn extendedprice(&self) -> i64 {
        i64::from_le_bytes(g::word(self.record, 24))
    }

    /// The field "discount".
    #[inline(always)]
    pub fn discount(&self) -> i64 {
        i64::from_le_bytes(g::word(self.record, 32))
    }

    /// The field "tax".
    #[inline(always)]
    pub fn tax(&self) -> i64 {
        i64::from_le_bytes(g::word(self.record, 40))
    }

    /// The field "linenumber".
    #[inline(always)]
    pub fn linenumber(&self) -> i32 {
        i32::from_le_bytes(g::word(self.record, 128))
    }

    /// The field "shipdate".
    #[inline(always)]
    pub fn shipdate(&self) -> i32 {
        i32::from_le_bytes(g::word(self.record, 132))
    }

    /// The field "commitdate".
    #[inline(always)]
    pub fn commitdate(&self) -> i32 {
        i32::from_le_bytes(g::word(self.record, 136))
    }

    /// The field "receiptdate".
    #[inline(always)]
    pub fn receiptdate(&self) -> i32 {
        i32::from_le_bytes(g::word(self.record, 140))
    }

    /// The field "returnflag".
    #[inline(always)]
    pub fn returnflag(&self) -> &'a str {
        g::text(self.extent, self.record, 48)
    }

    /// The field "returnflag", without a check for UTF-8.
    #[inline(always)]
    pub fn returnflag_bytes(&self) -> &'a [u8] {
        g::bytes(self.extent, self.record, 48)
    }

    /// The field "linestatus".
    #[inline(always)]
    pub fn linestatus(&self) -> &'a str {
        g::text(self.extent, self.record, 64)
    }

    /// The field "linestatus", without a check for UTF-8.
    #[inline(always)]
    pub fn linestatus_bytes(&self) -> &'a [u8] {
        g::bytes(self.extent, self.record, 64)
    }

    /// The field "shipinstruct".
    #[inline(always)]
    pub fn shipinstruct(&self) -> &'a str {
        g::text(self.extent, self.record, 80)
    }

    /// The field "shipinstruct", without a check for UTF-8.
    #[inline(always)]
    pub fn shipinstruct_bytes(&self) -> &'a [u8] {
        g::bytes(self.extent, self.record, 80)
    }

    /// The field "shipmode".
    #[inline(always)]
    pub fn shipmode(&self) -> &'a str {
        g::text(self.extent, self.record, 96)
    }

    /// The field "shipmode", without a check for UTF-8.
    #[inline(always)]
    pub fn shipmode_bytes(&self) -> &'a [u8] {
        g::bytes(self.extent, self.record, 96)
    }

    /// The field "comment".
    #[inline(always)]
    pub fn comment(&self) -> &'a str {
        g::text(self.extent, self.record, 112)
    }

    /// The field "comment", without a check for UTF-8.
    #[inline(always)]
    pub fn comment_bytes(&self) -> &'a [u8] {
        g::bytes(self.extent, self.record, 112)
    }

}

impl<'a> g::Element<'a, 144> for ItemsItem<'a> {
    #[inline(always)]
    fn of(extent: &'a [u8], record: &'a [u8; 144]) -> Self {
        Self { extent, record }
    }
}

impl ::core::fmt::Debug for ItemsItem<'_> {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let mut shown = f.debug_struct("ItemsItem");
        shown.field("orderkey", &self.orderkey());
        shown.field("partkey", &self.partkey());
        shown.field("suppkey", &self.suppkey());
        shown.field("extendedprice", &self.extendedprice());
        shown.field("discount", &self.discount());
        shown.field("tax", &self.tax());
        shown.field("linenumber", &self.linenumber());
        shown.field("shipdate", &self.shipdate());
        shown.field("commitdate", &self.commitdate());
        shown.field("receiptdate", &self.receiptdate());
        shown.field("returnflag", &self.returnflag());
        shown.field("linestatus", &self.linestatus());
        shown.field("shipinstruct", &self.shipinstruct());
        shown.field("shipmode", &self.shipmode());
        shown.field("comment", &self.comment());
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
        custkey: i64,
    ) -> ::dray_pagefile::Result<Vec<Customer<'_>>> {
        const KEY: &[&[&str]] = &[
            &["custkey"],
        ];
        let values = [
            ::dray_pagefile::KeyValue::Integer(custkey.into()),
        ];
        let found = self.file.find_by(KEY, &values)?;
        found.into_iter().map(|ordinal| self.get(ordinal)).collect()
    }

}

/// The mutators of all fields, which are looked up once.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct CustomerFields {
    layout: ::std::sync::Arc<::dray_page::Layout>,
    f0_custkey: ::dray_page::Mutator<i64>,
    f0_orders: ::dray_page::ListMutator,
    f1_orderkey: ::dray_page::Mutator<i64>,
    f1_items: ::dray_page::ListMutator,
    f2_orderkey: ::dray_page::Mutator<i64>,
    f2_partkey: ::dray_page::Mutator<i64>,
    f2_suppkey: ::dray_page::Mutator<i64>,
    f2_extendedprice: ::dray_page::Mutator<i64>,
    f2_discount: ::dray_page::Mutator<i64>,
    f2_tax: ::dray_page::Mutator<i64>,
    f2_linenumber: ::dray_page::Mutator<i32>,
    f2_shipdate: ::dray_page::Mutator<i32>,
    f2_commitdate: ::dray_page::Mutator<i32>,
    f2_receiptdate: ::dray_page::Mutator<i32>,
    f2_returnflag: ::dray_page::Mutator<str>,
    f2_linestatus: ::dray_page::Mutator<str>,
    f2_shipinstruct: ::dray_page::Mutator<str>,
    f2_shipmode: ::dray_page::Mutator<str>,
    f2_comment: ::dray_page::Mutator<str>,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl CustomerFields {
    fn new() -> ::dray_page::Result<Self> {
        let layout = ::dray_page::Layout::decode(SCHEMA)?;
        Ok(Self {
            f0_custkey: layout.mutator(&["custkey"])?,
            f0_orders: layout.list_mutator(&["orders"])?,
            f1_orderkey: layout.mutator(&["orders", "[]", "orderkey"])?,
            f1_items: layout.list_mutator(&["orders", "[]", "items"])?,
            f2_orderkey: layout.mutator(&["orders", "[]", "items", "[]", "orderkey"])?,
            f2_partkey: layout.mutator(&["orders", "[]", "items", "[]", "partkey"])?,
            f2_suppkey: layout.mutator(&["orders", "[]", "items", "[]", "suppkey"])?,
            f2_extendedprice: layout.mutator(&["orders", "[]", "items", "[]", "extendedprice"])?,
            f2_discount: layout.mutator(&["orders", "[]", "items", "[]", "discount"])?,
            f2_tax: layout.mutator(&["orders", "[]", "items", "[]", "tax"])?,
            f2_linenumber: layout.mutator(&["orders", "[]", "items", "[]", "linenumber"])?,
            f2_shipdate: layout.mutator(&["orders", "[]", "items", "[]", "shipdate"])?,
            f2_commitdate: layout.mutator(&["orders", "[]", "items", "[]", "commitdate"])?,
            f2_receiptdate: layout.mutator(&["orders", "[]", "items", "[]", "receiptdate"])?,
            f2_returnflag: layout.mutator(&["orders", "[]", "items", "[]", "returnflag"])?,
            f2_linestatus: layout.mutator(&["orders", "[]", "items", "[]", "linestatus"])?,
            f2_shipinstruct: layout.mutator(&["orders", "[]", "items", "[]", "shipinstruct"])?,
            f2_shipmode: layout.mutator(&["orders", "[]", "items", "[]", "shipmode"])?,
            f2_comment: layout.mutator(&["orders", "[]", "items", "[]", "comment"])?,
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

    /// Sets the field "custkey".
    #[inline]
    pub fn set_custkey(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f0_custkey, value)
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
        Customer { extent, record: g::record::<24>(record) }
    }

    /// Changes the field "custkey".
    #[inline]
    pub fn set_custkey(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f0_custkey, value)
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
    /// Sets the field "orderkey".
    #[inline]
    pub fn set_orderkey(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f1_orderkey, value)
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
        OrdersItem { extent, record: g::record::<16>(record) }
    }

    /// Changes the field "orderkey".
    #[inline]
    pub fn set_orderkey(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f1_orderkey, value)
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
    /// Sets the field "orderkey".
    #[inline]
    pub fn set_orderkey(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f2_orderkey, value)
    }

    /// Sets the field "partkey".
    #[inline]
    pub fn set_partkey(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f2_partkey, value)
    }

    /// Sets the field "suppkey".
    #[inline]
    pub fn set_suppkey(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f2_suppkey, value)
    }

    /// Sets the field "extendedprice".
    #[inline]
    pub fn set_extendedprice(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f2_extendedprice, value)
    }

    /// Sets the field "discount".
    #[inline]
    pub fn set_discount(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f2_discount, value)
    }

    /// Sets the field "tax".
    #[inline]
    pub fn set_tax(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f2_tax, value)
    }

    /// Sets the field "linenumber".
    #[inline]
    pub fn set_linenumber(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f2_linenumber, value)
    }

    /// Sets the field "shipdate".
    #[inline]
    pub fn set_shipdate(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f2_shipdate, value)
    }

    /// Sets the field "commitdate".
    #[inline]
    pub fn set_commitdate(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f2_commitdate, value)
    }

    /// Sets the field "receiptdate".
    #[inline]
    pub fn set_receiptdate(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f2_receiptdate, value)
    }

    /// Sets the field "returnflag".
    #[inline]
    pub fn set_returnflag(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f2_returnflag, value)
    }

    /// Sets the field "linestatus".
    #[inline]
    pub fn set_linestatus(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f2_linestatus, value)
    }

    /// Sets the field "shipinstruct".
    #[inline]
    pub fn set_shipinstruct(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f2_shipinstruct, value)
    }

    /// Sets the field "shipmode".
    #[inline]
    pub fn set_shipmode(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f2_shipmode, value)
    }

    /// Sets the field "comment".
    #[inline]
    pub fn set_comment(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.object.set(&self.fields.f2_comment, value)
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
        ItemsItem { extent, record: g::record::<144>(record) }
    }

    /// Changes the field "orderkey".
    #[inline]
    pub fn set_orderkey(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f2_orderkey, value)
    }

    /// Changes the field "partkey".
    #[inline]
    pub fn set_partkey(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f2_partkey, value)
    }

    /// Changes the field "suppkey".
    #[inline]
    pub fn set_suppkey(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f2_suppkey, value)
    }

    /// Changes the field "extendedprice".
    #[inline]
    pub fn set_extendedprice(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f2_extendedprice, value)
    }

    /// Changes the field "discount".
    #[inline]
    pub fn set_discount(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f2_discount, value)
    }

    /// Changes the field "tax".
    #[inline]
    pub fn set_tax(&mut self, value: i64) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f2_tax, value)
    }

    /// Changes the field "linenumber".
    #[inline]
    pub fn set_linenumber(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f2_linenumber, value)
    }

    /// Changes the field "shipdate".
    #[inline]
    pub fn set_shipdate(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f2_shipdate, value)
    }

    /// Changes the field "commitdate".
    #[inline]
    pub fn set_commitdate(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f2_commitdate, value)
    }

    /// Changes the field "receiptdate".
    #[inline]
    pub fn set_receiptdate(&mut self, value: i32) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f2_receiptdate, value)
    }

    /// Changes the field "returnflag".
    #[inline]
    pub fn set_returnflag(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f2_returnflag, value)
    }

    /// Changes the field "linestatus".
    #[inline]
    pub fn set_linestatus(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f2_linestatus, value)
    }

    /// Changes the field "shipinstruct".
    #[inline]
    pub fn set_shipinstruct(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f2_shipinstruct, value)
    }

    /// Changes the field "shipmode".
    #[inline]
    pub fn set_shipmode(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f2_shipmode, value)
    }

    /// Changes the field "comment".
    #[inline]
    pub fn set_comment(&mut self, value: &str) -> ::dray_page::Result<()> {
        self.item.set(&self.fields.f2_comment, value)
    }

}
