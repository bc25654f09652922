//! The bridge to JDBC drivers, a program in Java: `java/jdbc/`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use dray_bridge::Command;

const JAR: &str = "dray-jdbc.jar";
const MAIN: &str = "dray.jdbc.Bridge";

/// How JDBC drivers run.
#[derive(Debug, Clone)]
pub struct JdbcOptions {
    /// The jars of drivers, and folders of jars, as a class path of Java has them.
    pub class_path: OsString,
    /// The heap of each session's Java in bytes.
    pub memory_bytes: u64,
}

impl JdbcOptions {
    /// The heap unless another one is chosen.
    pub const MEMORY_BYTES: u64 = 512 << 20;
}

impl Default for JdbcOptions {
    fn default() -> Self {
        Self { class_path: OsString::new(), memory_bytes: Self::MEMORY_BYTES }
    }
}

/// The command that starts the bridge.
///
/// # Errors
/// A sentence, if its jar or a part of the class path is missing.
pub(crate) fn command(options: &JdbcOptions) -> Result<Command, String> {
    let mut class_path = jar()?.into_os_string();
    for entry in entries(&options.class_path)? {
        class_path.push(":");
        class_path.push(entry);
    }
    let arguments = vec![
        format!("-Xmx{}k", options.memory_bytes.div_ceil(1024)).into(),
        "-XX:+UseSerialGC".into(),
        "-XX:-UsePerfData".into(),
        // Arrow's buffers.
        "--add-opens=java.base/java.nio=ALL-UNNAMED".into(),
        "-cp".into(),
        class_path,
        MAIN.into(),
    ];
    let install =
        "whoever runs the Dray server can install Java 17 or later, or set JAVA_HOME".to_owned();
    Ok(Command { program: java(), arguments, install })
}

fn java() -> PathBuf {
    let home = std::env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin/java"));
    home.filter(|java| java.is_file()).unwrap_or_else(|| "java".into())
}

/// The bridge's own jar: named in the environment, beside the program, or where packages put it.
fn jar() -> Result<PathBuf, String> {
    if let Some(jar) = std::env::var_os("DRAY_JDBC_JAR").filter(|jar| !jar.is_empty()) {
        let jar = PathBuf::from(jar);
        return match jar.is_file() {
            true => Ok(jar),
            false => Err(format!("DRAY_JDBC_JAR: there is no file {}", jar.display())),
        };
    }
    let program = std::env::current_exe().map_err(|cause| format!("{JAR}: {cause}"))?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    [folder.join(JAR), folder.join("../share/dray").join(JAR)]
        .into_iter()
        .find(|jar| jar.is_file())
        .ok_or_else(|| {
            format!(
                "sources of JDBC need {JAR} in {}, or where DRAY_JDBC_JAR says",
                folder.display()
            )
        })
}

/// The parts of a class path. A folder stands for its classes and for the jars in it.
fn entries(class_path: &OsStr) -> Result<Vec<OsString>, String> {
    let mut found = Vec::new();
    for path in std::env::split_paths(class_path).filter(|path| !path.as_os_str().is_empty()) {
        let is_wildcard = path.ends_with("*");
        let file = if is_wildcard { path.parent().unwrap_or(Path::new(".")) } else { &path };
        // `*` alone stands for the jars of the current folder.
        if !file.as_os_str().is_empty() && !file.exists() {
            return Err(format!("--jdbc-classpath: there is no {}", file.display()));
        }
        if path.is_dir() {
            found.push(path.join("*").into_os_string());
        }
        found.push(path.into_os_string());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_paths() {
        let here = env!("CARGO_MANIFEST_DIR");
        let path = format!("{here}/Cargo.toml:{here}/src::{here}/src/*:*");
        let found = entries(OsStr::new(&path)).unwrap();
        let expected = ["Cargo.toml", "src/*", "src", "src/*"].map(|name| format!("{here}/{name}"));
        assert_eq!(found[..4], expected.map(OsString::from));
        assert_eq!(found[4..], [OsString::from("*")]);
        for wrong in ["/nowhere/a.jar", "/nowhere/*"] {
            assert!(entries(OsStr::new(wrong)).unwrap_err().contains("no /nowhere"));
        }
    }
}
