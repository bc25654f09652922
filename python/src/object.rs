//! `dray.Object`: an object of a page, read in place. A value is made when it is asked for.
//!
//! A verified page tells all positions, so that no access fails; what would nevertheless lie
//! outside the object is an error.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayData, make_array};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Field, Fields};
use dray_format::Type;
use dray_page::{FieldLayout, ItemLayout, Shape, ValidityBit, VerifiedPage};
use pyo3::exceptions::{PyAttributeError, PyIndexError, PyKeyError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyList, PySlice, PyString, PyTuple};

use crate::error::{execution, usage};
use crate::rows::{any, value_of};

/// The longest string that lies in its place (page.md section 4).
const INLINE_BYTES_MAX: usize = 12;
/// The bytes of a string, or of where it lies.
const STRING_BYTES: usize = 16;

/// The fields of objects, structs or items.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) fields: Vec<Member>,
    /// The number of the field with this name, if there is only one.
    by_name: HashMap<String, Option<usize>>,
}

/// A field of a class.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: Py<PyString>,
    at: usize,
    pub(crate) nullable: bool,
    present_bit: Option<ValidityBit>,
    pub(crate) kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Value(Value),
    Struct(Arc<Class>),
    List(Arc<Items>),
}

/// A value that is neither a struct nor a list.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) data_type: Type,
    /// Its field in Arrow, with the extension type.
    pub(crate) field: Field,
}

#[derive(Debug)]
pub(crate) struct Items {
    pub(crate) nullable: bool,
    stride: usize,
    pub(crate) item: Kind,
    /// Whether they are the pairs of a map.
    pub(crate) pairs: bool,
    /// The number of items, if the type has one.
    pub(crate) size: Option<usize>,
}

impl Class {
    /// The class of objects with these fields, which Arrow calls so.
    pub(crate) fn new(py: Python<'_>, layouts: &[FieldLayout], fields: &Fields) -> Self {
        debug_assert_eq!(layouts.len(), fields.len());
        let mut by_name = HashMap::new();
        let members = layouts.iter().zip(fields).enumerate().map(|(number, (layout, field))| {
            by_name
                .entry(layout.name.clone())
                .and_modify(|number| *number = None)
                .or_insert(Some(number));
            Member {
                name: PyString::intern(py, &layout.name).unbind(),
                at: layout.at,
                nullable: layout.own_bit.is_some(),
                present_bit: layout.present_bit,
                kind: Kind::new(py, &layout.shape, field),
            }
        });
        let fields = members.collect();
        Self { fields, by_name }
    }

    /// The number of the field with this name.
    pub(crate) fn number(&self, py: Python<'_>, name: &str) -> PyResult<Option<usize>> {
        match self.by_name.get(name) {
            None => Ok(None),
            Some(Some(number)) => Ok(Some(*number)),
            Some(None) => Err(several(py, name)),
        }
    }
}

impl Member {
    pub(crate) fn name<'m>(&'m self, py: Python<'m>) -> &'m str {
        self.name.bind(py).to_str().unwrap_or_default()
    }

    pub(crate) fn is_present(&self, view: View<'_>, at: usize) -> PyResult<bool> {
        self.present_bit.map_or(Ok(true), |bit| view.has(at, bit))
    }

    /// Where it lies in the record at `at`. A struct's fields are fields of the record around it.
    pub(crate) fn position(&self, at: usize) -> usize {
        at + self.at
    }
}

impl Class {
    pub(crate) fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.fields.iter().map(|member| &member.name))
    }

    /// Whether there is a field of this name.
    pub(crate) fn has(&self, name: &Bound<'_, PyAny>) -> bool {
        name.extract::<&str>().is_ok_and(|name| self.by_name.contains_key(name))
    }

    /// The record at `at` as a dict.
    pub(crate) fn plain<'py>(
        &self,
        py: Python<'py>,
        view: View<'_>,
        at: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        if let Some((name, _)) = self.by_name.iter().find(|(_, number)| number.is_none()) {
            return Err(several(py, name));
        }
        let dict = PyDict::new(py);
        for member in &self.fields {
            dict.set_item(&member.name, self.plain_value(py, member, view, at)?)?;
        }
        Ok(dict)
    }

    fn plain_value<'py>(
        &self,
        py: Python<'py>,
        member: &Member,
        view: View<'_>,
        at: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        match member.is_present(view, at)? {
            true => member.kind.plain(py, view, member.position(at)),
            false => Ok(py.None().into_bound(py)),
        }
    }
}

impl Kind {
    fn new(py: Python<'_>, shape: &Shape, field: &Field) -> Self {
        let items = |layout: &ItemLayout, field: &Field, pairs, size| {
            let item = Self::new(py, &layout.item, field);
            let (nullable, stride) = (layout.nullable, layout.stride);
            Self::List(Arc::new(Items { nullable, stride, item, pairs, size }))
        };
        let value = |data_type| Self::Value(Value { data_type, field: field.clone() });
        match (shape, field.data_type()) {
            (_, DataType::Dictionary(_, value)) => {
                Self::new(py, shape, &field.clone().with_data_type(value.as_ref().clone()))
            }
            (Shape::Struct(layouts), DataType::Struct(fields)) => {
                Self::Struct(Arc::new(Class::new(py, layouts, fields)))
            }
            (
                Shape::List(layout),
                DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item),
            ) => items(layout, item, false, None),
            (Shape::FixedList(size, layout), DataType::FixedSizeList(item, _)) => {
                items(layout, item, false, Some(*size))
            }
            (Shape::Map(layout), DataType::Map(entries, _)) => items(layout, entries, true, None),
            (Shape::Value(data_type), _) => value(data_type.clone()),
            (shape, other) => {
                debug_assert!(false, "{shape:?} is not laid out as Arrow's {other}");
                value(Type::Null)
            }
        }
    }

    /// The value at a position, which is present.
    fn read<'py>(
        &self,
        py: Python<'py>,
        extent: &Extent,
        at: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Value(value) => value.read(py, extent.view(), at),
            Self::Struct(class) => {
                let (class, extent) = (class.clone(), extent.clone());
                let object = Object { class, extent, at, whole: false };
                Ok(Bound::new(py, object)?.into_any())
            }
            Self::List(items) if items.pairs => self.plain(py, extent.view(), at),
            Self::List(items) => {
                let (from, count) = extent.view().items(at)?;
                let list = List { items: items.clone(), extent: extent.clone(), from, count };
                Ok(Bound::new(py, list)?.into_any())
            }
        }
    }

    /// The same with dicts and lists in place of objects.
    pub(crate) fn plain<'py>(
        &self,
        py: Python<'py>,
        view: View<'_>,
        at: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Value(value) => value.read(py, view, at),
            Self::Struct(class) => Ok(class.plain(py, view, at)?.into_any()),
            Self::List(items) => {
                let (from, count) = view.items(at)?;
                Ok(items.plain(py, view, from, count)?.into_any())
            }
        }
    }
}

impl Items {
    /// The position of item `i` of `count`, unless it is missing.
    pub(crate) fn position(
        &self,
        view: View<'_>,
        from: usize,
        count: usize,
        i: usize,
    ) -> PyResult<Option<usize>> {
        let bit = ValidityBit { at: i / 8, mask: 1 << (i % 8) };
        if self.nullable && !view.has(from, bit)? {
            return Ok(None);
        }
        Ok(Some(self.records_at(from, count) + i * self.stride))
    }

    /// Items lie behind their bitmap (page.md section 5).
    fn records_at(&self, from: usize, count: usize) -> usize {
        let bitmap = if self.nullable { count.div_ceil(8).next_multiple_of(8) } else { 0 };
        from + bitmap
    }

    /// All items with dicts and lists in place of objects.
    pub(crate) fn plain<'py>(
        &self,
        py: Python<'py>,
        view: View<'_>,
        from: usize,
        count: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let items = (0..count).map(|i| match self.position(view, from, count, i)? {
            Some(at) => self.plain_item(py, view, at),
            None => Ok(py.None().into_bound(py)),
        });
        PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)
    }

    /// An item, which is present; a map's is a tuple of key and value.
    pub(crate) fn plain_item<'py>(
        &self,
        py: Python<'py>,
        view: View<'_>,
        at: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        match &self.item {
            Kind::Struct(class) if self.pairs => {
                let pair =
                    class.fields.iter().map(|member| class.plain_value(py, member, view, at));
                Ok(PyTuple::new(py, pair.collect::<PyResult<Vec<_>>>()?)?.into_any())
            }
            item => item.plain(py, view, at),
        }
    }
}

impl Value {
    pub(crate) fn read<'py>(
        &self,
        py: Python<'py>,
        view: View<'_>,
        at: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        macro_rules! number {
            ($number:ty) => {
                any(py, <$number>::from_le_bytes(view.load(at)?))
            };
        }
        match &self.data_type {
            Type::Null => Ok(py.None().into_bound(py)),
            Type::Boolean => any(py, view.load(at)? == [1]),
            Type::Int8 => number!(i8),
            Type::Int16 => number!(i16),
            Type::Int32 => number!(i32),
            Type::Int64 => number!(i64),
            Type::UInt8 => number!(u8),
            Type::UInt16 => number!(u16),
            Type::UInt32 => number!(u32),
            Type::UInt64 => number!(u64),
            Type::Float32 => number!(f32),
            Type::Float64 => number!(f64),
            Type::Utf8 => match str::from_utf8(view.string(at)?) {
                Ok(text) => Ok(PyString::new(py, text).into_any()),
                Err(_) => Err(broken()),
            },
            Type::Binary => Ok(PyBytes::new(py, view.string(at)?).into_any()),
            other => {
                let width = other.width().ok_or_else(broken)?;
                self.by_arrow(py, view.bytes(at, width)?)
            }
        }
    }

    /// What [`Value::read`] reads of the value at `at`, as the value at 0.
    pub(crate) fn copied(&self, view: View<'_>, at: usize) -> PyResult<Vec<u8>> {
        Ok(match &self.data_type {
            Type::Null => Vec::new(),
            Type::Boolean => view.bytes(at, 1)?.to_vec(),
            Type::Utf8 | Type::Binary => {
                let mut copied = view.bytes(at, STRING_BYTES)?.to_vec();
                if view.u32(at)? > INLINE_BYTES_MAX {
                    copied[12..].copy_from_slice(&(STRING_BYTES as u32).to_le_bytes());
                    copied.extend_from_slice(view.string(at)?);
                }
                copied
            }
            other => view.bytes(at, other.width().ok_or_else(broken)?)?.to_vec(),
        })
    }

    /// The value as results have it, by an array of one value.
    fn by_arrow<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let data = ArrayData::builder(self.field.data_type().clone())
            .len(1)
            .add_buffer(Buffer::from(bytes))
            .build();
        let data = data.map_err(|error| execution(py, &error.to_string()))?;
        value_of(py, &make_array(data), &self.field)
    }
}

pub(crate) fn several(py: Python<'_>, name: &str) -> PyErr {
    usage(
        py,
        &format!("there are several fields {name:?}"),
        Some("read all of them, in their order, with values()"),
    )
}

pub(crate) fn broken() -> PyErr {
    Python::attach(|py| execution(py, "an object of a verified page is not as its schema says"))
}

/// The bytes of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a>(pub(crate) &'a [u8]);

impl<'a> View<'a> {
    fn bytes(self, at: usize, count: usize) -> PyResult<&'a [u8]> {
        self.0.get(at..at + count).ok_or_else(broken)
    }

    fn load<const N: usize>(self, at: usize) -> PyResult<[u8; N]> {
        self.bytes(at, N)?.first_chunk().copied().ok_or_else(broken)
    }

    fn u32(self, at: usize) -> PyResult<usize> {
        Ok(u32::from_le_bytes(self.load(at)?) as usize)
    }

    fn has(self, at: usize, bit: ValidityBit) -> PyResult<bool> {
        let [byte] = self.load(at + bit.at)?;
        Ok(byte & bit.mask != 0)
    }

    fn string(self, at: usize) -> PyResult<&'a [u8]> {
        let length = self.u32(at)?;
        let from = if length <= INLINE_BYTES_MAX { at + 4 } else { self.u32(at + 12)? };
        self.bytes(from, length)
    }

    /// Where the items of the list at `at` begin, and how many they are.
    pub(crate) fn items(self, at: usize) -> PyResult<(usize, usize)> {
        Ok((self.u32(at)?, self.u32(at + 4)?))
    }
}

/// An object in its page.
#[derive(Debug, Clone)]
struct Extent {
    page: VerifiedPage,
    slot: usize,
}

impl Extent {
    fn view(&self) -> View<'_> {
        View(self.page.object(self.slot).map_or(&[], |object| object.bytes()))
    }
}

/// An object of a page, or a struct in one. `dray/_dray.pyi` documents the methods.
#[pyclass(frozen, mapping, module = "dray")]
pub struct Object {
    class: Arc<Class>,
    extent: Extent,
    at: usize,
    /// Whether it is a whole object of the page.
    whole: bool,
}

impl Object {
    /// An object of a page, which has such a class.
    pub(crate) fn new(class: &Arc<Class>, page: &VerifiedPage, slot: usize) -> PyResult<Self> {
        if slot >= page.len() {
            return Err(broken());
        }
        let extent = Extent { page: page.clone(), slot };
        Ok(Self { class: class.clone(), extent, at: 0, whole: true })
    }

    /// The object of the page, unless it is a struct within one.
    pub(crate) fn whole(&self) -> Option<dray_page::Object<'_>> {
        self.extent.page.object(self.extent.slot).filter(|_| self.whole)
    }

    pub(crate) fn plain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.class.plain(py, self.extent.view(), self.at)
    }

    fn value<'py>(&self, py: Python<'py>, member: &Member) -> PyResult<Bound<'py, PyAny>> {
        match member.is_present(self.extent.view(), self.at)? {
            true => member.kind.read(py, &self.extent, member.position(self.at)),
            false => Ok(py.None().into_bound(py)),
        }
    }

    fn read_all<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.class.fields.iter().map(|member| self.value(py, member)).collect()
    }

    fn find<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.class.number(py, name)? {
            Some(number) => self.value(py, &self.class.fields[number]).map(Some),
            None => Ok(None),
        }
    }

    /// The plain value of what compares with objects: objects themselves, and dicts.
    fn compared<'py>(other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match other.cast::<Self>() {
            Ok(object) => Ok(object.get().plain(other.py())?.into_any()),
            Err(_) => Ok(other.clone()),
        }
    }
}

#[pymethods]
impl Object {
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

    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.find(py, name)?
            .ok_or_else(|| PyAttributeError::new_err(format!("the object has no field {name:?}")))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.find(py, name)?.ok_or_else(|| PyKeyError::new_err(name.to_owned()))
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
        PyList::new(py, self.read_all(py)?)
    }

    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.class.names(py)?.iter().zip(self.read_all(py)?))
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

    fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.plain(py)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.plain(py)?.as_any().eq(Self::compared(other)?)
    }

    fn __dir__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let names = self.keys(py)?;
        for method in ["dict", "get", "items", "keys", "values"] {
            names.append(method)?;
        }
        Ok(names)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Object({})", self.plain(py)?.repr()?))
    }
}

/// What an index of Python picks of a list.
pub(crate) enum Picked<S> {
    Item(usize),
    Slice(S),
}

impl Picked<()> {
    /// Picks of `count` items.
    pub(crate) fn of(
        index: &Bound<'_, PyAny>,
        count: usize,
    ) -> PyResult<Picked<impl ExactSizeIterator<Item = usize> + use<>>> {
        if let Ok(slice) = index.cast::<PySlice>() {
            let part = slice.indices(isize::try_from(count).map_err(|_| broken())?)?;
            // Python has cut the slice to the items that there are.
            let items = 0..part.slicelength;
            return Ok(Picked::Slice(
                items.map(move |n| (part.start + part.step * n as isize) as usize),
            ));
        }
        let i: isize = index.extract()?;
        let from_end = if i < 0 { i.checked_add_unsigned(count) } else { Some(i) };
        match from_end.and_then(|i| usize::try_from(i).ok()).filter(|i| *i < count) {
            Some(i) => Ok(Picked::Item(i)),
            None => Err(PyIndexError::new_err(format!("item {i} of {count}"))),
        }
    }
}

/// The number of the first item of a list that equals a value.
pub(crate) fn index_in<'py>(
    list: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
    bounds: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let arguments = PyTuple::new(list.py(), [value])?.add(bounds)?;
    list.call_method1("index", arguments.cast_into::<PyTuple>()?)
}

/// The items of a list in an object. `dray/_dray.pyi` documents the methods.
#[pyclass(frozen, sequence, name = "ObjectList", module = "dray")]
pub struct List {
    items: Arc<Items>,
    extent: Extent,
    from: usize,
    count: usize,
}

impl List {
    fn item<'py>(&self, py: Python<'py>, i: usize) -> PyResult<Bound<'py, PyAny>> {
        let Self { items, extent, from, count } = self;
        match items.position(extent.view(), *from, *count, i)? {
            Some(at) => items.item.read(py, extent, at),
            None => Ok(py.None().into_bound(py)),
        }
    }

    pub(crate) fn plain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let items = self.items.plain(py, self.extent.view(), self.from, self.count)?;
        Ok(items.into_any())
    }

    /// The type of the numbers that lie side by side, as NumPy's `typestr` and `struct` call it.
    fn numbers(&self) -> Option<(&'static str, &'static str)> {
        let Kind::Value(value) = &self.items.item else { return None };
        if self.items.nullable {
            return None;
        }
        Some(match value.data_type {
            Type::Int8 => ("|i1", "b"),
            Type::Int16 => ("<i2", "h"),
            Type::Int32 => ("<i4", "i"),
            Type::Int64 => ("<i8", "q"),
            Type::UInt8 => ("|u1", "B"),
            Type::UInt16 => ("<u2", "H"),
            Type::UInt32 => ("<u4", "I"),
            Type::UInt64 => ("<u8", "Q"),
            Type::Float32 => ("<f4", "f"),
            Type::Float64 => ("<f8", "d"),
            _ => return None,
        })
    }

    /// The bytes of numbers that lie side by side, with their type.
    fn number_bytes(&self) -> PyResult<Option<(&[u8], &'static str, &'static str)>> {
        let Some((numpy, format)) = self.numbers() else { return Ok(None) };
        let bytes = self.extent.view().bytes(self.from, self.count * self.items.stride)?;
        Ok(Some((bytes, numpy, format)))
    }
}

#[pymethods]
impl List {
    fn __len__(&self) -> usize {
        self.count
    }

    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, list) = (slf.py(), slf.get());
        match Picked::of(index, list.count)? {
            Picked::Item(i) => list.item(py, i),
            Picked::Slice(slice) => {
                let items = slice.map(|i| list.item(py, i)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyList::new(py, items)?.into_any())
            }
        }
    }

    fn list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.plain(py)
    }

    #[pyo3(signature = (value, *bounds))]
    fn index<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        bounds: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        index_in(&self.plain(value.py())?, value, bounds)
    }

    #[pyo3(name = "count")]
    fn occurrences<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.plain(value.py())?.call_method1("count", (value,))
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let other = match other.cast::<Self>() {
            Ok(list) => list.get().plain(py)?,
            Err(_) => other.clone(),
        };
        self.plain(py)?.eq(other)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("ObjectList({})", self.plain(py)?.repr()?))
    }

    /// NumPy's view of numbers: it keeps this list, and with it the page, alive.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Some((bytes, numpy, _)) = self.number_bytes()? else {
            return Err(PyAttributeError::new_err(
                "the items are not numbers that lie side by side",
            ));
        };
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", (self.count,))?;
        interface.set_item("typestr", numpy)?;
        interface.set_item("data", (bytes.as_ptr().addr(), true))?;
        Ok(interface)
    }

    fn memoryview<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, list) = (slf.py(), slf.get());
        let Some((bytes, _, format)) = list.number_bytes()? else {
            return Err(usage(
                py,
                "the items are not numbers that lie side by side",
                Some("take a list() of them"),
            ));
        };
        let ctypes = py.import("ctypes")?;
        let kind = ctypes.getattr("c_char")?.mul(bytes.len())?;
        // The view holds the array, and the array this list, which holds the page. Pages don't
        // change, and the view can't change them.
        let array = kind.call_method1("from_address", (bytes.as_ptr().addr(),))?;
        array.setattr("list", slf)?;
        let view = py.import("builtins")?.getattr("memoryview")?.call1((array,))?;
        view.call_method0("toreadonly")?
            .call_method1("cast", ("B",))?
            .call_method1("cast", (format,))
    }
}
