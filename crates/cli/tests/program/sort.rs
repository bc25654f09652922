//! `dray sort`: files sorted in memory and on disk.

use std::fmt::Write as _;

use parquet::file::properties::WriterProperties;

use super::*;

/// Unsorted rows `number,text,row`. A tenth of the numbers and a seventh of the texts are NULL.
fn lines(rows: usize) -> Vec<String> {
    let line = |row: usize| {
        let scattered = row.wrapping_mul(2_654_435_761) % 1000;
        let number = if scattered.is_multiple_of(10) {
            String::new()
        } else {
            (scattered as i64 - 500).to_string()
        };
        let text =
            if row.is_multiple_of(7) { String::new() } else { format!("t{}", scattered % 13) };
        format!("{number},{text},{row}")
    };
    (0..rows).map(line).collect()
}

fn csv(lines: &[String]) -> String {
    lines.iter().fold("number,text,row\n".to_owned(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    })
}

/// The number of a line; None if it is NULL.
fn number(line: &str) -> Option<i64> {
    line.split(',').next().unwrap().parse().ok()
}

/// The text of a line; None if it is NULL.
fn text(line: &str) -> Option<&str> {
    line.split(',').nth(1).filter(|text| !text.is_empty())
}

fn sorted(folder: &TempDir, inputs: &[&str], more: &[&str]) -> (String, String) {
    let out = folder.path().join("out.csv");
    let inputs: Vec<String> =
        inputs.iter().map(|name| folder.path().join(name).display().to_string()).collect();
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    let output = run(&[&["sort"], &inputs[..], &["-o", out.to_str().unwrap()], more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    (std::fs::read_to_string(out).unwrap(), stderr(&output))
}

#[test]
fn rows_come_in_order_and_equal_ones_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let rows = lines(50_000);
    std::fs::write(folder.path().join("in.csv"), csv(&rows)).unwrap();
    for memory in ["1GiB", "2MiB"] {
        let memory = ["--memory", memory, "--spill", folder.path().to_str().unwrap()];
        let mut expected = rows.clone();
        // NULLs come last. std's sort is stable.
        expected.sort_by_key(|line| (number(line).is_none(), number(line)));
        let (found, said) =
            sorted(&folder, &["in.csv"], &[&["--by", "number"], &memory[..]].concat());
        assert!(found == csv(&expected), "by number");
        assert!(
            said.contains("50,000 rows")
                && said.contains("spilled to disk") == (memory[1] == "2MiB"),
            "{said}"
        );
        expected = rows.clone();
        // Descending puts NULLs first; then explicit NULLs first.
        expected.sort_by(|a, b| text(b).cmp(&text(a)).then(number(a).cmp(&number(b))));
        let by = ["--by", "text:desc:nulls-last,number:nulls-first", "--quiet"];
        let (found, said) = sorted(&folder, &["in.csv"], &[&by[..], &memory[..]].concat());
        assert!(found == csv(&expected), "by text and number");
        assert_eq!(said, "");
    }
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

/// Of one column, NULL is an empty line.
#[test]
fn rows_without_a_value_stay() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.csv"), "n\n3\n\n1\n\n").unwrap();
    let expected = "n\n1\n3\n\n\n";
    assert_eq!(sorted(&folder, &["in.csv"], &["--by", "n"]).0, expected);
    // Its own output, too.
    std::fs::rename(folder.path().join("out.csv"), folder.path().join("again.csv")).unwrap();
    assert_eq!(sorted(&folder, &["again.csv"], &["--by", "n"]).0, expected);
}

#[test]
fn files_of_several_kinds_and_folders() {
    let folder = tempfile::tempdir().unwrap();
    let rows = lines(3000);
    std::fs::create_dir(folder.path().join("parts")).unwrap();
    for (name, part) in [
        ("parts/a.csv", &rows[..1000]),
        ("parts/b.csv", &rows[1000..2000]),
        ("c.csv", &rows[2000..]),
    ] {
        std::fs::write(folder.path().join(name), csv(part)).unwrap();
    }
    let mut expected = rows.clone();
    expected.reverse();
    assert!(sorted(&folder, &["c.csv", "parts"], &["--by", "row:desc"]).0 == csv(&expected));
    // Write each kind of file, and read it back.
    let path = |name: &str| folder.path().join(name).display().to_string();
    for name in ["a.parquet", "a.arrow", "a.arrows", "a.ndjson"] {
        assert!(
            run(&["sort", &path("c.csv"), &path("parts"), "--by", "text", "-o", &path(name)])
                .status
                .success()
        );
        let found = sorted(&folder, &[name], &["--by", "row:desc"]).0;
        if name == "a.ndjson" {
            // NDJSON columns are sorted by name.
            let by_name = |line: &str| {
                line.split(',').zip([0, 2, 1]).map(|(field, at)| (at, field.to_owned())).collect()
            };
            let swapped = |line: &str| {
                let mut fields: Vec<(i32, String)> = by_name(line);
                fields.sort_unstable();
                fields.into_iter().map(|(_, field)| field).collect::<Vec<_>>().join(",") + "\n"
            };
            assert!(found.lines().map(swapped).collect::<String>() == csv(&expected), "{name}");
        } else {
            assert!(found == csv(&expected), "{name}");
        }
    }
}

#[test]
fn equal_rows_and_the_first_ones() {
    let folder = tempfile::tempdir().unwrap();
    let rows = lines(2000);
    std::fs::write(folder.path().join("in.csv"), csv(&[rows.clone(), rows.clone()].concat()))
        .unwrap();
    let (found, _) = sorted(&folder, &["in.csv"], &["--by", "row", "--distinct"]);
    assert!(found == csv(&rows));
    let (all, _) = sorted(&folder, &["in.csv"], &["--distinct"]);
    assert_eq!(all.lines().count(), 2001);
    let (found, _) = sorted(&folder, &["in.csv"], &["--by", "text", "--distinct=keys"]);
    let mut firsts: Vec<String> = Vec::new();
    for line in &rows {
        if firsts.iter().all(|first| text(first) != text(line)) {
            firsts.push(line.clone());
        }
    }
    firsts.sort_by_key(|line| (text(line).is_none(), text(line).map(str::to_owned)));
    assert!(found == csv(&firsts), "{found}");
    let (found, _) = sorted(&folder, &["in.csv"], &["--by", "row:desc", "--limit", "3"]);
    assert!(found == csv(&[&rows[1999..], &rows[1999..], &rows[1998..1999]].concat()), "{found}");
}

/// `rows` rows `group,row,filler`, not sorted by group.
fn long_lines(rows: u64) -> Vec<String> {
    let line = |row: u64| {
        let scattered = row.wrapping_mul(2_654_435_761);
        format!("{},{row},t{scattered:040}", scattered % 1000 % 7)
    };
    (0..rows).map(line).collect()
}

/// The lines as a Parquet file with many row groups.
fn write_lines(path: &Path, lines: &[String]) {
    let field = |at: usize| lines.iter().map(move |line| line.split(',').nth(at).unwrap());
    let numbers = |at: usize| {
        Arc::new(Int64Array::from_iter_values(field(at).map(|n| n.parse().unwrap()))) as ArrayRef
    };
    let filler: ArrayRef = Arc::new(StringArray::from_iter_values(field(2)));
    let columns = [("group", numbers(0)), ("row", numbers(1)), ("filler", filler)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(20_000)).build();
    let mut writer =
        ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties))
            .unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// Files of this size are divided into ranges that several threads read.
#[test]
fn equal_rows_of_large_files_stay_in_their_order() {
    const HEADER: &str = "group,row,filler\n";
    let folder = tempfile::tempdir().unwrap();
    let rows = long_lines(300_000);
    // More than 10 MB.
    let text = |lines: &[String]| HEADER.to_owned() + &lines.join("\n") + "\n";
    std::fs::write(folder.path().join("in.csv"), text(&rows)).unwrap();
    write_lines(&folder.path().join("in.parquet"), &rows);
    let group = |line: &String| line.split(',').next().unwrap().to_owned();
    let mut expected = rows;
    // std's sort is stable.
    expected.sort_by_key(group);
    let mut firsts = expected.clone();
    firsts.dedup_by_key(|line| group(line));
    for name in ["in.csv", "in.parquet"] {
        assert!(std::fs::metadata(folder.path().join(name)).unwrap().len() > 10_000_000);
        for threads in ["1", "2", "4"] {
            for memory in ["1GiB", "4MiB"] {
                let more = ["--by", "group", "--threads", threads, "--memory", memory];
                let context = format!("{name}, {threads} threads, {memory}");
                assert!(sorted(&folder, &[name], &more).0 == text(&expected), "{context}");
                let (found, _) =
                    sorted(&folder, &[name], &[&more[..], &["--distinct=keys"]].concat());
                assert!(found == text(&firsts), "{context}: {found}");
            }
        }
    }
}

/// Memory for reading, sorting and writing, and what the allocator keeps.
#[cfg(target_os = "linux")]
#[test]
fn the_program_keeps_to_its_memory() {
    const MIB: usize = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    write_lines(Path::new(&path("in.parquet")), &long_lines(3_000_000));
    for memory in [32, 96] {
        let (said, out) = (format!("{memory}MiB"), path("out.parquet"));
        let arguments = [
            "sort",
            &path("in.parquet"),
            "--by",
            "group",
            "--memory",
            &said,
            "--threads",
            "2",
            "-o",
            &out,
        ];
        let sorting = Running::start(&arguments);
        let status = format!("/proc/{}/status", sorting.0.id());
        let resident = || {
            let status = std::fs::read_to_string(&status).ok()?;
            let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
            line.trim().strip_suffix(" kB")?.parse::<usize>().ok()
        };
        let mut most = 0;
        // A zombie process reports no memory.
        while let Some(kibibytes) = resident() {
            most = most.max(kibibytes << 10);
            std::thread::sleep(Duration::from_millis(5));
        }
        let (code, said) = sorting.wait();
        assert!(code == Some(0) && said.contains("spilled to disk"), "{said}");
        assert!(most < (memory + 64) * MIB, "{} MiB with {memory}", most / MIB);
    }
}

#[test]
fn what_is_wrong_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("in.csv"), csv(&lines(20_000))).unwrap();
    std::fs::write(path("other.csv"), "a,b\n1,2\n").unwrap();
    std::fs::write(path("half.csv"), "a,b\n1,2.5\n").unwrap();
    std::fs::write(path("out.csv"), "precious").unwrap();
    let cases: [(&[&str], i32, &str); 9] = [
        (&["in.csv", "--by", "x"], 2, "there is no column \"x\"; there are number, text, row"),
        (&["in.csv", "other.csv", "--by", "a"], 2, "has other columns than"),
        (&["other.csv", "half.csv", "--by", "a"], 2, "column 'b' is Int64 in "),
        (&["none.csv", "--by", "a"], 2, "none.csv"),
        (&["in.csv", "--by", "row:desc:asc"], 2, "says twice how to sort"),
        (&["in.csv"], 2, "--by"),
        (
            &["in.csv", "--by", "row", "--memory", "1000"],
            1,
            "sorting needs 65536 bytes of memory, and may take 1000",
        ),
        (&["in.csv", "--by", "row", "--spill", "/does/not/exist"], 2, "/does/not/exist"),
        (&["--by", "row"], 2, "PATH"),
    ];
    for (arguments, expected, part) in cases {
        let arguments: Vec<String> =
            arguments
                .iter()
                .map(|argument| {
                    if argument.ends_with(".csv") { path(argument) } else { (*argument).to_owned() }
                })
                .collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = run(&[&["sort"], &arguments[..], &["-o", &path("out.csv")]].concat());
        assert_eq!(output.status.code(), Some(expected), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(part), "{arguments:?}: {}", stderr(&output));
        assert_eq!(std::fs::read_to_string(path("out.csv")).unwrap(), "precious");
    }
    let help = stdout(&run(&["sort", "--help"]));
    assert!(help.contains("--memory") && help.contains("dray sort orders.parquet"), "{help}");
}

#[test]
fn an_interrupt_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("in.csv"), csv(&lines(1_500_000))).unwrap();
    let arguments = [
        "sort",
        &path("in.csv"),
        "--by",
        "text,row",
        "--memory",
        "1MiB",
        "-o",
        &path("out.parquet"),
    ];
    let running =
        Running::start(&[&arguments[..], &["--spill", folder.path().to_str().unwrap()]].concat());
    wait_until("a file is begun", || std::fs::read_dir(folder.path()).unwrap().count() > 1);
    running.interrupt();
    let (code, said) = running.wait();
    assert_eq!(code, Some(130), "{said}");
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["in.csv"]);
}

#[test]
fn what_a_killed_sort_has_left_is_removed_by_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let names = || {
        let names = std::fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<_> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    std::fs::write(path("in.csv"), csv(&lines(1_500_000))).unwrap();
    std::fs::write(path("small.csv"), csv(&lines(10))).unwrap();
    let spill = folder.path().to_str().unwrap();
    let sort = |input: &str| {
        let (input, output) = (path(input), path("out.csv"));
        let arguments = [
            "sort", &input, "--by", "text,row", "--memory", "1MiB", "-o", &output, "--spill", spill,
        ];
        Running::start(&arguments)
    };
    let killed = sort("in.csv");
    let unfinished = |name: &String| name.starts_with(".out.csv.") && name.ends_with(".unfinished");
    let spilled = |name: &String| name.starts_with("dray-spill-");
    wait_until("a file is begun", || names().iter().any(unfinished) && names().iter().any(spilled));
    // A second process leaves files alone that are in use.
    let (code, said) = sort("small.csv").wait();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        !said.contains("left behind")
            && names().iter().any(unfinished)
            && names().iter().any(spilled),
        "{said}"
    );
    // Kill with a signal that can't be handled.
    drop(killed);
    assert!(names().iter().any(unfinished) && names().iter().any(spilled));
    let (code, said) = sort("small.csv").wait();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("left behind by a program that was killed"), "{said}");
    assert_eq!(names(), ["in.csv", "out.csv", "small.csv"]);
}

#[test]
fn columns_whose_names_have_colons() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.csv"), "a:desc,x:y\n1,2\n3,1\n2,3\n").unwrap();
    for (by, expected) in [
        ("a:desc", "1,2\n2,3\n3,1\n"),
        ("a:desc:desc", "3,1\n2,3\n1,2\n"),
        ("x:y", "3,1\n1,2\n2,3\n"),
    ] {
        let found = sorted(&folder, &["in.csv"], &["--by", by]).0;
        assert_eq!(found, format!("a:desc,x:y\n{expected}"), "{by}");
    }
}
