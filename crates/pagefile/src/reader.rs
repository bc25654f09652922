//! The reader of whole files.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use dray_format::{Schema, Type, crc32c};
use dray_page::{Layout, Object, VerifiedPage};

use crate::error::{Error, ErrorKind, Result, refuse};
use crate::footer::Footer;
use crate::header::{HEADER_BYTES, Header, sha256};
use crate::index::{PageEntry, PageIndex};
use crate::key::{Key, KeyIndex, KeyPath, KeyValue};
use crate::salvage::Salvage;

/// A page file. It is shared by threads: pages are checked once, whoever asks first.
#[derive(Debug)]
pub struct PageFile {
    file: Bytes,
    layout: Arc<Layout>,
    page_bytes: usize,
    schema_digest: [u8; 32],
    schema_bytes: usize,
    pages_at: usize,
    footer: Footer,
    key: Option<Key>,
    /// The pages that were checked.
    pages: Box<[OnceLock<VerifiedPage>]>,
    keys_checked: OnceLock<()>,
}

/// Maps a file into memory.
///
/// # Errors
/// When it can't be opened or mapped.
pub(crate) fn map(path: &Path) -> Result<Bytes> {
    let shown = path.display();
    let failed = |cause| Error::io(format!("can't read {shown}"), cause);
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        refuse!(Usage, "can't read {shown}: it is not a file");
    }
    if metadata.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the map is only read, and as bytes, for which any value is valid. No reference to
    // them is held over a check of theirs: what reads objects checks bounds at each access. Writers
    // replace files and don't change them; a file that somebody cuts off all the same ends the
    // program with SIGBUS, as for every program that maps files, and not with a wrong value.
    #[allow(unsafe_code, reason = "a map has no safe constructor")]
    let map = unsafe { memmap2::Mmap::map(&file) }.map_err(failed)?;
    Ok(Bytes::from_owner(map))
}

impl PageFile {
    /// Maps a file, and checks everything but its pages.
    ///
    /// # Errors
    /// When the file can't be read, or breaks a rule of page-file.md. The error of a file that was
    /// cut off says how much [`Salvage`] can read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = map(path)?;
        Self::from_bytes(file.clone()).map_err(|error| {
            let error = match (error.kind(), Salvage::from_bytes(file)) {
                (ErrorKind::Cut, Ok(salvage)) => error.and(format_args!(
                    "its first {} pages with {} objects are whole and can be salvaged",
                    salvage.pages().len(),
                    salvage.objects()
                )),
                _ => error,
            };
            error.about(format_args!("can't read {}", path.display()))
        })
    }

    /// Maps a file for a program that was made for one schema, such as generated code.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), and when its schema has another digest.
    pub fn open_for(path: impl AsRef<Path>, schema_digest: &[u8; 32]) -> Result<Self> {
        let path = path.as_ref();
        let file = Self::open(path)?;
        if file.schema_digest != *schema_digest {
            refuse!(
                Usage,
                "can't read {}: its objects have another schema than this program was made for; \
                 generate the program's accessors anew with `dray accessors`",
                path.display()
            );
        }
        Ok(file)
    }

    /// Reads a file from memory.
    ///
    /// # Errors
    /// When it breaks a rule of page-file.md outside its pages.
    pub fn from_bytes(file: Bytes) -> Result<Self> {
        let Header { page_bytes, schema_digest, schema, schema_bytes, pages_at } =
            Header::decode(&file)?;
        let footer = Footer::decode(&file, pages_at)?;
        let part = |from: usize, to: usize| file.get(from..to).unwrap_or_default();
        let paths = part(footer.key_paths_at(), footer.keys_at());
        let index = part(footer.index_at, footer.key_paths_at());
        if sha256([part(0, pages_at), index, paths, Footer::digested(&file)]) != footer.digest {
            refuse!(Digest, "it was damaged");
        }
        let layout = Layout::new(schema).map_err(|error| {
            Error::new(ErrorKind::Schema, format!("its schema has no pages: {error}"))
        })?;
        let index = PageIndex { entries: index.as_chunks().0, objects: footer.objects };
        index.check(footer.index_at - pages_at, page_bytes)?;
        let key = match footer.has_keys() {
            true => Some(Key::decode(paths, layout.schema())?),
            false => None,
        };
        let pages = (0..footer.pages).map(|_| OnceLock::new()).collect();
        let keys_checked = OnceLock::new();
        Ok(Self {
            file,
            layout,
            page_bytes,
            schema_digest,
            schema_bytes,
            pages_at,
            footer,
            key,
            pages,
            keys_checked,
        })
    }

    /// The number of objects.
    pub fn len(&self) -> u64 {
        self.footer.objects
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of pages.
    pub fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// The standard size of pages.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// The types of the objects' fields.
    pub fn schema(&self) -> &Schema {
        self.layout.schema()
    }

    /// The layout of the objects, for accessors.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// The SHA-256 of the schema's bytes.
    pub fn schema_digest(&self) -> &[u8; 32] {
        &self.schema_digest
    }

    /// The schema as types.md encodes it.
    pub fn schema_bytes(&self) -> &[u8] {
        self.file.get(HEADER_BYTES..HEADER_BYTES + self.schema_bytes).unwrap_or_default()
    }

    /// The size of the file in bytes.
    pub fn file_bytes(&self) -> usize {
        self.file.len()
    }

    /// The fields of the key that [`find`](Self::find) takes, with their types; empty without a key
    /// index.
    pub fn key(&self) -> Vec<(&KeyPath, &Type)> {
        self.key.iter().flat_map(Key::fields).collect()
    }

    fn index(&self) -> PageIndex<'_> {
        let index = self.file.get(self.footer.index_at..self.footer.key_paths_at());
        PageIndex { entries: index.unwrap_or_default().as_chunks().0, objects: self.len() }
    }

    /// A page. The first call checks it.
    ///
    /// # Errors
    /// When there is no such page, or it is damaged or not the one that the index describes.
    pub fn page(&self, page: usize) -> Result<&VerifiedPage> {
        let Some(cell) = self.pages.get(page) else {
            refuse!(Usage, "there is no page {page}, the file has {}", self.pages.len());
        };
        match cell.get() {
            Some(verified) => Ok(verified),
            None => {
                let verified = self.verify_page(page)?;
                Ok(cell.get_or_init(|| verified))
            }
        }
    }

    /// A page that was checked before.
    #[inline]
    pub fn checked_page(&self, page: usize) -> Option<&VerifiedPage> {
        self.pages.get(page)?.get()
    }

    fn verify_page(&self, page: usize) -> Result<VerifiedPage> {
        let PageEntry { objects, bytes, checksum } = self.index().page(page);
        let bytes = self.file.slice(self.pages_at + bytes.start..self.pages_at + bytes.end);
        let size = bytes.len();
        let damaged = || format!("page {page}, objects {} to {}", objects.start, objects.end - 1);
        let verified = VerifiedPage::verify(&self.layout, bytes)
            .map_err(|error| Error::from(error).about(damaged()))?;
        let header = verified.header();
        let fits = header.sequence == page as u64
            && header.page_bytes as usize == size
            && (header.large || size == self.page_bytes)
            && u64::from(header.objects) == objects.end - objects.start
            && header.checksum == Some(checksum);
        match fits {
            true => Ok(verified),
            false => {
                Err(Error::new(ErrorKind::Page, "it is not the page that the index describes")
                    .about(damaged()))
            }
        }
    }

    /// All pages, in order; each is checked when it comes.
    pub fn pages(&self) -> impl ExactSizeIterator<Item = Result<&VerifiedPage>> {
        (0..self.page_count()).map(|page| self.page(page))
    }

    /// The page of the object with this number, and its slot there.
    ///
    /// # Errors
    /// When there is no such object.
    pub fn position(&self, ordinal: u64) -> Result<(usize, usize)> {
        if ordinal >= self.len() {
            refuse!(Usage, "there is no object {ordinal}, the file has {}", self.len());
        }
        let index = self.index();
        let page = index.page_of(ordinal);
        // A page has fewer than 2^31 objects.
        Ok((page, (ordinal - index.page(page).objects.start) as usize))
    }

    /// The object with this number.
    ///
    /// # Errors
    /// When there is none, or its page is damaged.
    pub fn object(&self, ordinal: u64) -> Result<Object<'_>> {
        let (page, slot) = self.position(ordinal)?;
        match self.page(page)?.object(slot) {
            Some(object) => Ok(object),
            None => refuse!(Page, "page {page} has no slot {slot}"),
        }
    }

    /// The numbers of the objects with this key, in ascending order.
    ///
    /// # Errors
    /// When the file has no key index or a damaged one, the values are not of the key's types, or a
    /// page is damaged.
    pub fn find(&self, key: &[KeyValue]) -> Result<Vec<u64>> {
        let Some(fields) = &self.key else {
            refuse!(Usage, "the file has no key index; write it with a key");
        };
        let Some(stored) = fields.stored(key)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for ordinal in self.key_index()?.find(fields.hash_of(&stored)) {
            if fields.is_of(&stored, self.object(ordinal)?) {
                found.push(ordinal);
            }
        }
        Ok(found)
    }

    /// As [`find`](Self::find), for a program that was made for one key: the paths of its fields.
    ///
    /// # Errors
    /// Those of [`find`](Self::find), and when the file has an index of another key.
    pub fn find_by(&self, paths: &[&[&str]], key: &[KeyValue]) -> Result<Vec<u64>> {
        let own = self.key();
        if !own.iter().map(|(path, _)| *path).eq(paths) {
            let paths = own.iter().map(|(path, _)| path.join("."));
            refuse!(
                Usage,
                "the file has an index of the key {:?}, and not of the one sought; write it with \
                 that key",
                paths.collect::<Vec<_>>().join(", ")
            );
        }
        self.find(key)
    }

    /// The key index. The first call checks it.
    fn key_index(&self) -> Result<KeyIndex<'_>> {
        let at = self.footer.keys_at();
        let bytes = self.file.get(at..at + crate::key::KEY_ENTRY_BYTES * self.footer.keys);
        let bytes = bytes.unwrap_or_default();
        let index = KeyIndex(bytes.as_chunks().0);
        if self.keys_checked.get().is_none() {
            if crc32c(0, bytes) != self.footer.keys_checksum {
                refuse!(Keys, "the key index was damaged; the objects can be read without it");
            }
            index.check(self.len())?;
            self.keys_checked.get_or_init(|| ());
        }
        Ok(index)
    }

    /// Checks all pages, the key index, and that it finds each object.
    ///
    /// # Errors
    /// The first that is damaged.
    pub fn check(&self) -> Result<()> {
        let keys = match &self.key {
            Some(_) => Some(self.key_index()?),
            None => None,
        };
        let (mut ordinal, mut keyed) = (0, 0);
        for page in self.pages() {
            for object in page?.objects() {
                let hash = self.key.as_ref().and_then(|key| key.hash(object));
                if let (Some(hash), Some(keys)) = (hash, keys) {
                    if !keys.has(hash, ordinal) {
                        refuse!(Keys, "the key index lacks object {ordinal}");
                    }
                    keyed += 1;
                }
                ordinal += 1;
            }
        }
        if keyed != self.footer.keys {
            refuse!(Keys, "the key index has {} entries for {keyed} objects", self.footer.keys);
        }
        Ok(())
    }
}
