//! A socket whose packets may be compressed.
//!
//! ```text
//!   length 3 │ sequence 1 │ plain length 3 │ zlib or zstd; plain bytes if the plain length is 0
//! ```
//!
//! A compressed packet holds any part of the stream of packets. Its numbers begin anew with each
//! command.

use std::io::{self, Read, Write};

use dray_net::Socket;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;

use crate::packets::ERROR;

const HEADER_BYTES: usize = 7;
/// Where the payload begins in a packet that is not compressed.
const PAYLOAD: usize = 4;
/// The largest part in a compressed packet.
const PART_BYTES_MAX: usize = 0xff_ffff;
/// Shorter parts are not compressed, as in the servers' own clients.
const COMPRESSED_BYTES_MIN: usize = 50;

/// How packets are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compressor {
    Zlib,
    /// MySQL has it since 8.0.18.
    Zstd,
}

impl Compressor {
    /// The level at which both sides compress by zstd.
    pub(crate) const ZSTD_LEVEL: u8 = 3;

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
        }
    }

    /// Appends the compressed bytes.
    fn compress(self, plain: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Zlib => {
                let mut encoder = ZlibEncoder::new(out, Default::default());
                encoder.write_all(plain)?;
                encoder.finish().map(drop)
            }
            Self::Zstd => {
                out.extend(zstd::bulk::compress(plain, Self::ZSTD_LEVEL.into())?);
                Ok(())
            }
        }
    }

    /// Fills `plain` with what was compressed: at most `plain_bytes`, or one more.
    fn decompress(self, body: &[u8], plain_bytes: usize, plain: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Zlib => {
                plain.clear();
                // One byte more than it should have would show.
                let mut decoder = ZlibDecoder::new(body).take(plain_bytes as u64 + 1);
                decoder.read_to_end(plain).map(drop)
            }
            Self::Zstd => {
                // More than the buffer takes is an error.
                plain.resize(plain_bytes, 0);
                let filled = zstd::bulk::decompress_to_buffer(body, plain)?;
                plain.truncate(filled);
                Ok(())
            }
        }
    }
}

/// A connection to a server.
#[derive(Debug)]
pub struct Connection<S = Socket> {
    stream: S,
    compression: Option<Box<Compression>>,
}

#[derive(Debug)]
struct Compression {
    compressor: Compressor,
    /// The compressed packet, and how much of it was read.
    packet: Vec<u8>,
    filled: usize,
    /// What it holds, and how much of that was used.
    plain: Vec<u8>,
    used: usize,
    /// What is written since the last flush.
    written: Vec<u8>,
    /// Compressed packets to be sent, and how much of them was.
    out: Vec<u8>,
    sent: usize,
    /// The sequence number of the next compressed packet, in either direction.
    sequence: u8,
}

impl<S: Read + Write> Connection<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, compression: None }
    }

    /// The same connection, compressed from here on.
    pub(crate) fn compressed(self, compressor: Compressor) -> Self {
        Self { compression: Some(Box::new(Compression::new(compressor))), ..self }
    }

    /// How its packets are compressed: `zlib` or `zstd`.
    pub fn compression(&self) -> Option<&'static str> {
        self.compression.as_ref().map(|compression| compression.compressor.name())
    }

    /// The socket.
    pub fn socket(&self) -> &S {
        &self.stream
    }

    pub(crate) fn into_socket(self) -> S {
        self.stream
    }
}

impl<S: Read> Read for Connection<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(compression) = &mut self.compression else { return self.stream.read(buffer) };
        while compression.used == compression.plain.len() {
            if !compression.read_packet(&mut self.stream)? {
                return Ok(0);
            }
        }
        let rest = &compression.plain[compression.used..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        compression.used += count;
        Ok(count)
    }
}

impl<S: Write> Write for Connection<S> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let Some(compression) = &mut self.compression else { return self.stream.write(buffer) };
        compression.written.extend(buffer);
        Ok(buffer.len())
    }

    /// Sends what was written as one command. If it fails with a tick, it goes on the next time.
    fn flush(&mut self) -> io::Result<()> {
        if let Some(compression) = &mut self.compression {
            compression.send(&mut self.stream)?;
        }
        self.stream.flush()
    }
}

impl Compression {
    fn new(compressor: Compressor) -> Self {
        Self {
            compressor,
            packet: Vec::new(),
            filled: 0,
            plain: Vec::new(),
            used: 0,
            written: Vec::new(),
            out: Vec::new(),
            sent: 0,
            sequence: 0,
        }
    }

    /// Reads the next compressed packet, which may have arrived in part. Returns whether the stream
    /// goes on.
    fn read_packet(&mut self, stream: &mut impl Read) -> io::Result<bool> {
        loop {
            let (mut wanted, mut plain_length, mut sequence) = (HEADER_BYTES, 0, 0);
            if let [a, b, c, found, d, e, f, ..] = self.packet[..self.filled] {
                wanted += number(a, b, c);
                (plain_length, sequence) = (number(d, e, f), found);
            }
            // Only once the header is known.
            if self.filled >= HEADER_BYTES && self.filled == wanted {
                self.unpack(plain_length)?;
                // A server that closes the connection may send an error whose number is not the
                // next.
                if sequence != self.sequence && self.plain.get(PAYLOAD) != Some(&ERROR) {
                    return Err(malformed("a compressed packet has a wrong number"));
                }
                self.sequence = self.sequence.wrapping_add(1);
                self.packet.clear();
                self.filled = 0;
                return Ok(true);
            }
            self.packet.resize(wanted, 0);
            match stream.read(&mut self.packet[self.filled..])? {
                0 => return Ok(false),
                read => self.filled += read,
            }
        }
    }

    fn unpack(&mut self, plain_length: usize) -> io::Result<()> {
        let body = &self.packet[HEADER_BYTES..];
        self.used = 0;
        if plain_length == 0 {
            self.plain.clear();
            self.plain.extend(body);
            return Ok(());
        }
        self.compressor.decompress(body, plain_length, &mut self.plain)?;
        match self.plain.len() == plain_length {
            true => Ok(()),
            false => Err(malformed("a compressed packet has a wrong length")),
        }
    }

    fn send(&mut self, stream: &mut impl Write) -> io::Result<()> {
        if self.out.is_empty() {
            // The number of the packet in it: a command begins anew, a file's data goes on.
            if self.written.get(3) == Some(&0) {
                self.sequence = 0;
            }
            for part in self.written.chunks(PART_BYTES_MAX) {
                let at = self.out.len();
                self.out.extend([0; HEADER_BYTES]);
                let body = at + HEADER_BYTES;
                let mut plain_length = 0;
                if part.len() >= COMPRESSED_BYTES_MIN {
                    self.compressor.compress(part, &mut self.out)?;
                    plain_length = part.len();
                }
                // What does not shrink may not fit into a compressed packet.
                if plain_length == 0 || self.out.len() - body >= part.len() {
                    self.out.truncate(body);
                    self.out.extend(part);
                    plain_length = 0;
                }
                let [a, b, c, ..] = (self.out.len() - body).to_le_bytes();
                let [d, e, f, ..] = plain_length.to_le_bytes();
                self.out[at..body].copy_from_slice(&[a, b, c, self.sequence, d, e, f]);
                self.sequence = self.sequence.wrapping_add(1);
            }
            self.written.clear();
        }
        while self.sent < self.out.len() {
            match stream.write(&self.out[self.sent..])? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                sent => self.sent += sent,
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }
}

fn number(a: u8, b: u8, c: u8) -> usize {
    u32::from_le_bytes([a, b, c, 0]) as usize
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives what was written back, a few bytes at a time, with ticks in between.
    #[derive(Default)]
    struct Echo {
        bytes: Vec<u8>,
        ticks: bool,
    }

    impl Echo {
        fn tick(&mut self) -> io::Result<()> {
            self.ticks = !self.ticks;
            if self.ticks { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        }
    }

    impl Read for Echo {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.tick()?;
            let count = buffer.len().min(self.bytes.len()).min(5);
            buffer[..count].copy_from_slice(&self.bytes[..count]);
            self.bytes.drain(..count);
            Ok(count)
        }
    }

    impl Write for Echo {
        fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
            self.tick()?;
            let count = buffer.len().min(7);
            self.bytes.extend(&buffer[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const COMPRESSORS: [Compressor; 2] = [Compressor::Zlib, Compressor::Zstd];

    fn sent(plain: &[u8], compressor: Compressor) -> Connection<Echo> {
        let mut connection = Connection::new(Echo::default()).compressed(compressor);
        connection.write_all(plain).unwrap();
        while connection.flush().is_err() {}
        // What comes back is numbered as what was sent.
        connection.compression.as_mut().unwrap().sequence = 0;
        connection
    }

    fn received(connection: &mut Connection<Echo>) -> io::Result<Vec<u8>> {
        let (mut plain, mut buffer) = (Vec::new(), [0; 100]);
        loop {
            match connection.read(&mut buffer) {
                Ok(0) => return Ok(plain),
                Ok(read) => plain.extend(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn hash(number: u32) -> u8 {
        (number.wrapping_mul(0x9e37_79b9).rotate_left(15).wrapping_mul(0x85eb_ca6b) >> 24) as u8
    }

    #[test]
    fn both_ways() {
        for length in [0, 1, 49, 50, 1000] {
            let plain: Vec<u8> = (0..length).map(|i| (i % 7) as u8).collect();
            // Hashes do not shrink.
            let odd: Vec<u8> = plain.iter().zip(0u32..).map(|(_, i)| hash(i)).collect();
            for (plain, compressor) in
                [plain, odd].iter().flat_map(|plain| COMPRESSORS.map(|each| (plain, each)))
            {
                let mut connection = sent(plain, compressor);
                assert!(connection.stream.bytes.len() <= plain.len() + HEADER_BYTES, "{length}");
                assert_eq!(&received(&mut connection).unwrap(), plain, "{length}");
            }
        }
    }

    #[test]
    fn malformed_packets() {
        let plain = [b'x'; 1000];
        for compressor in COMPRESSORS {
            for end in 0..sent(&plain, compressor).stream.bytes.len() {
                let mut connection = sent(&plain, compressor);
                connection.stream.bytes.truncate(end);
                assert!(received(&mut connection).unwrap().is_empty(), "{end}");
            }
            for (at, value) in [(3, 1), (4, 0xe7), (4, 0xe9), (6, 0xff), (8, 0)] {
                let mut connection = sent(&plain, compressor);
                connection.stream.bytes[at] = value;
                received(&mut connection).unwrap_err();
            }
        }
    }

    /// A server refuses what is too large once it has read the first of its compressed packets.
    #[test]
    fn errors_of_servers_that_close() {
        let error = b"\x0b\0\0\x01\xff\x81\x04#08S01No";
        for compressor in COMPRESSORS {
            let mut connection = sent(error, compressor);
            connection.stream.bytes[3] = 5;
            assert_eq!(received(&mut connection).unwrap(), error);
        }
    }
}
