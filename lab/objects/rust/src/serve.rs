//! Experiment 2: a server of objects, from memory or from the disk.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use crate::Failure;
use crate::files::{Entry, read_index, read_page};
use crate::implementation::{Implementation, Writer};
use crate::model::Study;
use crate::options::{Json, Options, Timer, announce};
use crate::phases::InMemory;

/// The answer to a request: pages that contain exactly these objects.
struct Answer {
    socket: TcpStream,
    sent: u64,
}

impl Answer {
    fn page(&mut self, page: &[u8]) -> Result<(), Failure> {
        self.socket.write_all(&(page.len() as u32).to_le_bytes())?;
        self.socket.write_all(page)?;
        self.sent += page.len() as u64 + 4;
        Ok(())
    }

    /// Objects `first` to before `end` of what is in memory. Whole pages are sent as they are.
    fn send_loaded<T: Study, I: Implementation<T>>(
        &mut self,
        implementation: &I,
        (data, opened): (&InMemory, &[I::Opened]),
        first: usize,
        end: usize,
    ) -> Result<(), Failure> {
        let mut writer = implementation.writer()?;
        let mut page_first = 0;
        for ((page, positions), opened) in data.pages.iter().zip(opened) {
            let page_end = page_first + positions.len();
            let (from, to) = (first.max(page_first), end.min(page_end));
            if from == page_first && to == page_end {
                self.drain(&mut writer, true)?;
                self.page(page)?;
            } else {
                for i in from..to {
                    writer.add_object(opened, i - page_first)?;
                    self.drain(&mut writer, false)?;
                }
            }
            page_first = page_end;
        }
        self.drain(&mut writer, true)
    }

    fn drain<T>(&mut self, writer: &mut impl Writer<T>, is_end: bool) -> Result<(), Failure> {
        writer.take(is_end)?.iter().try_for_each(|page| self.page(&page.bytes))
    }

    /// The pages of these objects as they are. Returns the seconds of reading.
    fn send_stored(&mut self, file: &File, objects: &[Entry]) -> Result<f64, Failure> {
        let mut io_s = 0.0;
        for of_page in objects.chunk_by(|a, b| a.offset == b.offset) {
            let start = Instant::now();
            let page = read_page(file, &of_page[0])?;
            io_s += start.elapsed().as_secs_f64();
            self.page(&page)?;
        }
        Ok(io_s)
    }
}

/// The next request, or none at the end of the connection.
fn request(socket: &mut TcpStream) -> Result<Option<(usize, usize)>, Failure> {
    let (mut first, mut count) = ([0; 8], [0; 8]);
    match socket.read_exact(&mut first) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    socket.read_exact(&mut count)?;
    Ok(Some((u64::from_le_bytes(first) as usize, u64::from_le_bytes(count) as usize)))
}

pub fn serve<T: Study, I: Implementation<T>>(
    implementation: &I,
    options: &Options,
    json: &mut Json,
) -> Result<(), Failure> {
    let index = read_index(&options.file("folder", "index")?)?;
    let file = File::open(options.file("folder", "pages")?)?;
    let from_ram = options.text("source")? == "ram";
    let data = InMemory::load(options, if from_ram { index.len() } else { 0 })?;
    let opened = data.opened(implementation)?;
    let listener =
        TcpListener::bind((options.text("address")?, options.number("port")?.try_into()?))?;
    announce()?;
    let socket = listener.accept()?.0;
    socket.set_nodelay(true)?;
    let mut answer = Answer { socket, sent: 0 };
    let timer = Timer::start();
    let mut io_s = 0.0;
    while let Some((first, count)) = request(&mut answer.socket)? {
        let end = first.checked_add(count).filter(|end| *end <= index.len());
        let end = end.ok_or("a request is for objects that are not there")?;
        if from_ram {
            answer.send_loaded(implementation, (&data, &opened), first, end)?;
        } else {
            io_s += answer.send_stored(&file, &index[first..end])?;
        }
        answer.socket.write_all(&[0; 4])?;
    }
    let (wall_s, cpu_s) = timer.stop();
    json.seconds("wall_s", wall_s);
    json.seconds("cpu_s", cpu_s);
    json.seconds("io_s", io_s);
    json.number("bytes", answer.sent);
    json.checksum(0);
    Ok(())
}
