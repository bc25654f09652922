//! Compares the table of crates in `ARCHITECTURE.md` with cargo's metadata.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

const PAGE: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- dependencies: checked by xtask -->";

/// Each crate of this workspace, with the crates of the workspace that it depends on.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Fails unless the table lists exactly the crates of the workspace with their dependencies.
pub(crate) fn check() -> Result<(), String> {
    let page = std::fs::read_to_string(PAGE).map_err(|cause| format!("{PAGE}: {cause}"))?;
    let listed = listed(&page)?;
    let actual = actual()?;
    for (name, depends) in &actual {
        match listed.get(name) {
            None => return Err(format!("{PAGE} does not list the crate {name}")),
            Some(listed) if listed != depends => {
                return Err(format!(
                    "{PAGE} lists {listed:?} as dependencies of {name}, cargo {depends:?}"
                ));
            }
            Some(_) => {}
        }
    }
    match listed.keys().find(|name| !actual.contains_key(*name)) {
        Some(name) => Err(format!("{PAGE} lists {name}, which is not a crate of the workspace")),
        None => Ok(()),
    }
}

/// Parses the table of the page: `| name | what | depends on |`.
fn listed(page: &str) -> Result<Graph, String> {
    let (_, table) = page.split_once(BEGIN).ok_or_else(|| format!("{PAGE} has no line {BEGIN}"))?;
    let words = |cell: &str| -> BTreeSet<String> {
        cell.split(',')
            .map(|word| word.trim().trim_matches('`').to_owned())
            .filter(|word| !word.is_empty())
            .collect()
    };
    let rows = table
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .skip(2);
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        match cells[..] {
            [name, _, depends] => Ok((name.trim_matches('`').to_owned(), words(depends))),
            _ => Err(format!("{PAGE}: the row {row:?} does not have three cells")),
        }
    })
    .collect()
}

/// The crates and dependencies that cargo reports.
fn actual() -> Result<Graph, String> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked"])
        .output()
        .map_err(|cause| format!("cargo metadata: {cause}"))?;
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|cause| format!("cargo metadata: {cause}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata has no packages")?;
    let short = |name: &str| name.strip_prefix("dray-").unwrap_or(name).to_owned();
    let mut graph = Graph::new();
    for package in packages {
        let depends = package["dependencies"].as_array().into_iter().flatten();
        // A dependency with a path is a crate of this workspace. Those of tests are not checked.
        let depends = depends
            .filter(|dependency| dependency["path"].is_string() && dependency["kind"].is_null());
        let depends =
            depends.filter_map(|dependency| dependency["name"].as_str().map(short)).collect();
        graph.insert(short(package["name"].as_str().unwrap_or_default()), depends);
    }
    Ok(graph)
}
