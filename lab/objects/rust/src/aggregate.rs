//! Experiment 4: seven processes add up sparse vectors over a tree.

use std::io::{Read, Write};
use std::iter::Peekable;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::Failure;
use crate::checksum::Checksum;
use crate::implementation::page_buffer;
use crate::model::{Entry, SparseVector};
use crate::options::{Json, Options, Timer};
use crate::record::{Input, Reader};

const HOST: &str = "127.0.0.1";
/// The other process may not listen yet.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const VECTOR_BYTES_MAX: u64 = 1 << 36;

/// How vectors become bytes, and are read in them.
pub trait Vectors {
    /// A vector that can be read. Bytes come from another process, so they are valid.
    type Opened;

    fn encode(&self, vector: &SparseVector) -> Result<Bytes, Failure>;
    fn open(&self, bytes: Bytes) -> Result<Self::Opened, Failure>;
    fn entries<'a>(&'a self, opened: &'a Self::Opened)
    -> impl ExactSizeIterator<Item = Entry> + 'a;
}

/// The implementation's bytes of the vector of an input.
fn vector_of<V: Vectors>(vectors: &V, options: &Options) -> Result<Bytes, Failure> {
    let mut record = Vec::new();
    Input::open(Path::new(options.text("input")?))?.next(&mut record)?;
    vectors.encode(&SparseVector::read(&mut Reader(&record))?)
}

fn sum<V: Vectors>(vectors: &V, opened: &V::Opened) -> u64 {
    let mut h = Checksum::default();
    let entries = vectors.entries(opened);
    h.word(entries.len() as u64);
    entries.for_each(|entry| entry.sum(&mut h));
    h.0
}

pub fn store<V: Vectors>(vectors: &V, options: &Options, json: &mut Json) -> Result<(), Failure> {
    let bytes = vector_of(vectors, options)?;
    json.number("objects", 1);
    json.number("bytes", bytes.len() as u64);
    json.number("file_bytes", bytes.len() as u64);
    json.checksum(sum(vectors, &vectors.open(bytes)?));
    Ok(())
}

/// Adds up vectors in one pass over their positions.
fn add_up<I: Iterator<Item = Entry>>(mut vectors: [Peekable<I>; 3], most: usize) -> SparseVector {
    let mut entries = Vec::with_capacity(most);
    loop {
        let next = vectors.iter_mut().filter_map(|vector| Some(vector.peek()?.position)).min();
        let Some(position) = next else { return SparseVector { entries } };
        let of = |vector: &mut Peekable<I>| vector.next_if(|entry| entry.position == position);
        let value = vectors.iter_mut().filter_map(of).map(|entry| entry.value).sum();
        entries.push(Entry { position, value });
    }
}

fn connect(port: u64) -> Result<TcpStream, Failure> {
    let start = Instant::now();
    loop {
        match TcpStream::connect((HOST, port as u16)) {
            Ok(stream) => return Ok(stream),
            Err(error) if start.elapsed() > CONNECT_TIMEOUT => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn receive(from: &mut TcpStream) -> Result<Bytes, Failure> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > VECTOR_BYTES_MAX {
        return Err("a vector is too long".into());
    }
    let mut bytes = page_buffer(length as usize);
    from.read_exact(&mut bytes)?;
    Ok(Bytes::from_owner(bytes))
}

pub fn aggregate<V: Vectors>(
    vectors: &V,
    options: &Options,
    json: &mut Json,
) -> Result<(), Failure> {
    let (node, port) = (options.number("node")?, options.number("port")?);
    let is_leaf = node >= 3;
    let own_bytes = vector_of(vectors, options)?;
    let own = vectors.open(own_bytes.clone())?;
    let mut children = Vec::new();
    if !is_leaf {
        let listener = TcpListener::bind((HOST, (port + node) as u16))?;
        for _ in 0..2 {
            children.push(listener.accept()?.0);
        }
    }
    let parent = if node > 0 { Some(connect(port + (node - 1) / 2)?) } else { None };
    crate::options::announce()?;
    std::io::stdin().read_line(&mut String::new())?;
    let timer = Timer::start();
    let mut received = 0;
    let result = if is_leaf {
        own_bytes
    } else {
        let mut opened = Vec::new();
        for child in &mut children {
            let bytes = receive(child)?;
            received += bytes.len() as u64;
            opened.push(vectors.open(bytes)?);
        }
        let all = [&own, &opened[0], &opened[1]].map(|vector| vectors.entries(vector));
        let most = all.iter().map(ExactSizeIterator::len).sum();
        vectors.encode(&add_up(all.map(Iterator::peekable), most))?
    };
    if let Some(mut parent) = parent {
        parent.write_all(&(result.len() as u64).to_le_bytes())?;
        parent.write_all(&result)?;
    }
    let (wall_s, cpu_s) = timer.stop();
    json.seconds("wall_s", wall_s);
    json.seconds("cpu_s", cpu_s);
    json.seconds("io_s", 0.0);
    json.number("bytes", received);
    json.checksum(if node == 0 { sum(vectors, &vectors.open(result)?) } else { 0 });
    Ok(())
}
