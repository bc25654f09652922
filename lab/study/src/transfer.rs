//! Transfers of chunks over TCP.
//!
//! ```text
//! server: encoder ──queue of 2──▶ writer ──TCP──▶ reader ──queue of 2──▶ decoder :client
//! ```
//!
//! Both ends are pipelined, with one thread on each side of a queue. The client requests a number
//! of chunks of a case. Its clock starts before the request and stops when the last chunk is
//! decoded. Each chunk follows its length; a length of 0 ends a response. A request of length 0
//! asks for bytes to drain the link's token bucket.

use std::collections::HashMap;
use std::io::{BufRead, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use arrow_array::RecordBatch;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::codec::AnyCodec;
use crate::data::{Table, cut, cut_evenly, plain_bytes};
use crate::experiment::formats;

/// Bytes that a client fetches before its clock starts. A token bucket, which is full after a
/// pause, would otherwise pass as many without delay.
const DRAIN_BYTES: usize = 256 << 10;
/// Capacity of the queue between two threads, in chunks.
const QUEUE_CHUNKS: usize = 2;

/// A request for chunks of a case.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Request {
    experiment: String,
    data: String,
    case: String,
    chunk_bytes: usize,
    /// The number of chunks. The server repeats its chunks if it has fewer.
    chunks: usize,
}

/// The measurements of one transfer.
#[derive(Debug, Serialize)]
struct Response {
    #[serde(flatten)]
    request: Request,
    /// From the request to the last decoded row.
    seconds: f64,
    rows: usize,
    plain_bytes: usize,
    /// Bytes received, including the four bytes of each length.
    wire_bytes: usize,
}

/// One table for one experiment: the rows to send, and the formats.
struct Prepared {
    sample: RecordBatch,
    volume: RecordBatch,
    formats: Vec<(String, AnyCodec)>,
}

impl Prepared {
    /// The chunks to send. Drawn rows repeat, which favours compressors with a large window, so
    /// they are sent only if a chunk is larger than the whole sample.
    fn chunks(&self, request: &Request) -> Vec<RecordBatch> {
        let row_bytes = plain_bytes(&self.sample) as f64 / self.sample.num_rows() as f64;
        if request.experiment == "chunk-size" && request.chunk_bytes > plain_bytes(&self.sample) {
            return cut(&self.volume, request.chunk_bytes, row_bytes, request.chunks);
        }
        cut_evenly(&self.sample, request.chunk_bytes, row_bytes)
    }
}

/// The tables, and those prepared for experiments so far.
pub struct Catalog {
    tables: Vec<Table>,
    prepared: HashMap<(String, String), Prepared>,
}

impl Catalog {
    /// A catalog of tables.
    pub fn new(tables: Vec<Table>) -> Self {
        Self { tables, prepared: HashMap::new() }
    }

    fn find(&mut self, request: &Request) -> Result<(&Prepared, &AnyCodec)> {
        let key = (request.experiment.clone(), request.data.clone());
        if !self.prepared.contains_key(&key) {
            let table = self
                .tables
                .iter()
                .find(|table| table.name == request.data)
                .ok_or("no such table")?;
            let (volume, _) = formats(&request.experiment, &table.volume)?;
            let (sample, formats) = formats(&request.experiment, &table.sample)?;
            self.prepared.insert(key.clone(), Prepared { sample, volume, formats });
        }
        let prepared = &self.prepared[&key];
        let (_, codec) = prepared
            .formats
            .iter()
            .find(|(name, _)| *name == request.case)
            .ok_or("no such case")?;
        Ok((prepared, codec))
    }
}

/// Serves clients one after another until the process is killed.
///
/// # Errors
/// If the address cannot be bound, or accepting a client fails.
pub fn serve(address: &str, mut catalog: Catalog) -> Result<()> {
    let listener = TcpListener::bind(address)?;
    eprintln!("ready");
    loop {
        let (mut socket, _) = listener.accept()?;
        socket.set_nodelay(true)?;
        // A client that disconnects must not end the server.
        if let Err(error) = serve_client(&mut socket, &mut catalog) {
            eprintln!("{error}");
        }
    }
}

fn serve_client(socket: &mut TcpStream, catalog: &mut Catalog) -> Result<()> {
    loop {
        let mut length = [0; 4];
        if socket.read_exact(&mut length).is_err() {
            return Ok(());
        }
        let mut request = vec![0; u32::from_le_bytes(length) as usize];
        if request.is_empty() {
            socket.write_all(&[0; DRAIN_BYTES])?;
            continue;
        }
        socket.read_exact(&mut request)?;
        let request: Request = serde_json::from_slice(&request)?;
        let (prepared, codec) = catalog.find(&request)?;
        let chunks = prepared.chunks(&request);
        let (sender, receiver) = sync_channel::<Vec<Bytes>>(QUEUE_CHUNKS);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| -> std::io::Result<()> {
                for message in receiver {
                    write_message(socket, &message)?;
                }
                socket.write_all(&[0; 4])
            });
            for chunk in chunks.iter().cycle().take(request.chunks) {
                if sender.send(codec.encode(chunk)?).is_err() {
                    break;
                }
            }
            drop(sender);
            writer.join().map_err(|_| "the writer failed")??;
            Ok::<_, crate::Error>(())
        })?;
    }
}

fn write_message(socket: &mut TcpStream, parts: &[Bytes]) -> std::io::Result<()> {
    let bytes = parts.iter().map(Bytes::len).sum::<usize>() as u32;
    let length = bytes.to_le_bytes();
    let mut slices: Vec<_> = std::iter::once(IoSlice::new(&length))
        .chain(parts.iter().map(|part| IoSlice::new(part)))
        .collect();
    let mut left = &mut slices[..];
    while !left.is_empty() {
        let written = socket.write_vectored(left)?;
        IoSlice::advance_slices(&mut left, written);
    }
    Ok(())
}

/// Sends each request, a line of JSON in the input, and prints its measurements as a line of JSON.
///
/// # Errors
/// If the connection fails, or a response is incomplete.
pub fn fetch(address: &str, mut catalog: Catalog, requests: impl BufRead) -> Result<()> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    for line in requests.lines() {
        let request: Request = serde_json::from_str(&line?)?;
        let (_, codec) = catalog.find(&request)?;
        let response = fetch_one(&mut socket, request, codec)?;
        println!("{}", serde_json::to_string(&response)?);
    }
    Ok(())
}

fn fetch_one(socket: &mut TcpStream, request: Request, codec: &AnyCodec) -> Result<Response> {
    let encoded = serde_json::to_vec(&request)?;
    socket.write_all(&[0; 4])?;
    socket.read_exact(&mut vec![0; DRAIN_BYTES])?;
    let start = Instant::now();
    socket.write_all(&(encoded.len() as u32).to_le_bytes())?;
    socket.write_all(&encoded)?;
    let (sender, receiver) = sync_channel::<Bytes>(QUEUE_CHUNKS);
    let mut response = Response { request, seconds: 0.0, rows: 0, plain_bytes: 0, wire_bytes: 0 };
    let mut received = 0;
    std::thread::scope(|scope| -> Result<()> {
        let reader = scope.spawn(|| -> std::io::Result<usize> {
            let mut wire_bytes = 0;
            while let Some(message) = read_message(socket)? {
                wire_bytes += message.len() + 4;
                if sender.send(message).is_err() {
                    break;
                }
            }
            drop(sender);
            Ok(wire_bytes)
        });
        for message in receiver {
            let rows = codec.decode(message)?;
            received += 1;
            response.rows += rows.num_rows();
            response.plain_bytes += plain_bytes(&rows);
        }
        response.wire_bytes = reader.join().map_err(|_| "the reader failed")??;
        Ok(())
    })?;
    response.seconds = start.elapsed().as_secs_f64();
    if received != response.request.chunks {
        return Err(
            format!("expected {} chunks, received {received}", response.request.chunks).into()
        );
    }
    Ok(response)
}

fn read_message(socket: &mut TcpStream) -> std::io::Result<Option<Bytes>> {
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length == 0 {
        return Ok(None);
    }
    let mut message = Vec::with_capacity(length);
    if socket.take(length as u64).read_to_end(&mut message)? != length {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(message.into()))
}
