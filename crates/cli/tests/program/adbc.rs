//! Tests of `dray adbc`. Those with the driver itself are in `python/tests/test_adbc_install.py`.

use super::*;

#[test]
fn what_is_no_driver_is_not_installed() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libadbc_driver_dray.so");
    let install = |home: &Path| {
        let mut command = program();
        command.args(["adbc", "install", "--library", library.to_str().unwrap()]);
        command.env("HOME", home).env_remove("XDG_CONFIG_HOME").output().unwrap()
    };
    let (code, error) = failure(&install(folder.path()));
    assert_eq!((code, error.contains("no driver at")), (2, true), "{error}");
    std::fs::write(&library, "text").unwrap();
    let (code, error) = failure(&install(folder.path()));
    assert_eq!((code, error.contains("is not a working ADBC driver")), (1, true), "{error}");
    assert!(!folder.path().join(".config").exists());
}

#[test]
fn a_place_is_chosen_once() {
    let output = run(&["adbc", "install", "--user", "--venv"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}
