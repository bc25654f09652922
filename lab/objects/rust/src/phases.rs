//! The phases of an access, each alone, over pages in memory.

use std::fs::File;

use bytes::Bytes;

use crate::Failure;
use crate::files::{read_index, read_page};
use crate::implementation::{Implementation, Writer, Written};
use crate::model::Study;
use crate::options::{Json, Options, Timer};

/// The first objects of a file.
struct InMemory {
    pages: Vec<(Bytes, Vec<u32>)>,
}

impl InMemory {
    fn load(options: &Options, count: usize) -> Result<Self, Failure> {
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
}

struct Phases<'a, T: Study, I: Implementation<T>> {
    implementation: &'a I,
    data: InMemory,
    /// Pages that were opened untimed, for phases that do not validate.
    trusted: Option<Vec<I::Opened>>,
    own: Vec<T>,
    written: Vec<Written>,
}

impl<'a, T: Study, I: Implementation<T>> Phases<'a, T, I> {
    fn new(implementation: &'a I, options: &Options) -> Result<Self, Failure> {
        let data = InMemory::load(options, options.number("count")? as usize)?;
        let mut new = Self { implementation, data, trusted: None, own: vec![], written: vec![] };
        if options.text_or("validate", "no") == "no" {
            new.trusted = Some(new.opened()?);
        }
        Ok(new)
    }

    fn opened(&self) -> Result<Vec<I::Opened>, Failure> {
        let pages = self.data.pages.iter();
        pages
            .map(|(page, positions)| self.implementation.open(page.clone(), positions, true))
            .collect()
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
            "mutate" | "grow" => self.written = self.changed(phase)?,
            "encode" => {
                let mut writer = self.implementation.writer()?;
                self.own.iter().try_for_each(|own| writer.add(own))?;
                self.written = writer.take(true)?;
            }
            other => return Err(format!("there is no phase {other}").into()),
        }
        Ok(sum)
    }

    /// Objects are copied into the language's own, changed, and written again.
    fn changed(&self, phase: &str) -> Result<Vec<Written>, Failure> {
        let mut writer = self.implementation.writer()?;
        self.each(|page, i| {
            let mut own = self.implementation.copy(page, i)?;
            if phase == "mutate" {
                own.change();
            } else if !own.grow() {
                return Err("only customers have a list that grows".into());
            }
            writer.add(&own)
        })?;
        writer.take(true)
    }

    /// Before each time, untimed.
    fn prepare(&mut self, phase: &str) -> Result<(), Failure> {
        self.own.clear();
        self.written.clear();
        if phase == "encode" {
            self.once("materialise")?;
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
