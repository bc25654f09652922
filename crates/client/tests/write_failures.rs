//! Writing rows whose source fails, with a real PostgreSQL server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

#[path = "../../postgres/tests/common/server.rs"]
mod postgres_server;

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, RecordBatchIterator};
use arrow::error::ArrowError;
use dray_client::{ConnectOptions, Connection, ErrorKind, QueryOptions, WriteMode, WriteOptions};
use postgres_server::{Server, free_port};

#[test]
fn a_source_that_fails_gives_its_error_and_leaves_the_connection() {
    let server = Server::start(&[], None);
    server.sql("CREATE TABLE numbers (n int8)");
    let mut connection = Connection::connect(&server.uri(), &ConnectOptions::default()).unwrap();
    let options = WriteOptions { mode: WriteMode::Append, ..WriteOptions::default() };
    let refused = || {
        let uri = format!("dray://127.0.0.1:{}", free_port());
        Connection::connect(&uri, &ConnectOptions::default()).map(drop).unwrap_err()
    };
    let rejected = || {
        let mut other = Connection::connect(&server.uri(), &ConnectOptions::default()).unwrap();
        other.query("SELECT nothing", &QueryOptions::default()).map(drop).unwrap_err()
    };
    for (cause, kind, sqlstate) in
        [(refused(), ErrorKind::Connection, None), (rejected(), ErrorKind::Query, Some("42703"))]
    {
        let (said, hint) = (cause.message().to_owned(), cause.hint().map(str::to_owned));
        let numbers = Arc::new(Int64Array::from(vec![1, 2, 3])) as _;
        let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        let schema = batch.schema();
        let batches = [Ok(batch), Err(ArrowError::ExternalError(Box::new(cause)))];
        let data = RecordBatchIterator::new(batches, schema);
        let error = connection.write("numbers", data, &options, None).unwrap_err();
        assert_eq!((error.kind(), error.sqlstate()), (kind, sqlstate), "{error}");
        assert_eq!(error.message(), format!("the source of the rows failed: {said}"));
        assert_eq!(error.hint(), hint.as_deref());
        assert!(connection.is_usable() && !connection.is_in_transaction());
        assert_eq!(server.sql("SELECT count(*) FROM numbers"), "0");
    }
}
