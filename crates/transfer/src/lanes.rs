//! Chunks of one stream that are made side by side, and leave in order.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::time::{Duration, Instant};

use dray_format::{Chunk, Error};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::{JoinHandle, block_in_place, spawn_blocking};

use crate::chunker::{Chunker, Cut};
use crate::maker::Maker;
use crate::queue::Turn;

/// A chunk, or why there is none.
pub(crate) struct Made {
    pub(crate) chunk: Result<Chunk, Error>,
    pub(crate) took: Duration,
    /// Ends when the chunk has been queued.
    pub(crate) _turn: Turn,
}

/// What makes the chunks of a stream: in the task itself, or, where they take long and there are
/// threads to spare, several at a time.
pub(crate) struct Lanes {
    /// Those that have nothing to do.
    makers: Vec<Maker>,
    under_way: VecDeque<JoinHandle<(Maker, Made)>>,
    count: usize,
}

impl Lanes {
    pub(crate) fn new(chunker: &Chunker, count: usize) -> Self {
        let makers = (0..count.max(1)).map(|_| chunker.maker()).collect();
        Self { makers, under_way: VecDeque::new(), count: count.max(1) }
    }

    /// Whether nothing is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Whether a chunk must be taken before another one is begun.
    pub(crate) fn is_full(&self) -> bool {
        self.under_way.len() == self.count
    }

    /// Begins a chunk, after which others must be taken until it is its turn; or makes it at once,
    /// when it is handed out.
    pub(crate) fn begin(&mut self, cut: Cut, turn: Turn) -> Option<Made> {
        let mut maker = self.makers.pop()?;
        let takes_long = maker.takes_long(&cut);
        if self.count > 1 && (takes_long || !self.under_way.is_empty()) {
            self.under_way.push_back(spawn_blocking(move || {
                let made = make(&mut maker, &cut, turn);
                (maker, made)
            }));
            return None;
        }
        let made = match Handle::current().runtime_flavor() {
            // Others, above all the writer, need not wait for it.
            RuntimeFlavor::MultiThread if takes_long => {
                block_in_place(|| make(&mut maker, &cut, turn))
            }
            _ => make(&mut maker, &cut, turn),
        };
        self.makers.push(maker);
        Some(made)
    }

    /// Waits for the chunk whose turn it is; none if none is under way. Safe to drop and call
    /// again.
    pub(crate) async fn next(&mut self) -> Option<Made> {
        let ended = self.under_way.front_mut()?.await;
        self.under_way.pop_front();
        let (maker, made) = match ended {
            Ok(done) => done,
            Err(failed) => match failed.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime is going.
                Err(_) => return None,
            },
        };
        self.makers.push(maker);
        Some(made)
    }
}

fn make(maker: &mut Maker, cut: &Cut, turn: Turn) -> Made {
    let started = Instant::now();
    let chunk = maker.make(cut);
    Made { chunk, took: started.elapsed(), _turn: turn }
}
