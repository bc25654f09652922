//! Widths of lines, lengths of files, links between pages, and what `ARCHITECTURE.md` names.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The longest line, in characters. A tab counts for four.
const WIDTH_MAX: usize = 100;
/// A file with more lines of code than this is listed.
const LINES_WARNED: usize = 400;
/// A file with more lines of code than this fails the check.
const LINES_MAX: usize = 800;
/// Where files have the form that other programs give them.
const MADE_BY_OTHERS: [&str; 3] = ["Cargo.lock", "lab/data/", "fuzz/corpus/"];

/// Fails if a line is too wide, a file too long, a link leads nowhere, or a crate or top folder is
/// not in `ARCHITECTURE.md`. Prints the files that are long, but not too long.
pub(crate) fn check() -> Result<(), String> {
    let paths = tracked()?;
    let mut wrong = Vec::new();
    for path in
        paths.iter().filter(|path| !MADE_BY_OTHERS.iter().any(|made| path.starts_with(made)))
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
    for folder in rooms(&paths) {
        if !page.contains(&format!("{folder}/")) {
            wrong.push(format!("ARCHITECTURE.md does not name {folder}/"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `//` begins a comment.
    Slashes,
    /// `#` begins a comment.
    Hash,
    Markdown,
}

impl Kind {
    fn of(path: &str) -> Option<Self> {
        match Path::new(path).extension()?.to_str()? {
            "rs" | "c" | "h" => Some(Self::Slashes),
            "py" | "pyi" | "sh" | "toml" => Some(Self::Hash),
            "md" => Some(Self::Markdown),
            _ => None,
        }
    }
}

fn tracked() -> Result<Vec<String>, String> {
    let output = Command::new("git")
        .args(["ls-files"])
        .output()
        .map_err(|cause| format!("git ls-files: {cause}"))?;
    if !output.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let paths = String::from_utf8(output.stdout).map_err(|cause| cause.to_string())?;
    // A file that is gone, but not yet for git, has nothing to check.
    Ok(paths.lines().filter(|path| Path::new(path).exists()).map(str::to_owned).collect())
}

fn width(line: &str) -> usize {
    line.chars().map(|character| if character == '\t' { 4 } else { 1 }).sum()
}

/// Lines that could be shorter, with their numbers. Rows of tables and addresses can't be cut.
fn too_wide(kind: Kind, text: &str) -> impl Iterator<Item = (usize, &str)> {
    let can_be_cut = move |line: &str| {
        !(line.contains("://") || kind == Kind::Markdown && line.trim_start().starts_with('|'))
    };
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    numbered.filter(move |(_, line)| width(line) > WIDTH_MAX && can_be_cut(line))
}

/// How many lines are neither empty nor a comment. Prose has none.
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

/// Links of a page to files that don't exist.
fn broken_links(page: &str, text: &str) -> Vec<String> {
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let targets =
        text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(to, _)| to);
    let files = targets.filter(|to| !to.contains(':') && !to.starts_with('#'));
    let files = files.map(|to| to.split('#').next().unwrap_or(to));
    files
        .filter(|to| !folder.join(to).exists())
        .map(|to| format!("{page}: no file at the link {to}"))
        .collect()
}

/// Crates and top folders, as their paths.
fn rooms(paths: &[String]) -> BTreeSet<String> {
    let folders = paths.iter().filter_map(|path| {
        let mut parts = path.split('/');
        let (top, next, rest) = (parts.next()?, parts.next()?, parts.next());
        match (top, rest) {
            ("crates", Some(_)) => Some(format!("crates/{next}")),
            _ if top.starts_with('.') => None,
            _ => Some(top.to_owned()),
        }
    });
    folders.collect()
}
