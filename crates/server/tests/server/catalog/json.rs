//! JSON: lines and arrays, types and digits.

use super::*;

#[tokio::test]
async fn json_of_every_kind() {
    let folder = Folder::new();
    let lines = "{\"id\":1,\"name\":\"a\",\"tags\":[\"x\",\"y\"],\"at\":{\"x\":1}}\n\
                 {\"id\":2,\"name\":null,\"at\":{\"x\":2,\"y\":true}}\n\
                 {\"id\":3,\"price\":2.5}\n";
    let array = format!(" [{}]\n", lines.trim().replace('\n', ","));
    let specs = [
        folder.write("a.json", lines),
        folder.write("b.ndjson", lines),
        folder.write("c.jsonl", lines),
        folder.write("d.json", &array),
        folder.write("e.ndjson.gz", gzip(lines.as_bytes())),
        folder.write("f.json.gz", gzip(array.as_bytes())),
        folder.write("g.json.zst", zstd::encode_all(lines.as_bytes(), 1).unwrap()),
    ];
    for in_memory in [false, true] {
        let ctx = catalog::open(&CatalogOptions { in_memory, ..options(&specs) }).await.unwrap();
        for table in ["a", "b", "c", "d", "e", "f", "g"] {
            assert_eq!(
                query(
                    &ctx,
                    &format!(
                        "SELECT id, name, price, tags[2], at['x'], at['y'] FROM {table} ORDER BY id"
                    )
                )
                .await
                .unwrap(),
                "1,a,,y,1,\n2,,,,2,true\n3,,2.5,,,\n",
                "{table}"
            );
        }
    }
}

#[tokio::test]
async fn json_types_hold_for_all_rows() {
    let folder = Folder::new();
    let mut lines = "{\"a\":1}\n".repeat(5000);
    lines.push_str("{\"a\":1.5,\"late\":\"here\"}\n");
    let ctx = open([folder.write("t.json", lines)]).await;
    assert_eq!(query(&ctx, "SELECT a, late FROM t WHERE a > 1").await.unwrap(), "1.5,here\n");
}

#[tokio::test]
async fn json_keeps_all_digits() {
    let folder = Folder::new();
    let large = "{\"a\":9223372036854775807,\"b\":-9223372036854775808,\
                 \"c\":\"99999999999999999999\",\"d\":1e30}\n";
    let ctx = open([folder.write("t.json", large)]).await;
    let expected = "9223372036854775807,-9223372036854775808,99999999999999999999,1e30\n";
    assert_eq!(query(&ctx, "SELECT * FROM t").await.unwrap(), expected);
    for (name, text, found) in [
        (
            "beyond.json",
            "{\"a\":1}\n{\"a\":9223372036854775808}\n",
            "line 2, column 6: the integer 9223372036854775808 ",
        ),
        (
            "array.json",
            "[{\"a\":1},\n {\"a\":[-9223372036854775809]}]",
            "line 2, column 8: the integer -9223372036854775809 ",
        ),
        (
            "digits.json",
            "{\"a\":0.5}\n{\"a\":12345678901234567.89}\n",
            "line 2, column 6: the number 12345678901234567.89 would lose digits ",
        ),
        (
            "float.json",
            "{\"a\":1.5}\n{\"a\":9007199254740993}\n",
            "row 2: 'a' is 9007199254740993, ",
        ),
        (
            "nested.json",
            "{\"a\":{\"b\":[9007199254740993]}}\n{\"a\":{\"b\":[0.5]}}\n",
            "row 1: 'a.b' is 9007199254740993, ",
        ),
    ] {
        let error = open_error([folder.write(name, text)]).await;
        assert!(error.contains(found) && error.contains(name), "{error}");
    }
    let gzipped = folder.write("z.json.gz", gzip(b"{\"a\":18446744073709551616}\n"));
    assert!(open_error([gzipped]).await.contains("line 1, column 6: "));
    // One file has integers, the other one fractions.
    folder.write("both/a.json", "{\"a\":1.5}\n");
    folder.write("both/b.json", "{\"a\":1}\n");
    let ctx = open([format!("both={}/", folder.path("both"))]).await;
    assert_eq!(query(&ctx, "SELECT a FROM both ORDER BY a").await.unwrap(), "1.0\n1.5\n");
    for (first, second) in [("a", "b"), ("b", "a")] {
        folder.write(&format!("{first}/{first}.json"), "{\"a\":9007199254740993}\n");
        folder.write(&format!("{first}/{second}.json"), "{\"a\":0.5}\n");
        let error = open_error([format!("{first}={}/", folder.path(first))]).await;
        assert!(
            error.contains("column 'a' has integers beyond 2^53 in one and fractions in the other"),
            "{error}"
        );
    }
}

/// A column that is text in one file is text, in whichever order the files come.
#[tokio::test]
async fn large_integers_and_fractions_beside_text_are_text() {
    let folder = Folder::new();
    let values = ["9007199254740993", "0.5", "\"N/A\""];
    for (name, order) in [("abc", [0, 1, 2]), ("acb", [0, 2, 1]), ("bca", [1, 2, 0])] {
        for (file, value) in order.into_iter().enumerate() {
            folder.write(&format!("{name}/{file}.json"), format!("{{\"a\":{}}}\n", values[value]));
        }
        let ctx = open([format!("{name}={}/", folder.path(name))]).await;
        let found = query(&ctx, &format!("SELECT a FROM {name} ORDER BY a")).await;
        assert_eq!(found.as_deref(), Ok("0.5\n9007199254740993\nN/A\n"), "{name}");
    }
}

/// A column with text beside numbers or booleans is text, as they are written.
#[tokio::test]
async fn json_of_mixed_types_is_text() {
    let folder = Folder::new();
    let ids = ["10", "\"N/A\"", "1.50", "true", "-1e3", "9223372036854775807", "null"];
    let lines = ids.map(|id| format!("{{\"id\":{id}}}\n"));
    let nested = "{\"in\":{\"x\":[1,\"y\"]}}\n{\"in\":{\"x\":[null,true]}}\n";
    let specs = [
        folder.write("one.json", lines.concat()),
        folder.write("bits.json", "{\"id\":true}\n{\"id\":1}\n"),
        folder.write("nested.json", nested),
        format!("many={}/", folder.path("many")),
    ];
    for (number, line) in lines.iter().enumerate() {
        folder.write(&format!("many/{number}.json"), line);
    }
    for in_memory in [false, true] {
        let ctx = catalog::open(&CatalogOptions { in_memory, ..options(&specs) }).await.unwrap();
        let sorted = "-1e3\n1.50\n10\n9223372036854775807\nN/A\ntrue\n\"\"\n";
        for (table, expected) in [("one", sorted), ("many", sorted), ("bits", "1\ntrue\n")] {
            let sql = format!("SELECT id FROM {table} ORDER BY id NULLS LAST");
            assert_eq!(query(&ctx, &sql).await.as_deref(), Ok(expected), "{table}");
        }
        let sql = "SELECT \"in\"['x'][1], \"in\"['x'][2] FROM nested ORDER BY 2";
        assert_eq!(query(&ctx, sql).await.as_deref(), Ok(",true\n1,y\n"));
    }
}

#[tokio::test]
async fn json_arrays_and_objects_beside_other_values_are_refused() {
    let folder = Folder::new();
    for (name, text, found) in [
        (
            "single.json",
            "{\"tags\":\"x\"}\n{\"tags\":null}\n{\"tags\":[\"x\"]}\n",
            "row 3: 'tags' is an array, and a single value in row 1; write it in one way ",
        ),
        (
            "array.json",
            "[{\"tags\":[]},{\"tags\":1}]",
            "row 2: 'tags' is a single value, and an array in row 1; ",
        ),
        (
            "deep.json",
            "{\"a\":{\"b\":[[1]]}}\n{\"a\":{\"b\":[1]}}\n",
            "row 2: 'a.b[]' is a single value, and an array in row 1; ",
        ),
        (
            "object.json",
            "{\"a\":1}\n{\"a\":{\"b\":1}}\n",
            "row 2: 'a' is an object, and a single value in row 1; ",
        ),
    ] {
        let error = open_error([folder.write(name, text)]).await;
        assert!(error.contains(found) && error.contains(name), "{error}");
    }
}
