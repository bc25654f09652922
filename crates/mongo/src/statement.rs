//! Statements: a command of MongoDB, and what a result should look like.
//!
//! ```json
//! {"find": "orders", "filter": {"total": {"$gt": 5}}, "schema": {"total": "decimal(18,2)"}}
//! ```

use std::collections::HashSet;
use std::fmt;

use dray_driver::{ErrorKind, ServerError, error};
use mongodb::bson::{Bson, Document, doc};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::columns::{Column, REST};
use crate::declared::{Declared, columns};
use crate::error::not_taken;
use crate::literals::exact;

/// How many documents are looked at for the columns, unless the statement says.
const SAMPLE: usize = 1000;
const SAMPLE_MAX: usize = 1_000_000;
/// How long MongoDB may count. It knows the size of a collection, but reads all of a view.
const COUNT_MS_MAX: i32 = 100;
/// Stages of an aggregate that write.
const WRITING_STAGES: [&str; 2] = ["$out", "$merge"];
/// `read_only_sql_transaction`.
const READ_ONLY: &str = "25006";

const COMMANDS: [&str; 3] = ["find", "aggregate", "listCollections"];
/// Members that go into the command, those of any command first.
const FIND: [&str; 9] =
    ["filter", "projection", "sort", "limit", "skip", "hint", "collation", "let", "allowDiskUse"];
const AGGREGATE: [&str; 5] = ["pipeline", "hint", "collation", "let", "allowDiskUse"];
const LIST_COLLECTIONS: [&str; 2] = ["filter", "nameOnly"];
/// Members that say what the result looks like.
const RESULT: [&str; 3] = ["schema", "sample", "rest"];

/// A statement that was understood.
#[derive(Debug)]
pub(crate) struct Query {
    /// The collection that is read; None for a list of them.
    pub(crate) collection: Option<String>,
    /// The command for the server, without the size of batches.
    pub(crate) command: Document,
    /// The columns, if they are declared.
    pub(crate) columns: Option<Vec<Column>>,
    /// How many documents are looked at for the columns otherwise.
    pub(crate) sample: usize,
    /// Whether there is a column for what does not fit the others.
    pub(crate) has_rest: bool,
    /// The stage of a pipeline that writes.
    pub(crate) writing_stage: Option<&'static str>,
}

impl Query {
    /// Reads a statement. Stages that write are refused unless the source is `writable`.
    ///
    /// # Errors
    /// A sentence for the user.
    pub(crate) fn parse(text: &str, name: &str, writable: bool) -> Result<Self, ServerError> {
        let mut unique = serde_json::Deserializer::from_str(text);
        Unique.deserialize(&mut unique).map_err(|cause| not_json(&cause))?;
        unique.end().map_err(|cause| not_json(&cause))?;
        let text = exact(text).map_err(not_taken)?;
        let members: Members = serde_json::from_str(&text).map_err(|cause| not_json(&cause))?;
        let query = members.query()?;
        match query.writing_stage {
            Some(stage) if !writable => Err(error(
                ErrorKind::Query,
                READ_ONLY,
                format!("the source {name} is read-only: a pipeline must not have {stage}"),
                "the server's option --source-writable lets its clients write",
            )),
            _ => Ok(query),
        }
    }

    /// The command with the size of its first batch.
    pub(crate) fn with_batch_size(&self, documents: usize) -> Document {
        let size = Bson::Int64(i64::try_from(documents).unwrap_or(i64::MAX));
        let mut command = self.command.clone();
        match command.contains_key("find") {
            true => command.insert("batchSize", size),
            false => command.insert("cursor", Document::from_iter([("batchSize".into(), size)])),
        };
        command
    }

    /// The command that counts the documents of a result, if these are a whole collection or as
    /// many of one as `limit` and `skip` say; None for any other statement.
    pub(crate) fn count(&self) -> Option<Document> {
        let collection = self.command.get_str("find").ok()?;
        let filter = self.command.get("filter").and_then(Bson::as_document);
        // The index of a hint may lack documents.
        if filter.is_some_and(|filter| !filter.is_empty()) || self.command.contains_key("hint") {
            return None;
        }
        let mut count = doc! { "count": collection, "maxTimeMS": COUNT_MS_MAX };
        for member in ["limit", "skip"] {
            if let Some(value) = self.command.get(member) {
                count.insert(member, value.clone());
            }
        }
        Some(count)
    }
}

fn not_json(cause: &serde_json::Error) -> ServerError {
    not_taken(format!("the statement is not JSON that MongoDB takes: {cause}"))
}

/// The stage that writes in a pipeline, at any depth.
fn writing_stage(value: &Bson) -> Option<&'static str> {
    match value {
        Bson::Array(items) => items.iter().find_map(writing_stage),
        Bson::Document(document) => document.iter().find_map(|(name, value)| {
            let stage = WRITING_STAGES.into_iter().find(|stage| stage == name);
            stage.or_else(|| writing_stage(value))
        }),
        _ => None,
    }
}

/// The members of a statement.
#[derive(Debug, Default)]
struct Members {
    command: Vec<(String, Bson)>,
    schema: Option<Declared>,
    sample: Option<Bson>,
    rest: Option<bool>,
}

impl Members {
    fn query(mut self) -> Result<Query, ServerError> {
        let found: Vec<_> = self
            .command
            .iter()
            .enumerate()
            .filter(|(_, (name, _))| COMMANDS.contains(&name.as_str()))
            .map(|(place, _)| place)
            .collect();
        let [place] = *found else {
            let commands = COMMANDS.join(", ");
            return Err(not_taken(format!("a statement has exactly one member of {commands}")));
        };
        let (name, of) = self.command.remove(place);
        let (taken, collection) = match (name.as_str(), &of) {
            ("find", Bson::String(collection)) => (&FIND[..], Some(collection.clone())),
            ("aggregate", Bson::String(collection)) => (&AGGREGATE[..], Some(collection.clone())),
            ("listCollections", Bson::Int32(1) | Bson::Int64(1)) => (&LIST_COLLECTIONS[..], None),
            ("listCollections", _) => return Err(not_taken("\"listCollections\" has to be 1")),
            _ => return Err(not_taken(format!("{name:?} has to be the name of a collection"))),
        };
        let mut command = Document::from_iter([(name.clone(), of)]);
        for (member, value) in self.command {
            if !taken.contains(&member.as_str()) {
                let taken = [taken, &RESULT].concat().join(", ");
                let what = format!("{name:?} has no member {member:?}, only {taken}");
                return Err(not_taken(what));
            }
            if let Some(expected) = expected(&member, &value) {
                return Err(not_taken(format!("{member:?} has to be {expected}")));
            }
            command.insert(member, value);
        }
        if name == "aggregate" && !command.contains_key("pipeline") {
            return Err(not_taken("an aggregate has a \"pipeline\", an array of stages"));
        }
        let has_rest = self.rest.unwrap_or(true);
        let columns = self.schema.map(columns).transpose();
        let columns = columns.map_err(|what| not_taken(format!("\"schema\": {what}")))?;
        if has_rest && columns.iter().flatten().any(|column| column.name == REST) {
            return Err(not_taken(format!(
                "\"schema\": the column {REST:?} is for what does not fit the others; without \
                 it (\"rest\": false) the name is free"
            )));
        }
        if !has_rest && columns.as_ref().is_some_and(Vec::is_empty) {
            return Err(not_taken("\"schema\": a result needs a column"));
        }
        let sample = match self.sample {
            None => Some(SAMPLE),
            Some(Bson::Int32(sample)) => usize::try_from(sample).ok(),
            Some(_) => None,
        };
        let sample = sample.filter(|sample| (1..=SAMPLE_MAX).contains(sample));
        let sample = sample.ok_or_else(|| {
            not_taken(format!("\"sample\" is a number of documents, 1 to {SAMPLE_MAX}"))
        })?;
        let writing_stage = command.get("pipeline").and_then(writing_stage);
        Ok(Query { collection, command, columns, sample, has_rest, writing_stage })
    }
}

/// What a member has to be; None if it is that.
fn expected(member: &str, value: &Bson) -> Option<&'static str> {
    let is_count = matches!(value, Bson::Int32(0..) | Bson::Int64(0..));
    let is_hint = matches!(value, Bson::String(_) | Bson::Document(_));
    let (is_it, expected) = match member {
        "limit" | "skip" => (is_count, "a number of documents, 0 or more"),
        "pipeline" => (is_pipeline(value), "an array of stages"),
        "allowDiskUse" | "nameOnly" => (matches!(value, Bson::Boolean(_)), "true or false"),
        "hint" => (is_hint, "the name of an index or an object"),
        _ => (matches!(value, Bson::Document(_)), "an object"),
    };
    (!is_it).then_some(expected)
}

fn is_pipeline(value: &Bson) -> bool {
    value.as_array().is_some_and(|stages| stages.iter().all(|stage| stage.as_document().is_some()))
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Members::default();
                while let Some(name) = map.next_key::<String>()? {
                    match name.as_str() {
                        "schema" => members.schema = Some(map.next_value()?),
                        "sample" => members.sample = Some(map.next_value()?),
                        "rest" => members.rest = Some(map.next_value()?),
                        _ => members.command.push((name, map.next_value()?)),
                    }
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// Checks that no object has a name twice: one of the two would be lost.
struct Unique;

impl<'de> DeserializeSeed<'de> for Unique {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            members.next_value_seed(Self)?;
            if let Some(name) = names.replace(name) {
                return Err(serde::de::Error::custom(format!("{name:?} occurs twice")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
