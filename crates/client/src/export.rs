//! Exports schemas and streams by Arrow's C data and C stream interfaces
//! (<https://arrow.apache.org/docs/format/CDataInterface.html> and `CStreamInterface.html`).
//!
//! This replaces arrow-rs's own export for two reasons. A panic must not unwind into C, since that
//! would abort the process, and arrow-rs's stream panics at a NUL byte in a time zone or in the
//! text of an error. It also loses the flag that a map's keys are sorted.

#![allow(unsafe_code, reason = "Arrow's C interface")]

use std::borrow::Cow;
use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::array::{Array, StructArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow::ffi_stream::FFI_ArrowArrayStream;
use arrow::record_batch::RecordBatchReader;
use arrow_schema::ffi::Flags;

use crate::error::panic_text;

/// Codes of `errno.h`. Consumers map them to kinds of errors.
const EIO: c_int = 5;
const ENOMEM: c_int = 12;
const EINVAL: c_int = 22;

/// A schema as a struct of the C data interface.
///
/// # Errors
/// When a name or a time zone contains a NUL byte, or the interface has no such type.
pub fn schema(schema: &Schema) -> Result<FFI_ArrowSchema, ArrowError> {
    of_type(&DataType::Struct(schema.fields().clone()))?.with_metadata(schema.metadata())
}

fn of_field(field: &Field) -> Result<FFI_ArrowSchema, ArrowError> {
    let mut flags = Flags::empty();
    flags.set(Flags::NULLABLE, field.is_nullable());
    flags.set(Flags::DICTIONARY_ORDERED, field.dict_is_ordered() == Some(true));
    flags.set(Flags::MAP_KEYS_SORTED, matches!(field.data_type(), DataType::Map(_, true)));
    let named = of_type(field.data_type())?.with_name(field.name())?;
    named.with_flags(flags)?.with_metadata(field.metadata())
}

fn of_type(data_type: &DataType) -> Result<FFI_ArrowSchema, ArrowError> {
    let (format, children): (Cow<'_, str>, Vec<&Field>) = match data_type {
        DataType::List(item) => ("+l".into(), vec![item]),
        DataType::LargeList(item) => ("+L".into(), vec![item]),
        DataType::ListView(item) => ("+vl".into(), vec![item]),
        DataType::LargeListView(item) => ("+vL".into(), vec![item]),
        DataType::FixedSizeList(item, size) => (format!("+w:{size}").into(), vec![item]),
        DataType::Struct(fields) => ("+s".into(), fields.iter().map(|field| &**field).collect()),
        DataType::Map(entries, _) => ("+m".into(), vec![entries]),
        DataType::RunEndEncoded(ends, values) => ("+r".into(), vec![ends, values]),
        DataType::Dictionary(index, values) => {
            return FFI_ArrowSchema::try_new(
                of_type(index)?.format(),
                Vec::new(),
                Some(of_type(values)?),
            );
        }
        DataType::Timestamp(_, Some(zone)) if zone.contains('\0') => {
            return Err(ArrowError::CDataInterface(format!("the time zone {zone:?} has a byte 0")));
        }
        other => return FFI_ArrowSchema::try_from(other),
    };
    FFI_ArrowSchema::try_new(
        &format,
        children.into_iter().map(of_field).collect::<Result<_, _>>()?,
        None,
    )
}

/// The private data of an exported stream.
struct Exported {
    /// None after a panic.
    reader: Option<Box<dyn RecordBatchReader + Send>>,
    /// The text of the last error, which C may read until the next call.
    error: CString,
}

/// The batches of a reader as a C stream. The stream owns the reader until C releases it.
pub fn stream(reader: Box<dyn RecordBatchReader + Send>) -> FFI_ArrowArrayStream {
    let exported = Box::new(Exported { reader: Some(reader), error: CString::default() });
    FFI_ArrowArrayStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release),
        private_data: Box::into_raw(exported).cast::<c_void>(),
    }
}

impl Exported {
    /// The private data of a stream, borrowed for as long as the stream.
    ///
    /// # Safety
    /// - [`stream`] made the stream, or it is a bitwise move of such a stream.
    /// - The stream has not been released.
    /// - No other reference to its private data exists while the returned one lives.
    unsafe fn of(stream: &mut FFI_ArrowArrayStream) -> &mut Self {
        debug_assert!(!stream.private_data.is_null() && stream.release.is_some());
        // SAFETY: `stream` stored the pointer of a `Box<Exported>` there, which only `release`
        // frees; the caller promises that `release` has not run and that the borrow is unique.
        unsafe { &mut *stream.private_data.cast::<Self>() }
    }

    /// Makes a value and hands it over, or stores the error for `get_last_error`. Returns 0 or a
    /// code of `errno.h`. Catches panics of `make`.
    fn answer<T>(
        &mut self,
        make: impl FnOnce(&mut dyn RecordBatchReader) -> Result<T, ArrowError>,
        hand_over: impl FnOnce(T),
    ) -> c_int {
        let made = match &mut self.reader {
            Some(reader) => catch_unwind(AssertUnwindSafe(|| make(&mut **reader))),
            None => {
                Ok(Err(ArrowError::ExternalError("reading the stream has failed before".into())))
            }
        };
        let error = match made {
            Ok(Ok(made)) => {
                hand_over(made);
                return 0;
            }
            Ok(Err(error)) => error,
            Err(panic) => {
                self.drop_reader();
                ArrowError::ExternalError(panic_text(&*panic).into())
            }
        };
        // C strings end at a NUL.
        self.error = CString::new(error.to_string().replace('\0', " ")).unwrap_or_default();
        match error {
            ArrowError::IoError(..) => EIO,
            ArrowError::MemoryError(_) => ENOMEM,
            _ => EINVAL,
        }
    }

    fn drop_reader(&mut self) {
        let reader = self.reader.take();
        // A panic in the reader's `drop` has nowhere to go.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(reader)));
    }
}

/// `get_schema` of the C stream interface.
///
/// # Safety
/// As the C stream interface demands of consumers:
/// - `stream` points to a stream made by [`stream`] that has not been released; no other call on
///   the stream runs at the same time.
/// - `out` points to memory for a schema: aligned, writable, its old contents need no release.
unsafe extern "C" fn get_schema(
    stream: *mut FFI_ArrowArrayStream,
    out: *mut FFI_ArrowSchema,
) -> c_int {
    // SAFETY: the caller promises a live stream of ours, and that no other call uses it.
    let exported = unsafe { Exported::of(&mut *stream) };
    // SAFETY: the caller promises that `out` may be overwritten.
    exported.answer(|reader| schema(&reader.schema()), |schema| unsafe { out.write(schema) })
}

/// `get_next` of the C stream interface.
///
/// # Safety
/// As [`get_schema`], with memory for an array at `out`.
unsafe extern "C" fn get_next(
    stream: *mut FFI_ArrowArrayStream,
    out: *mut FFI_ArrowArray,
) -> c_int {
    // SAFETY: the caller promises a live stream of ours, and that no other call uses it.
    let exported = unsafe { Exported::of(&mut *stream) };
    let next = |reader: &mut dyn RecordBatchReader| match reader.next() {
        Some(batch) => Ok(FFI_ArrowArray::new(&StructArray::from(batch?).to_data())),
        // A released array marks the end of the stream.
        None => Ok(FFI_ArrowArray::empty()),
    };
    // SAFETY: the caller promises that `out` may be overwritten.
    exported.answer(next, |array| unsafe { out.write(array) })
}

/// `get_last_error` of the C stream interface. The text is valid until the next call on the stream.
///
/// # Safety
/// `stream` points to a stream made by [`stream`] that has not been released; no other call on the
/// stream runs at the same time.
unsafe extern "C" fn get_last_error(stream: *mut FFI_ArrowArrayStream) -> *const c_char {
    // SAFETY: the caller promises a live stream of ours, and that no other call uses it.
    unsafe { Exported::of(&mut *stream) }.error.as_ptr()
}

/// `release` of the C stream interface.
///
/// # Safety
/// `stream` points to a stream made by [`stream`] that has not been released; no other call on the
/// stream runs at the same time, and none follows.
unsafe extern "C" fn release(stream: *mut FFI_ArrowArrayStream) {
    // SAFETY: the caller promises a live stream of ours. Its private data is the box that `stream`
    // leaked; clearing `release` marks the stream as released, so the box is freed once.
    unsafe {
        let mut exported = Box::from_raw((*stream).private_data.cast::<Exported>());
        exported.drop_reader();
        (*stream).private_data = std::ptr::null_mut();
        (*stream).release = None;
    }
}
