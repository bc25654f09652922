//! The name of a server's run, by which clients of the same host find its local socket:
//! `spec/protocol.md` section 11.

use std::fmt;

/// The size of an instance in bytes.
pub const INSTANCE_BYTES: usize = 16;

/// The instance in a welcome: random bytes, all 0 if the server has no local socket.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Instance([u8; INSTANCE_BYTES]);

impl Instance {
    /// That of a server without a local socket.
    pub const NONE: Self = Self([0; INSTANCE_BYTES]);

    /// The instance with these bytes.
    pub const fn new(bytes: [u8; INSTANCE_BYTES]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; INSTANCE_BYTES] {
        &self.0
    }

    /// The local socket's name in the abstract namespace; None if there is no such socket.
    pub fn socket_name(&self) -> Option<String> {
        (*self != Self::NONE).then(|| format!("dray-{self:?}"))
    }
}

/// 32 hexadecimal digits.
impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_specification() {
        let bytes = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128.to_be_bytes();
        let name = Instance::new(bytes).socket_name();
        assert_eq!(name.as_deref(), Some("dray-00112233445566778899aabbccddeeff"));
        assert_eq!(Instance::NONE.socket_name(), None);
    }
}
