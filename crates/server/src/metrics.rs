//! Counters, in Prometheus' text format.

pub(crate) mod endpoint;

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use chrono::{DateTime, Utc};
use dray_wire::Encoded;

/// What a server has done since its start.
#[derive(Debug, Default)]
pub struct Metrics {
    connections_open: AtomicU64,
    connections: AtomicU64,
    refused: AtomicU64,
    statements: AtomicU64,
    statements_failed: AtomicU64,
    statement_ns: AtomicU64,
    chunks: AtomicU64,
    chunk_bytes: AtomicU64,
    rows: AtomicU64,
    encoded_bytes: AtomicU64,
    encode_ns: AtomicU64,
    /// λ at the end of the last adaptive transfer, in picoseconds a byte.
    price_ps: AtomicU64,
    /// When the certificate expires, in seconds since 1970; 0 without TLS.
    certificate_expires_s: AtomicU64,
    /// By the names of the sources.
    sources: Vec<(String, Arc<SourceMetrics>)>,
}

/// The statements that were passed on to a source.
#[derive(Debug, Default)]
pub(crate) struct SourceMetrics {
    statements: AtomicU64,
    statements_failed: AtomicU64,
    statement_ns: AtomicU64,
    rows: AtomicU64,
}

impl SourceMetrics {
    pub(crate) fn statement_ended(&self, finished: bool, rows: u64, elapsed: Duration) {
        self.statements.fetch_add(1, Relaxed);
        self.statements_failed.fetch_add(u64::from(!finished), Relaxed);
        self.statement_ns.fetch_add(nanoseconds(elapsed), Relaxed);
        self.rows.fetch_add(rows, Relaxed);
    }
}

impl Metrics {
    /// Counters of a server with these sources.
    pub(crate) fn of(sources: Vec<(String, Arc<SourceMetrics>)>) -> Self {
        Self { sources, ..Self::default() }
    }

    pub(crate) fn connection_opened(&self) {
        self.connections.fetch_add(1, Relaxed);
        self.connections_open.fetch_add(1, Relaxed);
    }

    pub(crate) fn connection_closed(&self) {
        self.connections_open.fetch_sub(1, Relaxed);
    }

    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    pub(crate) fn statement_ended(&self, finished: bool, elapsed: Duration) {
        self.statements.fetch_add(1, Relaxed);
        self.statements_failed.fetch_add(u64::from(!finished), Relaxed);
        self.statement_ns.fetch_add(nanoseconds(elapsed), Relaxed);
    }

    pub(crate) fn chunk_sent(&self, bytes: u64) {
        self.chunks.fetch_add(1, Relaxed);
        self.chunk_bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn rows_sent(&self, rows: u64) {
        self.rows.fetch_add(rows, Relaxed);
    }

    pub(crate) fn encoded(&self, columns: &[Encoded]) {
        let sum = |of: fn(&Encoded) -> u64| columns.iter().map(of).fold(0, u64::wrapping_add);
        self.encoded_bytes.fetch_add(sum(|column| column.decoded_bytes), Relaxed);
        self.encode_ns.fetch_add(sum(|column| column.encode_ns), Relaxed);
    }

    pub(crate) fn price_set(&self, ns: f64) {
        // `as` saturates.
        self.price_ps.store((ns * 1e3) as u64, Relaxed);
    }

    pub(crate) fn certificate_expires(&self, at: DateTime<Utc>) {
        self.certificate_expires_s.store(u64::try_from(at.timestamp()).unwrap_or(0), Relaxed);
    }

    /// The counters in Prometheus' text format, version 0.0.4.
    pub fn render(&self) -> String {
        let mut out = String::new();
        let mut put = |name: &str, kind: &str, help: &str, value: &dyn std::fmt::Display| {
            let _ = writeln!(
                out,
                "# HELP dray_{name} {help}\n# TYPE dray_{name} {kind}\ndray_{name} {value}"
            );
        };
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        put("connections_open", "gauge", "Open connections.", &load(&self.connections_open));
        put("connections_total", "counter", "Connections accepted.", &load(&self.connections));
        put(
            "connections_refused_total",
            "counter",
            "Connections refused because of their token.",
            &load(&self.refused),
        );
        put("statements_total", "counter", "Statements that ended.", &load(&self.statements));
        put(
            "statements_failed_total",
            "counter",
            "Statements that failed or were abandoned.",
            &load(&self.statements_failed),
        );
        let seconds = Duration::from_nanos(load(&self.statement_ns)).as_secs_f64();
        put(
            "statement_seconds_total",
            "counter",
            "Time from the arrival of statements to their end.",
            &seconds,
        );
        put("chunks_sent_total", "counter", "Chunks sent.", &load(&self.chunks));
        put(
            "chunk_bytes_sent_total",
            "counter",
            "Bytes of chunks and state frames sent.",
            &load(&self.chunk_bytes),
        );
        put("rows_sent_total", "counter", "Rows of finished statements.", &load(&self.rows));
        put(
            "encoded_bytes_total",
            "counter",
            "Decoded size of the columns encoded.",
            &load(&self.encoded_bytes),
        );
        let seconds = Duration::from_nanos(load(&self.encode_ns)).as_secs_f64();
        put(
            "encode_seconds_total",
            "counter",
            "Time spent encoding, summed over threads.",
            &seconds,
        );
        let nanoseconds = load(&self.price_ps) as f64 / 1e3;
        let help = "λ, the price of a byte, at the end of the last adaptive transfer.";
        put("byte_price_nanoseconds", "gauge", help, &nanoseconds);
        let help = "When the certificate expires, in seconds since 1970; 0 without TLS.";
        put(
            "certificate_expires_timestamp_seconds",
            "gauge",
            help,
            &load(&self.certificate_expires_s),
        );
        self.render_sources(&mut out);
        out
    }

    fn render_sources(&self, out: &mut String) {
        type Value = fn(&SourceMetrics) -> f64;
        let families: [(&str, &str, Value); 4] = [
            ("statements", "Statements passed on to a source that ended.", |source| {
                source.statements.load(Relaxed) as f64
            }),
            ("statements_failed", "Those that failed or were abandoned.", |source| {
                source.statements_failed.load(Relaxed) as f64
            }),
            ("statement_seconds", "Time from their arrival to their end.", |source| {
                Duration::from_nanos(source.statement_ns.load(Relaxed)).as_secs_f64()
            }),
            ("rows_sent", "Rows sent for them.", |source| source.rows.load(Relaxed) as f64),
        ];
        if self.sources.is_empty() {
            return;
        }
        for (name, help, value) in families {
            let name = format!("dray_source_{name}_total");
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter");
            for (source, counters) in &self.sources {
                // A source's name has no character to escape.
                let _ = writeln!(out, "{name}{{source=\"{source}\"}} {}", value(counters));
            }
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
