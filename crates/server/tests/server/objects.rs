//! Results as objects: pages from the server, and pages that the client builds of chunks.

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;

use crate::common::Running;
use dray_client::{
    Checksums, ConnectOptions, Connection, ErrorKind, Limits, QueryOptions, RowLayout,
};
use dray_format::arrow::batch_to_arrow;
use dray_page::{ColumnsBuilder, VerifiedPage};

const NESTED: &str = "SELECT n, text, named_struct('half', n / 2, 'texts', \
                      make_array(text, NULL, 'a text that is not short')) AS inner \
                      FROM numbers WHERE n < 100000 ORDER BY n DESC";

fn table(schema: &SchemaRef, pages: &[VerifiedPage]) -> RecordBatch {
    let mut columns = ColumnsBuilder::new(pages[0].layout().clone(), 1 << 30);
    pages.iter().for_each(|page| columns.append(page.objects()).unwrap());
    batch_to_arrow(columns.finish(), schema).unwrap()
}

#[test]
fn objects_are_the_rows_in_their_order_however_they_travel() {
    let server = Running::start();
    let mut connection = server.connect();
    let queried = connection.query(NESTED, &QueryOptions::default()).unwrap();
    let schema = queried.schema();
    let batches = queried.collect::<Result<Vec<_>, _>>().unwrap();
    let expected = concat_batches(&schema, &batches).unwrap();
    for uri in [&server.tcp, &server.unix] {
        let mut connection = Connection::connect(uri, &ConnectOptions::default()).unwrap();
        for (layout, compression, checksums) in [
            (RowLayout::Pages, "auto", Checksums::On),
            (RowLayout::Pages, "zstd:1", Checksums::Off),
            (RowLayout::Either, "none", Checksums::Auto),
            (RowLayout::Either, "light", Checksums::On),
            (RowLayout::Chunks, "auto", Checksums::Auto),
        ] {
            let case = format!("{uri} {layout:?} {compression}");
            let options = QueryOptions {
                objects: layout,
                compression: compression.parse().unwrap(),
                checksums,
                ..QueryOptions::default()
            };
            let mut objects = connection.objects(NESTED, &options).unwrap();
            assert_eq!(objects.schema(), schema);
            let pages = objects.by_ref().collect::<Result<Vec<_>, _>>().unwrap();
            assert!(objects.is_complete());
            let stats = objects.stats();
            assert_eq!(stats.rows, 100_000, "{case}");
            let pages_sent = match (layout, compression) {
                (RowLayout::Pages, _) | (_, "none") => stats.chunks,
                _ => 0,
            };
            assert_eq!(stats.pages, pages_sent, "{case}");
            assert_eq!(stats.server.unwrap().chunks, stats.chunks, "{case}");
            assert!(table(&schema, &pages) == expected, "{case}");
        }
    }
}

#[test]
fn objects_larger_than_a_page_and_larger_than_the_limit() {
    let server = Running::start();
    let mut connection = server.connect();
    let sql = "SELECT repeat('x', CAST($1 AS BIGINT)) AS x, n FROM numbers WHERE n < 3 ORDER BY n";
    let sql_of = |bytes: usize| sql.replace("$1", &bytes.to_string());
    let options = QueryOptions {
        objects: RowLayout::Pages,
        limits: Limits { row_bytes_max: 16 << 20, ..Limits::default() },
        ..QueryOptions::default()
    };
    let pages = connection.objects(&sql_of(1 << 20), &options).unwrap();
    let pages = pages.collect::<Result<Vec<_>, _>>().unwrap();
    let numbers = pages.iter().map(|page| page.object(0).unwrap().field(1).unwrap().i64().unwrap());
    assert_eq!(numbers.collect::<Vec<_>>(), [0, 1, 2]);
    assert!(pages.iter().all(|page| page.header().large && page.bytes().len() == 5 << 18));

    let mut objects = connection.objects(&sql_of(17 << 20), &options).unwrap();
    assert_eq!(objects.next_page().unwrap_err().kind(), ErrorKind::Limit);
    drop(objects);
    let mut results = connection.query("SELECT 1", &QueryOptions::default()).unwrap();
    assert_eq!(results.read_all().unwrap()[0].num_rows(), 1);
}

#[test]
fn objects_that_are_dropped_half_read_free_the_connection() {
    let server = Running::start();
    let mut connection = server.connect();
    let options = QueryOptions { objects: RowLayout::Pages, ..QueryOptions::default() };
    let mut objects = connection.objects("SELECT * FROM numbers", &options).unwrap();
    assert!(objects.next_page().unwrap().is_some());
    drop(objects);
    let mut none = connection.objects("SELECT n FROM numbers WHERE n < 0", &options).unwrap();
    assert!(none.next_page().unwrap().is_none());
    assert_eq!((none.stats().chunks, none.stats().rows), (0, 0));
}
