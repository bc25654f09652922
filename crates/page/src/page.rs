//! The header of a page (`spec/page.md` section 2), and verified pages.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use dray_format::crc32c;

use crate::error::{Result, refuse};
use crate::layout::Layout;
use crate::object::Object;
use crate::verify;
use crate::word::u32_at;

/// The size of a header in bytes.
pub const HEADER_BYTES: usize = 64;
/// The default size of a page.
pub const PAGE_BYTES: usize = 256 << 10;
/// The smallest page. The size of a large page is a multiple of this.
pub const PAGE_BYTES_MIN: usize = 4 << 10;
/// The largest regular page.
pub const PAGE_BYTES_MAX: usize = 1 << 30;
/// Large pages are smaller than this.
pub(crate) const LARGE_BYTES_END: usize = 1 << 31;
/// The bytes of a slot.
pub(crate) const SLOT_BYTES: usize = 4;

const MAGIC: [u8; 4] = *b"DRYP";
const VERSION: u16 = 0;
const FLAG_CHECKSUM: u16 = 1;
const FLAG_LARGE: u16 = 2;
const FLAG_MOVED: u16 = 4;
const CHECKSUM_AT: Range<usize> = 28..32;
const EDITION_AT: Range<usize> = 32..36;
const RESERVED_AT: Range<usize> = 36..HEADER_BYTES;

/// The header of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The page's number in its file or stream.
    pub sequence: u64,
    /// Objects, at least one.
    pub objects: u32,
    /// The size of the page in bytes.
    pub page_bytes: u32,
    /// Where the last object ends, or the last dead extent.
    pub objects_end: u32,
    /// CRC-32C of the page, if it has one.
    pub checksum: Option<u32>,
    /// Whether the page is a large one, for a single object that does not fit the standard size.
    pub large: bool,
    /// Whether objects may lie in another order than that of their slots, with dead extents between
    /// them (page.md section 11).
    pub moved: bool,
    /// How often the page was changed in place since it was built.
    pub edition: u32,
}

impl Header {
    /// Reads a header. Its `page_bytes` tells how many bytes of a file or stream the page takes.
    ///
    /// # Errors
    /// When it breaks a rule of page.md section 2.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self> {
        let [_, _, _, _, version_0, version_1, flags_0, flags_1, ..] = *bytes;
        if bytes[..4] != MAGIC {
            refuse!(Magic, "it begins with {:02x?}, expected {MAGIC:02x?}", &bytes[..4]);
        }
        let version = u16::from_le_bytes([version_0, version_1]);
        if version != VERSION {
            refuse!(Version, "layout version {version}, this reader knows {VERSION}");
        }
        let flags = u16::from_le_bytes([flags_0, flags_1]);
        if flags & !(FLAG_CHECKSUM | FLAG_LARGE | FLAG_MOVED) != 0 {
            refuse!(Flags, "unknown flags {flags:#06x}");
        }
        let u32_at = |at: usize| u32_at(bytes, at);
        let header = Self {
            sequence: u64::from(u32_at(8)) | u64::from(u32_at(12)) << 32,
            objects: u32_at(16),
            page_bytes: u32_at(20),
            objects_end: u32_at(24),
            checksum: (flags & FLAG_CHECKSUM != 0).then(|| u32_at(CHECKSUM_AT.start)),
            large: flags & FLAG_LARGE != 0,
            moved: flags & FLAG_MOVED != 0,
            edition: u32_at(EDITION_AT.start),
        };
        if header.objects == 0 || header.large && (header.objects != 1 || header.moved) {
            refuse!(
                Objects,
                "a {}{}page of {} objects",
                if header.large { "large " } else { "" },
                if header.moved { "moved " } else { "" },
                header.objects
            );
        }
        let page_bytes = header.page_bytes as usize;
        let fits = match header.large {
            true => {
                page_bytes > 0
                    && page_bytes.is_multiple_of(PAGE_BYTES_MIN)
                    && page_bytes < LARGE_BYTES_END
            }
            false => {
                page_bytes.is_power_of_two()
                    && (PAGE_BYTES_MIN..=PAGE_BYTES_MAX).contains(&page_bytes)
            }
        };
        if !fits {
            refuse!(Size, "no page has {page_bytes} bytes");
        }
        let end = u64::from(header.objects_end);
        if end < HEADER_BYTES as u64
            || end + SLOT_BYTES as u64 * u64::from(header.objects) > page_bytes as u64
        {
            refuse!(
                Objects,
                "{} objects up to byte {end} of {page_bytes} leave too few bytes for slots",
                header.objects
            );
        }
        if header.checksum.is_none() && u32_at(CHECKSUM_AT.start) != 0 {
            refuse!(Checksum, "there is a checksum without its flag");
        }
        if bytes[RESERVED_AT].iter().any(|byte| *byte != 0) {
            refuse!(Reserved, "a reserved byte of the header is not 0");
        }
        Ok(header)
    }

    /// The header's bytes.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let flags = if self.checksum.is_some() { FLAG_CHECKSUM } else { 0 }
            | if self.large { FLAG_LARGE } else { 0 }
            | if self.moved { FLAG_MOVED } else { 0 };
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[6..8].copy_from_slice(&flags.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.objects.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.page_bytes.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.objects_end.to_le_bytes());
        bytes[CHECKSUM_AT].copy_from_slice(&self.checksum.unwrap_or(0).to_le_bytes());
        bytes[EDITION_AT].copy_from_slice(&self.edition.to_le_bytes());
        bytes
    }

    /// The checksum of a page with this header, followed by `rest` (chunk.md section 6).
    pub(crate) fn checksum_with(&self, rest: &[u8]) -> u32 {
        crc32c(crc32c(0, rest), &Self { checksum: Some(0), ..*self }.encode())
    }
}

/// A page whose every byte has been checked, or that this crate has made. Its objects are read
/// through it. It is cheap to clone.
#[derive(Clone)]
pub struct VerifiedPage {
    layout: Arc<Layout>,
    header: Header,
    bytes: Bytes,
}

impl VerifiedPage {
    /// Checks a page against all rules of page.md, in one pass.
    ///
    /// # Errors
    /// When it breaks a rule of page.md for objects of this layout.
    pub fn verify(layout: &Arc<Layout>, bytes: Bytes) -> Result<Self> {
        let header = verify::page(layout, &bytes)?;
        Ok(Self { layout: layout.clone(), header, bytes })
    }

    /// What it consists of.
    pub(crate) fn into_parts(self) -> (Arc<Layout>, Header, Bytes) {
        (self.layout, self.header, self.bytes)
    }

    /// A page that was built of objects of this layout.
    pub(crate) fn made(layout: Arc<Layout>, header: Header, bytes: Bytes) -> Self {
        debug_assert_eq!(bytes.len(), header.page_bytes as usize);
        Self { layout, header, bytes }
    }

    /// The layout of the objects.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// The page's header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The page's bytes, header included.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The number of objects.
    #[allow(clippy::len_without_is_empty, reason = "no page is empty")]
    pub fn len(&self) -> usize {
        self.header.objects as usize
    }

    /// The object of slot `i`, if there is one.
    #[inline]
    pub fn object(&self, i: usize) -> Option<Object<'_>> {
        if i >= self.len() {
            return None;
        }
        let slot = self.bytes.len().checked_sub(SLOT_BYTES * (i + 1))?;
        let from = u32_at(&self.bytes, slot) as usize;
        let extent = self.bytes.get(from..from + u32_at(&self.bytes, from) as usize)?;
        Some(Object::new(&self.layout, extent))
    }

    /// All objects, in the order of their slots.
    pub fn objects(&self) -> impl ExactSizeIterator<Item = Object<'_>> + Clone {
        (0..self.len()).map(|i| self.object(i).unwrap_or(Object::new(&self.layout, &[])))
    }
}

impl fmt::Debug for VerifiedPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifiedPage").field("header", &self.header).finish_non_exhaustive()
    }
}
