//! Writes new values into objects: those that are built, and those that are changed.

use std::ops::Range;

use dray_format::Type;
use dray_page::{
    FieldLayout, Fields, ItemMut, Layout, ListMutator, Mutator, ObjectBuilder, Result, Shape, Value,
};

use crate::assign::New;

/// Writes what is at a place of a schema.
#[derive(Debug)]
pub(crate) enum Put {
    /// It is always missing.
    Nothing,
    Bool(Mutator<bool>),
    Bytes(Mutator<[u8]>),
    /// The objects, a map's pairs and other structs, which alone may be missing.
    Struct(Option<Mutator<()>>, Vec<Put>),
    List(ListMutator, Box<Put>),
}

/// A step from an object towards a value in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The field with this number.
    Field(usize),
    /// The item with this number.
    Item(usize),
}

/// What is written anew in an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edit<'a> {
    /// The steps to the value.
    pub(crate) path: &'a [Step],
    pub(crate) change: &'a Change<'a>,
}

#[derive(Debug)]
pub(crate) enum Change<'a> {
    /// Another value.
    Put(&'a New),
    /// Other items in place of these ones of a list.
    Splice(Range<usize>, &'a [New]),
}

impl Edit<'_> {
    /// The edit behind this step, if it goes there.
    fn behind(self, step: Step) -> Option<Self> {
        let (first, path) = self.path.split_first()?;
        (*first == step).then_some(Self { path, ..self })
    }
}

impl Put {
    /// Writes objects.
    ///
    /// # Errors
    /// When two fields have the same name.
    pub(crate) fn new(layout: &Layout) -> Result<Self> {
        Ok(Self::Struct(None, fields(layout, &layout.fields(), &mut Vec::new())?))
    }

    /// Writes a new value. What is missing is not written.
    pub(crate) fn write(&self, record: &mut ObjectBuilder<'_>, new: &New) -> Result<()> {
        match (self, new) {
            (Self::Bool(field), New::Bool(value)) => record.set(field, *value),
            (Self::Bytes(field), New::Number(bytes, width)) => record.set(field, &bytes[..*width]),
            (Self::Bytes(field), New::Bytes(bytes)) => record.set(field, bytes),
            (Self::Struct(field, puts), New::Struct(news)) => {
                present(field.as_ref(), record)?;
                puts.iter().zip(news).try_for_each(|(put, new)| put.write(record, new))
            }
            (Self::List(list, put), New::List(news)) => {
                record.list(list, news.len(), |record, i| put.write(record, &news[i]))
            }
            _ => Ok(()),
        }
    }

    /// Writes an old value, with an edit of what is in it.
    pub(crate) fn copy(
        &self,
        record: &mut ObjectBuilder<'_>,
        old: Value<'_>,
        edit: Option<Edit<'_>>,
    ) -> Result<()> {
        if let Some(Edit { path: [], change: Change::Put(new) }) = edit {
            return self.write(record, new);
        }
        match self {
            Self::Nothing => Ok(()),
            Self::Bool(field) => old.bool().map_or(Ok(()), |value| record.set(field, value)),
            Self::Bytes(field) => {
                let bytes = old.fixed().or_else(|| old.bytes());
                bytes.map_or(Ok(()), |bytes| record.set(field, bytes))
            }
            Self::Struct(..) => {
                old.fields().map_or(Ok(()), |old| self.copy_fields(record, old, edit))
            }
            Self::List(list, put) => {
                let Some(old) = old.list() else { return Ok(()) };
                let (range, news) = match edit {
                    Some(Edit { path: [], change: Change::Splice(range, news) }) => {
                        (range.clone(), *news)
                    }
                    _ => (old.len()..old.len(), &[][..]),
                };
                let behind = range.start + news.len();
                record.list(list, old.len() - range.len() + news.len(), |record, i| {
                    let from = match i {
                        _ if i < range.start => i,
                        _ if i < behind => return put.write(record, &news[i - range.start]),
                        _ => i - behind + range.end,
                    };
                    let edit = edit.and_then(|edit| edit.behind(Step::Item(from)));
                    old.item(from).map_or(Ok(()), |item| put.copy(record, item, edit))
                })
            }
        }
    }

    /// Writes the fields of an old object or struct, with an edit of what is in it.
    pub(crate) fn copy_fields(
        &self,
        record: &mut ObjectBuilder<'_>,
        old: Fields<'_>,
        edit: Option<Edit<'_>>,
    ) -> Result<()> {
        let Self::Struct(field, puts) = self else { return Ok(()) };
        present(field.as_ref(), record)?;
        puts.iter().zip(old.iter()).enumerate().try_for_each(|(n, (put, old))| {
            put.copy(record, old, edit.and_then(|edit| edit.behind(Step::Field(n))))
        })
    }

    /// Calls `change` with what writes the value at the end of a path, and with the record that the
    /// value is in. The items of the path exist.
    pub(crate) fn at(
        &self,
        record: &mut ItemMut<'_>,
        path: &[Step],
        change: &dyn Fn(&Self, &mut ItemMut<'_>) -> Result<()>,
    ) -> Result<()> {
        match (path, self) {
            ([Step::Field(n), path @ ..], Self::Struct(_, puts)) => {
                puts[*n].at(record, path, change)
            }
            ([Step::Item(i), path @ ..], Self::List(list, put)) => match record.item(list, *i) {
                Some(mut item) => put.at(&mut item, path, change),
                None => Ok(()),
            },
            _ => change(self, record),
        }
    }

    /// Overwrites a value that is neither a struct nor a list, or makes a value missing.
    pub(crate) fn set(&self, record: &mut ItemMut<'_>, new: &New) -> Result<()> {
        match (self, new) {
            (Self::Bool(field), New::Bool(value)) => record.set(field, *value),
            (Self::Bytes(field), New::Number(bytes, width)) => record.set(field, &bytes[..*width]),
            (Self::Bytes(field), New::Bytes(bytes)) => record.set(field, bytes),
            (Self::Bool(field), New::Missing) => record.clear(field),
            (Self::Bytes(field), New::Missing) => record.clear(field),
            (Self::Struct(Some(field), _), New::Missing) => record.clear(field),
            (Self::List(list, _), New::Missing) => record.clear_list(list),
            _ => Ok(()),
        }
    }

    /// Removes items of a list.
    pub(crate) fn remove(&self, record: &mut ItemMut<'_>, items: Range<usize>) -> Result<()> {
        match self {
            Self::List(list, _) => record.splice(list, items, 0),
            _ => Ok(()),
        }
    }
}

fn present(field: Option<&Mutator<()>>, record: &mut ObjectBuilder<'_>) -> Result<()> {
    field.map_or(Ok(()), |field| record.set(field, ()))
}

fn fields<'l>(
    layout: &Layout,
    fields: &'l [FieldLayout],
    path: &mut Vec<&'l str>,
) -> Result<Vec<Put>> {
    fields.iter().map(|field| within(layout, &field.name, &field.shape, path)).collect()
}

/// Writes what has this name within the path.
fn within<'l>(
    layout: &Layout,
    name: &'l str,
    shape: &'l Shape,
    path: &mut Vec<&'l str>,
) -> Result<Put> {
    path.push(name);
    let put = match shape {
        Shape::Value(Type::Null) => Put::Nothing,
        Shape::Value(Type::Boolean) => Put::Bool(layout.mutator(path)?),
        Shape::Value(_) => Put::Bytes(layout.mutator(path)?),
        Shape::Struct(within) => {
            Put::Struct(Some(layout.mutator(path)?), fields(layout, within, path)?)
        }
        Shape::List(items) | Shape::FixedList(_, items) => {
            let list = layout.list_mutator(path)?;
            Put::List(list, within(layout, "[]", &items.item, path)?.into())
        }
        Shape::Map(items) => {
            let list = layout.list_mutator(path)?;
            // The fields of a pair follow the map's name.
            let pair = match &items.item {
                Shape::Struct(pair) => fields(layout, pair, path)?,
                _ => Vec::new(),
            };
            Put::List(list, Put::Struct(None, pair).into())
        }
    };
    path.pop();
    Ok(put)
}
