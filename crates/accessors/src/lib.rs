//! Generates code that reads the objects of one schema: classes with named, typed fields, whose
//! positions are compiled in.
//!
//! ```text
//! schema ──▶ Layout ──▶ Model: classes and their fields ──▶ source files in some language
//! ```
//!
//! [`Model`] says what classes there are, and a module for each [`Language`] writes them. What all
//! generated code has in common is in the language's runtime: checking pages, reading page files.
//!
//! Generated code holds the schema's bytes and their SHA-256. Its reader refuses a file whose
//! schema has another one, so its positions are always those of the file.

mod cpp;
mod java;
mod model;
mod python;
mod rust;

use std::fmt;

pub use model::{Class, ClassKind, Field, FieldKind, Items, Model};

/// A language that code is generated in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// C++20, with the headers of `cpp/`.
    Cpp,
    /// Java 17, with the runtime `java/page`.
    Java,
    /// Python 3.10, with the package `dray`.
    Python,
    /// Rust, with the crates `dray-page` and `dray-pagefile`.
    Rust,
}

impl Language {
    /// All languages.
    pub const ALL: [Self; 4] = [Self::Cpp, Self::Java, Self::Python, Self::Rust];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpp => "c++",
            Self::Java => "java",
            Self::Python => "python",
            Self::Rust => "rust",
        }
    }

    /// The classes of a model in this language. `namespace` is Java's package, or the name of the
    /// module.
    pub fn sources(self, model: &Model, namespace: &str) -> Vec<Source> {
        match self {
            Self::Cpp => cpp::sources(model, namespace),
            Self::Java => java::sources(model, namespace),
            Self::Python => python::sources(model, namespace),
            Self::Rust => rust::sources(model, namespace),
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A generated file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its path below the folder that the user names.
    pub path: String,
    /// Its text.
    pub text: String,
}
