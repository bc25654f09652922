//! A page as it travels: without the zeros between its objects and its slots
//! (`spec/protocol.md` section 13).

use std::sync::Arc;

use bytes::Bytes;
use dray_format::{Checksum, crc32c};

use crate::error::{Error, Result, refuse};
use crate::page::{HEADER_BYTES, Header, LARGE_BYTES_END, PAGE_BYTES, SLOT_BYTES, VerifiedPage};
use crate::pool::{PagePool, zeros};

/// A page to be sent. Its number is known only then.
#[derive(Debug, Clone)]
pub struct PackedPage {
    header: Header,
    /// CRC-32C of the page behind its header, if it gets a checksum.
    rest: Option<u32>,
    bytes: Bytes,
}

impl PackedPage {
    /// Packs a page.
    pub fn new(page: &VerifiedPage, checksum: Checksum) -> Self {
        let bytes = page.bytes().clone();
        let rest = match checksum {
            Checksum::Crc32c => Some(crc32c(0, &bytes[HEADER_BYTES..])),
            Checksum::None => None,
        };
        Self { header: *page.header(), rest, bytes }
    }

    /// The number of objects.
    pub fn objects(&self) -> u32 {
        self.header.objects
    }

    /// The bytes that travel.
    pub fn packed_bytes(&self) -> u64 {
        self.header.packed_bytes()
    }

    /// The memory that the page takes.
    pub fn memory_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The header of the page with this number, and the objects and slots that follow it.
    pub fn numbered(self, sequence: u64) -> ([u8; HEADER_BYTES], [Bytes; 2]) {
        let Self { header, rest, bytes } = self;
        let mut header = Header { sequence, checksum: rest.map(|_| 0), ..header };
        // The checksum covers its flag.
        header.checksum = rest.map(|rest| crc32c(rest, &header.encode()));
        let slots_at = bytes.len() - header.slots_bytes();
        let objects = bytes.slice(HEADER_BYTES..header.objects_end as usize);
        (header.encode(), [objects, bytes.slice(slots_at..)])
    }
}

impl Header {
    /// The bytes of the page without the zeros between its objects and its slots.
    pub fn packed_bytes(&self) -> u64 {
        u64::from(self.objects_end) + self.slots_bytes() as u64
    }

    /// Whether the page has the size of pages that travel. It tells what a receiver allots.
    pub fn has_travelling_size(&self) -> bool {
        let page_bytes = self.page_bytes as usize;
        match self.large {
            false => page_bytes == PAGE_BYTES,
            true => {
                let taken = u64::from(self.objects_end) + SLOT_BYTES as u64;
                page_bytes as u64 == taken.next_multiple_of(PAGE_BYTES as u64)
            }
        }
    }

    fn slots_bytes(&self) -> usize {
        SLOT_BYTES * self.objects as usize
    }
}

impl PagePool {
    /// The bytes of a packed page with this header. `read` fills memory with what follows it. A
    /// page of another size than the pool's has memory of its own. Nothing but the header was
    /// checked.
    ///
    /// # Errors
    /// Those of `read`, and when there is no memory.
    pub fn receive<E: From<Error>>(
        self: &Arc<Self>,
        header: &Header,
        mut read: impl FnMut(&mut [u8]) -> Result<(), E>,
    ) -> Result<Bytes, E> {
        let mut fill = |page: &mut [u8]| {
            let (objects_end, slots_at) =
                (header.objects_end as usize, page.len() - header.slots_bytes());
            page[..HEADER_BYTES].copy_from_slice(&header.encode());
            read(&mut page[HEADER_BYTES..objects_end])?;
            page[objects_end..slots_at].fill(0);
            read(&mut page[slots_at..])
        };
        if header.page_bytes as usize == self.page_bytes() {
            return self.fill(fill);
        }
        let mut page = allot(header)?;
        fill(&mut page)?;
        Ok(page.freeze())
    }
}

fn allot(header: &Header) -> Result<bytes::BytesMut> {
    let page_bytes = header.page_bytes as usize;
    if page_bytes >= LARGE_BYTES_END {
        refuse!(Limit, "a page of {page_bytes} bytes");
    }
    zeros(page_bytes)
}
