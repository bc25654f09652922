//! The report of `dray explain`, as text and as JSON.

use std::fmt::Write;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use console::Alignment::{Left, Right};
use console::measure_text_width;
use dray_client::{
    ColumnProfile, CompressionChoice, Estimate, Known, PathKind, PriceSet, SourceKind, Stats,
};
use serde_json::{Map, Value, json};

use super::advice::advice;
use crate::format::table::Table;
use crate::number::{self, percent};

/// The width of the names at the start of lines.
const NAME_WIDTH: usize = 10;

/// The report on a statement.
pub(super) struct Report {
    pub(super) schema: SchemaRef,
    pub(super) estimate: Estimate,
    pub(super) stats: Stats,
    /// What it ran at.
    pub(super) kind: SourceKind,
    /// The compression that the user requested.
    pub(super) asked: CompressionChoice,
    /// Whether the statement was only planned.
    pub(super) planned_only: bool,
    /// The maximum width of the text.
    pub(super) width: usize,
}

/// The footnote of the table of columns.
const RATES: &str = "enc, dec: GB/s of Arrow data encoded and decoded, for columns that were not \
    sent as they are\n";

/// The planner's estimate, as a line.
pub(super) fn estimate(estimate: Estimate) -> String {
    let known = |known: Known, shown: fn(u64) -> String| match known {
        Known::Unknown => None,
        Known::Estimate(value) => Some(format!("about {}", shown(value))),
        Known::Exact(value) => Some(shown(value)),
    };
    let rows = known(estimate.rows, number::rows)
        .unwrap_or_else(|| "an unknown number of rows".to_owned());
    match known(estimate.bytes, number::bytes) {
        Some(bytes) => format!("expected   {rows}, {bytes}\n"),
        None => format!("expected   {rows}\n"),
    }
}

/// The path by which the result came, and the reason.
fn path(stats: &Stats) -> String {
    let what = match stats.path.kind {
        PathKind::Server => "chunks from a Dray server",
        PathKind::Extension => "chunks from PostgreSQL's extension",
        PathKind::Rows => "rows in the database's own protocol",
    };
    match (stats.path.kind, stats.path.reason.as_str()) {
        (_, "") => what.to_owned(),
        (PathKind::Server, transport) => format!("{what} {transport}"),
        (_, reason) => format!("{what}: {reason}"),
    }
}

/// The price of a byte over time: its first and last values, and some between.
fn prices(set: &[PriceSet]) -> Option<String> {
    const SHOWN: usize = 6;
    let last = set.len().checked_sub(1)?;
    let mut shown: Vec<usize> = (0..SHOWN).map(|i| last * i / (SHOWN - 1)).collect();
    shown.dedup();
    let said = shown.into_iter().map(|i| {
        let PriceSet { at_ms, price_ps } = set[i];
        let at = number::duration(Duration::from_millis(at_ms.into()));
        let ns = f64::from(price_ps) / 1e3;
        let digits = if ns < 10.0 { 2 } else { 0 };
        format!("{ns:.digits$} ns at {at}")
    });
    Some(format!("saving a byte was worth {}", said.collect::<Vec<_>>().join(", ")))
}

/// Higher rates mean that a column was not encoded.
const RATE_MAX: f64 = 100.0;

/// GB/s, or empty if the column was not encoded.
fn rate(bytes: u64, ns: u64) -> String {
    match bytes as f64 / ns as f64 {
        rate if rate < RATE_MAX => format!("{rate:.2}"),
        _ => String::new(),
    }
}

/// A name and a text, wrapped to a width.
fn wrapped(name: &str, what: &str, width: usize) -> String {
    let mut text = format!("{name:NAME_WIDTH$}");
    let mut column = NAME_WIDTH;
    for (i, word) in what.split(' ').enumerate() {
        let word_width = measure_text_width(word);
        if i > 0 && column + 1 + word_width > width {
            let _ = write!(text, "\n{:NAME_WIDTH$}", "");
            column = NAME_WIDTH;
        }
        let _ = write!(text, " {word}");
        column += 1 + word_width;
    }
    text + "\n"
}

/// A phase of the statement and its time.
struct Phase {
    place: &'static str,
    name: &'static str,
    time: Duration,
    what: &'static str,
}

impl Report {
    /// All but the estimate, which is shown before the statement runs.
    pub(super) fn text(&self) -> String {
        let stats = &self.stats;
        let mut text = String::new();
        let mut line = |name: &str, what: String| text += &wrapped(name, &what, self.width);
        let ratio = stats.decoded_bytes as f64 / stats.wire_bytes.max(1) as f64;
        let rate = |amount| number::rate(amount, stats.total);
        line("path", path(stats));
        line(
            "result",
            format!("{} in {} chunks", number::rows(stats.rows), number::count(stats.chunks)),
        );
        let sent = format!(
            "{} sent for {} of Arrow data",
            number::bytes(stats.wire_bytes),
            number::bytes(stats.decoded_bytes)
        );
        let checksums = if stats.checksums { "on" } else { "off" };
        line(
            "bytes",
            format!(
                "{sent} ({ratio:.2}x), compression {}, checksums {checksums}",
                stats.compression
            ),
        );
        let rates = format!(
            "{} rows/s, {}/s",
            number::short(rate(stats.rows)),
            number::bytes(rate(stats.decoded_bytes))
        );
        if let Some(prices) = prices(&stats.report.prices) {
            line("price", prices);
        }
        let first = number::duration(stats.first_chunk);
        line(
            "time",
            format!("{}, the first chunk after {first}; {rates}", number::duration(stats.total)),
        );
        let advice =
            wrapped("advice", &advice(&self.schema, stats, self.asked, self.kind), self.width);
        format!("{text}\n{}\n{}\n{advice}", self.times(), self.columns())
    }

    fn phases(&self) -> Vec<Phase> {
        let stats = &self.stats;
        let Some(server) = stats.server else { return self.client_phases() };
        let phase = |place, name, time, what| Phase { place, name, time, what };
        let nanos = Duration::from_nanos;
        vec![
            phase("client", "connect", stats.connect, "once for all statements of the connection"),
            phase("server", "plan", stats.plan, ""),
            phase("server", "execute", nanos(server.execute_ns), "all threads"),
            phase("server", "encode", nanos(server.encode_ns), "all threads"),
            phase(
                "server",
                "queue",
                nanos(server.queue_ns),
                "all threads, waiting for space before the socket",
            ),
            phase(
                "server",
                "socket",
                nanos(server.socket_ns),
                "writing, or waiting for the network and the client",
            ),
            phase(
                "client",
                "receive",
                stats.receive,
                "reading, or waiting for the network and the server",
            ),
            phase("client", "decode", stats.decode, ""),
        ]
    }

    /// A server that sends rows doesn't report its time.
    fn client_phases(&self) -> Vec<Phase> {
        let stats = &self.stats;
        let phase = |name, time, what| Phase { place: "client", name, time, what };
        vec![
            phase("connect", stats.connect, "once for all statements of the connection"),
            phase(
                "receive",
                stats.receive,
                "waiting for the server to make rows, and reading them",
            ),
            phase("decode", stats.decode, "parsing rows into columns"),
        ]
    }

    fn times(&self) -> String {
        let columns =
            [("where", Left), ("phase", Left), ("time", Right), ("of total", Right), ("", Left)];
        let mut table = Table::new(&columns);
        for Phase { place, name, time, what } in self.phases() {
            let share = percent(time.as_secs_f64(), self.stats.total.as_secs_f64());
            let share = if name == "connect" { String::new() } else { format!("{share:.0} %") };
            table.push_row(vec![
                place.into(),
                name.into(),
                number::duration(time),
                share,
                what.into(),
            ]);
        }
        table.shrinking().render(Some(self.width))
    }

    /// The table of columns.
    pub(super) fn columns(&self) -> String {
        let names = [("column", Left), ("type", Left)];
        let bytes = [
            ("encodings", Left),
            ("sent", Right),
            ("%", Right),
            ("Arrow", Right),
            ("ratio", Right),
        ];
        let rates = [("enc", Right), ("dec", Right)];
        let mut table = match self.planned_only {
            true => Table::new(&names),
            false => Table::new(&[&names[..], &bytes[..], &rates[..]].concat()),
        };
        for (i, (field, profile)) in self.schema.fields().iter().zip(self.profiles()).enumerate() {
            let mut cells = vec![field.name().clone(), field.data_type().to_string()];
            if !self.planned_only {
                cells.push(match &profile.encodings[..] {
                    [] if profile.body_bytes > 0 => "plain".to_owned(),
                    encodings => encodings.join(", "),
                });
                cells.push(number::bytes(profile.body_bytes));
                cells.push(format!(
                    "{:.1}",
                    percent(profile.body_bytes as f64, self.stats.wire_bytes as f64)
                ));
                cells.push(number::bytes(profile.decoded_bytes));
                cells.push(match profile.body_bytes {
                    0 => String::new(),
                    bytes => format!("{:.2}x", profile.decoded_bytes as f64 / bytes as f64),
                });
                let encoded = self.stats.report.columns.get(i).copied().unwrap_or_default();
                cells.push(rate(encoded.decoded_bytes, encoded.encode_ns));
                cells.push(rate(profile.decoded_bytes, profile.decode_ns));
            }
            table.push_row(cells);
        }
        let text = table.shrinking().render(Some(self.width));
        match self.planned_only {
            true => text,
            false => text + RATES,
        }
    }

    /// The whole report as JSON, with the estimate.
    pub(super) fn json(&self) -> Value {
        let known = |known: Known| match known {
            Known::Unknown => Value::Null,
            Known::Estimate(value) => json!({ "value": value, "exact": false }),
            Known::Exact(value) => json!({ "value": value, "exact": true }),
        };
        let mut report = Map::new();
        let mut put = |name: &str, value: Value| report.insert(name.to_owned(), value);
        put(
            "estimate",
            json!({ "rows": known(self.estimate.rows), "bytes": known(self.estimate.bytes) }),
        );
        let columns = self.schema.fields().iter().zip(self.profiles());
        if self.planned_only {
            let columns = columns.map(
                |(field, _)| json!({ "name": field.name(), "type": field.data_type().to_string() }),
            );
            put("columns", columns.collect());
            put("plan_seconds", json!(self.stats.plan.as_secs_f64()));
            return Value::Object(report);
        }
        let stats = &self.stats;
        put("path", json!(stats.path.kind.to_string()));
        put("path_reason", json!(stats.path.reason));
        put("rows", json!(stats.rows));
        put("chunks", json!(stats.chunks));
        put("wire_bytes", json!(stats.wire_bytes));
        put("decoded_bytes", json!(stats.decoded_bytes));
        put("compression", json!(stats.compression.to_string()));
        put("checksums", json!(stats.checksums));
        put("total_seconds", json!(stats.total.as_secs_f64()));
        put("first_chunk_seconds", json!(stats.first_chunk.as_secs_f64()));
        let phases = self.phases().into_iter();
        let phases = phases.map(|phase| {
            (format!("{}_{}", phase.place, phase.name), json!(phase.time.as_secs_f64()))
        });
        put("seconds", Value::Object(phases.collect()));
        let price = |price: &PriceSet| {
            json!([f64::from(price.at_ms) / 1e3, f64::from(price.price_ps) / 1e3])
        };
        put("byte_prices", stats.report.prices.iter().map(price).collect());
        let columns = columns.enumerate().map(|(i, (field, profile))| {
            let encoded = stats.report.columns.get(i).filter(|encoded| encoded.decoded_bytes > 0);
            json!({
                "name": field.name(),
                "type": field.data_type().to_string(),
                "encodings": profile.encodings,
                "wire_bytes": profile.body_bytes,
                "decoded_bytes": profile.decoded_bytes,
                "encode_seconds": encoded
                    .map(|encoded| Duration::from_nanos(encoded.encode_ns).as_secs_f64()),
                "decode_seconds": Duration::from_nanos(profile.decode_ns).as_secs_f64(),
            })
        });
        put("columns", columns.collect());
        put("advice", json!(advice(&self.schema, stats, self.asked, self.kind)));
        Value::Object(report)
    }

    /// The columns' profiles; a result without chunks has none, so defaults follow.
    fn profiles(&self) -> impl Iterator<Item = ColumnProfile> {
        self.stats
            .profile
            .columns
            .iter()
            .cloned()
            .chain(std::iter::repeat(ColumnProfile::default()))
    }
}
