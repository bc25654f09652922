//! Changes of the objects of a file.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Write;
use std::ops::Range;

use dray_format::Checksum;
use dray_page::{
    ErrorKind, ItemMut, Object, ObjectBuilder, PAGE_BYTES_MIN, PageBuilder, PageEditor,
};

use crate::error::{Error, Result, refuse};
use crate::reader::PageFile;
use crate::writer::{PageFileOptions, PageFileWriter, Written};

/// Changes the objects of a page file in memory, and writes all objects to a new file.
///
/// A page is copied when its first object changes. If its objects outgrow it, they go on in two
/// pages. So the memory is that of the pages that were changed, about twice if all objects grow.
///
/// ```
/// # use bytes::Bytes;
/// # use dray_format::{Field, Schema, Type};
/// # use dray_pagefile::{PageFile, PageFileEditor, PageFileOptions, PageFileWriter};
/// # let (name, data_type) = ("name".into(), Type::Utf8);
/// # let field = Field { name, data_type, nullable: false, metadata: vec![] };
/// # let schema = Schema { fields: vec![field] };
/// # let mut bytes = Vec::new();
/// # let mut writer = PageFileWriter::new(&mut bytes, schema, &PageFileOptions::default())?;
/// # writer.build(|_| Ok(()))?;
/// # writer.finish()?;
/// let file = PageFile::from_bytes(Bytes::from(bytes))?;
/// let name = file.layout().mutator::<str>(&["name"])?;
/// let mut editor = PageFileEditor::new(file);
/// editor.change(0, |object| object.set(&name, "a new name"))?;
///
/// let mut bytes = Vec::new();
/// editor.write(&mut bytes)?;
/// let file = PageFile::from_bytes(Bytes::from(bytes))?;
/// assert_eq!(file.object(0)?.field(0).unwrap().str(), Some("a new name"));
/// # Ok::<(), dray_pagefile::Error>(())
/// ```
#[derive(Debug)]
pub struct PageFileEditor {
    file: PageFile,
    /// The changed pages, by their number.
    pages: HashMap<usize, Vec<Part>>,
}

/// Objects of a page that follow each other.
#[derive(Debug)]
struct Part {
    /// The slot of the first one in the file's page.
    first: usize,
    editor: PageEditor,
}

impl PageFileEditor {
    /// An editor of a file, which itself remains as it is.
    pub fn new(file: PageFile) -> Self {
        Self { file, pages: HashMap::new() }
    }

    /// The file as it was.
    pub fn file(&self) -> &PageFile {
        &self.file
    }

    /// Whether any object was asked for to be changed.
    pub fn is_changed(&self) -> bool {
        !self.pages.is_empty()
    }

    /// The object with this number, as it is now.
    ///
    /// # Errors
    /// When there is none, or its page is damaged.
    pub fn object(&self, ordinal: u64) -> Result<Object<'_>> {
        let (page, slot) = self.file.position(ordinal)?;
        let Some(parts) = self.pages.get(&page) else { return self.file.object(ordinal) };
        let part = &parts[part_of(parts, slot)];
        match part.editor.object(slot - part.first) {
            Some(object) => Ok(object),
            None => refuse!(Page, "page {page} has no slot {slot}"),
        }
    }

    /// Changes an object by a call of one of the methods of [`ItemMut`]. `change` is called a
    /// second time if the object does not fit its page.
    ///
    /// # Errors
    /// Those of `change`, and of [`object`](Self::object). Nothing is changed then. Also when there
    /// is no memory for a page.
    pub fn change(
        &mut self,
        ordinal: u64,
        change: impl Fn(&mut ItemMut<'_>) -> dray_page::Result<()>,
    ) -> Result<()> {
        let (part, slot) = self.part(ordinal)?;
        match part.editor.object_mut(slot).map(|mut object| change(&mut object)) {
            Some(Err(error)) if error.kind() == ErrorKind::Limit && part.editor.len() > 1 => {}
            Some(done) => return Ok(done?),
            None => refuse!(Page, "there is no object {ordinal}"),
        }
        // A page with a single object grows.
        let mut alone =
            self.alone(|builder| builder.copy(self.object(ordinal)?).map_err(Error::from))?;
        if let Some(mut object) = alone.object_mut(0) {
            change(&mut object)?;
        }
        self.replace_by(ordinal, &alone)
    }

    /// Replaces an object by a copy of another one.
    ///
    /// # Errors
    /// When it is of another schema, and those of [`change`](Self::change).
    pub fn replace(&mut self, ordinal: u64, object: Object<'_>) -> Result<()> {
        loop {
            let (part, slot) = self.part(ordinal)?;
            match part.editor.replace(slot, object) {
                Err(error) if error.kind() == ErrorKind::Limit && part.editor.len() > 1 => {
                    self.split(ordinal)?;
                }
                done => return Ok(done?),
            }
        }
    }

    /// Replaces an object by one that `build` writes; it may read the old one.
    ///
    /// # Errors
    /// Those of `build`, and of [`change`](Self::change).
    pub fn rebuild(
        &mut self,
        ordinal: u64,
        build: impl FnOnce(Object<'_>, &mut ObjectBuilder<'_>) -> dray_page::Result<()>,
    ) -> Result<()> {
        let old = self.object(ordinal)?;
        let alone = self.alone(|builder| Ok(builder.build(|object| build(old, object))?))?;
        self.replace_by(ordinal, &alone)
    }

    /// Writes all objects, with the key of the file. The result is what a writer makes of the new
    /// objects, whatever their history.
    ///
    /// # Errors
    /// When a page is damaged, and those of [`PageFileWriter`].
    pub fn write<W: Write>(&self, out: W) -> Result<Written> {
        let key = self.file.key().into_iter().map(|(path, _)| path.clone()).collect();
        let options = PageFileOptions { page_bytes: self.file.page_bytes(), key };
        let mut writer = PageFileWriter::new(out, self.file.schema().clone(), &options)?;
        for page in 0..self.file.page_count() {
            match self.pages.get(&page) {
                Some(parts) => parts
                    .iter()
                    .flat_map(|part| (0..part.editor.len()).filter_map(|i| part.editor.object(i)))
                    .try_for_each(|object| writer.copy(object))?,
                None => {
                    self.file.page(page)?.objects().try_for_each(|object| writer.copy(object))?
                }
            }
        }
        let written = writer.finish()?;
        if written.objects != self.file.len() {
            refuse!(Page, "{} objects of {} were written", written.objects, self.file.len());
        }
        Ok(written)
    }

    /// The part with an object, to be changed, and the object's slot there.
    fn part(&mut self, ordinal: u64) -> Result<(&mut Part, usize)> {
        let (page, slot) = self.file.position(ordinal)?;
        let parts = match self.pages.entry(page) {
            Entry::Occupied(parts) => parts.into_mut(),
            Entry::Vacant(none) => {
                let editor = PageEditor::new(self.file.page(page)?.clone())?;
                none.insert(vec![Part { first: 0, editor }])
            }
        };
        let i = part_of(parts, slot);
        let slot = slot - parts[i].first;
        Ok((&mut parts[i], slot))
    }

    /// Divides the page that has an object and others.
    fn split(&mut self, ordinal: u64) -> Result<()> {
        let (page, slot) = self.file.position(ordinal)?;
        let Some(parts) = self.pages.get_mut(&page) else { return Ok(()) };
        let i = part_of(parts, slot);
        let Part { first, editor } = &parts[i];
        let half = |slots: Range<usize>| {
            let first = first + slots.start;
            let mut builder = PageBuilder::new(
                self.file.layout().clone(),
                self.file.page_bytes(),
                Checksum::None,
            )?;
            slots.filter_map(|slot| editor.object(slot)).try_for_each(|o| builder.copy(o))?;
            let mut pages = builder.finish();
            match (pages.pop(), pages.is_empty()) {
                (Some(page), true) => Ok(Part { first, editor: PageEditor::new(page)? }),
                _ => refuse!(Page, "half of the objects of a page do not make one page"),
            }
        };
        let (middle, end) = (editor.len() / 2, editor.len());
        let halves = [half(0..middle)?, half(middle..end)?];
        parts.splice(i..=i, halves);
        Ok(())
    }

    /// A page with one object, which `fill` appends.
    fn alone(&self, fill: impl FnOnce(&mut PageBuilder) -> Result<()>) -> Result<PageEditor> {
        let layout = self.file.layout().clone();
        let mut builder = PageBuilder::new(layout, PAGE_BYTES_MIN, Checksum::None)?;
        fill(&mut builder)?;
        match builder.finish().pop() {
            Some(page) => Ok(PageEditor::new(page)?.with_page_bytes(PAGE_BYTES_MIN)?),
            None => refuse!(Page, "a page without objects"),
        }
    }

    fn replace_by(&mut self, ordinal: u64, alone: &PageEditor) -> Result<()> {
        match alone.object(0) {
            Some(object) => self.replace(ordinal, object),
            None => refuse!(Page, "a page without objects"),
        }
    }
}

/// The number of the part that has a slot.
fn part_of(parts: &[Part], slot: usize) -> usize {
    parts.partition_point(|part| part.first <= slot).saturating_sub(1)
}
