//! Descriptors and receipts of partition plans: `spec/partitions.md`.

mod descriptor;
mod postgres;
mod receipt;

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

pub use self::descriptor::{DESCRIPTOR_BYTES_MAX, DrayPart, PartDescriptor, PartSource};
pub use self::postgres::{BlockRange, HeldSnapshot, PostgresPart};
pub use self::receipt::{RECEIPT_BYTES, Receipt};
pub use crate::PARTS_MAX;
use crate::{ProtocolError, Refusal};

/// The layout of descriptors and receipts that this crate reads and writes.
const LAYOUT_VERSION: u16 = 0;
/// The size of a descriptor's seal.
pub const SEAL_BYTES: usize = 32;

/// The name of a plan, or of one reading of a part: random bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RandomId(pub [u8; 16]);

impl RandomId {
    /// A new name.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn random() -> crate::Result<Self> {
        let mut bytes = [0; 16];
        let filled = SystemRandom::new().fill(&mut bytes);
        filled.map_err(|_| invalid("the system gives no random bytes"))?;
        Ok(Self(bytes))
    }
}

/// 32 hexadecimal digits.
impl std::fmt::Debug for RandomId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The SHA-256 of `bytes`: the seal of a descriptor whose other bytes they are.
pub fn seal(bytes: &[u8]) -> [u8; SEAL_BYTES] {
    let mut seal = [0; SEAL_BYTES];
    seal.copy_from_slice(digest(&SHA256, bytes).as_ref());
    seal
}

/// Checks what descriptors and receipts begin with.
fn check_start(bytes: &[u8], magic: [u8; 4], what: &str) -> crate::Result<()> {
    let refused = |refusal, why: String| Err(ProtocolError::new(refusal, why));
    match bytes.first_chunk::<4>() {
        Some(found) if *found == magic => {}
        _ => return refused(Refusal::Magic, format!("the bytes are not a {what}")),
    }
    match bytes.get(4..6) {
        Some([low, high]) if u16::from_le_bytes([*low, *high]) == LAYOUT_VERSION => Ok(()),
        Some([low, high]) => refused(
            Refusal::Version,
            format!(
                "the {what} has version {}, and this version of Dray reads {LAYOUT_VERSION}: use \
                 the version that made it",
                u16::from_le_bytes([*low, *high])
            ),
        ),
        _ => refused(Refusal::Size, format!("the {what} is cut off")),
    }
}

/// Checks that `index` is the number of a part of `count`.
fn check_place(index: u32, count: u32) -> crate::Result<()> {
    match index < count && count <= PARTS_MAX {
        true => Ok(()),
        false => Err(invalid(format!(
            "part {index} of {count}, expected a number below the count, and at most {PARTS_MAX} \
             parts"
        ))),
    }
}

fn invalid(what: impl Into<String>) -> ProtocolError {
    ProtocolError::new(Refusal::Payload, what)
}

/// The error of bytes that were changed.
fn altered(what: &str) -> ProtocolError {
    ProtocolError::new(
        Refusal::Format(dray_format::ErrorKind::Checksum),
        format!("the {what} was changed or damaged after it was made"),
    )
}
