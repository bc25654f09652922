//! `dray.PageFileEditor`: objects of a page file that are changed where they lie.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use dray_format::arrow::{StringLayout, schema_to_arrow};
use dray_page::ItemMut;
use dray_pagefile::KeyPath;
use pyo3::exceptions::{PyAttributeError, PyIndexError, PyKeyError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PySlice, PyString, PyTuple};

use crate::assign::{self, New};
use crate::error::{detached, execution, usage};
use crate::object::{Class, Items, Kind, Member, Picked, View, index_in};
use crate::pages::{
    ended, exception, held, is_of_another_schema, key_values, object_for, put_for, whole,
};
use crate::put::{Change, Edit, Put, Step};

/// A file whose objects are being changed.
struct Shared {
    class: Arc<Class>,
    put: Put,
    /// None once the changes have ended.
    state: Mutex<Option<State>>,
}

struct State {
    editor: dray_pagefile::PageFileEditor,
    /// How many changes have given items other numbers, or replaced them.
    moves: u64,
    /// These changes of each object, in their order.
    moved: HashMap<u64, Vec<Moved>>,
}

/// Changes that have moved or replaced items within one value.
struct Moved {
    path: Vec<Step>,
    /// The first item of the list at `path` that has moved. All within other values have.
    from: usize,
    /// The number of the change.
    number: u64,
}

impl Moved {
    /// Whether what was at this path, after so many moves, is elsewhere now.
    fn concerns(&self, path: &[Step], moves: u64) -> bool {
        let behind = path.strip_prefix(&*self.path).unwrap_or_default();
        let is_behind = match behind.first() {
            Some(Step::Item(i)) => *i >= self.from,
            _ => behind.iter().any(|step| matches!(step, Step::Item(_))),
        };
        is_behind && self.number > moves
    }
}

impl State {
    /// Takes note that what is within the value at `path` was replaced or has moved, of a list the
    /// items `from` this one on.
    fn note_move(&mut self, ordinal: u64, path: &[Step], from: usize) {
        self.moves += 1;
        let moved = self.moved.entry(ordinal).or_default();
        // What the new change concerns, earlier ones need not.
        moved.retain(|other| match other.path.strip_prefix(path) {
            Some([]) => other.from < from,
            Some([Step::Item(i), ..]) => *i < from,
            Some([Step::Field(_), ..]) => false,
            None => true,
        });
        moved.push(Moved { path: path.to_vec(), from, number: self.moves });
    }
}

impl Shared {
    /// Calls `run` with the file. It must neither make values of Python nor call Python: code that
    /// then runs, if only a finalizer, may need the file.
    fn with<T>(&self, py: Python<'_>, run: impl FnOnce(&mut State) -> Result<T>) -> PyResult<T> {
        let done = held(py, &self.state).as_mut().map(run);
        done.ok_or_else(|| ended(py))?.map_err(|failed| failed.raise(py))
    }
}

/// Why something failed, until the file is no longer held and an exception can be made.
enum Failed {
    File(dray_pagefile::Error),
    /// What is wrong, and what to do.
    Usage(String, Option<&'static str>),
    Raised(PyErr),
}

type Result<T, E = Failed> = std::result::Result<T, E>;

impl From<dray_pagefile::Error> for Failed {
    fn from(error: dray_pagefile::Error) -> Self {
        Self::File(error)
    }
}

impl From<PyErr> for Failed {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl Failed {
    fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Self::File(error) => exception(py, &error),
            Self::Usage(what, hint) => usage(py, &what, hint),
            Self::Raised(error) => error,
        }
    }
}

/// Where a value is: the object, and the steps from there.
struct Place {
    file: Arc<Shared>,
    ordinal: u64,
    path: Vec<Step>,
    /// The moves before it was looked up.
    moves: u64,
}

impl Place {
    fn step(&self, moves: u64, step: Step) -> Self {
        let mut path = Vec::with_capacity(self.path.len() + 1);
        path.extend_from_slice(&self.path);
        path.push(step);
        Self { file: self.file.clone(), ordinal: self.ordinal, path, moves }
    }

    /// Calls `run` with the object, and the position of the value there; see [`Shared::with`].
    fn read<T>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&State, View<'_>, usize) -> PyResult<T>,
    ) -> PyResult<T> {
        self.file.with(py, |state| {
            let at = self.find(state)?;
            let object = state.editor.object(self.ordinal)?;
            Ok(run(state, View(object.bytes()), at)?)
        })
    }

    /// A copy of the object, with the position of the value there.
    fn copied(&self, py: Python<'_>) -> PyResult<(Vec<u8>, usize)> {
        self.read(py, |_, view, at| Ok((view.0.to_vec(), at)))
    }

    /// The position of the value in its object.
    fn find(&self, state: &State) -> Result<usize> {
        let moved = state.moved.get(&self.ordinal).map_or(&[][..], |moved| moved);
        if moved.iter().any(|moved| moved.concerns(&self.path, self.moves)) {
            let what = "the items of a list around it have moved or were replaced".to_owned();
            return Err(Failed::Usage(what, Some("look it up again in the list")));
        }
        let object = state.editor.object(self.ordinal)?;
        follow(&self.file.class, View(object.bytes()), &self.path)?.ok_or_else(|| {
            Failed::Usage("the value is missing by now".to_owned(), Some("assign a new one"))
        })
    }

    /// Reads the value within this one that `locate` finds in the object, by this one's position.
    fn value<'py>(
        &self,
        py: Python<'py>,
        kind: &Kind,
        step: Step,
        locate: impl FnOnce(View<'_>, usize) -> PyResult<Option<usize>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found = self.read(py, |state, view, at| {
            let Some(at) = locate(view, at)? else { return Ok(None) };
            let bytes = match kind {
                Kind::Value(value) => value.copied(view, at)?,
                _ => Vec::new(),
            };
            Ok(Some((bytes, state.moves)))
        })?;
        let Some((bytes, moves)) = found else { return Ok(py.None().into_bound(py)) };
        match kind {
            Kind::Value(value) => value.read(py, View(&bytes), 0),
            Kind::Struct(class) => {
                let (place, class) = (self.step(moves, step), class.clone());
                Ok(Bound::new(py, ObjectEditor { place, class })?.into_any())
            }
            Kind::List(items) => {
                let (place, items) = (self.step(moves, step), items.clone());
                Ok(Bound::new(py, ListEditor { place, items })?.into_any())
            }
        }
    }

    /// Whether a value is the list at this step: Python assigns it to itself after `+=`.
    fn is_list(&self, step: Step, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(list) = value.cast::<ListEditor>() else { return Ok(false) };
        let place @ Self { file, ordinal, path, .. } = &list.get().place;
        let is_there = Arc::ptr_eq(file, &self.file)
            && *ordinal == self.ordinal
            && path.split_last() == Some((&step, &*self.path));
        if is_there {
            // It may have moved from there.
            place.read(value.py(), |_, _, _| Ok(()))?;
        }
        Ok(is_there)
    }

    /// Writes a value within this one.
    fn set(&self, py: Python<'_>, kind: &Kind, step: Step, new: &New) -> PyResult<()> {
        self.file.with(py, |state| {
            self.find(state)?;
            let path = [&*self.path, &[step]].concat();
            match (kind, new) {
                (Kind::Value(_), _) | (_, New::Missing) => {
                    let set = |put: &Put, record: &mut ItemMut<'_>| put.set(record, new);
                    let put = &self.file.put;
                    state.editor.change(self.ordinal, |object| put.at(object, &path, &set))
                }
                _ => self.rebuild(state, &path, &Change::Put(new)),
            }?;
            if !matches!(kind, Kind::Value(_)) {
                state.note_move(self.ordinal, &path, 0);
            }
            Ok(())
        })
    }

    fn rebuild(
        &self,
        state: &mut State,
        path: &[Step],
        change: &Change<'_>,
    ) -> dray_pagefile::Result<()> {
        let put = &self.file.put;
        state.editor.rebuild(self.ordinal, |old, object| {
            put.copy_fields(object, old.fields(), Some(Edit { path, change }))
        })
    }
}

/// The position of the value at the end of a path; none if something on the way is missing.
fn follow(class: &Class, view: View<'_>, path: &[Step]) -> PyResult<Option<usize>> {
    let (mut fields, mut list, mut at) = (Some(class), None::<&Items>, 0);
    for step in path {
        let kind = match (step, fields, list) {
            (Step::Field(n), Some(class), _) => {
                let member = &class.fields[*n];
                if !member.is_present(view, at)? {
                    return Ok(None);
                }
                at = member.position(at);
                &member.kind
            }
            (Step::Item(i), _, Some(items)) => {
                let (from, count) = view.items(at)?;
                let found = match *i < count {
                    true => items.position(view, from, count, *i)?,
                    false => None,
                };
                let Some(found) = found else { return Ok(None) };
                at = found;
                &items.item
            }
            _ => return Ok(None),
        };
        (fields, list) = match kind {
            Kind::Value(_) => (None, None),
            Kind::Struct(class) => (Some(&**class), None),
            Kind::List(items) => (None, Some(&**items)),
        };
    }
    Ok(Some(at))
}

/// A page file whose objects are changed. `dray/_pages.py` documents the methods.
#[pyclass(frozen, module = "dray._dray")]
pub struct PageFileEditor(Arc<Shared>);

#[pymethods]
impl PageFileEditor {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let opened = detached(py, || dray_pagefile::PageFile::open(path))?;
        let file = opened.map_err(|error| exception(py, &error))?;
        let schema = schema_to_arrow(file.schema(), StringLayout::default());
        let class = Arc::new(Class::new(py, &file.layout().fields(), schema.fields()));
        let put = put_for(py, file.layout())?;
        let editor = dray_pagefile::PageFileEditor::new(file);
        let state = State { editor, moves: 0, moved: HashMap::new() };
        Ok(Self(Arc::new(Shared { class, put, state: Mutex::new(Some(state)) })))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        // Objects are counted in 64 bits.
        self.0.with(py, |state| Ok(state.editor.file().len() as usize))
    }

    fn key(&self, py: Python<'_>) -> PyResult<Vec<KeyPath>> {
        self.0.with(py, |state| {
            Ok(state.editor.file().key().into_iter().map(|(path, _)| path.clone()).collect())
        })
    }

    fn get(&self, py: Python<'_>, ordinal: u64) -> PyResult<ObjectEditor> {
        let moves = self.0.with(py, |state| Ok(state.moves))?;
        let place = Place { file: self.0.clone(), ordinal, path: Vec::new(), moves };
        Ok(ObjectEditor { place, class: self.0.class.clone() })
    }

    fn set(&self, py: Python<'_>, ordinal: u64, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let replace = |state: &mut State, replaced: dray_pagefile::Result<()>| {
            replaced?;
            state.note_move(ordinal, &[], 0);
            Ok(())
        };
        if let Some(object) = whole(value) {
            let copied = self.0.with(py, |state| match state.editor.replace(ordinal, object) {
                Err(error) if is_of_another_schema(&error) => Ok(false),
                done => replace(state, done).map(|()| true),
            })?;
            if copied {
                return Ok(());
            }
        }
        let (new, put) = (object_for(py, &self.0.class, value)?, &self.0.put);
        self.0.with(py, |state| {
            let done = state.editor.rebuild(ordinal, |_, object| put.write(object, &new));
            replace(state, done)
        })
    }

    fn find(&self, py: Python<'_>, key: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<u64>> {
        let key = key_values(&key)?;
        self.0.with(py, |state| Ok(state.editor.file().find(&key)?))
    }

    fn is_changed(&self, py: Python<'_>) -> PyResult<bool> {
        self.0.with(py, |state| Ok(state.editor.is_changed()))
    }

    /// Writes the file anew, which ends the changes.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let state = held(py, &self.0.state).take();
        let State { editor, .. } = state.ok_or_else(|| ended(py))?;
        let written = detached(py, move || {
            let file = File::create(path).map_err(|error| error.to_string())?;
            editor.write(&file).map_err(|error| error.to_string())?;
            file.sync_all().map_err(|error| error.to_string())
        })?;
        written.map_err(|error| execution(py, &error))
    }

    fn close(&self, py: Python<'_>) {
        held(py, &self.0.state).take();
    }
}

/// An object of a file that is changed, or a struct in one. `dray/_dray.pyi` documents the methods.
#[pyclass(frozen, mapping, module = "dray")]
pub struct ObjectEditor {
    place: Place,
    class: Arc<Class>,
}

impl ObjectEditor {
    fn value<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyAny>> {
        let member = &self.class.fields[number];
        self.place.value(py, &member.kind, Step::Field(number), |view, at| {
            Ok(member.is_present(view, at)?.then(|| member.position(at)))
        })
    }

    fn find<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.class.number(py, name)?.map(|number| self.value(py, number)).transpose()
    }

    fn set(&self, py: Python<'_>, number: usize, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.place.is_list(Step::Field(number), value)? {
            return Ok(());
        }
        let Member { kind, nullable, .. } = &self.class.fields[number];
        let new = assign::value_for(kind, *nullable, value);
        let new = new.map_err(|refused| refused.raise(py, self.class.fields[number].name(py)))?;
        self.place.set(py, kind, Step::Field(number), &new)
    }
}

#[pymethods]
impl ObjectEditor {
    /// A field comes before a method of the same name.
    fn __getattribute__<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        match slf.get().find(py, name.to_str()?)? {
            Some(value) => Ok(value),
            None => {
                let object = py.get_type::<PyAny>();
                object.call_method1(intern!(py, "__getattribute__"), (slf, name))
            }
        }
    }

    fn __getattr__(&self, name: &str) -> PyResult<()> {
        Err(no_field(name))
    }

    fn __setattr__(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let number = self.class.number(py, name)?.ok_or_else(|| no_field(name))?;
        self.set(py, number, value)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.find(py, name)?.ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    fn __setitem__(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let number = self.class.number(py, name)?;
        self.set(py, number.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?, value)
    }

    fn __len__(&self) -> usize {
        self.class.fields.len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.keys(py)?.try_iter()
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> bool {
        self.class.has(name)
    }

    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.class.names(py)
    }

    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let values = (0..self.class.fields.len()).map(|number| self.value(py, number));
        PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)
    }

    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.class.names(py)?.iter().zip(self.values(py)?))
    }

    #[pyo3(signature = (name, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.find(py, name)?.or(default))
    }

    pub(crate) fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (object, at) = self.place.copied(py)?;
        self.class.plain(py, View(&object), at)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<Self>() {
            Ok(other) => self.dict(py)?.as_any().eq(other.get().dict(py)?),
            Err(_) => self.dict(py)?.as_any().eq(other),
        }
    }

    fn __dir__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let names = self.keys(py)?;
        for method in ["dict", "get", "items", "keys", "values"] {
            names.append(method)?;
        }
        Ok(names)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("ObjectEditor({})", self.dict(py)?.repr()?))
    }
}

fn no_field(name: &str) -> PyErr {
    PyAttributeError::new_err(format!("the object has no field {name:?}"))
}

/// The items of a list of an object that is changed. `dray/_dray.pyi` documents the methods.
#[pyclass(frozen, sequence, module = "dray")]
pub struct ListEditor {
    place: Place,
    items: Arc<Items>,
}

impl ListEditor {
    fn count(&self, py: Python<'_>) -> PyResult<usize> {
        self.place.read(py, |_, view, at| Ok(view.items(at)?.1))
    }

    fn item<'py>(&self, py: Python<'py>, i: usize) -> PyResult<Bound<'py, PyAny>> {
        let Self { place, items } = self;
        let locate = |view: View<'_>, at| {
            let (from, count) = view.items(at)?;
            if i < count { items.position(view, from, count, i) } else { Ok(None) }
        };
        if !items.pairs {
            return place.value(py, &items.item, Step::Item(i), locate);
        }
        let (object, at) = place.copied(py)?;
        match locate(View(&object), at)? {
            Some(at) => items.plain_item(py, View(&object), at),
            None => Ok(py.None().into_bound(py)),
        }
    }

    fn new_item(&self, value: &Bound<'_, PyAny>) -> PyResult<New> {
        let new = assign::item_for(&self.items, value);
        new.map_err(|refused| refused.raise(value.py(), "[]"))
    }

    fn new_items(&self, values: &Bound<'_, PyAny>) -> PyResult<Vec<New>> {
        let news = assign::items_for(&self.items, values);
        news.map_err(|refused| refused.raise(values.py(), ""))
    }

    /// Writes other items in place of those that `range` gives, which gets their number.
    fn splice(
        &self,
        py: Python<'_>,
        range: impl Fn(usize) -> PyResult<Range<usize>>,
        news: &[New],
    ) -> PyResult<()> {
        loop {
            // Python code that runs for an index, or another thread, may change the list.
            let count = self.count(py)?;
            if self.replace(py, count, range(count)?, news)? {
                return Ok(());
            }
        }
    }

    /// Does it if there are still so many items.
    fn replace(
        &self,
        py: Python<'_>,
        expected: usize,
        range: Range<usize>,
        news: &[New],
    ) -> PyResult<bool> {
        let place = &self.place;
        place.file.with(py, |state| {
            let at = place.find(state)?;
            let (_, count) = View(state.editor.object(place.ordinal)?.bytes()).items(at)?;
            if count != expected {
                return Ok(false);
            }
            if let Some(size) = self.items.size.filter(|_| range.len() != news.len()) {
                return Err(Failed::Usage(format!("the list always has {size} items"), None));
            }
            if range.is_empty() && news.is_empty() {
                return Ok(true);
            }
            let from = range.start;
            let changed = if news.is_empty() {
                let remove =
                    |put: &Put, record: &mut ItemMut<'_>| put.remove(record, range.clone());
                let put = &place.file.put;
                state.editor.change(place.ordinal, |object| put.at(object, &place.path, &remove))
            } else {
                place.rebuild(state, &place.path, &Change::Splice(range, news))
            };
            changed?;
            if from < count {
                state.note_move(place.ordinal, &place.path, from);
            }
            Ok(true)
        })
    }
}

#[pymethods]
impl ListEditor {
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.count(py)
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match Picked::of(index, self.count(py)?)? {
            Picked::Item(i) => self.item(py, i),
            Picked::Slice(slice) => {
                let items = slice.map(|i| self.item(py, i)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyList::new(py, items)?.into_any())
            }
        }
    }

    fn __setitem__(
        &self,
        py: Python<'_>,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if index.is_instance_of::<PySlice>() {
            let news = self.new_items(value)?;
            return self.splice(py, |count| run(index, count), &news);
        }
        let i = run(index, self.count(py)?)?.start;
        if self.place.is_list(Step::Item(i), value)? {
            return Ok(());
        }
        let new = self.new_item(value)?;
        let i = run(index, self.count(py)?)?.start;
        self.place.set(py, &self.items.item, Step::Item(i), &new)
    }

    fn __delitem__(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<()> {
        self.splice(py, |count| run(index, count), &[])
    }

    fn insert(&self, py: Python<'_>, index: isize, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let new = self.new_item(value)?;
        let before = |count: usize| {
            let i = if index < 0 { index.saturating_add_unsigned(count) } else { index };
            let i = usize::try_from(i).unwrap_or(0).min(count);
            Ok(i..i)
        };
        self.splice(py, before, &[new])
    }

    fn append(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let new = self.new_item(value)?;
        self.splice(py, |count| Ok(count..count), &[new])
    }

    fn extend(&self, py: Python<'_>, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let news = self.new_items(values)?;
        self.splice(py, |count| Ok(count..count), &news)
    }

    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.splice(py, |count| Ok(0..count), &[])
    }

    fn list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let (object, at) = self.place.copied(py)?;
        let (from, count) = View(&object).items(at)?;
        self.items.plain(py, View(&object), from, count)
    }

    #[pyo3(signature = (value, *bounds))]
    fn index<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        bounds: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        index_in(self.list(value.py())?.as_any(), value, bounds)
    }

    #[pyo3(name = "count")]
    fn occurrences<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.list(value.py())?.call_method1("count", (value,))
    }

    fn __iadd__(slf: &Bound<'_, Self>, values: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.get().extend(slf.py(), values)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<Self>() {
            Ok(other) => self.list(py)?.as_any().eq(other.get().list(py)?),
            Err(_) => self.list(py)?.as_any().eq(other),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("ListEditor({})", self.list(py)?.repr()?))
    }
}

/// The items that an index picks, which follow each other.
fn run(index: &Bound<'_, PyAny>, count: usize) -> PyResult<Range<usize>> {
    let Ok(slice) = index.cast::<PySlice>() else {
        return match Picked::of(index, count)? {
            Picked::Item(i) => Ok(i..i + 1),
            Picked::Slice(_) => Err(PyIndexError::new_err("a slice, expected a number")),
        };
    };
    let part = slice.indices(isize::try_from(count).unwrap_or(isize::MAX))?;
    if part.step != 1 {
        return Err(usage(index.py(), "only items that follow each other are replaced", None));
    }
    // Python has cut the slice to the items that there are.
    let start = part.start as usize;
    Ok(start..start + part.slicelength)
}
