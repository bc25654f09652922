//! Exports results as C streams that remember why they failed.

#![allow(unsafe_code, reason = "the C stream interface and ADBC's C interface")]

use std::ffi::{c_char, c_int};
use std::sync::{Arc, Mutex, PoisonError};

use adbc_core::constants::{ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA, ADBC_STATUS_OK};
use adbc_core::error::{AdbcStatusCode, Error, Status};
use adbc_ffi::FFI_AdbcError;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow::ffi_stream::FFI_ArrowArrayStream;
use arrow::record_batch::RecordBatchReader;
use dray_client::export;

use crate::result::ResultReader;

/// Codes of `errno.h`. Consumers without ADBC map them to kinds of errors.
const EIO: c_int = 5;
const EINVAL: c_int = 22;
const ETIMEDOUT: c_int = 110;
const ECANCELED: c_int = 125;

/// The private data of an exported stream.
struct Exported {
    stream: FFI_ArrowArrayStream,
    failure: Failure,
    /// The last error, for [`error_from_stream`].
    error: Option<(AdbcStatusCode, FFI_AdbcError)>,
}

/// Where a reader leaves its error for the stream.
type Failure = Arc<Mutex<Option<Error>>>;

/// A result whose errors are kept.
struct KeepsError {
    result: ResultReader,
    failure: Failure,
}

impl Iterator for KeepsError {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.result.next_batch();
        let next = next.map_err(|error| {
            let text = error.message.clone();
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            ArrowError::ExternalError(text.into())
        });
        next.transpose()
    }
}

impl RecordBatchReader for KeepsError {
    fn schema(&self) -> SchemaRef {
        self.result.schema()
    }
}

/// A result as a C stream, which owns it until C releases it.
pub(crate) fn export(result: ResultReader) -> FFI_ArrowArrayStream {
    let failure = Failure::default();
    let stream = export::stream(Box::new(KeepsError { result, failure: failure.clone() }));
    let exported = Box::new(Exported { stream, failure, error: None });
    FFI_ArrowArrayStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release),
        private_data: Box::into_raw(exported).cast(),
    }
}

impl Exported {
    /// The private data of a stream, borrowed for as long as the stream.
    ///
    /// # Safety
    /// - [`export`] made the stream, or it is a bitwise move of such a stream.
    /// - The stream has not been released.
    /// - No other reference to its private data exists while the returned one lives.
    unsafe fn of(stream: &mut FFI_ArrowArrayStream) -> &mut Self {
        debug_assert!(!stream.private_data.is_null() && stream.release.is_some());
        // SAFETY: `export` stored the pointer of a `Box<Exported>` there, which only `release`
        // frees; the caller promises that `release` has not run and that the borrow is unique.
        unsafe { &mut *stream.private_data.cast::<Self>() }
    }

    /// Keeps the error of a call that has failed with this code, and returns the code that
    /// consumers get.
    fn keep_error(&mut self, code: c_int) -> c_int {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(error) = failure else { return code };
        let status = error.status;
        // A message has no NUL, so that this does not fail.
        self.error = FFI_AdbcError::try_from(error).ok().map(|mut error| {
            // By this, consumers know the layout of version 1.1.0.
            error.vendor_code = ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA;
            (status.into(), error)
        });
        match status {
            Status::Cancelled => ECANCELED,
            Status::Timeout => ETIMEDOUT,
            Status::IO => EIO,
            _ => EINVAL,
        }
    }
}

/// `AdbcErrorFromArrayStream`: the error that a stream has failed with, and its status; null for a
/// stream that has not failed, or is not of this driver. It is valid until the stream is released.
///
/// # Safety
/// `stream` is null or points to a stream that has not been released; no other call on it runs at
/// the same time. `status` is null or points to memory for a status.
pub(crate) unsafe extern "C" fn error_from_stream(
    stream: *mut FFI_ArrowArrayStream,
    status: *mut AdbcStatusCode,
) -> *const FFI_AdbcError {
    // SAFETY: the caller promises a valid pointer or null.
    let Some(stream) = (unsafe { stream.as_mut() }) else { return std::ptr::null() };
    let is_ours = stream.release.is_some_and(|function| {
        std::ptr::fn_addr_eq(function, release as unsafe extern "C" fn(*mut FFI_ArrowArrayStream))
    });
    if !is_ours {
        return std::ptr::null();
    }
    // SAFETY: the stream is ours, and the caller promises that it is live and nobody else uses it.
    let (code, error) = match unsafe { &Exported::of(stream).error } {
        Some((code, error)) => (*code, std::ptr::from_ref(error)),
        None => (ADBC_STATUS_OK, std::ptr::null()),
    };
    if !status.is_null() {
        // SAFETY: the caller promises memory for a status.
        unsafe { status.write(code) };
    }
    error
}

/// `get_schema` of the C stream interface.
///
/// # Safety
/// As the C stream interface demands of consumers:
/// - `stream` points to a stream made by [`export`] that has not been released; no other call on
///   the stream runs at the same time.
/// - `out` points to memory for a schema: aligned, writable, its old contents need no release.
unsafe extern "C" fn get_schema(
    stream: *mut FFI_ArrowArrayStream,
    out: *mut FFI_ArrowSchema,
) -> c_int {
    // SAFETY: the caller promises a live stream of ours, and that no other call uses it.
    let exported = unsafe { Exported::of(&mut *stream) };
    match exported.stream.get_schema {
        // SAFETY: the inner stream lives as long as this one, and the caller promises the rest.
        Some(get_schema) => unsafe { get_schema(&raw mut exported.stream, out) },
        None => EINVAL,
    }
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
    let code = match exported.stream.get_next {
        // SAFETY: the inner stream lives as long as this one, and the caller promises the rest.
        Some(get_next) => unsafe { get_next(&raw mut exported.stream, out) },
        None => EINVAL,
    };
    exported.error = None;
    if code == 0 { code } else { exported.keep_error(code) }
}

/// `get_last_error` of the C stream interface. The text is valid until the next call on the stream.
///
/// # Safety
/// `stream` points to a stream made by [`export`] that has not been released; no other call on the
/// stream runs at the same time.
unsafe extern "C" fn get_last_error(stream: *mut FFI_ArrowArrayStream) -> *const c_char {
    // SAFETY: the caller promises a live stream of ours, and that no other call uses it.
    let exported = unsafe { Exported::of(&mut *stream) };
    // Without the words that Arrow puts before it. A manager may have released the message.
    if let Some((_, error)) = &exported.error
        && !error.message.is_null()
    {
        return error.message;
    }
    match exported.stream.get_last_error {
        // SAFETY: the inner stream lives as long as this one.
        Some(get_last_error) => unsafe { get_last_error(&raw mut exported.stream) },
        None => std::ptr::null(),
    }
}

/// `release` of the C stream interface.
///
/// # Safety
/// `stream` points to a stream made by [`export`] that has not been released; no other call on the
/// stream runs at the same time, and none follows.
unsafe extern "C" fn release(stream: *mut FFI_ArrowArrayStream) {
    // SAFETY: the caller promises a live stream of ours. Its private data is the box that `export`
    // leaked; clearing `release` marks the stream as released, so the box is freed once. The inner
    // stream releases itself.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<Exported>()));
        (*stream).private_data = std::ptr::null_mut();
        (*stream).release = None;
    }
}
