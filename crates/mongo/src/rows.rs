//! Documents to batches of rows.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use dray_driver::{BATCH_BYTES_MAX, BATCH_ROWS_MAX, failed};
use dray_format::arrow::{Decoder, StringLayout};
use dray_format::{BatchBuilder, Limits};
use mongodb::bson::raw::{CStr, RawBsonRef, RawDocument};

use crate::columns::{Column, schema};
use crate::error::End;
use crate::extended_json::{Form, write, write_field};
use crate::fit::{Failure, fits, push};

/// How much of a value an error shows, in characters.
const SHOWN_MAX: usize = 100;

/// The memory for text that is kept between batches.
const TEXT_BYTES_KEPT: usize = 1 << 20;

/// Builds rows, each of a document: its fields in their columns, and what does not fit in the last.
pub(crate) struct Rows {
    columns: Vec<Column>,
    places: HashMap<String, usize>,
    has_rest: bool,
    builder: BatchBuilder,
    decoder: Decoder,
    bytes_max: usize,
    /// Which columns have the value of the present document.
    filled: Vec<bool>,
    /// What does not fit, of the present document.
    rest: String,
    scratch: String,
    documents: u64,
}

impl Rows {
    /// # Errors
    /// If there is no builder for such columns.
    pub(crate) fn new(
        columns: Vec<Column>,
        has_rest: bool,
        limits: &Limits,
    ) -> dray_format::Result<Self> {
        let schema = Arc::new(schema(&columns, has_rest));
        let mut builder = BatchBuilder::new(schema.clone())?;
        let bytes = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
        let bytes_max = bytes(limits.decoded_bytes_max.min(BATCH_BYTES_MAX));
        builder.set_bytes_max(bytes(limits.row_bytes_max), bytes_max);
        let places = columns.iter().enumerate().map(|(i, column)| (column.name.clone(), i));
        Ok(Self {
            places: places.collect(),
            filled: vec![false; columns.len()],
            columns,
            has_rest,
            builder,
            decoder: Decoder::new(schema, StringLayout::Offsets),
            bytes_max,
            rest: String::new(),
            scratch: String::new(),
            documents: 0,
        })
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.decoder.schema().clone()
    }

    /// Whether a batch should end before a document of so many bytes.
    pub(crate) fn is_full(&self, document_bytes: usize) -> bool {
        let rows = self.builder.rows();
        let bytes = self.builder.bytes().saturating_add(document_bytes);
        rows >= BATCH_ROWS_MAX || (rows > 0 && bytes > self.bytes_max)
    }

    /// Takes the rows out; None if there are none.
    ///
    /// # Errors
    /// If memory is short.
    pub(crate) fn finish(&mut self) -> dray_format::Result<Option<RecordBatch>> {
        if self.builder.rows() == 0 {
            return Ok(None);
        }
        // A large document should not leave memory behind.
        for text in [&mut self.rest, &mut self.scratch] {
            text.clear();
            text.shrink_to(TEXT_BYTES_KEPT);
        }
        let built = self.builder.finish()?;
        self.decoder.built(built).map(Some)
    }

    /// Appends a document.
    ///
    /// # Errors
    /// If it is malformed or too large, or does not fit and there is no column for that.
    pub(crate) fn push(&mut self, document: &RawDocument) -> Result<(), End> {
        self.documents += 1;
        match self.append(document) {
            Ok(Some((name, value))) if !self.has_rest => Err(self.misfit(document, name, value)),
            Ok(_) => Ok(()),
            Err(failure) => Err(failure.end(|| self.name_of(document))),
        }
    }

    /// Returns the first field that does not fit.
    fn append<'a>(
        &mut self,
        document: &'a RawDocument,
    ) -> Result<Option<(&'a CStr, RawBsonRef<'a>)>, Failure> {
        self.filled.fill(false);
        self.rest.clear();
        let mut misfit = None;
        let builders = self.builder.columns();
        // Most documents have their fields in the order of the columns.
        let mut next = 0;
        for element in document {
            let (name, value) = element?;
            let place = match self.columns.get(next) {
                Some(column) if column.name == name.as_str() => Some(next),
                _ => self.places.get(name.as_str()).copied(),
            };
            let places = place.and_then(|place| {
                let filled = self.filled.get_mut(place)?;
                Some((place, filled, self.columns.get(place)?, builders.get_mut(place)?))
            });
            // A name that occurs twice has its second value in the rest.
            if let Some((place, filled, column, builder)) = places.filter(|place| !*place.1) {
                *filled = true;
                next = place + 1;
                if fits(&column.kind, value)? {
                    push(builder, &column.kind, value, &mut self.scratch)?;
                    continue;
                }
                builder.push_null()?;
            }
            if self.has_rest {
                write_field(name, value, Form::Canonical, &mut self.rest)?;
            }
            misfit.get_or_insert((name, value));
        }
        for (filled, builder) in self.filled.iter().zip(builders.iter_mut()) {
            if !filled {
                builder.push_null()?;
            }
        }
        if let Some(builder) = builders.get_mut(self.columns.len()) {
            if self.rest.is_empty() {
                builder.push_null()?;
            } else {
                self.rest.push('}');
                builder.push_bytes(self.rest.as_bytes())?;
            }
        }
        self.builder.close_row()?;
        Ok(misfit)
    }

    /// The error of a document with a field that fits no column.
    fn misfit(&self, document: &RawDocument, name: &CStr, value: RawBsonRef<'_>) -> End {
        let (name, value) = (name.as_str(), shown(value));
        let why = match self.places.get(name) {
            Some(_) => "does not fit the type of its column",
            None => "has no column",
        };
        let hint = "without \"rest\": false, the column _rest has what does not fit; or change \
                    \"schema\", \"sample\" or \"projection\"";
        let message = format!("{}: field {name:?} {why}: {value}", self.name_of(document));
        dray_driver::ServerError { hint: hint.to_owned(), ..failed("", message) }.into()
    }

    /// Names a document in an error.
    fn name_of(&self, document: &RawDocument) -> String {
        match document.get("_id") {
            Ok(Some(id)) => format!("the document with the _id {}", shown(id)),
            _ => format!("document {} of the result", self.documents),
        }
    }
}

/// The start of a value, for an error.
fn shown(value: RawBsonRef<'_>) -> String {
    let mut text = String::new();
    if write(value, Form::Relaxed, &mut text).is_err() {
        text.push('…');
    }
    if let Some((end, _)) = text.char_indices().nth(SHOWN_MAX) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod property;
#[cfg(test)]
mod tests;
