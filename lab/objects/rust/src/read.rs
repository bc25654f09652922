//! store, received, and experiment 1: reads from disk.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use crate::Failure;
use crate::checksum::Checksum;
use crate::files::{Entry, PageFile, PageReader, read_index, read_page};
use crate::implementation::{Implementation, Writer};
use crate::model::Study;
use crate::options::{Json, Options, Timer};
use crate::record::{Input, Reader};

/// The checksums of all objects of a file.
#[derive(Default)]
pub struct Summed {
    pub set: u64,
    pub sequence: Checksum,
    pub objects: u64,
}

pub fn sum_file<T: Study, I: Implementation<T>>(
    implementation: &I,
    path: &Path,
) -> Result<Summed, Failure> {
    let mut reader = PageReader::open(path)?;
    let mut summed = Summed::default();
    while let Some(page) = reader.next::<T, I>()? {
        let positions = implementation.positions(&page)?;
        let opened = implementation.open(page, &positions, true)?;
        for i in 0..positions.len() {
            let sum = implementation.sum(&opened, i);
            summed.set = summed.set.wrapping_add(sum);
            summed.sequence.word(sum);
            summed.objects += 1;
        }
    }
    Ok(summed)
}

pub fn store<T: Study, I: Implementation<T>>(
    implementation: &I,
    options: &Options,
    json: &mut Json,
) -> Result<(), Failure> {
    let mut input = Input::open(Path::new(options.text("input")?))?;
    let pages = options.file("folder", "pages")?;
    let mut file = PageFile::create(&pages)?;
    let mut writer = implementation.writer()?;
    let mut record = Vec::new();
    for _ in 0..input.count {
        input.next(&mut record)?;
        writer.add(&T::read(&mut Reader(&record))?)?;
        file.drain(&mut writer, false)?;
    }
    file.drain(&mut writer, true)?;
    file.write_index(&options.file("folder", "index")?)?;
    let summed = sum_file(implementation, &pages)?;
    if summed.objects != input.count {
        return Err("the file has other objects".into());
    }
    json.number("objects", summed.objects);
    json.number("bytes", file.object_bytes);
    json.number("file_bytes", file.bytes);
    json.checksum(summed.set);
    Ok(())
}

pub fn received<T: Study, I: Implementation<T>>(
    implementation: &I,
    options: &Options,
    json: &mut Json,
) -> Result<(), Failure> {
    let summed = sum_file(implementation, Path::new(options.text("file")?))?;
    json.number("objects", summed.objects);
    json.checksum(summed.set);
    Ok(())
}

/// What a thread has read, and how long that took.
#[derive(Default)]
struct Share {
    io_s: f64,
    ready_s: f64,
    touch_s: f64,
    bytes: u64,
    sum: u64,
}

/// Objects of one file that a thread reads.
struct Disk<'a, I> {
    implementation: &'a I,
    file: &'a File,
    index: &'a [Entry],
    validate: bool,
    share: Share,
}

impl<I> Disk<'_, I> {
    /// Reads objects of one page.
    fn page<T: Study>(&mut self, first: usize, end: usize) -> Result<(), Failure>
    where
        I: Implementation<T>,
    {
        let entries = &self.index[first..end];
        let before = Instant::now();
        let page = read_page(self.file, &entries[0])?;
        let is_read = Instant::now();
        let positions: Vec<u32> = entries.iter().map(|entry| entry.position).collect();
        let opened = self.implementation.open(page, &positions, self.validate)?;
        let is_ready = Instant::now();
        for i in 0..entries.len() {
            let sum = self.implementation.sum(&opened, i);
            self.share.sum = self.share.sum.wrapping_add(sum);
        }
        let is_touched = Instant::now();
        drop(opened);
        self.share.io_s += (is_read - before).as_secs_f64();
        // With the time that giving back the memory takes.
        self.share.ready_s += (is_ready - is_read + is_touched.elapsed()).as_secs_f64();
        self.share.touch_s += (is_touched - is_ready).as_secs_f64();
        self.share.bytes += u64::from(entries[0].page_bytes);
        Ok(())
    }

    fn sequential<T: Study>(&mut self, start: usize, end: usize) -> Result<(), Failure>
    where
        I: Implementation<T>,
    {
        let mut first = start;
        while first < end {
            let is_same = |entry: &&Entry| entry.offset == self.index[first].offset;
            let next = first + self.index[first..end].iter().take_while(is_same).count();
            self.page(first, next)?;
            first = next;
        }
        Ok(())
    }

    fn random<T: Study>(&mut self, seed: u64, start: usize, end: usize) -> Result<(), Failure>
    where
        I: Implementation<T>,
    {
        (start..end).try_for_each(|i| {
            let at = (random_at(seed, i as u64) % self.index.len() as u64) as usize;
            self.page(at, at + 1)
        })
    }
}

/// The i-th of random numbers, as ../README.md defines them.
fn random_at(seed: u64, i: u64) -> u64 {
    let mut x = seed.wrapping_add(i).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x ^= x >> 32;
    x = x.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^ (x >> 32)
}

pub fn read<T: Study, I: Implementation<T>>(
    implementation: &I,
    options: &Options,
    json: &mut Json,
) -> Result<(), Failure> {
    let index = read_index(&options.file("folder", "index")?)?;
    let file = File::open(options.file("folder", "pages")?)?;
    let count = options.number("count")? as usize;
    let start = options.number_or("start", 0)? as usize;
    let threads = options.number_or("threads", 1)? as usize;
    let seed = options.number_or("seed", 1)?;
    let is_random = options.text_or("order", "sequential") == "random";
    if !is_random && start.checked_add(count).is_none_or(|end| end > index.len()) {
        return Err(format!("there are only {} objects", index.len()).into());
    }
    let work = |thread: usize| -> Result<Share, Failure> {
        let share = Share::default();
        let validate = options.validate();
        let mut disk = Disk { implementation, file: &file, index: &index, validate, share };
        let (from, to) = (count * thread / threads, count * (thread + 1) / threads);
        if is_random {
            disk.random(seed, from, to)?;
        } else {
            disk.sequential(start + from, start + to)?;
        }
        Ok(disk.share)
    };
    let timer = Timer::start();
    let shares = std::thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        let mut shares = vec![work(0)];
        shares.extend(others.into_iter().map(|other| match other.join() {
            Ok(share) => share,
            Err(_) => Err("a thread has panicked".into()),
        }));
        shares.into_iter().collect::<Result<Vec<Share>, Failure>>()
    })?;
    let (wall_s, cpu_s) = timer.stop();
    json.seconds("wall_s", wall_s);
    json.seconds("cpu_s", cpu_s);
    json.seconds("io_s", shares.iter().map(|share| share.io_s).sum());
    json.seconds("ready_s", shares.iter().map(|share| share.ready_s).sum());
    json.seconds("touch_s", shares.iter().map(|share| share.touch_s).sum());
    json.number("bytes", shares.iter().map(|share| share.bytes).sum());
    json.checksum(shares.iter().fold(0, |sum, share| sum.wrapping_add(share.sum)));
    Ok(())
}
