//! The functions that `dray.h` declares, and a stream that is closed when it is dropped.

use std::ffi::{CStr, CString, c_char, c_int};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::Once;
use std::sync::atomic::AtomicI32;

use super::values::{Shape, Tuple};

#[repr(C)]
struct DraySettings {
    chunk_bytes_max: u64,
    decoded_bytes_max: u64,
    row_bytes_max: u64,
    chunk_rows: u64,
    rows_estimate: u64,
    plan_ns: u64,
    compression: *const c_char,
    numeric: *const c_char,
    nonfinite: *const c_char,
    money_scale: i32,
    checksums: bool,
    is_utf8: bool,
    client_is_local: bool,
    threads: u32,
    socket: c_int,
}

#[repr(C)]
struct DrayType {
    oid: u32,
    typmod: i32,
    kind: u8,
    delimiter: c_char,
    typalign: c_char,
    typlen: i16,
    members: u32,
    name: *const c_char,
    extension: *const c_char,
    member: *const DrayMember,
}

#[repr(C)]
struct DrayMember {
    name: *const c_char,
    pg_type: *const DrayType,
    not_null: bool,
}

#[repr(C)]
struct DrayPart {
    bytes: *const u8,
    len: usize,
}

#[repr(C)]
struct DrayError {
    message: [c_char; 1024],
}

unsafe extern "C" {
    fn dray_init(cancel: *mut c_int, die: *mut c_int);
    fn dray_stream_open(
        settings: *const DraySettings,
        columns: *const DrayMember,
        count: usize,
        types: u32,
        stream: *mut *mut u8,
        error: *mut DrayError,
    ) -> i32;
    fn dray_stream_stop(stream: *mut u8);
    fn dray_stream_close(stream: *mut u8);
    fn dray_push_tuple(
        stream: *mut u8,
        data: *const u8,
        present: *const u8,
        error: *mut DrayError,
    ) -> i32;
    fn dray_push_row(
        stream: *mut u8,
        datums: *const usize,
        nulls: *const u8,
        count: usize,
        column: *mut u32,
        error: *mut DrayError,
    ) -> i32;
    fn dray_push_serialized(
        stream: *mut u8,
        bytes: *const u8,
        len: usize,
        error: *mut DrayError,
    ) -> i32;
    fn dray_start(
        stream: *mut u8,
        parts: *mut *const DrayPart,
        count: *mut usize,
        error: *mut DrayError,
    ) -> i32;
    fn dray_next_chunk(
        stream: *mut u8,
        is_last: bool,
        parts: *mut *const DrayPart,
        count: *mut usize,
        error: *mut DrayError,
    ) -> i32;
    fn dray_finish(
        stream: *mut u8,
        socket_ns: u64,
        total_ns: u64,
        parts: *mut *const DrayPart,
        count: *mut usize,
        error: *mut DrayError,
    ) -> i32;
    #[cfg(feature = "test-allocator")]
    fn dray_test_fail_after(n: usize);
}

/// `QueryCancelPending`.
pub(crate) static CANCEL: AtomicI32 = AtomicI32::new(0);
static DIE: AtomicI32 = AtomicI32::new(0);

pub(crate) fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = std::panic::take_hook();
        // SAFETY: statics stay.
        unsafe { dray_init(CANCEL.as_ptr(), DIE.as_ptr()) };
        // `dray_init` silences panics, but those of a test must be reported.
        std::panic::set_hook(hook);
    });
}

/// The options of COPY.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) chunk_bytes_max: u64,
    pub(crate) decoded_bytes_max: u64,
    pub(crate) row_bytes_max: u64,
    pub(crate) chunk_rows: u64,
    pub(crate) compression: &'static str,
    pub(crate) numeric: &'static str,
    pub(crate) nonfinite: &'static str,
    pub(crate) checksums: bool,
    pub(crate) is_utf8: bool,
    pub(crate) client_is_local: bool,
    pub(crate) threads: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            chunk_bytes_max: 1 << 20,
            decoded_bytes_max: 64 << 20,
            row_bytes_max: 256 << 20,
            chunk_rows: 65_536,
            compression: "none",
            numeric: "text",
            nonfinite: "error",
            checksums: false,
            is_utf8: true,
            client_is_local: true,
            threads: 0,
        }
    }
}

/// What a row needs next.
#[derive(Debug)]
pub(crate) enum Step {
    Done,
    Full,
    Plain(usize),
    Sent(usize),
    Datums,
}

pub(crate) type Failed = (i32, String);

/// An open stream.
pub(crate) struct Opened(*mut u8);

/// Calls a function with an uninitialized error struct. Allocations fail from the `fail_after`th
/// on; with 0 none fails.
fn call(fail_after: usize, entry: impl FnOnce(*mut DrayError) -> i32) -> Result<i32, Failed> {
    let mut error = Box::new(MaybeUninit::<DrayError>::uninit());
    fail(fail_after);
    let code = entry(error.as_mut_ptr());
    fail(0);
    if code >= 0 {
        return Ok(code);
    }
    // SAFETY: a negative code comes with a message that ends with a zero.
    let message = unsafe { CStr::from_ptr((*error.as_ptr()).message.as_ptr()) };
    Err((code, message.to_str().expect("messages are UTF-8").to_owned()))
}

#[cfg(feature = "test-allocator")]
fn fail(n: usize) {
    // SAFETY: it only sets a number.
    unsafe { dray_test_fail_after(n) }
}

#[cfg(not(feature = "test-allocator"))]
fn fail(_: usize) {}

impl Opened {
    pub(crate) fn open(
        options: &Options,
        names: &[CString],
        shapes: &[&Shape],
        fail_after: usize,
    ) -> Result<Self, Failed> {
        let [compression, numeric, nonfinite] =
            [options.compression, options.numeric, options.nonfinite]
                .map(|text| CString::new(text).unwrap());
        let settings = DraySettings {
            chunk_bytes_max: options.chunk_bytes_max,
            decoded_bytes_max: options.decoded_bytes_max,
            row_bytes_max: options.row_bytes_max,
            chunk_rows: options.chunk_rows,
            rows_estimate: 0,
            plan_ns: 0,
            compression: compression.as_ptr(),
            numeric: numeric.as_ptr(),
            nonfinite: nonfinite.as_ptr(),
            money_scale: 2,
            checksums: options.checksums,
            is_utf8: options.is_utf8,
            client_is_local: options.client_is_local,
            threads: options.threads,
            socket: -1,
        };
        let mut catalog = Catalog::default();
        let columns: Box<[DrayMember]> = names
            .iter()
            .zip(shapes)
            .map(|(name, shape)| DrayMember {
                name: name.as_ptr(),
                pg_type: catalog.describe(shape),
                not_null: false,
            })
            .collect();
        let mut stream = null_mut();
        let (count, types) = (columns.len(), catalog.types.len() as u32);
        // SAFETY: all of it lives until the end of this function. An entry that fails may have
        // opened the stream already.
        let opened = call(fail_after, |error| unsafe {
            dray_stream_open(&settings, columns.as_ptr(), count, types, &mut stream, error)
        });
        let held = (!stream.is_null()).then(|| Self(stream));
        opened.map(|_| held.expect("a stream that was opened"))
    }

    pub(crate) fn push_tuple(&mut self, tuple: &Tuple, fail_after: usize) -> Result<Step, Failed> {
        let present = tuple.present.as_ref().map_or(null(), |bits| bits.as_ptr());
        // SAFETY: the stream is open; values.rs makes tuples of the columns' types.
        let step = call(fail_after, |error| unsafe {
            dray_push_tuple(self.0, tuple.data.as_ptr(), present, error)
        })?;
        Ok(match step {
            0 => Step::Done,
            1 => Step::Full,
            5 => Step::Datums,
            other => panic!("step {other}"),
        })
    }

    pub(crate) fn push_row(
        &mut self,
        datums: &[usize],
        nulls: &[u8],
        fail_after: usize,
    ) -> Result<Step, Failed> {
        let mut column = u32::MAX;
        // SAFETY: the stream is open; values.rs makes datums of the columns' types.
        let step = call(fail_after, |error| unsafe {
            dray_push_row(self.0, datums.as_ptr(), nulls.as_ptr(), datums.len(), &mut column, error)
        })?;
        Ok(match step {
            0 => Step::Done,
            1 => Step::Full,
            2 => Step::Plain(column as usize),
            3 | 4 => Step::Sent(column as usize),
            other => panic!("step {other}"),
        })
    }

    pub(crate) fn push_sent(&mut self, bytes: &[u8], fail_after: usize) -> Result<(), Failed> {
        // SAFETY: the stream is open, and the bytes are there.
        call(fail_after, |error| unsafe {
            dray_push_serialized(self.0, bytes.as_ptr(), bytes.len(), error)
        })
        .map(|_| ())
    }

    pub(crate) fn start(&mut self, fail_after: usize) -> Result<Vec<u8>, Failed> {
        let (mut parts, mut count) = (null(), 0);
        // SAFETY: the stream is open.
        call(fail_after, |error| unsafe { dray_start(self.0, &mut parts, &mut count, error) })?;
        Ok(gathered(parts, count))
    }

    pub(crate) fn next_chunk(
        &mut self,
        is_last: bool,
        fail_after: usize,
    ) -> Result<Option<Vec<u8>>, Failed> {
        let (mut parts, mut count) = (null(), 0);
        // SAFETY: the stream is open.
        let code = call(fail_after, |error| unsafe {
            dray_next_chunk(self.0, is_last, &mut parts, &mut count, error)
        })?;
        Ok((code == 1).then(|| gathered(parts, count)))
    }

    pub(crate) fn finish(&mut self, fail_after: usize) -> Result<Vec<u8>, Failed> {
        let (mut parts, mut count) = (null(), 0);
        // SAFETY: the stream is open.
        call(fail_after, |error| unsafe {
            dray_finish(self.0, 1, 2, &mut parts, &mut count, error)
        })?;
        Ok(gathered(parts, count))
    }
}

impl Opened {
    /// Stops the stream as the exit of a backend does.
    pub(crate) fn stop(&mut self) {
        // SAFETY: the stream is open.
        unsafe { dray_stream_stop(self.0) }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: the stream is open, and is not used afterwards.
        unsafe { dray_stream_close(self.0) }
    }
}

/// The parts of a frame in the order in which they go to the socket.
fn gathered(parts: *const DrayPart, count: usize) -> Vec<u8> {
    let mut out = Vec::new();
    // SAFETY: the pointer and count were just returned together.
    for part in unsafe { std::slice::from_raw_parts(parts, count) } {
        if part.len > 0 {
            // SAFETY: a part's bytes stay valid until the next call.
            out.extend_from_slice(unsafe { std::slice::from_raw_parts(part.bytes, part.len) });
        }
    }
    out
}

/// Owns what the described types point to.
#[derive(Default)]
struct Catalog {
    types: Vec<Box<[DrayType]>>,
    members: Vec<Box<[DrayMember]>>,
    texts: Vec<CString>,
}

impl Catalog {
    fn text(&mut self, text: &str) -> *const c_char {
        self.texts.push(CString::new(text).unwrap());
        self.texts[self.texts.len() - 1].as_ptr()
    }

    fn describe(&mut self, shape: &Shape) -> *const DrayType {
        let members: Box<[DrayMember]> = shape
            .members
            .iter()
            .map(|(name, member)| DrayMember {
                name: self.text(name),
                pg_type: self.describe(member),
                not_null: false,
            })
            .collect();
        let member = if members.is_empty() { null() } else { members.as_ptr() };
        let described: Box<[DrayType]> = Box::new([DrayType {
            oid: shape.oid,
            typmod: shape.typmod,
            kind: shape.kind,
            delimiter: b',' as c_char,
            typalign: if shape.typlen < 0 { b'i' } else { b'c' } as c_char,
            typlen: shape.typlen,
            members: members.len() as u32,
            name: self.text(shape.name),
            extension: self.text(shape.extension),
            member,
        }]);
        let pointer = described.as_ptr();
        self.members.push(members);
        self.types.push(described);
        pointer
    }
}
