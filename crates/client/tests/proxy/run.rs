//! A run of many seeded faults, and what must hold after it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::SystemTime;

use super::{Framing, Proxy};

/// A run of faults.
pub struct Run {
    pub seed: u64,
    faults: u64,
    /// The only fault to make, out of all.
    only: Option<u64>,
    /// What the process's memory may grow by from the first quarter of the run to its end.
    /// Allocators keep some memory that is free.
    growth_bytes_max: u64,
    panics: Arc<AtomicUsize>,
}

impl Run {
    /// Counts panics from now on. `DRAY_SEED` sets the seed, which is printed, and `DRAY_FAULT` the
    /// only fault. The variable `faults_variable` sets the number of faults.
    pub fn new(faults_variable: &str, faults: u64, growth_bytes_max: u64) -> Self {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let seed = number("DRAY_SEED", since_epoch.as_nanos() as u64);
        println!("DRAY_SEED={seed}");
        let panics = Arc::new(AtomicUsize::new(0));
        let (counted, hook) = (panics.clone(), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |info| {
            counted.fetch_add(1, Ordering::SeqCst);
            hook(info);
        }));
        let only = std::env::var("DRAY_FAULT").ok().map(|text| text.parse().unwrap());
        Self { seed, faults: number(faults_variable, faults), only, growth_bytes_max, panics }
    }

    /// Makes the faults by `clients` threads. `make` makes the fault of a number, and gives one of
    /// `N` outcomes. Returns how many faults had each outcome.
    ///
    /// # Panics
    /// If anything panicked, or files stay open, or the memory grows.
    pub fn make_faults<const N: usize>(
        &self,
        clients: usize,
        upstream: SocketAddr,
        framing: Framing,
        make: impl Fn(&Proxy, u64) -> usize + Sync,
        wait_until_idle: impl Fn(),
    ) -> [u64; N] {
        let descriptors_before = descriptors();
        let next = AtomicU64::new(0);
        let outcomes = [const { AtomicU64::new(0) }; N];
        let memory_early = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..clients {
                scope.spawn(|| {
                    let proxy = Proxy::start(upstream, framing);
                    loop {
                        let fault = next.fetch_add(1, Ordering::SeqCst);
                        if fault >= self.faults {
                            break;
                        }
                        if self.only.is_none_or(|only| only == fault) {
                            outcomes[make(&proxy, fault)].fetch_add(1, Ordering::SeqCst);
                        }
                        if fault == self.faults / 4 {
                            memory_early.store(memory_bytes("VmHWM"), Ordering::SeqCst);
                        }
                    }
                });
            }
        });
        assert_eq!(self.panics.load(Ordering::SeqCst), 0, "a panic on the way");
        wait_until_idle();
        let descriptors = descriptors();
        assert!(
            descriptors <= descriptors_before + 2,
            "{descriptors_before} open files, then {descriptors}"
        );
        // What is in memory at one moment depends on how many results are.
        let (early, late) = (memory_early.into_inner(), memory_bytes("VmRSS"));
        assert!(
            self.only.is_some() || late < early + self.growth_bytes_max,
            "at most {early} bytes of memory in a quarter, {late} at the end"
        );
        outcomes.map(AtomicU64::into_inner)
    }
}

/// The number of open files of this process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The resident memory of this process: now (`VmRSS`), or the most that it has had (`VmHWM`).
fn memory_bytes(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// A number from the environment.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}
