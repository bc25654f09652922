//! Tests of `--help`.

use super::*;

#[test]
fn help_has_examples_and_is_wrapped_once() {
    for command in [
        &[][..],
        &["serve"],
        &["query"],
        &["export"],
        &["explain"],
        &["sort"],
        &["nest"],
        &["pages"],
        &["accessors"],
        &["adbc"],
        &["adbc", "install"],
        &["adbc", "check"],
        &["completions"],
        &["manual"],
    ] {
        let text = stdout(&run(&[command, &["--help"]].concat()));
        assert!(text.contains("Examples:") && text.contains("Exit codes: 0 "), "{text}");
        assert!(!text.contains("The `dray` program"), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2) {
            let [line, next] = [pair[0], pair[1]];
            assert!(line.chars().count() <= 100, "{line}");
            let is_text =
                |line: &str| !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
            if is_text(line) && is_text(next) {
                let word = next.split(' ').next().unwrap();
                assert!(
                    line.chars().count() + 1 + word.chars().count() > 100,
                    "wrapped twice:\n{line}\n{next}"
                );
            }
        }
    }
}

#[test]
fn completions_name_commands_and_options() {
    for (shell, function) in [("bash", "_dray()"), ("zsh", "#compdef dray"), ("fish", "complete")] {
        let script = stdout(&run(&["completions", shell]));
        assert!(script.contains(function) && script.contains("compression"), "{script}");
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    stdout(&run(&["manual", folder.path().to_str().unwrap()]));
    for name in ["dray", "dray-serve", "dray-export", "dray-adbc-install"] {
        let page = std::fs::read_to_string(folder.path().join(format!("{name}.1"))).unwrap();
        assert!(page.contains(".TH ") && page.contains("Exit codes"), "{page}");
    }
}

#[test]
fn a_type_that_is_none_is_named() {
    let (code, error) =
        failure(&run(&["query", "dray://127.0.0.1:1", "SELECT $1", "--param", "dat:2024-01-31"]));
    assert_eq!((code, error.contains("\"dat\" is no type")), (2, true), "{error}");
    assert!(error.contains("timestamptz") && error.contains("text:dat:2024-01-31"), "{error}");
}

#[test]
fn no_error_quotes_a_secret() {
    for uri in [
        "drya://s3cret@h",
        "mysqlx://u:s3cret@h",
        "mysql://u:s3cret/x@h",
        "dray://s3c%ret@h",
        "dray://s3cret@",
        "postgresql://u:s3cret",
    ] {
        let (code, error) = failure(&run(&["query", uri, "SELECT 1"]));
        assert_eq!((code, error.contains("s3c")), (2, false), "{error}");
    }
}
