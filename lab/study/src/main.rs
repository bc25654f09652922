//! Compares the chunk with other formats: tables 3 to 9 of Raasveldt and Mühleisen, "Don't Hold My
//! Data Hostage" (VLDB 2017), on today's data and rivals. `lab/study/bench.py` runs this program
//! and reports the results.
//!
//! ```text
//! study cpu EXPERIMENT DATA …     encode and decode on one core: a JSON array
//! study serve ADDRESS …           sends the chunks that clients request
//! study fetch ADDRESS …           requests on standard input, responses on standard output,
//!                                 one line of JSON each
//! ```

mod chunk_size;
mod codec;
mod column;
mod compressors;
mod data;
mod dray;
mod experiment;
mod integers;
mod measure;
mod nulls;
mod protobuf;
mod row_major;
mod serialization;
mod strings;
mod transfer;

use data::{NAMES, Table};
use transfer::Catalog;

/// Any error ends the program with its message.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// As [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

const USAGE: &str = "usage: study cpu EXPERIMENT DATA | serve ADDRESS | fetch ADDRESS
  --rounds N          measured rounds after the warm-up (default 5)
  --volume-bytes N    bytes of each table for chunk sizes and links (default 220200960)
  --sample-rows N     rows of lineitem for other experiments (default 100000)
  --chunk-bytes N     bytes of a chunk's rows before encoding, unless the experiment varies them
                      (default 1048576)";

/// Options of the command line.
struct Options {
    rounds: usize,
    volume_bytes: usize,
    sample_rows: usize,
    chunk_bytes: usize,
}

fn main() -> Result<()> {
    let mut words = Vec::new();
    let mut options =
        Options { rounds: 5, volume_bytes: 210 << 20, sample_rows: 100_000, chunk_bytes: 1 << 20 };
    let mut arguments = std::env::args().skip(1);
    while let Some(word) = arguments.next() {
        let option = match word.as_str() {
            "--rounds" => &mut options.rounds,
            "--volume-bytes" => &mut options.volume_bytes,
            "--sample-rows" => &mut options.sample_rows,
            "--chunk-bytes" => &mut options.chunk_bytes,
            _ => {
                words.push(word);
                continue;
            }
        };
        *option = arguments.next().ok_or(USAGE)?.parse()?;
    }
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["cpu", experiment, data] => {
            // Only the chunk-size experiment reads the volume.
            let volume_bytes = if experiment == "chunk-size" { options.volume_bytes } else { 1 };
            let table = Table::load(data, volume_bytes, options.sample_rows)?;
            let cases = experiment::cases(experiment, &table, options.chunk_bytes)?;
            println!("{}", serde_json::to_string(&measure::measure(&cases, options.rounds)?)?);
            Ok(())
        }
        ["serve", address] => transfer::serve(address, Catalog::new(load_all(&options)?)),
        ["fetch", address] => {
            // A client needs only the schemas.
            let small = Options { volume_bytes: 1, sample_rows: 1, ..options };
            transfer::fetch(address, Catalog::new(load_all(&small)?), std::io::stdin().lock())
        }
        _ => Err(USAGE.into()),
    }
}

fn load_all(options: &Options) -> Result<Vec<Table>> {
    NAMES.iter().map(|name| Table::load(name, options.volume_bytes, options.sample_rows)).collect()
}
