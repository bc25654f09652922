//! Experiment 3: external sort that removes duplicates.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;
use std::rc::Rc;

use crate::Failure;
use crate::files::{PageFile, PageReader};
use crate::implementation::{Implementation, Writer};
use crate::model::{Key, Study};
use crate::options::{Json, Options, Timer};
use crate::read::sum_file;

/// Bytes of a key and the place of its object, in memory.
const ITEM_BYTES: u64 = 16;

struct Sort<'a, I> {
    implementation: &'a I,
    input: PageReader,
    folder: PathBuf,
    memory: u64,
    runs: usize,
    io_s: f64,
    bytes: u64,
}

impl<I> Sort<'_, I> {
    fn run_path(&self, run: usize) -> PathBuf {
        self.folder.join(format!("run-{run}.pages"))
    }

    /// Reads as much as the memory holds, sorts it and writes it.
    fn make_run<T: Study>(&mut self) -> Result<bool, Failure>
    where
        I: Implementation<T>,
    {
        let mut pages = Vec::new();
        let mut items: Vec<(Key, u32, u32)> = Vec::new();
        let mut used = 0;
        while used < self.memory {
            let before = self.input.bytes();
            let Some(page) = self.input.next::<T, I>()? else { break };
            let positions = self.implementation.positions(&page)?;
            let opened = self.implementation.open(page, &positions, true)?;
            for i in 0..positions.len() {
                items.push((self.implementation.key(&opened, i), pages.len() as u32, i as u32));
            }
            pages.push(opened);
            used += self.input.bytes() - before + positions.len() as u64 * ITEM_BYTES;
        }
        if items.is_empty() {
            return Ok(false);
        }
        items.sort_unstable_by_key(|item| item.0);
        let mut file = PageFile::create(&self.run_path(self.runs))?;
        self.runs += 1;
        let mut writer = self.implementation.writer()?;
        let place = |item: &(Key, u32, u32)| (&pages[item.1 as usize], item.2 as usize);
        for (i, item) in items.iter().enumerate() {
            let is_same = |last: &(Key, u32, u32)| {
                last.0 == item.0 && self.implementation.equal(place(last), place(item))
            };
            if !i.checked_sub(1).is_some_and(|last| is_same(&items[last])) {
                let (page, object) = place(item);
                writer.add_object(page, object)?;
                file.drain(&mut writer, false)?;
            }
        }
        file.drain(&mut writer, true)?;
        self.io_s += file.io_s;
        self.bytes += file.bytes;
        Ok(true)
    }

    fn merge<T: Study>(&mut self) -> Result<(), Failure>
    where
        I: Implementation<T>,
    {
        let mut queue = BinaryHeap::new();
        let mut runs = Vec::new();
        for i in 0..self.runs {
            let reader = PageReader::open(&self.run_path(i))?;
            let mut run = Run { reader, opened: None, at: 0, count: 0 };
            if let Some(key) = run.advance::<T, I>(self.implementation)? {
                queue.push(Reverse((key, i)));
            }
            runs.push(run);
        }
        let mut file = PageFile::create(&self.folder.join("sorted.pages"))?;
        let mut writer = self.implementation.writer()?;
        let mut last: Option<(Key, Rc<I::Opened>, usize)> = None;
        while let Some(Reverse((key, i))) = queue.pop() {
            let run = &mut runs[i];
            let opened = run.opened.clone().ok_or("a run has ended")?;
            let is_same = last.as_ref().is_some_and(|(last_key, page, at)| {
                *last_key == key && self.implementation.equal((page, *at), (&opened, run.at))
            });
            if !is_same {
                writer.add_object(&opened, run.at)?;
                file.drain(&mut writer, false)?;
                last = Some((key, opened, run.at));
            }
            if let Some(key) = run.advance::<T, I>(self.implementation)? {
                queue.push(Reverse((key, i)));
            }
        }
        file.drain(&mut writer, true)?;
        self.io_s += file.io_s + runs.iter().map(|run| run.reader.io_s).sum::<f64>();
        self.bytes += file.bytes + runs.iter().map(|run| run.reader.bytes()).sum::<u64>();
        for run in 0..self.runs {
            std::fs::remove_file(self.run_path(run))?;
        }
        Ok(())
    }
}

/// A run that is merged, at one of its objects. The page is shared with what was written last.
struct Run<O> {
    reader: PageReader,
    opened: Option<Rc<O>>,
    at: usize,
    count: usize,
}

impl<O> Run<O> {
    /// The key of the next object.
    fn advance<T: Study, I: Implementation<T, Opened = O>>(
        &mut self,
        implementation: &I,
    ) -> Result<Option<Key>, Failure> {
        self.at += 1;
        if self.at >= self.count {
            let Some(page) = self.reader.next::<T, I>()? else { return Ok(None) };
            let positions = implementation.positions(&page)?;
            self.count = positions.len();
            self.opened = Some(Rc::new(implementation.open(page, &positions, true)?));
            self.at = 0;
        }
        Ok(self.opened.as_ref().map(|opened| implementation.key(opened, self.at)))
    }
}

pub fn sort<T: Study, I: Implementation<T>>(
    implementation: &I,
    options: &Options,
    json: &mut Json,
) -> Result<(), Failure> {
    let folder = PathBuf::from(options.text("output")?);
    let mut work = Sort {
        implementation,
        input: PageReader::open(&options.file("folder", "pages")?)?,
        folder: folder.clone(),
        memory: options.number("memory")?,
        runs: 0,
        io_s: 0.0,
        bytes: 0,
    };
    let timer = Timer::start();
    while work.make_run::<T>()? {}
    work.merge::<T>()?;
    let (wall_s, cpu_s) = timer.stop();
    json.seconds("wall_s", wall_s);
    json.seconds("cpu_s", cpu_s);
    json.seconds("io_s", work.io_s + work.input.io_s);
    json.number("bytes", work.bytes + work.input.bytes());
    json.number("runs", work.runs as u64);
    let sorted = folder.join("sorted.pages");
    let summed = sum_file(implementation, &sorted)?;
    std::fs::remove_file(sorted)?;
    json.number("objects", summed.objects);
    json.checksum(summed.sequence.0);
    Ok(())
}
