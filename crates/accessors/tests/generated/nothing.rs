// Written by `dray accessors` for one schema. Write it anew rather than change it.

#[allow(unused_imports)]
use ::dray_page::generated as g;

/// The schema, as Dray encodes it.
#[allow(dead_code)]
pub const SCHEMA: &[u8] = &[
    0, 0, 0, 0,
];

/// The SHA-256 of the schema, by which a file is known.
#[allow(dead_code)]
pub const SCHEMA_DIGEST: [u8; 32] = [
    223, 63, 97, 152, 4, 169, 47, 219, 64, 87, 25, 45, 196, 61, 215, 72,
    234, 119, 138, 220, 82, 188, 73, 140, 232, 5, 36, 192, 20, 184, 17, 25,
];

/// An object.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub struct Self_<'a> {
    extent: &'a [u8],
    record: &'a [u8; 4],
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'a> Self_<'a> {
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

}

impl ::core::fmt::Debug for Self_<'_> {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        let mut shown = f.debug_struct("Self");
        shown.finish()
    }
}

/// The objects of a page.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub struct SelfPage<'a> {
    page: &'a ::dray_page::VerifiedPage,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'a> SelfPage<'a> {
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
    pub fn get(&self, i: usize) -> Option<Self_<'a>> {
        self.page.object(i).map(|object| Self_::in_extent(object.bytes()))
    }

    /// All objects, in order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Self_<'a>> + Clone + use<'a> {
        self.page.objects().map(|object| Self_::in_extent(object.bytes()))
    }
}


/// A file of objects.
#[allow(dead_code)]
#[derive(Debug)]
pub struct SelfFile {
    file: ::dray_pagefile::PageFile,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl SelfFile {
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
    pub fn get(&self, ordinal: u64) -> ::dray_pagefile::Result<Self_<'_>> {
        Ok(Self_::in_extent(self.file.object(ordinal)?.bytes()))
    }

    /// All pages, in order. Each is checked when it comes for the first time.
    pub fn pages(
        &self,
    ) -> impl ExactSizeIterator<Item = ::dray_pagefile::Result<SelfPage<'_>>> {
        self.file.pages().map(|page| page.map(|page| SelfPage { page }))
    }

    /// All objects, in order. A page that is damaged is an error in place of its objects.
    pub fn iter(&self) -> impl Iterator<Item = ::dray_pagefile::Result<Self_<'_>>> {
        self.pages().flat_map(|page| {
            let (page, error) = match page {
                Ok(page) => (Some(page), None),
                Err(error) => (None, Some(Err(error))),
            };
            page.into_iter().flat_map(|page| page.iter().map(Ok)).chain(error)
        })
    }

}

/// The mutators of all fields, which are looked up once.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct SelfFields {
    layout: ::std::sync::Arc<::dray_page::Layout>,

}

#[allow(dead_code, non_snake_case, clippy::all)]
impl SelfFields {
    fn new() -> ::dray_page::Result<Self> {
        let layout = ::dray_page::Layout::decode(SCHEMA)?;
        Ok(Self {

            layout,
        })
    }

    /// All mutators.
    ///
    /// # Errors
    /// Never, unless this code was changed.
    pub fn get() -> ::dray_page::Result<&'static Self> {
        static FIELDS: ::std::sync::OnceLock<SelfFields> = ::std::sync::OnceLock::new();
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
pub struct SelfBuilder<'b, 'r> {
    object: &'b mut ::dray_page::ObjectBuilder<'r>,
    fields: &'static SelfFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'r> SelfBuilder<'_, 'r> {
    /// Appends an object to a page. `build` writes its fields: strings and lists in the
    /// order of the schema, numbers in any order. What it does not write is missing if it
    /// may be, and otherwise 0 or empty.
    ///
    /// # Errors
    /// Those of `build`, and when there is no memory. Nothing is appended then.
    pub fn build(
        pages: &mut ::dray_page::PageBuilder,
        build: impl FnOnce(&mut SelfBuilder<'_, '_>) -> ::dray_page::Result<()>,
    ) -> ::dray_page::Result<()> {
        let fields = SelfFields::get()?;
        pages.build(|object| build(&mut SelfBuilder { object, fields }))
    }

    /// Appends an object to a page file, as `build` does to a page.
    ///
    /// # Errors
    /// Those of `build`, and when the file can't be written.
    pub fn write<W: ::std::io::Write>(
        file: &mut ::dray_pagefile::PageFileWriter<W>,
        build: impl FnOnce(&mut SelfBuilder<'_, '_>) -> ::dray_page::Result<()>,
    ) -> ::dray_pagefile::Result<()> {
        let fields = SelfFields::get()?;
        file.build(|object| build(&mut SelfBuilder { object, fields }))
    }

}

/// Changes an object in place.
#[allow(dead_code, non_snake_case, clippy::all)]
pub struct SelfMut<'e> {
    item: ::dray_page::ItemMut<'e>,
    fields: &'static SelfFields,
}

#[allow(dead_code, non_snake_case, clippy::all)]
impl<'e> SelfMut<'e> {
    /// Object `i` of a page, if there is one.
    ///
    /// # Errors
    /// When the page's objects are of another schema.
    pub fn of(
        editor: &'e mut ::dray_page::PageEditor,
        i: usize,
    ) -> ::dray_page::Result<Option<Self>> {
        editor.layout().check_schema(SCHEMA)?;
        let fields = SelfFields::get()?;
        Ok(editor.object_mut(i).map(|item| Self { item, fields }))
    }

    /// What it is now. An item that is missing is read as 0 and empty.
    #[inline]
    pub fn as_ref(&self) -> Self_<'_> {
        let (extent, record) = g::of_item(&self.item);
        Self_ { extent, record: g::record::<4>(record) }
    }

}
