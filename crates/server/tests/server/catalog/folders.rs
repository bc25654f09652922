//! Folders: which files become one table.

use super::*;

#[tokio::test]
async fn folders() {
    let folder = Folder::new();
    let first = parquet(&sample(5, false), Compression::SNAPPY);
    folder.write("lake/Line Items.parquet", &first);
    folder.write("lake/orders.csv", "o\n1\n");
    folder.write("lake/README.md", "no data");
    folder.write("lake/_SUCCESS", "");
    folder.write("lake/empty.csv", "");
    folder.write("lake/empty.parquet", "");
    folder.write("lake/nothing/here.txt", "no data");
    folder.write("lake/parts/deep/b.parquet", &first);
    folder.write("lake/parts/a.parquet", &first);
    folder.write("lake/written.parquet/part-0.parquet", &first);
    folder.write("lake/written.parquet/_SUCCESS", "");
    folder.write("lake/written.parquet/.part-0.parquet.crc", "x");

    let ctx = open([folder.path("lake")]).await;
    assert_eq!(tables(&ctx).await, "line_items orders parts written");
    assert_eq!(query(&ctx, "SELECT count(*) FROM parts").await.unwrap(), "10\n");
    assert_eq!(query(&ctx, "SELECT * FROM written ORDER BY id").await.unwrap(), SAMPLE_5);

    let ctx = open([format!("All={}/", folder.path("lake/parts"))]).await;
    assert_eq!(tables(&ctx).await, "all");
    let ctx = open([folder.path("lake/written.parquet")]).await;
    assert_eq!(tables(&ctx).await, "written");

    let error = open_error([format!("mixed={}", folder.path("lake"))]).await;
    assert!(error.contains("of different kinds"), "{error}");
}

#[tokio::test]
async fn key_value_folders_add_columns() {
    let folder = Folder::new();
    for (year, month, rows) in [(2023, "12", 3), (2024, "01", 5)] {
        let name = format!("sales/year={year}/month={month}/part 0.parquet");
        folder.write(&name, parquet(&sample(rows, false), Compression::SNAPPY));
        folder.write(&format!("text/year={year}/x.csv"), "a,b\n1,2\n");
    }
    for in_memory in [false, true] {
        let options = options([folder.path("sales"), format!("t={}", folder.path("text"))]);
        let ctx = catalog::open(&CatalogOptions { in_memory, ..options }).await.unwrap();
        let sql = "SELECT year + 1, month, count(*), sum(id) FROM sales GROUP BY 1, 2 ORDER BY 1";
        assert_eq!(query(&ctx, sql).await.unwrap(), "2024,12,3,3\n2025,01,5,10\n");
        assert_eq!(query(&ctx, "SELECT a, b FROM t WHERE year = 2024").await.unwrap(), "1,2\n");
    }
    for stray in ["sales/year=2024/month=01/other/x.parquet", "sales/x.parquet"] {
        let path = folder.write(stray, parquet(&sample(1, false), Compression::SNAPPY));
        let error = open_error([folder.path("sales")]).await;
        assert!(error.contains("different key=value folders"), "{error}");
        fs::remove_file(path).unwrap();
    }
}

#[tokio::test]
async fn the_keys_of_files_without_rows_are_in_no_row() {
    let folder = Folder::new();
    for (day, rows) in [(24, 0), (25, 3), (26, 5), (27, 0)] {
        let name = format!("sales/day=2024-12-{day}/a.parquet");
        folder.write(&name, parquet(&sample(rows, false), Compression::SNAPPY));
    }
    for in_memory in [false, true] {
        let options = options([folder.path("sales")]);
        let ctx = catalog::open(&CatalogOptions { in_memory, ..options }).await.unwrap();
        for (sql, expected) in [
            ("SELECT min(day), max(day), count(day) FROM sales", "2024-12-25,2024-12-26,8\n"),
            ("SELECT DISTINCT day FROM sales ORDER BY 1", "2024-12-25\n2024-12-26\n"),
            ("SELECT max(day), count(*) FROM sales WHERE day = '2024-12-27'", ",0\n"),
            ("SELECT max(day), count(*) FROM sales WHERE day > '2024-12-27'", ",0\n"),
            ("SELECT id FROM sales WHERE day < '2024-12-25'", ""),
        ] {
            assert_eq!(query(&ctx, sql).await.unwrap(), expected, "{sql}, {in_memory}");
        }
    }
}

#[tokio::test]
async fn links_to_folders_are_followed() {
    let folder = Folder::new();
    let link = |to: &str, at: &str| {
        std::os::unix::fs::symlink(folder.path(to), folder.path(at)).unwrap();
    };
    folder.write("sales/year=2023/a.csv", "n\n1\n");
    folder.write("other disk/year=2024/month=1/b.csv", "n\n2\n");
    folder.write("deep/b/c.csv", "n\n4\n");
    folder.write("flat/a.csv", "n\n1\n");
    folder.write("old/year=2023/month=2/a.csv", "n\n8\n");
    fs::create_dir(folder.path("more")).unwrap();
    link("other disk/year=2024/month=1", "sales/year=2024");
    link("other disk/year=2024/month=1", "old/year=2023/month=1");
    link("deep", "flat/first");
    link("flat/a.csv", "deep/b/file.csv");
    link("deep", "more/x");
    link("flat", "more/y");
    // Back to folders above: of the table, beside it on the way here, and above the table.
    for (to, at) in [("flat", "flat/self"), ("flat", "deep/b/up"), ("deep", "deep/b/near")] {
        link(to, at);
    }
    link("", "flat/all");
    link("nowhere", "flat/README");
    let ctx =
        open([folder.path("sales"), folder.path("old"), format!("f={}", folder.path("flat"))])
            .await;
    for (sql, expected) in [
        ("SELECT year, n FROM sales ORDER BY 1", "2023,1\n2024,2\n"),
        ("SELECT month, n FROM old ORDER BY 1", "1,2\n2,8\n"),
        ("SELECT n, count(*) FROM f GROUP BY n ORDER BY n", "1,2\n4,1\n"),
    ] {
        assert_eq!(query(&ctx, sql).await.unwrap(), expected, "{sql}");
    }
    let ctx = open([folder.path("more")]).await;
    assert_eq!(tables(&ctx).await, "x y");
    link("nowhere", "sales/year=2025");
    let error = open_error([folder.path("sales")]).await;
    assert!(error.contains("year=2025"), "{error}");
}

#[tokio::test]
async fn files_of_one_table_must_go_together() {
    let folder = Folder::new();
    folder.write("same/a.csv", "a,b\n1,\n");
    folder.write("same/b.csv", "a,b\n1.5,2024-01-01\n");
    folder.write("same/c.csv", "");
    folder.write("swapped/a.csv", "a,b\n1,2\n");
    folder.write("swapped/b.csv", "b,a\n1,2\n");
    folder.write("json/a.json", "{\"a\":1}\n");
    folder.write("json/b.json", "{\"b\":2}\n");
    folder.write("clash/a.json", "{\"a\":1}\n");
    folder.write("clash/b.json", "{\"a\":[1]}\n");
    folder.write("arrow/a.arrow", arrow_file(&sample(1, false), None));
    folder.write("arrow/b.arrow", arrow_file(&sample(1, true), None));
    folder.write("parquet/a.parquet", parquet(&sample(2, false), Compression::SNAPPY));
    let narrow = sample(2, false).project(&[2, 0]).unwrap();
    folder.write("parquet/b.parquet", parquet(&narrow, Compression::SNAPPY));

    let named = |name: &str| format!("t={}", folder.path(name));
    let ctx = open([named("same")]).await;
    assert_eq!(query(&ctx, "SELECT * FROM t ORDER BY a").await.unwrap(), "1.0,\n1.5,2024-01-01\n");
    for (name, expected) in [
        ("json", "only the first has a column 'a'"),
        ("parquet", "only the first has a column 'name'"),
        ("clash", "column 'a' is Int64 and List(Int64)"),
    ] {
        let error = open_error([named(name)]).await;
        assert!(error.contains("can't be one table: ") && error.contains(expected), "{error}");
        assert!(error.contains("/a.") && error.contains("/b."), "{error}");
    }
    let union = |name| CatalogOptions { union_by_name: true, ..options([named(name)]) };
    let ctx = catalog::open(&union("json")).await.unwrap();
    assert_eq!(query(&ctx, "SELECT a, b FROM t ORDER BY a").await.unwrap(), "1,\n,2\n");
    let ctx = catalog::open(&union("parquet")).await.unwrap();
    assert_eq!(
        query(&ctx, "SELECT id, name, price FROM t ORDER BY id, name NULLS LAST").await.unwrap(),
        "0,naïve string 0,0.00\n0,,0.00\n1,naïve string 1,1.01\n1,,1.01\n"
    );
    for (name, expected) in
        [("swapped", "their header lines differ"), ("arrow", "their columns or types differ")]
    {
        let error = open_error([named(name)]).await;
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn paths_with_unusual_characters() {
    let folder = Folder::new();
    for name in ["a b.csv", "100%.csv", "x[1]*?.csv", "naïve.csv", "q#&=.csv"] {
        let path = folder.write(name, "a\n1\n");
        let ctx = open([format!("t={path}")]).await;
        assert_eq!(query(&ctx, "SELECT a FROM t").await.unwrap(), "1\n", "{name}");
    }
}
