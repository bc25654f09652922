//! Generates code that reads the objects of one schema: classes with named, typed fields, whose
//! positions are compiled in.
//!
//! ```text
//! schema ──▶ Layout ──▶ Model: classes and their fields ──▶ source files in some language
//! ```
//!
//! [`Model`] says what classes there are. A module for each language has a function
//! `sources(&Model, namespace) -> Vec<Source>`, which writes them as the language has it. What all
//! generated code has in common is in the language's runtime: checking pages, reading page files.
//!
//! Generated code holds the schema's bytes and their SHA-256. Its reader refuses a file whose
//! schema has another one, so its positions are always those of the file.

pub mod java;
mod model;
pub mod rust;

pub use model::{Class, ClassKind, Field, FieldKind, Items, Model};

/// A generated file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its path below the folder that the user names.
    pub path: String,
    /// Its text.
    pub text: String,
}
