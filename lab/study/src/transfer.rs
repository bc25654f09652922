//! Real bytes through a real socket.
//!
//! ```text
//! server: encoder ──queue of 2──▶ writer ──TCP──▶ reader ──queue of 2──▶ decoder :client
//! ```
//!
//! Both ends are pipelined, a thread each side of a queue. The client asks for so many chunks of a
//! case; its clock starts before it asks and stops when the last chunk is decoded. Each chunk is
//! led by its length; a length of 0 ends them. A request of length 0 asks for bytes that mean
//! nothing.

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

/// What a client fetches before its clock starts: a link's token bucket, full after a pause, would
/// carry as much for nothing.
const DRAIN_BYTES: usize = 256 << 10;
/// Chunks that wait between two threads.
const QUEUE_CHUNKS: usize = 2;

/// What a client asks for.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    experiment: String,
    data: String,
    case: String,
    chunk_bytes: usize,
    /// If there are fewer, they begin again.
    chunks: usize,
}

/// What came.
#[derive(Debug, Serialize)]
struct Delivery {
    #[serde(flatten)]
    order: Order,
    /// From the request to the last row.
    seconds: f64,
    rows: usize,
    plain_bytes: usize,
    /// With the four bytes that lead each chunk.
    wire_bytes: usize,
}

/// The formats of an experiment on one table, and its rows as they send them: the sample's, and as
/// many as there are.
struct Shelf {
    sample: RecordBatch,
    volume: RecordBatch,
    formats: Vec<(String, AnyCodec)>,
}

impl Shelf {
    /// The rows that are sent in chunks of a size. Rows that were drawn repeat, which a large
    /// window finds: they are sent only where a chunk is larger than the whole sample.
    fn chunks(&self, order: &Order) -> Vec<RecordBatch> {
        let row_bytes = plain_bytes(&self.sample) as f64 / self.sample.num_rows() as f64;
        if order.experiment == "chunk-size" && order.chunk_bytes > plain_bytes(&self.sample) {
            return cut(&self.volume, order.chunk_bytes, row_bytes, order.chunks);
        }
        cut_evenly(&self.sample, order.chunk_bytes, row_bytes)
    }
}

/// Tables, and what has been made of them.
pub struct Shop {
    tables: Vec<Table>,
    shelves: HashMap<(String, String), Shelf>,
}

impl Shop {
    /// A shop of these tables.
    pub fn new(tables: Vec<Table>) -> Self {
        Self { tables, shelves: HashMap::new() }
    }

    fn find(&mut self, order: &Order) -> Result<(&Shelf, &AnyCodec)> {
        let key = (order.experiment.clone(), order.data.clone());
        if !self.shelves.contains_key(&key) {
            let table =
                self.tables.iter().find(|table| table.name == order.data).ok_or("no such table")?;
            let (volume, _) = formats(&order.experiment, &table.volume)?;
            let (sample, formats) = formats(&order.experiment, &table.sample)?;
            self.shelves.insert(key.clone(), Shelf { sample, volume, formats });
        }
        let shelf = &self.shelves[&key];
        let (_, codec) =
            shelf.formats.iter().find(|(name, _)| *name == order.case).ok_or("no such case")?;
        Ok((shelf, codec))
    }
}

/// Serves one client after another until it is ended.
///
/// # Errors
/// When the address cannot be had.
pub fn serve(address: &str, mut shop: Shop) -> Result<()> {
    let listener = TcpListener::bind(address)?;
    eprintln!("ready");
    loop {
        let (mut socket, _) = listener.accept()?;
        socket.set_nodelay(true)?;
        // A client that has gone away is no failure of the server.
        if let Err(error) = serve_client(&mut socket, &mut shop) {
            eprintln!("{error}");
        }
    }
}

fn serve_client(socket: &mut TcpStream, shop: &mut Shop) -> Result<()> {
    loop {
        let mut length = [0; 4];
        if socket.read_exact(&mut length).is_err() {
            return Ok(());
        }
        let mut order = vec![0; u32::from_le_bytes(length) as usize];
        if order.is_empty() {
            socket.write_all(&[0; DRAIN_BYTES])?;
            continue;
        }
        socket.read_exact(&mut order)?;
        let order: Order = serde_json::from_slice(&order)?;
        let (shelf, codec) = shop.find(&order)?;
        let chunks = shelf.chunks(&order);
        let (sender, receiver) = sync_channel::<Vec<Bytes>>(QUEUE_CHUNKS);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| -> std::io::Result<()> {
                for message in receiver {
                    write_message(socket, &message)?;
                }
                socket.write_all(&[0; 4])
            });
            for chunk in chunks.iter().cycle().take(order.chunks) {
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

/// Fetches each order, a line of JSON in the input, and prints a line of JSON for each.
///
/// # Errors
/// When the connection fails, or a delivery is not whole.
pub fn fetch(address: &str, mut shop: Shop, orders: impl BufRead) -> Result<()> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    for line in orders.lines() {
        let order: Order = serde_json::from_str(&line?)?;
        let (_, codec) = shop.find(&order)?;
        let delivery = fetch_one(&mut socket, order, codec)?;
        println!("{}", serde_json::to_string(&delivery)?);
    }
    Ok(())
}

fn fetch_one(socket: &mut TcpStream, order: Order, codec: &AnyCodec) -> Result<Delivery> {
    let request = serde_json::to_vec(&order)?;
    socket.write_all(&[0; 4])?;
    socket.read_exact(&mut vec![0; DRAIN_BYTES])?;
    let start = Instant::now();
    socket.write_all(&(request.len() as u32).to_le_bytes())?;
    socket.write_all(&request)?;
    let (sender, receiver) = sync_channel::<Bytes>(QUEUE_CHUNKS);
    let mut delivery = Delivery { order, seconds: 0.0, rows: 0, plain_bytes: 0, wire_bytes: 0 };
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
            delivery.rows += rows.num_rows();
            delivery.plain_bytes += plain_bytes(&rows);
        }
        delivery.wire_bytes = reader.join().map_err(|_| "the reader failed")??;
        Ok(())
    })?;
    delivery.seconds = start.elapsed().as_secs_f64();
    if received != delivery.order.chunks {
        return Err(format!("{received} chunks came of {}", delivery.order.chunks).into());
    }
    Ok(delivery)
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
