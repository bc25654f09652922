//! One line of advice, based on where the time and the bytes of a transfer went.
//!
//! ```text
//!   execute, encode ──▶ queue ──▶ socket ──▶ network ──▶ receive ──▶ decode
//!   busy: the server is the bottleneck       waiting: the bottleneck is behind it
//! ```
//!
//! If producers don't wait for space in the queue, they are the bottleneck. If they do, it is
//! behind the queue: the client if it spends most of its time decoding, else the network.

use std::time::Duration;

use arrow::datatypes::{DataType, FieldRef, Schema};
use dray_client::{CompressionChoice, PathKind, SourceKind, Stats};

use crate::number::{bytes, percent};

/// Shorter transfers have nothing to gain.
const SHORT: Duration = Duration::from_millis(5);
/// The percentage that counts as most.
const MOST: f64 = 50.0;
/// A column, or a saving, is mentioned if it is at least this percentage of the whole.
const LARGE: f64 = 25.0;

/// The advice on what would help most.
pub(super) fn advice(
    schema: &Schema,
    stats: &Stats,
    asked: CompressionChoice,
    kind: SourceKind,
) -> String {
    if stats.total < SHORT {
        return "the result is small: keep the connection open between queries".to_owned();
    }
    if stats.path.kind == PathKind::Rows {
        return rows_advice(schema, stats, kind);
    }
    let server = stats.server.unwrap_or_default();
    let (execute, encode, queue) =
        (server.execute_ns as f64, server.encode_ns as f64, server.queue_ns as f64);
    let produce = execute + encode + queue;
    let plan = percent(stats.plan.as_secs_f64(), stats.total.as_secs_f64());
    if plan > MOST {
        return format!(
            "planning takes {plan:.0} % of the time; the transfer is not the \
             bottleneck"
        );
    }
    let execute = percent(execute, produce);
    if execute > MOST {
        return format!(
            "running the query takes {execute:.0} % of the server's work; the transfer is not the \
             bottleneck"
        );
    }
    let encode = percent(encode, produce);
    if encode > MOST {
        return encode_advice(schema, stats, encode);
    }
    let decode = percent(stats.decode.as_secs_f64(), stats.total.as_secs_f64());
    if decode > MOST {
        let what = format!("the client decodes for {decode:.0} % of the time");
        return match stats.compression {
            CompressionChoice::None => format!("{what}{}", column(schema, stats)),
            _ => format!("{what}: try --compression none if the network is fast"),
        };
    }
    let socket = percent(server.socket_ns as f64, server.total_ns as f64);
    let what = format!("the server waits for the socket for {socket:.0} % of the time");
    match (stats.compression, asked) {
        // The server chose none because client and server share a host.
        (CompressionChoice::None, CompressionChoice::Auto) => {
            format!("{what}, on one host: memory is the bottleneck{}", column(schema, stats))
        }
        (CompressionChoice::None | CompressionChoice::Light | CompressionChoice::Lz4, _) => {
            format!("{what}: try --compression auto")
        }
        _ => format!("{what}: the network is the bottleneck{}", column(schema, stats)),
    }
}

/// The advice for a server that spends `share` percent of its work on encoding.
fn encode_advice(schema: &Schema, stats: &Stats, share: f64) -> String {
    let what = format!("takes {share:.0} % of the server's work");
    match stats.compression {
        CompressionChoice::None => format!("building chunks {what}{}", column(schema, stats)),
        // The server has weighed this against the network.
        CompressionChoice::Auto => {
            format!("compressing {what}, as the network is slower{}", column(schema, stats))
        }
        CompressionChoice::Zstd(_) => format!("compressing {what}: try --compression light"),
        _ => format!("compressing {what}: try --compression none if the network is fast"),
    }
}

/// What a PostgreSQL server without the extension spends on making rows, in seconds for each value.
/// The estimate is cautious: for lineitem it gives 3.2 s, half of what README.md's table shows.
const VALUE_SECONDS: f64 = 25e-9;
/// The same for a `numeric`.
const NUMERIC_SECONDS: f64 = 60e-9;

fn rows_advice(schema: &Schema, stats: &Stats, kind: SourceKind) -> String {
    if kind == SourceKind::Mysql {
        return mysql_advice(schema, stats);
    }
    let total = stats.total.as_secs_f64();
    let receive = stats.receive.as_secs_f64();
    let decode = percent(stats.decode.as_secs_f64(), total);
    if decode > MOST {
        return format!(
            "the client parses rows for {decode:.0} % of the time: the server's extension would \
             send columns"
        );
    }
    let is_numeric = |field: &&FieldRef| {
        matches!(field.data_type(), DataType::Decimal128(..) | DataType::Decimal256(..))
            || field.metadata().values().any(|value| value == "numeric")
    };
    let columns = schema.fields().len();
    let numerics = schema.fields().iter().filter(is_numeric).count();
    let rows = stats.rows as f64;
    let numeric_seconds = numerics as f64 * rows * NUMERIC_SECONDS;
    let saved = (numeric_seconds + (columns - numerics) as f64 * rows * VALUE_SECONDS).min(receive);
    let share = percent(saved, total);
    if share < LARGE {
        let share = percent(receive, total);
        return format!(
            "running the query takes most of {share:.0} % of the time; the transfer is not the \
             bottleneck"
        );
    }
    let numeric = match percent(numeric_seconds, total) {
        share @ LARGE.. => format!(", {:.0} % for numeric columns alone", share.min(100.0)),
        _ => String::new(),
    };
    format!(
        "the server makes rows for about {share:.0} % of the time{numeric}: the extension would \
         save about {saved:.1} s (CREATE EXTENSION dray); fewer columns would help too"
    )
}

/// What a thread of a MySQL server spends on making rows, in seconds for each value. The estimate
/// is cautious: for lineitem it gives half of what lab/reports/2026-11-mysql.md shows.
const MYSQL_VALUE_SECONDS: f64 = 50e-9;
/// Parts of those reasons for one connection that leave several to the user.
const SEVERAL_POSSIBLE: [&str; 3] = ["(partitions)", "(GRANT ", "partition_by can name"];

fn mysql_advice(schema: &Schema, stats: &Stats) -> String {
    let total = stats.total.as_secs_f64();
    let receive = stats.receive.as_secs_f64();
    let reason = stats.path.reason.as_str();
    let was_asked = reason == "one connection" || reason.starts_with("one connection;");
    let several = match was_asked || SEVERAL_POSSIBLE.iter().any(|part| reason.contains(part)) {
        true => ": several connections would share that (--partitions, see the path)",
        false => "; only fewer rows or columns would help",
    };
    let decode = percent(stats.decode.as_secs_f64(), total);
    if decode > MOST {
        return format!("the client parses rows for {decode:.0} % of the time{several}");
    }
    let waited = percent(receive, total).min(100.0);
    let first = percent(stats.first_chunk.as_secs_f64(), total);
    // Of one chunk, the time until it came is also that of its rows.
    if first > MOST && (stats.chunks > 1 || waited < LARGE) {
        return format!(
            "running the query takes {first:.0} % of the time before the first rows come; the \
             transfer is not the bottleneck"
        );
    }
    // Of several connections both are sums.
    let values = schema.fields().len() as f64 * stats.rows as f64;
    let made = percent(values * MYSQL_VALUE_SECONDS, receive);
    let what = format!("the client waits for rows for {waited:.0} % of the time");
    if made > MOST {
        return format!("{what}, about as long as a server takes to make them{several}");
    }
    let compress = match reason.contains("compressed by") {
        true => "",
        false => "compress=zlib in the uri, or ",
    };
    format!(
        "{what}, longer than the server takes to make them: if it is the network and not the \
         query, {compress}dray serve --source beside the database would help"
    )
}

/// A note on the column that has most of the bytes, if it stands out.
fn column(schema: &Schema, stats: &Stats) -> String {
    let columns = schema.fields().iter().zip(&stats.profile.columns);
    let Some((field, profile)) = columns.max_by_key(|(_, profile)| profile.body_bytes) else {
        return String::new();
    };
    let share = percent(profile.body_bytes as f64, stats.wire_bytes as f64);
    if schema.fields().len() == 1 || share < LARGE {
        return "; only fewer rows or columns would help".to_owned();
    }
    let size = bytes(profile.body_bytes);
    format!(
        "; column {} is {share:.0} % of the bytes ({size}): leave it out if it isn't needed",
        field.name()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field};
    use dray_client::{ColumnProfile, Finished, Profile, TransferPath};

    /// A transfer of one second, with the server's times in percent.
    fn stats(
        execute: u64,
        encode: u64,
        queue: u64,
        socket: u64,
        compression: CompressionChoice,
    ) -> Stats {
        let ns = |percent| percent * 10_000_000;
        let server = Finished {
            execute_ns: ns(execute),
            encode_ns: ns(encode),
            queue_ns: ns(queue),
            socket_ns: ns(socket),
            total_ns: ns(100),
            ..Finished::default()
        };
        let columns = [10, 90]
            .map(|body_bytes| ColumnProfile { body_bytes, ..ColumnProfile::default() })
            .to_vec();
        Stats {
            total: Duration::from_secs(1),
            wire_bytes: 100,
            server: Some(server),
            compression,
            profile: Profile { columns },
            ..Stats::default()
        }
    }

    fn schema() -> Schema {
        let field = |name: &str| Field::new(name, DataType::Int8, true);
        Schema::new(vec![field("id"), field("comment")])
    }

    fn said(stats: &Stats, asked: CompressionChoice) -> String {
        advice(&schema(), stats, asked, SourceKind::Postgres)
    }

    #[test]
    fn advice_names_the_bottleneck() {
        use CompressionChoice::{Auto, Light, None, Zstd};
        let said_of = |stats: Stats, asked, expected: &str| {
            let said = said(&stats, asked);
            assert!(said.contains(expected), "{said:?} does not say {expected:?}");
        };
        said_of(stats(88, 10, 2, 5, None), Auto, "running the query takes 88 %");
        said_of(
            stats(5, 90, 5, 5, Zstd(9)),
            Zstd(9),
            "compressing takes 90 % of the server's work: try --compression light",
        );
        said_of(stats(5, 4, 91, 91, None), None, "for 91 % of the time: try --compression auto");
        said_of(stats(5, 4, 91, 91, Light), Light, "try --compression auto");
        said_of(
            stats(5, 4, 91, 91, Auto),
            Auto,
            "the network is the bottleneck; column comment is 90 %",
        );
        said_of(stats(5, 90, 5, 5, Auto), Auto, "as the network is slower; column comment");
        said_of(stats(5, 4, 91, 91, Zstd(3)), Zstd(3), "column comment is 90 % of the bytes");
        said_of(stats(5, 4, 91, 91, None), Auto, "on one host");
        let decoding = Stats { decode: Duration::from_millis(700), ..stats(5, 4, 91, 91, Light) };
        said_of(decoding, Light, "the client decodes for 70 %");
        said_of(
            Stats { total: Duration::from_millis(1), ..Stats::default() },
            Auto,
            "keep the connection open",
        );
    }

    #[test]
    fn advice_on_rows_of_mysql() {
        let stats = |reason: &str, rows| Stats {
            total: Duration::from_secs(1),
            receive: Duration::from_millis(900),
            decode: Duration::from_millis(50),
            first_chunk: Duration::from_millis(20),
            rows,
            chunks: 10,
            path: TransferPath { kind: PathKind::Rows, reason: reason.to_owned() },
            ..Stats::default()
        };
        let said =
            |stats: &Stats| advice(&schema(), stats, CompressionChoice::Auto, SourceKind::Mysql);
        // As many rows as a thread of the server makes in a second.
        let many = 10_000_000;
        for reason in [
            "one connection",
            "one connection; compressed by zlib",
            "one connection: several connections must be asked for (partitions)",
            "one connection: it needs the privilege RELOAD (GRANT RELOAD ON *.* TO 'me'@'%')",
            "one connection: its table has no primary key; partition_by can name another column",
        ] {
            let said = said(&stats(reason, many));
            assert!(said.contains("several connections would share that"), "{reason}: {said}");
        }
        for reason in ["one connection: it has the word limit", "3 connections, one snapshot"] {
            let said = said(&stats(reason, many));
            assert!(said.contains("only fewer rows or columns"), "{reason}: {said}");
        }
        let network = said(&stats("one connection: it has the word limit", 1000));
        assert!(network.contains("compress=zlib in the uri, or dray serve --source"), "{network}");
        let compressed = said(&stats("one connection: it is small; compressed by zlib", 1000));
        assert!(compressed.contains("query, dray serve --source"), "{compressed}");
        let stats = stats("one connection", 1000);
        let late = Stats { first_chunk: Duration::from_millis(800), ..stats.clone() };
        assert!(said(&late).contains("running the query takes 80 %"), "{}", said(&late));
        let parsing = Stats { decode: Duration::from_millis(700), ..stats };
        assert!(said(&parsing).contains("parses rows for 70 %"), "{}", said(&parsing));
    }
}
