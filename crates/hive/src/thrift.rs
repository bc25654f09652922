//! Thrift's binary protocol: values big-endian, fields with their type and number, lists with their
//! length. The strict form, whose messages begin with a version.
//!
//! Readers pass over fields that they don't know, as versions of a server differ.

use std::io::{Read, Write};

use dray_net::CancelCheck;

use crate::error::{Error, Result};
use crate::transport::Transport;

/// The first two bytes of a message.
const VERSION: u32 = 0x8001_0000;
const CALL: u32 = 1;
const REPLY: u32 = 2;
const EXCEPTION: u32 = 3;
/// How deep values that are passed over may be nested.
const DEPTH_MAX: u32 = 32;
/// The longest text that is kept: names, messages.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool = 2,
    I8 = 3,
    Double = 4,
    I16 = 6,
    I32 = 8,
    I64 = 10,
    Binary = 11,
    Struct = 12,
    Map = 13,
    Set = 14,
    List = 15,
}

impl Kind {
    fn of(code: u8) -> Result<Self> {
        Ok(match code {
            2 => Self::Bool,
            3 => Self::I8,
            4 => Self::Double,
            6 => Self::I16,
            8 => Self::I32,
            10 => Self::I64,
            11 => Self::Binary,
            12 => Self::Struct,
            13 => Self::Map,
            14 => Self::Set,
            15 => Self::List,
            _ => return Err(Error::protocol(format!("a value of the unknown type {code}"))),
        })
    }

    /// The least bytes of a value.
    fn bytes_min(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::Struct => 1,
            Self::I16 => 2,
            Self::I32 | Self::Binary => 4,
            Self::Set | Self::List => 5,
            Self::Map => 6,
            Self::Double | Self::I64 => 8,
        }
    }
}

/// A request.
#[derive(Debug)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    /// A call of a method whose one argument is a struct. Its fields follow.
    pub(crate) fn call(method: &str, sequence: i32) -> Self {
        let mut out = Self((VERSION | CALL).to_be_bytes().to_vec());
        out.bytes(method.as_bytes());
        out.0.extend(sequence.to_be_bytes());
        out.open(1);
        out
    }

    /// The bytes of the call.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.close();
        self.close();
        self.0
    }

    /// Begins a struct.
    pub(crate) fn open(&mut self, field: i16) {
        self.field(Kind::Struct, field);
    }

    /// Ends a struct.
    pub(crate) fn close(&mut self) {
        self.0.push(0);
    }

    pub(crate) fn bool(&mut self, field: i16, value: bool) {
        self.field(Kind::Bool, field);
        self.0.push(value.into());
    }

    pub(crate) fn i16(&mut self, field: i16, value: i16) {
        self.field(Kind::I16, field);
        self.0.extend(value.to_be_bytes());
    }

    pub(crate) fn i32(&mut self, field: i16, value: i32) {
        self.field(Kind::I32, field);
        self.0.extend(value.to_be_bytes());
    }

    pub(crate) fn i64(&mut self, field: i16, value: i64) {
        self.field(Kind::I64, field);
        self.0.extend(value.to_be_bytes());
    }

    pub(crate) fn binary(&mut self, field: i16, value: &[u8]) {
        self.field(Kind::Binary, field);
        self.bytes(value);
    }

    /// A map of strings.
    pub(crate) fn map(&mut self, field: i16, pairs: &[(&str, &str)]) {
        self.field(Kind::Map, field);
        self.0.extend([Kind::Binary as u8, Kind::Binary as u8]);
        self.0.extend((pairs.len() as u32).to_be_bytes());
        for (key, value) in pairs {
            self.bytes(key.as_bytes());
            self.bytes(value.as_bytes());
        }
    }

    fn field(&mut self, kind: Kind, field: i16) {
        self.0.push(kind as u8);
        self.0.extend(field.to_be_bytes());
    }

    /// What is written is a statement or shorter; the transport refuses 2 GiB.
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend((bytes.len() as u32).to_be_bytes());
        self.0.extend(bytes);
    }
}

/// An answer, which is read while it comes.
pub(crate) struct Reader<'a, S> {
    transport: &'a mut Transport<S>,
    check: CancelCheck<'a, Error>,
}

impl<'a, S: Read + Write> Reader<'a, S> {
    pub(crate) fn new(transport: &'a mut Transport<S>, check: CancelCheck<'a, Error>) -> Self {
        Self { transport, check }
    }

    /// Reads the answer to a call, whose fields `read` takes.
    ///
    /// # Errors
    /// If it is the answer to another call, or an exception, or `read` fails.
    pub(crate) fn answer<T>(
        mut self,
        method: &str,
        sequence: i32,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let first = u32::from_be_bytes(self.array()?);
        if first & 0xffff_0000 != VERSION {
            let what =
                "the answer is not in Thrift's binary protocol: is the port right, and auth?";
            return Err(Error::protocol(what));
        }
        let (name, found) = (self.text()?, self.i32()?);
        if first & 0xff == EXCEPTION {
            let message = self.exception()?;
            self.transport.end_message()?;
            return Err(Error::protocol(format!("{method}: {message}")));
        }
        if first & 0xff != REPLY || name != method || found != sequence {
            return Err(Error::protocol(format!("an answer other than to {method}")));
        }
        let mut result = None;
        let mut read = Some(read);
        while let Some((kind, field)) = self.field()? {
            match (kind, field, read.take()) {
                (Kind::Struct, 0, Some(read)) => result = Some(read(&mut self)?),
                _ => return Err(Error::protocol(format!("{method} has another result"))),
            }
        }
        self.transport.end_message()?;
        result.ok_or_else(|| Error::protocol(format!("{method} has no result")))
    }

    /// Reads an exception of the server's Thrift library.
    fn exception(&mut self) -> Result<String> {
        let mut message = String::new();
        while let Some((kind, field)) = self.field()? {
            match (kind, field) {
                (Kind::Binary, 1) => message = self.text()?,
                _ => self.skip(kind)?,
            }
        }
        Ok(message)
    }

    /// The type and number of a struct's next field; None at its end.
    pub(crate) fn field(&mut self) -> Result<Option<(Kind, i16)>> {
        match self.array()? {
            [0] => Ok(None),
            [kind] => Ok(Some((Kind::of(kind)?, i16::from_be_bytes(self.array()?)))),
        }
    }

    pub(crate) fn bool(&mut self) -> Result<bool> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(Error::protocol(format!("a boolean of {other}"))),
        }
    }

    pub(crate) fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// The next bytes.
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.transport.array(self.check)
    }

    /// A text, at most the first part of it. What is not UTF-8 is replaced.
    pub(crate) fn text(&mut self) -> Result<String> {
        let mut bytes = Vec::new();
        let length = self.length()?;
        self.copy(length.min(TEXT_BYTES_MAX), &mut bytes)?;
        self.pass(length - bytes.len())?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// A name, all of it.
    ///
    /// # Errors
    /// If it is too long, or not UTF-8.
    pub(crate) fn name(&mut self) -> Result<String> {
        let mut bytes = Vec::new();
        match self.length()? {
            length @ ..=TEXT_BYTES_MAX => self.copy(length, &mut bytes)?,
            length => return Err(Error::Limit(format!("a name has {length} bytes"))),
        }
        String::from_utf8(bytes).map_err(|_| Error::protocol("a name is not UTF-8"))
    }

    /// The length of a string, which the message may still have.
    #[inline]
    pub(crate) fn length(&mut self) -> Result<usize> {
        self.count(1)
    }

    /// Appends the next bytes. The vector grows with what has come.
    #[inline]
    pub(crate) fn copy(&mut self, mut bytes: usize, out: &mut Vec<u8>) -> Result<()> {
        while bytes > 0 {
            let chunk = self.transport.chunk(bytes, self.check)?;
            out.try_reserve(chunk.len()).map_err(|_| Error::Limit("no memory".to_owned()))?;
            out.extend_from_slice(chunk);
            bytes -= chunk.len();
        }
        Ok(())
    }

    /// The length of a list of these values.
    pub(crate) fn list(&mut self, kind: Kind) -> Result<usize> {
        let [found] = self.array()?;
        if Kind::of(found)? != kind {
            return Err(Error::protocol(format!("a list of another type than {kind:?}")));
        }
        self.count(kind.bytes_min())
    }

    /// The number of pairs of a map with these types; a map without pairs may have others.
    pub(crate) fn map(&mut self, key: Kind, value: Kind) -> Result<usize> {
        let kinds: [u8; 2] = self.array()?;
        let count = self.count(key.bytes_min() + value.bytes_min())?;
        if count > 0 && kinds != [key as u8, value as u8] {
            return Err(Error::protocol("a map of other types"));
        }
        Ok(count)
    }

    /// A number of values that have at least `bytes_min` bytes each.
    #[inline]
    fn count(&mut self, bytes_min: usize) -> Result<usize> {
        let count = self.i32()?;
        let count = usize::try_from(count);
        let count = count.map_err(|_| Error::protocol("a length below 0"))?;
        match count.checked_mul(bytes_min) {
            Some(bytes) if bytes <= self.transport.budget() => Ok(count),
            _ => Err(Error::Limit(format!("{count} values or bytes are too many for an answer"))),
        }
    }

    /// Passes over a value.
    pub(crate) fn skip(&mut self, kind: Kind) -> Result<()> {
        self.skip_at(kind, 0)
    }

    fn skip_at(&mut self, kind: Kind, depth: u32) -> Result<()> {
        if depth > DEPTH_MAX {
            return Err(Error::Limit(format!("values are nested over {DEPTH_MAX} deep")));
        }
        match kind {
            Kind::Bool | Kind::I8 | Kind::I16 | Kind::I32 | Kind::Double | Kind::I64 => {
                self.pass(kind.bytes_min())
            }
            Kind::Binary => {
                let length = self.length()?;
                self.pass(length)
            }
            Kind::Struct => {
                while let Some((kind, _)) = self.field()? {
                    self.skip_at(kind, depth + 1)?;
                }
                Ok(())
            }
            Kind::Set | Kind::List => {
                let [kind] = self.array()?;
                let count = self.count(1)?;
                // The type of an empty list may be anything.
                for _ in 0..count {
                    self.skip_at(Kind::of(kind)?, depth + 1)?;
                }
                Ok(())
            }
            Kind::Map => {
                let [key, value] = self.array()?;
                let count = self.count(2)?;
                for _ in 0..count {
                    self.skip_at(Kind::of(key)?, depth + 1)?;
                    self.skip_at(Kind::of(value)?, depth + 1)?;
                }
                Ok(())
            }
        }
    }

    fn pass(&mut self, mut bytes: usize) -> Result<()> {
        while bytes > 0 {
            bytes -= self.transport.chunk(bytes, self.check)?.len();
        }
        Ok(())
    }
}
