//! The compiled part of `dray.Connection`: connecting, and starting statements.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dray_client::{
    Checksums, CompressionChoice, ConnectOptions, ConnectionSlot, Lease, LeaseError, Limits,
    NonFinite, NumericAs, Partitions, PostgresOptions, QueryOptions, RowLayout, Secret,
    StringLayout, timeout_from_seconds,
};
use pyo3::prelude::*;

use crate::error::{detached, exception, usage};
use crate::monitor::{Monitor, connecting_check};
use crate::objects::Objects;
use crate::parameters::parameters;
use crate::reader::Reader;
use crate::result::Result;

/// The source, the `ca` and the `read_timeout` in seconds that a Dray server's uri names; None if
/// `uri` is a database's, or one that connecting refuses.
#[pyfunction]
pub fn server_uri(uri: &str) -> Option<(Option<String>, Option<String>, Option<f64>)> {
    let uri: dray_client::Uri = uri.parse().ok()?;
    let read_timeout = uri.read_timeout().ok()?.map(|timeout| timeout.as_secs_f64());
    Some((uri.source().map(str::to_owned), uri.ca().map(str::to_owned), read_timeout))
}

/// Connects to a server. `dray.connect` documents the parameters; `timeout` and `read_timeout` are
/// in seconds. `check` is called while the server is waited for, and gives up by raising.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python passes each option by name")]
pub fn connect(
    py: Python<'_>,
    uri: &str,
    token: Option<String>,
    plain_token: bool,
    ca: Option<PathBuf>,
    timeout: f64,
    read_timeout: Option<f64>,
    local_socket: bool,
    check: Option<Py<PyAny>>,
) -> PyResult<Connection> {
    let timeout = seconds(py, "timeout", timeout)?;
    let read_timeout =
        read_timeout.map(|timeout| seconds(py, "read_timeout", timeout)).transpose()?;
    let client = concat!("dray-python ", env!("CARGO_PKG_VERSION")).to_owned();
    let options = ConnectOptions {
        token: token.map(Secret::from),
        plain_token,
        ca,
        timeout,
        read_timeout,
        local_socket,
        client,
    };
    let mut raised = None;
    let connect = || {
        let mut keep_waiting = connecting_check(&mut raised, check);
        dray_client::Connection::connect_while(uri, &options, &mut keep_waiting)
    };
    let connection = detached(py, connect)?;
    // What a check raised comes before the error of the connection that it ended.
    let connection = connection.map_err(|error| raised.unwrap_or_else(|| exception(py, &error)))?;
    let address = connection.place().to_owned();
    let dialect = connection.dialect().dialect_name();
    Ok(Connection {
        server: connection.server().to_owned(),
        address,
        dialect,
        slot: ConnectionSlot::new(connection),
    })
}

fn seconds(py: Python<'_>, name: &str, value: f64) -> PyResult<Duration> {
    timeout_from_seconds(value)
        .map_err(|_| usage(py, &format!("{name} {value}, expected seconds above 0"), None))
}

/// The compiled part of `dray.Connection`.
#[pyclass(frozen, module = "dray._dray")]
pub struct Connection {
    #[pyo3(get)]
    server: String,
    #[pyo3(get)]
    address: String,
    #[pyo3(get)]
    dialect: &'static str,
    pub(crate) slot: ConnectionSlot,
}

#[pymethods]
impl Connection {
    #[getter]
    fn closed(&self) -> bool {
        self.slot.is_closed()
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.slot.close());
    }

    #[allow(clippy::too_many_arguments, reason = "Python passes each option by name")]
    fn query(
        &self,
        py: Python<'_>,
        sql: &str,
        params: Option<Bound<'_, PyAny>>,
        chunk_bytes_max: Option<u64>,
        decoded_bytes_max: Option<u64>,
        row_bytes_max: Option<u64>,
        batch_rows: usize,
        batch_bytes: u64,
        compression: &str,
        checksums: &str,
        strings: &str,
        extension: &str,
        numeric: &str,
        nonfinite: &str,
        partitions: &str,
        partition_by: Option<String>,
        ordered: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Result> {
        let wrong = |message: String| usage(py, &message, None);
        let defaults = Limits::default();
        let chunk_bytes_max = chunk_bytes_max.unwrap_or(defaults.chunk_bytes_max);
        let options = QueryOptions {
            parameters: params.as_ref().map(parameters).transpose()?,
            limits: Limits {
                chunk_bytes_max,
                decoded_bytes_max: decoded_bytes_max
                    .unwrap_or(defaults.decoded_bytes_max.max(chunk_bytes_max)),
                row_bytes_max: row_bytes_max.unwrap_or(defaults.row_bytes_max.max(chunk_bytes_max)),
            },
            batch_rows,
            batch_bytes,
            compression: compression.parse::<CompressionChoice>().map_err(wrong)?,
            checksums: checksum_choice(checksums).map_err(wrong)?,
            strings: string_layout(strings).map_err(wrong)?,
            estimate: progress.is_some(),
            postgres: PostgresOptions {
                partition_by,
                ordered,
                ..postgres_options(extension, numeric, nonfinite, partitions).map_err(wrong)?
            },
            ..QueryOptions::default()
        };
        let lease = self.lease(py)?;
        let monitor = Arc::new(Monitor::new(progress));
        let watch = monitor.clone().watch();
        let results = detached(py, || {
            dray_client::Connection::query_with(lease, sql, &options, Some(watch))
        })?;
        let results = results
            .map_err(|error| monitor.take_raised().unwrap_or_else(|| exception(py, &error)))?;
        monitor.set_progress(results.progress());
        let (schema, estimate) = (results.schema(), results.progress().estimate);
        Ok(Result { reader: Reader::new(results, monitor), schema, estimate })
    }

    #[allow(clippy::too_many_arguments, reason = "Python passes each option by name")]
    fn objects(
        &self,
        py: Python<'_>,
        sql: &str,
        params: Option<Bound<'_, PyAny>>,
        layout: &str,
        row_bytes_max: Option<u64>,
        compression: &str,
        checksums: &str,
        extension: &str,
        numeric: &str,
        nonfinite: &str,
        partitions: &str,
        partition_by: Option<String>,
        ordered: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Objects> {
        let wrong = |message: String| usage(py, &message, None);
        let mut limits = Limits::default();
        limits.row_bytes_max = row_bytes_max.unwrap_or(limits.row_bytes_max);
        limits.chunk_bytes_max = limits.chunk_bytes_max.min(limits.row_bytes_max);
        let options = QueryOptions {
            parameters: params.as_ref().map(parameters).transpose()?,
            limits,
            compression: compression.parse::<CompressionChoice>().map_err(wrong)?,
            checksums: checksum_choice(checksums).map_err(wrong)?,
            objects: layout.parse::<RowLayout>().map_err(wrong)?,
            postgres: PostgresOptions {
                partition_by,
                ordered,
                ..postgres_options(extension, numeric, nonfinite, partitions).map_err(wrong)?
            },
            ..QueryOptions::default()
        };
        let lease = self.lease(py)?;
        let monitor = Arc::new(Monitor::new(progress));
        let watch = monitor.clone().watch();
        let objects = detached(py, || {
            dray_client::Connection::objects_with(lease, sql, &options, Some(watch))
        })?;
        let objects = objects
            .map_err(|error| monitor.take_raised().unwrap_or_else(|| exception(py, &error)))?;
        monitor.set_progress(objects.progress());
        Ok(Objects::new(py, objects, monitor))
    }
}

fn checksum_choice(name: &str) -> std::result::Result<Checksums, String> {
    match name {
        "auto" => Ok(Checksums::Auto),
        "on" => Ok(Checksums::On),
        "off" => Ok(Checksums::Off),
        other => Err(format!("checksums {other:?}, expected auto, on or off")),
    }
}

fn postgres_options(
    extension: &str,
    numeric: &str,
    nonfinite: &str,
    partitions: &str,
) -> std::result::Result<PostgresOptions, String> {
    Ok(PostgresOptions {
        extension: extension.parse()?,
        numeric: numeric.parse::<NumericAs>()?,
        nonfinite: nonfinite.parse::<NonFinite>()?,
        partitions: partitions.parse::<Partitions>()?,
        ..PostgresOptions::default()
    })
}

impl Connection {
    /// Leases the connection for a statement.
    ///
    /// # Errors
    /// A `UsageError` when a result has it, or it is closed.
    pub(crate) fn lease(&self, py: Python<'_>) -> PyResult<Lease> {
        self.slot.lease().map_err(|error| match error {
            LeaseError::Leased => usage(
                py,
                "the connection is busy with another result",
                Some(
                    "read that result to its end, close it, or open another connection: \
                     a connection runs one statement at a time",
                ),
            ),
            LeaseError::Closed => usage(py, "the connection is closed", Some("connect again")),
        })
    }
}

/// The layout of strings that the option `strings` names. Any other name is an error.
pub(crate) fn string_layout(name: &str) -> std::result::Result<StringLayout, String> {
    match name {
        "utf8" => Ok(StringLayout::Offsets),
        "large" => Ok(StringLayout::LargeOffsets),
        "view" => Ok(StringLayout::Views),
        other => Err(format!("strings {other:?}, expected utf8, large or view")),
    }
}
