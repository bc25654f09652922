//! The phases of an access, each alone, over pages in memory.

use std::fs::File;

use bytes::{Bytes, BytesMut};

use crate::Failure;
use crate::files::{read_index, read_page};
use crate::implementation::{Implementation, Writer, Written};
use crate::model::Study;
use crate::options::{Json, Options, Timer};

/// The first objects of a file.
pub struct InMemory {
    pub pages: Vec<(Bytes, Vec<u32>)>,
}

impl InMemory {
    pub fn load(options: &Options, count: usize) -> Result<Self, Failure> {
        let index = read_index(&options.file("folder", "index")?)?;
        let file = File::open(options.file("folder", "pages")?)?;
        let chosen = index.get(..count).ok_or("there are fewer objects")?;
        let mut pages: Vec<(Bytes, Vec<u32>)> = Vec::new();
        for objects in chosen.chunk_by(|a, b| a.offset == b.offset) {
            let positions = objects.iter().map(|entry| entry.position).collect();
            pages.push((read_page(&file, &objects[0])?, positions));
        }
        Ok(Self { pages })
    }

    pub fn opened<T: Study, I: Implementation<T>>(
        &self,
        implementation: &I,
    ) -> Result<Vec<I::Opened>, Failure> {
        let open = |(page, positions): &(Bytes, Vec<u32>)| {
            implementation.open(page.clone(), positions, true)
        };
        self.pages.iter().map(open).collect()
    }

    /// The same in memory that nobody else has.
    fn copied(&self) -> Self {
        let copied = |(page, positions): &(Bytes, Vec<u32>)| {
            (BytesMut::from(&page[..]).freeze(), positions.clone())
        };
        Self { pages: self.pages.iter().map(copied).collect() }
    }
}

struct Phases<'a, T: Study, I: Implementation<T>> {
    implementation: &'a I,
    data: InMemory,
    /// Pages that were opened untimed, for phases that do not validate.
    trusted: Option<Vec<I::Opened>>,
    /// What the phase `mutate` changes: pages, or those that were opened untimed.
    copies: InMemory,
    trusted_copies: Vec<I::Opened>,
    own: Vec<T>,
    written: Vec<Written>,
}

impl<'a, T: Study, I: Implementation<T>> Phases<'a, T, I> {
    fn new(implementation: &'a I, options: &Options) -> Result<Self, Failure> {
        let data = InMemory::load(options, options.number("count")? as usize)?;
        let trusts = !options.validate() && !I::ALWAYS_VALIDATES;
        let trusted = trusts.then(|| data.opened(implementation)).transpose()?;
        let copies = InMemory { pages: Vec::new() };
        let (trusted_copies, own, written) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { implementation, data, trusted, copies, trusted_copies, own, written })
    }

    /// Calls `act` for each object, behind opening its page.
    fn each(
        &self,
        mut act: impl FnMut(&I::Opened, usize) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for (number, (page, positions)) in self.data.pages.iter().enumerate() {
            if let Some(trusted) = &self.trusted {
                (0..positions.len()).try_for_each(|i| act(&trusted[number], i))?;
            } else {
                let opened = self.implementation.open(page.clone(), positions, true)?;
                (0..positions.len()).try_for_each(|i| act(&opened, i))?;
            }
        }
        Ok(())
    }

    fn once(&mut self, phase: &str) -> Result<u64, Failure> {
        let mut sum = 0_u64;
        match phase {
            "validate" => {
                for (page, positions) in &self.data.pages {
                    self.implementation.open(page.clone(), positions, true)?;
                }
            }
            "open" => self.each(|page, i| {
                std::hint::black_box((page, i));
                Ok(())
            })?,
            "touch-one" => self.each(|page, i| {
                sum = sum.wrapping_add(i64::from(self.implementation.key(page, i).0) as u64);
                Ok(())
            })?,
            "touch-all" => self.each(|page, i| {
                sum = sum.wrapping_add(self.implementation.sum(page, i));
                Ok(())
            })?,
            "materialise" => {
                let mut own = Vec::new();
                self.each(|page, i| {
                    own.push(self.implementation.copy(page, i)?);
                    Ok(())
                })?;
                self.own = own;
            }
            "mutate" => self.mutate()?,
            "grow" => {
                let mut writer = self.implementation.writer()?;
                self.each(|page, i| writer.add_grown(page, i))?;
                self.written = writer.take(true)?;
            }
            "encode" => {
                let mut writer = self.implementation.writer()?;
                self.own.iter().try_for_each(|own| writer.add(own))?;
                self.written = writer.take(true)?;
            }
            other => return Err(format!("there is no phase {other}").into()),
        }
        Ok(sum)
    }

    fn mutate(&mut self) -> Result<(), Failure> {
        let mut trusted = self.trusted_copies.drain(..);
        for (page, positions) in self.copies.pages.drain(..) {
            let opened = match trusted.next() {
                Some(opened) => opened,
                None => self.implementation.open(page, &positions, true)?,
            };
            let bytes = self.implementation.change(opened)?;
            self.written.push(Written { bytes, positions, object_bytes: 0 });
        }
        Ok(())
    }

    /// Before each time, untimed.
    fn prepare(&mut self, phase: &str) -> Result<(), Failure> {
        self.own.clear();
        self.written.clear();
        if phase == "encode" {
            self.once("materialise")?;
        }
        if phase == "mutate" {
            self.copies = self.data.copied();
            if self.trusted.is_some() {
                self.trusted_copies = self.copies.opened(self.implementation)?;
                self.copies.pages.iter_mut().for_each(|(page, _)| *page = Bytes::new());
            }
        }
        Ok(())
    }

    fn untimed_sum(&mut self, phase: &str, timed: u64) -> Result<u64, Failure> {
        match phase {
            "open" => self.once("touch-all"),
            "materialise" => Ok(self.own.iter().fold(0, |sum, own| sum.wrapping_add(own.sum()))),
            "mutate" | "grow" | "encode" => {
                let mut sum = 0_u64;
                for page in &self.written {
                    let positions = &page.positions;
                    let opened = self.implementation.open(page.bytes.clone(), positions, true)?;
                    for i in 0..positions.len() {
                        sum = sum.wrapping_add(self.implementation.sum(&opened, i));
                    }
                }
                Ok(sum)
            }
            _ => Ok(timed),
        }
    }
}

pub fn phases<T: Study, I: Implementation<T>>(
    implementation: &I,
    options: &Options,
    json: &mut Json,
) -> Result<(), Failure> {
    let phase = options.text("phase")?;
    let mut work = Phases::new(implementation, options)?;
    let (mut walls, mut cpus, mut sum) = (Vec::new(), Vec::new(), 0);
    for _ in 0..options.number_or("repeat", 1)?.max(1) {
        work.prepare(phase)?;
        let timer = Timer::start();
        sum = work.once(phase)?;
        let (wall_s, cpu_s) = timer.stop();
        walls.push(wall_s);
        cpus.push(cpu_s);
    }
    let sum = work.untimed_sum(phase, sum)?;
    for times in [&mut walls, &mut cpus] {
        times.sort_by(f64::total_cmp);
    }
    json.seconds("wall_s", walls[walls.len() / 2]);
    json.seconds("cpu_s", cpus[cpus.len() / 2]);
    json.seconds("io_s", 0.0);
    json.number("bytes", 0);
    json.checksum(sum);
    Ok(())
}
