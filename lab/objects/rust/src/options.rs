//! The command line, clocks, and the line of JSON that a run prints.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

use crate::Failure;

pub struct Options(BTreeMap<String, String>);

impl Options {
    pub fn parse(words: &[String]) -> Result<Self, Failure> {
        let mut values = BTreeMap::new();
        for pair in words.chunks(2) {
            let name = pair[0].strip_prefix("--").ok_or("expected an option")?;
            let value = pair.get(1).ok_or_else(|| format!("--{name} needs a value"))?;
            values.insert(name.to_owned(), value.clone());
        }
        Ok(Self(values))
    }

    pub fn text(&self, name: &str) -> Result<&str, Failure> {
        Ok(self.0.get(name).ok_or_else(|| format!("--{name} is missing"))?)
    }

    pub fn text_or<'a>(&'a self, name: &str, otherwise: &'a str) -> &'a str {
        self.0.get(name).map_or(otherwise, String::as_str)
    }

    pub fn number(&self, name: &str) -> Result<u64, Failure> {
        Ok(self.text(name)?.parse()?)
    }

    pub fn number_or(&self, name: &str, otherwise: u64) -> Result<u64, Failure> {
        if self.0.contains_key(name) { self.number(name) } else { Ok(otherwise) }
    }

    pub fn validate(&self) -> bool {
        self.text_or("validate", "no") == "yes"
    }

    /// A file of the object in a folder.
    pub fn file(&self, folder: &str, suffix: &str) -> Result<PathBuf, Failure> {
        let name = format!("{}.{suffix}", self.text("object")?);
        Ok(PathBuf::from(self.text(folder)?).join(name))
    }
}

/// Measures from its construction on.
pub struct Timer {
    wall: Instant,
    cpu_s: f64,
}

impl Timer {
    pub fn start() -> Self {
        Self { cpu_s: cpu_s(), wall: Instant::now() }
    }

    /// Seconds of the clock and of the processors.
    pub fn stop(&self) -> (f64, f64) {
        (self.wall.elapsed().as_secs_f64(), cpu_s() - self.cpu_s)
    }
}

/// User and system time of all threads.
fn cpu_s() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 * 1e-9
}

/// Tells the driver that a process is ready.
pub fn announce() -> Result<(), Failure> {
    println!("ready");
    Ok(std::io::stdout().flush()?)
}

/// The peak of resident memory.
pub fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

pub struct Json(String);

impl Json {
    pub fn of(options: &Options) -> Self {
        let mut json = Self(String::new());
        for (name, value) in &options.0 {
            json.raw(name, &format!("\"{value}\""));
        }
        json
    }

    fn raw(&mut self, name: &str, value: &str) {
        let separator = if self.0.is_empty() { "{" } else { ", " };
        let _ = write!(self.0, "{separator}\"{name}\": {value}");
    }

    pub fn number(&mut self, name: &str, value: u64) {
        self.raw(name, &value.to_string());
    }

    pub fn seconds(&mut self, name: &str, value: f64) {
        self.raw(name, &format!("{value:.9}"));
    }

    pub fn checksum(&mut self, value: u64) {
        self.raw("checksum", &format!("\"{value:016x}\""));
    }

    pub fn line(&self) -> String {
        format!("{}}}", self.0)
    }
}
