//! Parquet and Arrow.

use datafusion::arrow::array::{DictionaryArray, Int8Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema};

use super::*;

#[tokio::test]
async fn parquet_and_arrow_of_every_kind() {
    let folder = Folder::new();
    let mut specs = Vec::new();
    for views in [false, true] {
        let batch = sample(5, views);
        for (name, compression) in [
            ("none", Compression::UNCOMPRESSED),
            ("snappy", Compression::SNAPPY),
            ("lz4", Compression::LZ4_RAW),
            ("gzip", Compression::GZIP(Default::default())),
            ("zstd", Compression::ZSTD(Default::default())),
        ] {
            specs.push(
                folder.write(&format!("{name}_{views}.parquet"), parquet(&batch, compression)),
            );
        }
        specs.push(folder.write(&format!("file_{views}.arrow"), arrow_file(&batch, None)));
        let lz4 = arrow_file(&batch, Some(CompressionType::LZ4_FRAME));
        specs.push(folder.write(&format!("feather_{views}.feather"), lz4));
        let zstd = arrow_file(&batch, Some(CompressionType::ZSTD));
        specs.push(folder.write(&format!("file_zstd_{views}.ipc"), zstd));
        specs.push(folder.write(&format!("stream_{views}.arrows"), arrow_stream(&batch)));
        specs.push(folder.write(&format!("stream2_{views}.arrow"), arrow_stream(&batch)));
    }
    for in_memory in [false, true] {
        let ctx = catalog::open(&CatalogOptions { in_memory, ..options(&specs) }).await.unwrap();
        for spec in &specs {
            let name = Path::new(spec).file_stem().unwrap().to_str().unwrap();
            assert_eq!(
                query(&ctx, &format!("SELECT * FROM {name} ORDER BY id")).await.unwrap(),
                SAMPLE_5,
                "{name}"
            );
            assert_eq!(
                query(&ctx, &format!("SELECT price FROM {name} WHERE id = 4")).await.unwrap(),
                "4.04\n"
            );
            let schema = ctx.table(name).await.unwrap().schema().as_arrow().clone();
            let is_arrow_view = !in_memory && name.ends_with("true") && !spec.ends_with("parquet");
            let string = if is_arrow_view { DataType::Utf8View } else { DataType::Utf8 };
            assert_eq!(schema.field(1).data_type(), &string, "{name}");
            let batches = ctx.table(name).await.unwrap().collect().await.unwrap();
            assert_eq!(batches[0].column(1).data_type(), &string, "{name}");
        }
    }
}

#[tokio::test]
async fn extension_types_are_kept() {
    let folder = Folder::new();
    let json = Field::new("j", DataType::Utf8, true)
        .with_metadata([("ARROW:extension:name".to_owned(), "arrow.json".to_owned())].into());
    let schema = Arc::new(Schema::new(vec![json]));
    let batch =
        RecordBatch::try_new(schema, vec![Arc::new(StringArray::from(vec!["{}"]))]).unwrap();
    let specs = [
        folder.write("a.parquet", parquet(&batch, Compression::SNAPPY)),
        folder.write("b.arrow", arrow_file(&batch, None)),
    ];
    for in_memory in [false, true] {
        let ctx = catalog::open(&CatalogOptions { in_memory, ..options(&specs) }).await.unwrap();
        for table in ["a", "b"] {
            let batches =
                ctx.sql(&format!("SELECT j FROM {table}")).await.unwrap().collect().await.unwrap();
            assert_eq!(
                batches[0].schema().field(0).extension_type_name(),
                Some("arrow.json"),
                "{table}"
            );
        }
    }
}

#[tokio::test]
async fn dictionaries_of_many_batches_are_united() {
    let folder = Folder::new();
    let batch = |number: usize| {
        let keys = Int8Array::from_iter((0..100).map(|key| (key % 7 != 3).then_some(key)));
        let words = StringArray::from_iter_values(
            (0..100).map(|word| format!("word {}", number * 100 + word)),
        );
        let words = DictionaryArray::new(keys, Arc::new(words));
        RecordBatch::try_from_iter_with_nullable([("word", Arc::new(words) as ArrayRef, true)])
            .unwrap()
    };
    let mut stream = StreamWriter::try_new(Vec::new(), &batch(0).schema()).unwrap();
    (0..5).for_each(|number| stream.write(&batch(number)).unwrap());
    let path = folder.write("t.arrows", stream.into_inner().unwrap());
    for number in 0..5 {
        let mut file = FileWriter::try_new(Vec::new(), &batch(0).schema()).unwrap();
        file.write(&batch(number)).unwrap();
        folder.write(&format!("files/{number}.arrow"), file.into_inner().unwrap());
    }
    let files = format!("t={}/", folder.path("files"));
    for (path, in_memory) in [(&path, false), (&path, true), (&files, false), (&files, true)] {
        let ctx = catalog::open(&CatalogOptions { in_memory, ..options([path]) }).await.unwrap();
        let words = query(&ctx, "SELECT word FROM t WHERE word LIKE 'word %' AND word <> 'word 0'")
            .await
            .unwrap();
        assert_eq!(words.lines().count(), 5 * 86 - 1, "{words}");
        assert!(words.contains("word 1\n") && words.contains("word 499\n"), "{words}");
        assert_eq!(query(&ctx, "SELECT count(*), count(word) FROM t").await.unwrap(), "500,430\n");
    }
}
