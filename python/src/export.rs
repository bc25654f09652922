//! Arrow's C data interface, on the way out. No panic leaves through it, because that would end the
//! process: Arrow's own stream panics at a NUL in a time zone or in an error's text, and forgets
//! that a map's keys are sorted.

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

/// Codes of errno.h, from which consumers tell kinds of errors.
const EIO: c_int = 5;
const ENOMEM: c_int = 12;
const EINVAL: c_int = 22;

/// A schema as C has it.
///
/// # Errors
/// When a name or a zone can't be a string of C, or a type is unknown there.
pub(crate) fn schema(schema: &Schema) -> Result<FFI_ArrowSchema, ArrowError> {
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

/// What a stream of C has here.
struct Exported {
    /// None after a panic.
    reader: Option<Box<dyn RecordBatchReader + Send>>,
    error: CString,
}

/// The batches of a reader as C's stream.
pub(crate) fn stream(reader: Box<dyn RecordBatchReader + Send>) -> FFI_ArrowArrayStream {
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
    /// What stands behind a stream that was made here.
    ///
    /// # Safety
    /// The stream is one of [`stream`], not released, and nobody else uses it now.
    unsafe fn of<'a>(stream: *mut FFI_ArrowArrayStream) -> &'a mut Self {
        // SAFETY: `stream` has put the pointer of a box there, which stands until the release.
        unsafe { &mut *(*stream).private_data.cast::<Self>() }
    }

    /// Makes something, or keeps the error for who asks: 0, or a code of errno.h.
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
        // A NUL would end the text.
        self.error = CString::new(error.to_string().replace('\0', " ")).unwrap_or_default();
        match error {
            ArrowError::IoError(..) => EIO,
            ArrowError::MemoryError(_) => ENOMEM,
            _ => EINVAL,
        }
    }

    fn drop_reader(&mut self) {
        let reader = self.reader.take();
        // There is nobody to tell.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(reader)));
    }
}

unsafe extern "C" fn get_schema(
    stream: *mut FFI_ArrowArrayStream,
    out: *mut FFI_ArrowSchema,
) -> c_int {
    // SAFETY: the consumer calls with the stream, from one thread at a time, before its release.
    let exported = unsafe { Exported::of(stream) };
    // SAFETY: the consumer gives a place for a schema, whatever is in it.
    exported.answer(|reader| schema(&reader.schema()), |schema| unsafe { out.write(schema) })
}

unsafe extern "C" fn get_next(
    stream: *mut FFI_ArrowArrayStream,
    out: *mut FFI_ArrowArray,
) -> c_int {
    // SAFETY: as in `get_schema`.
    let exported = unsafe { Exported::of(stream) };
    let next = |reader: &mut dyn RecordBatchReader| match reader.next() {
        Some(batch) => Ok(FFI_ArrowArray::new(&StructArray::from(batch?).to_data())),
        // A released array is the end.
        None => Ok(FFI_ArrowArray::empty()),
    };
    // SAFETY: the consumer gives a place for an array, whatever is in it.
    exported.answer(next, |array| unsafe { out.write(array) })
}

unsafe extern "C" fn get_last_error(stream: *mut FFI_ArrowArrayStream) -> *const c_char {
    // SAFETY: as in `get_schema`; the text stands until the next call.
    unsafe { Exported::of(stream) }.error.as_ptr()
}

unsafe extern "C" fn release(stream: *mut FFI_ArrowArrayStream) {
    // SAFETY: the consumer releases a stream once; the box is that of `stream`, and is nobody's
    // after this.
    unsafe {
        let mut exported = Box::from_raw((*stream).private_data.cast::<Exported>());
        exported.drop_reader();
        (*stream).private_data = std::ptr::null_mut();
        (*stream).release = None;
    }
}
