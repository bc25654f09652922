//! CSV: types that hold for all rows, and text that is not UTF-8.

use super::*;

#[tokio::test]
async fn csv_of_every_kind() {
    let folder = Folder::new();
    let csv = "id,name,price,ok,day,at\n\
               1,\"a, \"\"b\"\"\",1.50,true,2024-02-29,2024-02-29 12:00:00\n\
               2,,,,,\n\
               3,\"two\nlines\",1e3,FALSE,1999-12-31,2024-02-29T12:00:00.123456\n";
    let zstd = zstd::encode_all(csv.as_bytes(), 1).unwrap();
    let specs = [
        folder.write("plain.csv", csv),
        folder.write("upper.CSV", csv),
        folder.write("crlf.csv", csv.replace("\n2", "\r\n2").replace("\n3", "\r\n3")),
        folder.write("bom.csv", format!("\u{feff}{csv}")),
        folder.write("packed.csv.gz", gzip(csv.as_bytes())),
        folder.write("packed2.csv.zst", zstd),
        folder
            .write("tabs.tsv", csv.replace("a, ", "a; ").replace(',', "\t").replace("a; ", "a, ")),
    ];
    for in_memory in [false, true] {
        let ctx = catalog::open(&CatalogOptions { in_memory, ..options(&specs) }).await.unwrap();
        assert_eq!(tables(&ctx).await, "bom crlf packed packed2 plain tabs upper");
        for table in tables(&ctx).await.split(' ') {
            assert_eq!(
                query(&ctx, &format!("SELECT * FROM {table} ORDER BY id")).await.unwrap(),
                "1,\"a, \"\"b\"\"\",1.5,true,2024-02-29,2024-02-29T12:00:00\n\
                 2,,,,,\n\
                 3,\"two\nlines\",1000.0,false,1999-12-31,2024-02-29T12:00:00.123456\n",
                "{table}"
            );
            assert_eq!(
                query(&ctx, &format!("SELECT sum(id) FROM {table} WHERE name IS NOT NULL"))
                    .await
                    .unwrap(),
                "4\n"
            );
        }
    }
}

#[tokio::test]
async fn csv_types_hold_for_all_rows() {
    let folder = Folder::new();
    let mut csv = String::from("whole,day,second,late\n");
    for _ in 0..20_000 {
        csv.push_str("1,2024-01-01,2024-01-01T00:00:00,\n");
    }
    csv.push_str("1.5,2024-01-01T10:00:00,2024-01-01T00:00:00.25,here\n");
    let ctx = open([folder.write("t.csv", csv)]).await;
    assert_eq!(
        query(&ctx, "SELECT * FROM t WHERE whole > 1").await.unwrap(),
        "1.5,2024-01-01T10:00:00,2024-01-01T00:00:00.250,here\n"
    );
}

#[tokio::test]
async fn csv_types_hold_for_all_files() {
    let folder = Folder::new();
    // No float represents the values of both files.
    folder.write("t/a.csv", "n,z\n9007199254740993,2024-01-01T00:00:00Z\n");
    folder.write("t/b.csv", "n,z\n0.5,2024-01-01T00:00:00\n");
    let ctx = open([format!("t={}", folder.path("t"))]).await;
    let expected = "0.5,2024-01-01T00:00:00\n9007199254740993,2024-01-01T00:00:00Z\n";
    assert_eq!(query(&ctx, "SELECT n, z FROM t ORDER BY n").await.unwrap(), expected);
    let whole = parquet(
        &RecordBatch::try_from_iter([(
            "n",
            Arc::new(Int64Array::from(vec![9007199254740993])) as ArrayRef,
        )])
        .unwrap(),
        Compression::SNAPPY,
    );
    let half = Arc::new(datafusion::arrow::array::Float64Array::from(vec![0.5])) as ArrayRef;
    let half = parquet(&RecordBatch::try_from_iter([("n", half)]).unwrap(), Compression::SNAPPY);
    folder.write("p/a.parquet", whole);
    folder.write("p/b.parquet", half);
    let error = open_error([format!("p={}", folder.path("p"))]).await;
    assert!(error.contains("column 'n' is Int64 and Float64"), "{error}");
}

/// Nanoseconds end in 2262.
#[tokio::test]
async fn far_dates_beside_nanoseconds_are_text() {
    let folder = Folder::new();
    let near = "at\n2024-01-01 00:00:00.1234567\n2262-04-11\n1677-09-22\n";
    let specs = [folder.write("near.csv", near), format!("two={}", folder.path("two"))];
    folder.write("two/a.csv", "at\n2024-01-01 00:00:00.1234567\n");
    folder.write("two/b.csv", "at\n2024-01-01\n9999-12-31\n");
    let micros = "at\n2024-01-01 00:00:00.123456\n9999-12-31\n";
    let micros = folder.write("micros.csv", micros);
    let far = ["9999-12-31", "2262-04-12", "1677-09-21"].map(|date| {
        let csv = format!("at\n{date}\n2024-01-01 00:00:00.1234567\n");
        folder.write(&format!("far_{}.csv", &date[..4]), csv)
    });
    let specs: Vec<_> = specs.into_iter().chain([micros]).chain(far).collect();
    let ctx = open(&specs).await;
    for (table, expected) in [
        ("near", "1677-09-22T00:00:00\n2024-01-01T00:00:00.123456700\n2262-04-11T00:00:00\n"),
        ("micros", "2024-01-01T00:00:00.123456\n9999-12-31T00:00:00\n"),
        ("two", "2024-01-01\n2024-01-01 00:00:00.1234567\n9999-12-31\n"),
        ("far_9999", "2024-01-01 00:00:00.1234567\n9999-12-31\n"),
        ("far_2262", "2024-01-01 00:00:00.1234567\n2262-04-12\n"),
        ("far_1677", "1677-09-21\n2024-01-01 00:00:00.1234567\n"),
    ] {
        let sql = format!("SELECT at FROM {table} ORDER BY at");
        assert_eq!(query(&ctx, &sql).await.as_deref(), Ok(expected), "{table}");
    }
}

#[tokio::test]
async fn csv_without_a_header() {
    let folder = Folder::new();
    let path = folder.write("t.csv", "1,x\n2,y\n");
    for in_memory in [false, true] {
        let ctx =
            catalog::open(&CatalogOptions { csv_no_header: true, in_memory, ..options([&path]) })
                .await
                .unwrap();
        let sql = "SELECT column_1 + 1, column_2 FROM t ORDER BY 1";
        assert_eq!(query(&ctx, sql).await.unwrap(), "2,x\n3,y\n");
    }
}

/// An empty line is a NULL if there is one column. With more it is no row.
#[tokio::test]
async fn csv_of_one_column_has_nulls() {
    let folder = Folder::new();
    let csv = "n\n1\n\n3\n\n\n";
    let specs = [
        folder.write("plain.csv", csv),
        folder.write("crlf.csv", csv.replace('\n', "\r\n")),
        folder.write("bom.csv", format!("\u{feff}{csv}")),
        folder.write("late.csv", format!("\n\n{csv}")),
        folder.write("packed.csv.gz", gzip(csv.as_bytes())),
        folder.write("quoted.csv", csv.replace("\n\n", "\n\"\"\n")),
        folder.write("tabs.tsv", csv),
    ];
    folder.write("keyed/day=1/a.csv", csv);
    let keyed = format!("keyed={}", folder.path("keyed"));
    let specs: Vec<_> = specs.into_iter().chain([keyed]).collect();
    for in_memory in [false, true] {
        let ctx = catalog::open(&CatalogOptions { in_memory, ..options(&specs) }).await.unwrap();
        for table in tables(&ctx).await.split(' ') {
            let sql = format!("SELECT n FROM {table}");
            assert_eq!(query(&ctx, &sql).await.unwrap(), "1\n\"\"\n3\n\"\"\n\"\"\n", "{table}");
            let sql = format!("SELECT count(*), count(n), sum(n) FROM {table}");
            assert_eq!(query(&ctx, &sql).await.unwrap(), "5,2,4\n", "{table}");
        }
    }
    let path = folder.write("bare.csv", "\nx\n\n\"two\n\nlines\"");
    let without_header = CatalogOptions { csv_no_header: true, ..options([&path]) };
    let ctx = catalog::open(&without_header).await.unwrap();
    let rows = query(&ctx, "SELECT * FROM bare").await.unwrap();
    assert_eq!(rows, "\"\"\nx\n\"\"\n\"two\n\nlines\"\n");
    assert_eq!(query(&ctx, "SELECT count(*) FROM bare").await.unwrap(), "4\n");
    let ctx = open([folder.write("two.csv", "a,b\n1,2\n\n3,4\n\n")]).await;
    assert_eq!(query(&ctx, "SELECT * FROM two").await.unwrap(), "1,2\n3,4\n");
}

/// Inferred types must not change values.
#[tokio::test]
async fn csv_types_change_no_value() {
    let folder = Folder::new();
    let cases = [
        ("postal", "Utf8", vec!["01234", "98765"]),
        ("code", "Utf8", vec!["007.5", "1"]),
        ("phone", "Utf8", vec!["+4915112345678", "+0049301234"]),
        ("plus", "Utf8", vec!["+1.5", "1"]),
        ("exponent", "Float64", vec!["1e+5", "1"]),
        ("huge", "Utf8", vec!["9223372036854775808", "1"]),
        ("whole", "Int64", vec!["9223372036854775807", "-9223372036854775808", "0"]),
        ("mixed", "Utf8", vec!["9007199254740993", "0.5"]),
        ("float", "Float64", vec!["1", "-0", "2.5e-3", ".5", "NaN"]),
        ("digits", "Utf8", vec!["12345678901234567.89", "0.5"]),
        ("small", "Utf8", vec!["1e-400", "0.5"]),
        ("printed", "Float64", vec!["0.10000000000000001", "0.30000000000000004", "1e300"]),
        ("range", "Utf8", vec!["1e999", "1"]),
        ("dash", "Utf8", vec!["-", "1"]),
        ("dots", "Utf8", vec!["1.2.3", "1"]),
        ("day", "Date32", vec!["2024-02-29", "1969-12-31"]),
        ("almost", "Utf8", vec!["2024-01-3x", "2024-01-01"]),
        ("short", "Utf8", vec!["2024-1-12B", "2024-01-12"]),
        ("no_day", "Utf8", vec!["2024-02-30", "2024-01-01"]),
        ("at", "Timestamp(ms)", vec!["2024-02-29T01:02:03", "2024-02-29 01:02:03.5", "2024-02-29"]),
        (
            "zoned",
            "Timestamp(s, \"UTC\")",
            vec!["2024-02-29T01:02:03Z", "2024-02-29T01:02:03+02:00"],
        ),
        ("zones", "Utf8", vec!["2024-02-29T01:02:03Z", "2024-02-29T01:02:03"]),
        ("far", "Utf8", vec!["9999-12-31T00:00:00", "2024-02-29T01:02:03"]),
        ("leap", "Utf8", vec!["2016-12-31T23:59:60", "2024-02-29T01:02:03"]),
        ("flag", "Boolean", vec!["true", "False"]),
        ("answer", "Utf8", vec!["true", "1"]),
    ];
    for (name, expected, values) in cases {
        let csv = format!(
            "v,i\n{}",
            values.iter().map(|value| format!("{value},1\n,2\n")).collect::<String>()
        );
        let ctx = open([folder.write(&format!("{name}.csv"), csv)]).await;
        let batches = ctx
            .sql(&format!("SELECT v FROM {name} ORDER BY v"))
            .await
            .unwrap()
            .collect()
            .await
            .unwrap();
        assert_eq!(batches[0].schema().field(0).data_type().to_string(), expected, "{name}");
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows, 2 * values.len(), "{name}");
        if expected == "Utf8" {
            for value in values {
                let sql = format!("SELECT count(*) FROM {name} WHERE v = '{value}'");
                assert_eq!(query(&ctx, &sql).await.unwrap(), "1\n", "{name} {value}");
            }
        }
    }
}

#[tokio::test]
async fn csv_that_changes_after_its_types_were_learnt_fails() {
    let folder = Folder::new();
    let path = folder.write("t.csv", "a,b\n1,x\n2,y\n");
    let ctx = open([&path]).await;
    fs::write(&path, "a,b\n1,x\noops,y\n").unwrap();
    let error = query(&ctx, "SELECT a FROM t").await.unwrap_err();
    assert!(
        error.contains("file 't/t.csv' had 12 bytes when its table was opened, and now has 15"),
        "{error}"
    );
}

#[tokio::test]
async fn a_wide_csv_with_a_trailing_comma() {
    let folder = Folder::new();
    let header: String = (1..=109).map(|i| format!("\"C{i}\",")).collect();
    let row: String =
        (1..=109).map(|i| if i % 2 == 0 { ",".into() } else { format!("{i},") }).collect();
    let csv = format!("{header}\n{row}\n{row}\n");
    let ctx = open([folder.write("bts_2019.csv.gz", gzip(csv.as_bytes()))]).await;
    let batches = ctx.sql("SELECT * FROM bts_2019").await.unwrap().collect().await.unwrap();
    assert_eq!((batches[0].num_rows(), batches[0].num_columns()), (2, 110));
    assert_eq!(
        query(&ctx, "SELECT \"C1\", \"C2\", \"C109\", column_110 FROM bts_2019").await.unwrap(),
        "1,,109,\n1,,109,\n"
    );
}

#[tokio::test]
async fn strings_that_are_not_utf8_are_one_clear_error() {
    let folder = Folder::new();
    let mut late = b"id,name\n".to_vec();
    for i in 0..5000 {
        late.extend(format!("{i},name {i}\n").bytes());
    }
    late.extend(b"5000,caf\xe9\n");
    for (name, bytes) in [
        ("latin1.csv", b"id,name\n1,caf\xe9\n".to_vec()),
        ("header.csv", b"id,caf\xe9\n1,x\n".to_vec()),
        // Neither half is valid UTF-8, but both together are.
        ("split.csv", b"a,b\nx\xc3,\xa9y\n".to_vec()),
        ("late.csv", late.clone()),
        ("late.csv.gz", gzip(&late)),
        ("lines.json", b"{\"a\":\"caf\xe9\"}\n".to_vec()),
    ] {
        let path = folder.write(name, bytes);
        let error = open_error([&path]).await;
        assert!(error.starts_with(&format!("can't read '{path}': ")), "{error}");
        assert!(error.to_lowercase().contains("utf-8"), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[tokio::test]
async fn csv_times_with_too_many_digits_are_text() {
    let folder = Folder::new();
    let ctx =
        open([folder.write("t.csv", "a\n2020-01-01 00:00:00.1234567891\n2020-01-01 00:00:00\n")])
            .await;
    assert_eq!(
        query(&ctx, "SELECT a FROM t WHERE a LIKE '%91'").await.unwrap(),
        "2020-01-01 00:00:00.1234567891\n"
    );
}
