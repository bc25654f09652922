//! TUN devices: a read returns an IP packet that a network namespace has sent, and a write makes it
//! receive one.
//!
//! The only unsafe code of this crate is the request that attaches to a device.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::Error;

const TUN: &str = "/dev/net/tun";
/// The folder of the namespaces that `ip netns` made.
const NAMESPACES: &str = "/run/netns";
/// From linux/if.h.
const DEVICE_NAME_BYTES: usize = 16;
/// From linux/if_tun.h: IP packets without a device header.
const IFF_TUN: u16 = 0x0001;
const IFF_NO_PI: u16 = 0x1000;
/// From asm-generic/fcntl.h, as on x86-64 and AArch64.
const O_NONBLOCK: i32 = 0o4000;

/// An attached TUN device. Reads and writes do not block.
pub struct Tun {
    file: File,
}

impl Tun {
    /// Attaches to an existing device of a namespace. The calling thread stays in the namespace.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or the device cannot be attached to.
    pub fn open(namespace: &str, device: &str) -> Result<Self, Error> {
        enter(namespace)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(O_NONBLOCK)
            .open(TUN)
            .map_err(|error| Error::io(format!("open {TUN}"), error))?;
        attach(file.as_fd(), device)?;
        Ok(Self { file })
    }

    /// Reads the next packet into `buffer`; `None` if there is none.
    ///
    /// # Errors
    /// If the read fails.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.file.read(buffer) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a packet to the namespace.
    ///
    /// # Errors
    /// If the device does not accept the packet.
    pub fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        // A device accepts a packet whole or not at all.
        self.file.write(packet).map(|_| ())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn enter(namespace: &str) -> Result<(), Error> {
    let path = format!("{NAMESPACES}/{namespace}");
    let file = File::open(&path)
        .map_err(|error| Error::io(format!("open the namespace {path}"), error))?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|error| Error::io(format!("enter the namespace {path}"), error))
}

fn attach(file: BorrowedFd<'_>, device: &str) -> Result<(), Error> {
    let request = Attach::new(device)?;
    // SAFETY: `Attach` describes TUNSETIFF as the kernel defines it; see its implementation of
    // `Ioctl`.
    unsafe { ioctl(file, request) }
        .map_err(|error| Error::io(format!("attach to the device {device}"), error))
}

/// `struct ifreq` of linux/if.h with the fields that TUNSETIFF reads: name and flags.
#[repr(C)]
struct Attach {
    name: [u8; DEVICE_NAME_BYTES],
    flags: u16,
    /// The rest of the union that contains the flags.
    unused: [u8; 22],
}

const _: () = assert!(size_of::<Attach>() == 40);

impl Attach {
    fn new(device: &str) -> Result<Self, Error> {
        let mut name = [0; DEVICE_NAME_BYTES];
        match name.get_mut(..device.len()) {
            // The name ends with a zero byte.
            Some(start) if (1..DEVICE_NAME_BYTES).contains(&device.len()) => {
                start.copy_from_slice(device.as_bytes())
            }
            _ => return Err(Error::DeviceName(device.to_owned())),
        }
        Ok(Self { name, flags: IFF_TUN | IFF_NO_PI, unused: [0; 22] })
    }
}

// SAFETY: TUNSETIFF reads a `struct ifreq` and writes the device's name back into it. `Attach` has
// the layout and size of one (asserted above), lives until the call returns, and is mutable. The
// opcode is `_IOW('T', 202, int)`: the kernel's header says int, but means the structure.
unsafe impl Ioctl for Attach {
    type Output = ();

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::write::<i32>(b'T', 202)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut *self).cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_with_a_zero() {
        let request = Attach::new("link0").unwrap();
        assert_eq!(&request.name[..7], b"link0\0\0");
        assert_eq!(Attach::new("fifteen-bytes-x").unwrap().name[15], 0);
    }

    #[test]
    fn names_that_do_not_fit_are_refused() {
        for name in ["", "a-name-of-16-byt", "a name that is far too long for a device"] {
            assert!(Attach::new(name).is_err(), "{name}");
        }
    }
}
