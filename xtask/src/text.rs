//! Checks widths of lines, lengths of files, links between pages, and that `ARCHITECTURE.md` names
//! all crates and top folders.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The maximum width of a line in characters. A tab counts as four.
const WIDTH_MAX: usize = 100;
/// Files with more lines of code are listed.
const LINES_WARNED: usize = 400;
/// Files with more lines of code fail the check.
const LINES_MAX: usize = 800;
/// Paths of generated files, which are not checked.
const GENERATED: [&str; 5] = [
    "Cargo.lock",
    "cpp/test/generated/",
    "crates/accessors/tests/generated/",
    "fuzz/corpus/",
    "lab/objects/cpp/pages/",
];

/// Fails if a line is too wide, a file is too long, a link is broken, or `ARCHITECTURE.md` lacks a
/// crate or a top folder. Lists files that should be shorter.
pub(crate) fn check() -> Result<(), String> {
    let paths = tracked()?;
    let mut wrong = Vec::new();
    for path in paths.iter().filter(|path| !GENERATED.iter().any(|prefix| path.starts_with(prefix)))
    {
        let Some(kind) = Kind::of(path) else { continue };
        let text = fs::read_to_string(path).map_err(|cause| format!("{path}: {cause}"))?;
        for (number, line) in too_wide(kind, &text) {
            wrong.push(format!("{path}:{number}: {} columns", width(line)));
        }
        match code_lines(kind, &text) {
            lines if lines > LINES_MAX => wrong.push(format!("{path}: {lines} lines of code")),
            lines if lines > LINES_WARNED => println!("{path}: {lines} lines of code"),
            _ => {}
        }
        if kind == Kind::Markdown {
            wrong.extend(broken_links(path, &text));
        }
    }
    let page = fs::read_to_string("ARCHITECTURE.md").map_err(|cause| cause.to_string())?;
    for folder in folders(&paths) {
        if !page.contains(&format!("{folder}/")) {
            wrong.push(format!("ARCHITECTURE.md does not name {folder}/"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A comment begins with `//`.
    Slashes,
    /// A comment begins with `#`.
    Hash,
    Markdown,
}

impl Kind {
    fn of(path: &str) -> Option<Self> {
        match Path::new(path).extension()?.to_str()? {
            "rs" | "c" | "h" | "cpp" | "hpp" => Some(Self::Slashes),
            "py" | "pyi" | "sh" | "toml" => Some(Self::Hash),
            "md" => Some(Self::Markdown),
            _ => None,
        }
    }
}

/// The files that git tracks. Without a repository, as in an unpacked archive, all files.
fn tracked() -> Result<Vec<String>, String> {
    // The checkout may belong to another user, as in a container.
    let output = Command::new("git").args(["-c", "safe.directory=*", "ls-files"]).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        let mut paths = Vec::new();
        walk(Path::new("."), &mut paths).map_err(|cause| cause.to_string())?;
        return Ok(paths);
    };
    let paths = String::from_utf8(output.stdout).map_err(|cause| cause.to_string())?;
    // Git also lists files that have been deleted but not committed.
    Ok(paths.lines().filter(|path| Path::new(path).exists()).map(str::to_owned).collect())
}

/// Appends the paths of all files below a folder, but for hidden ones and those of build tools.
fn walk(folder: &Path, paths: &mut Vec<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || ["target", "__pycache__"].contains(&&*name) {
            continue;
        }
        if path.is_dir() {
            walk(&path, paths)?;
        } else {
            paths.push(path.strip_prefix(".").unwrap_or(&path).to_string_lossy().into_owned());
        }
    }
    Ok(())
}

fn width(line: &str) -> usize {
    line.chars().map(|character| if character == '\t' { 4 } else { 1 }).sum()
}

/// Lines that are too wide, with their numbers. Rows of tables and lines with URLs may be wider.
fn too_wide(kind: Kind, text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_breakable = move |line: &str| {
        !(line.contains("://")
            || line.contains("# type: ignore")
            || kind == Kind::Markdown && line.trim_start().starts_with('|'))
    };
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    numbered.filter(move |(_, line)| width(line) > WIDTH_MAX && is_breakable(line))
}

/// The number of lines that are neither empty nor comments; 0 for prose.
fn code_lines(kind: Kind, text: &str) -> usize {
    let comment = match kind {
        Kind::Slashes => "//",
        Kind::Hash => "#",
        Kind::Markdown => return 0,
    };
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(comment))
        .count()
}

/// Reports links of a page to files that do not exist.
fn broken_links(page: &str, text: &str) -> Vec<String> {
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let targets =
        text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(to, _)| to);
    let files = targets.filter(|to| !to.contains(':') && !to.starts_with('#'));
    let files = files.map(|to| to.split('#').next().unwrap_or(to));
    files
        .filter(|to| !folder.join(to).exists())
        .map(|to| format!("{page}: broken link {to}"))
        .collect()
}

/// The paths of crates and top folders.
fn folders(paths: &[String]) -> BTreeSet<String> {
    let found = paths.iter().filter_map(|path| {
        let mut parts = path.split('/');
        let (top, next, rest) = (parts.next()?, parts.next()?, parts.next());
        match (top, rest) {
            ("crates", Some(_)) => Some(format!("crates/{next}")),
            _ if top.starts_with('.') => None,
            _ => Some(top.to_owned()),
        }
    });
    found.collect()
}
