//! What C calls: `../../src/dray.h` has the other side of each of these.
//!
//! An entry returns 0 or more when it did what it should, and a negative code with a message in the
//! [`DrayError`] when not.

use std::ffi::{CStr, c_char, c_int};
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use dray_format::{Limits, WEIGHTLESS_MAX};
use dray_pgtypes::{Format, Kind, Options, PgType};

use crate::datum::{Datums, Stored};
use crate::interrupts;
use crate::reserve;
use crate::settings::{Settings, chosen};
use crate::stream::{Failure, Step, Stream};
use crate::workers::panic_text;

/// A message has room for so many bytes, with the zero at its end.
const MESSAGE_BYTES: usize = 1024;
/// What a type takes in this stream's memory, with its fields in schemas and its columns; none of
/// it may fail.
const TYPE_BYTES: usize = 8192;
/// The `typlen` and `typalign` of an ordinary varlena.
const VARLENA: (i16, u8) = (-1, b'i');
/// Types that are made of each other go no deeper.
const DEPTH_MAX: usize = 64;

/// Why an entry failed.
#[repr(C)]
pub struct DrayError {
    message: [u8; MESSAGE_BYTES],
}

/// The codes of [`DrayError`].
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
enum Code {
    Memory = -1,
    Limit = -2,
    Value = -3,
    Option = -4,
    Encoding = -5,
    Internal = -6,
    Interrupted = -7,
}

/// The steps of a row.
const DONE: i32 = 0;
const FULL: i32 = 1;
const WANTS_PLAIN: i32 = 2;
const WANTS_BINARY: i32 = 3;
const WANTS_TEXT: i32 = 4;
const WANTS_DATUMS: i32 = 5;

/// What the options say, and what the server knows.
#[repr(C)]
pub struct DraySettings {
    chunk_bytes_max: u64,
    decoded_bytes_max: u64,
    row_bytes_max: u64,
    chunk_rows: u64,
    rows_estimate: u64,
    plan_ns: u64,
    compression: *const c_char,
    numeric: *const c_char,
    nonfinite: *const c_char,
    /// Digits of money behind the point; below 0 when the server does not say.
    money_scale: i32,
    checksums: u8,
    is_utf8: u8,
    client_is_local: u8,
    /// Threads that may be started to make chunks.
    threads: u32,
    /// The descriptor of the client's connection, which stays open while the stream is; negative if
    /// there is none.
    socket: c_int,
}

/// A type of the catalog.
#[repr(C)]
pub struct DrayType {
    oid: u32,
    typmod: i32,
    /// One of the kinds of `dray.h`.
    kind: u8,
    delimiter: u8,
    typalign: u8,
    typlen: i16,
    members: u32,
    name: *const c_char,
    extension: *const c_char,
    member: *const DrayMember,
}

/// A part of a type: its base, its items, an attribute. Or a column.
#[repr(C)]
pub struct DrayMember {
    name: *const c_char,
    pg_type: *const DrayType,
    not_null: u8,
}

/// Some bytes of a frame.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DrayPart {
    bytes: *const u8,
    len: usize,
}

/// A stream, as C holds it.
pub struct DrayStream {
    stream: Stream,
    parts: Vec<DrayPart>,
}

/// Keeps panics off the server's log: their text comes back as an error. Takes the flags that ask a
/// statement to end.
///
/// # Safety
/// The flags stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_init(cancel: *mut c_int, die: *mut c_int) {
    // SAFETY: the caller's promise.
    unsafe { interrupts::watch([cancel, die]) };
    // A hook that can't be set leaves the default one, which only prints.
    let _ = catch_unwind(|| std::panic::set_hook(Box::new(|_| {})));
}

/// Opens a stream.
///
/// # Safety
/// All pointers are valid for the call, strings end with a zero and are UTF-8, and `columns` has
/// `count` of them, made of `types` types. The settings' socket stays open while the stream is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_stream_open(
    settings: *const DraySettings,
    columns: *const DrayMember,
    count: usize,
    types: u32,
    stream: *mut *mut DrayStream,
    error: *mut DrayError,
) -> i32 {
    enter(error, || {
        let reserve_bytes = reserve::RESERVE_BYTES_MIN + types as usize * TYPE_BYTES;
        if !reserve::prepare(reserve_bytes) {
            return Err((Code::Memory, String::new()));
        }
        reserve::touched();
        // SAFETY: the caller's promise.
        let settings = unsafe { settings_of(&*settings) }?;
        let mut described = Vec::with_capacity(count);
        for i in 0..count {
            // SAFETY: the caller's promise.
            let (member, name, pg_type) = unsafe {
                let member = &*columns.add(i);
                (member, text(member.name)?, type_of(&*member.pg_type, 0)?)
            };
            described.push((name.to_owned(), pg_type, member.not_null != 0));
        }
        let opened = Stream::open(settings, &described, reserve_bytes).map_err(coded)?;
        let opened = Box::into_raw(Box::new(DrayStream { stream: opened, parts: Vec::new() }));
        // SAFETY: the caller's promise.
        unsafe { *stream = opened };
        Ok(DONE)
    })
}

/// Ends the threads of a stream that nothing but [`dray_stream_close`] will be asked of any more.
///
/// # Safety
/// The stream is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_stream_stop(stream: *mut DrayStream) {
    // SAFETY: the caller's promise.
    let _ = catch_unwind(AssertUnwindSafe(|| unsafe { (*stream).stream.stop() }));
}

/// Frees a stream, and the reserve.
///
/// # Safety
/// The stream came from [`dray_stream_open`] and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_stream_close(stream: *mut DrayStream) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(stream) });
        reserve::release();
    }));
}

/// Appends a row as a table's page has it: `data` is that of the tuple, and `present` its bitmap of
/// the values that are there, null when all are. Where a value is not an ordinary one,
/// [`dray_push_row`] goes on with the row.
///
/// # Safety
/// The stream is open; the tuple has a value for each column, of its type; `error` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_push_tuple(
    stream: *mut DrayStream,
    data: *const u8,
    present: *const u8,
    error: *mut DrayError,
) -> i32 {
    enter(error, || {
        // SAFETY: the caller's promise.
        let step = unsafe { (*stream).stream.push_row(Stored::new(data, present)) };
        Ok(match step.map_err(coded)? {
            Step::Done => DONE,
            Step::Full => FULL,
            Step::Plain(_) | Step::Sent(_) => WANTS_DATUMS,
        })
    })
}

/// Appends a row, or goes on with it after [`dray_push_tuple`], [`dray_push_sent`], or after its
/// value was made plain.
///
/// # Safety
/// The stream is open; `datums` and `nulls` have a value for each column, of its type; `column` and
/// `error` are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_push_row(
    stream: *mut DrayStream,
    datums: *const usize,
    nulls: *const u8,
    count: usize,
    column: *mut u32,
    error: *mut DrayError,
) -> i32 {
    enter(error, || {
        // SAFETY: the caller's promise.
        let step = unsafe {
            (*stream).stream.push_row(Datums::new(slice(datums, count), slice(nulls, count)))
        };
        let (step, at) = match step.map_err(coded)? {
            Step::Done => return Ok(DONE),
            Step::Full => return Ok(FULL),
            Step::Plain(at) => (WANTS_PLAIN, at),
            Step::Sent(at) => {
                // SAFETY: the caller's promise.
                let format = unsafe { (*stream).stream.format(at) };
                (if format == Format::Binary { WANTS_BINARY } else { WANTS_TEXT }, at)
            }
        };
        // SAFETY: the caller's promise. A result has at most 1,664 columns.
        unsafe { *column = at as u32 };
        Ok(step)
    })
}

/// Appends the value that the row stopped at, as the type's function made it. [`dray_push_row`]
/// then goes on with the row.
///
/// # Safety
/// The stream is open, and `bytes` has `len` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_push_sent(
    stream: *mut DrayStream,
    bytes: *const u8,
    len: usize,
    error: *mut DrayError,
) -> i32 {
    enter(error, || {
        // SAFETY: the caller's promise.
        let pushed = unsafe { (*stream).stream.push_sent(slice(bytes, len)) };
        pushed.map(|()| DONE).map_err(coded)
    })
}

/// The frame that opens the stream: its parts, valid until the next call.
///
/// # Safety
/// The stream is open, `parts` and `count` are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_start(
    stream: *mut DrayStream,
    parts: *mut *const DrayPart,
    count: *mut usize,
    error: *mut DrayError,
) -> i32 {
    enter(error, || {
        // SAFETY: the caller's promise.
        let DrayStream { stream, parts: held } = unsafe { &mut *stream };
        let (head, frame) = stream.start().map_err(coded)?;
        // SAFETY: the caller's promise.
        unsafe { hand_over(held, head, frame, parts, count) };
        Ok(DONE)
    })
}

/// The next chunk's frame, behind the state frame that it needs, as [`dray_start`]; 1 if there is
/// one, 0 if not. `is_last` once all rows have come.
///
/// # Safety
/// As [`dray_start`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_next_chunk(
    stream: *mut DrayStream,
    is_last: bool,
    parts: *mut *const DrayPart,
    count: *mut usize,
    error: *mut DrayError,
) -> i32 {
    enter(error, || {
        // SAFETY: the caller's promise.
        let DrayStream { stream, parts: held } = unsafe { &mut *stream };
        let Some((head, frame)) = stream.next_chunk(is_last).map_err(coded)? else { return Ok(0) };
        // SAFETY: the caller's promise.
        unsafe { hand_over(held, head, frame, parts, count) };
        Ok(1)
    })
}

/// The frame that ends the stream, as [`dray_start`].
///
/// # Safety
/// As [`dray_start`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_finish(
    stream: *mut DrayStream,
    socket_ns: u64,
    total_ns: u64,
    parts: *mut *const DrayPart,
    count: *mut usize,
    error: *mut DrayError,
) -> i32 {
    enter(error, || {
        // SAFETY: the caller's promise.
        let DrayStream { stream, parts: held } = unsafe { &mut *stream };
        let (head, frame) = stream.finish(socket_ns, total_ns).map_err(coded)?;
        // SAFETY: the caller's promise.
        unsafe { hand_over(held, head, frame, parts, count) };
        Ok(DONE)
    })
}

/// Makes every allocation from the `n`th from now on fail; 0 for none.
#[cfg(feature = "test-allocator")]
#[unsafe(no_mangle)]
pub extern "C" fn dray_test_fail_after(n: usize) {
    reserve::fail_after(n);
}

/// Runs an entry: catches panics, and turns what failed into a code and a message.
#[inline]
fn enter(error: *mut DrayError, run: impl FnOnce() -> Result<i32, (Code, String)>) -> i32 {
    let result = catch_unwind(AssertUnwindSafe(run));
    // Whatever came of it: with memory that short the stream ends here.
    let (code, message) = match (result, reserve::touched()) {
        (Ok(Ok(step)), false) => return step,
        (_, true) => (Code::Memory, String::new()),
        (Ok(Err(failed)), false) => failed,
        (Err(panic), false) => (Code::Internal, panic_text(&*panic)),
    };
    let cut = message.floor_char_boundary(MESSAGE_BYTES - 1);
    // SAFETY: every entry's caller promises a valid error.
    let out = unsafe { &mut (*error).message };
    // A zero within would end the text for C.
    for (to, from) in out.iter_mut().zip(&message.as_bytes()[..cut]) {
        *to = if *from == 0 { b'?' } else { *from };
    }
    out[cut] = 0;
    code as i32
}

fn coded(failure: Failure) -> (Code, String) {
    match failure {
        Failure::Memory => (Code::Memory, String::new()),
        Failure::Limit(what) => (Code::Limit, what),
        Failure::Interrupted => (Code::Interrupted, String::new()),
        Failure::Value(what) => (Code::Value, what),
        Failure::Text(what) => (Code::Encoding, what),
        Failure::Internal(what) => (Code::Internal, what),
    }
}

/// # Safety
/// `parts` and `count` are valid.
unsafe fn hand_over(
    held: &mut Vec<DrayPart>,
    head: &[u8],
    frame: &[Bytes],
    parts: *mut *const DrayPart,
    count: *mut usize,
) {
    held.clear();
    held.push(DrayPart { bytes: head.as_ptr(), len: head.len() });
    held.extend(frame.iter().map(|part| DrayPart { bytes: part.as_ptr(), len: part.len() }));
    // SAFETY: the caller's promise.
    unsafe {
        *parts = held.as_ptr();
        *count = held.len();
    }
}

/// # Safety
/// `pointer` has `len` values, or `len` is 0.
unsafe fn slice<'a, T>(pointer: *const T, len: usize) -> &'a [T] {
    // SAFETY: the caller's promise.
    if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(pointer, len) } }
}

/// # Safety
/// The text ends with a zero.
unsafe fn text<'a>(pointer: *const c_char) -> Result<&'a str, (Code, String)> {
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map_err(|_| (Code::Encoding, "the name of a column or type is not UTF-8".to_owned()))
}

/// # Safety
/// As [`dray_stream_open`].
unsafe fn settings_of(settings: &DraySettings) -> Result<Settings, (Code, String)> {
    let option = |what: String| (Code::Option, what);
    // SAFETY: the caller's promise.
    let (compression, numeric, nonfinite) = unsafe {
        (text(settings.compression)?, text(settings.numeric)?, text(settings.nonfinite)?)
    };
    // SAFETY: the caller's promise: the socket stays open while the stream is.
    let socket = (settings.socket >= 0).then(|| unsafe { BorrowedFd::borrow_raw(settings.socket) });
    Ok(Settings {
        limits: Limits {
            chunk_bytes_max: settings.chunk_bytes_max,
            decoded_bytes_max: settings.decoded_bytes_max,
            row_bytes_max: settings.row_bytes_max,
        },
        // No chunk has more values that take no bytes, and rows without columns are such.
        chunk_rows: usize::try_from(settings.chunk_rows)
            .map_or(WEIGHTLESS_MAX, |rows| rows.min(WEIGHTLESS_MAX)),
        compression: chosen(compression.parse().map_err(option)?, settings.client_is_local != 0),
        checksums: settings.checksums != 0,
        options: Options {
            numeric: numeric.parse().map_err(option)?,
            nonfinite: nonfinite.parse().map_err(option)?,
            money_scale: u8::try_from(settings.money_scale).ok(),
        },
        is_utf8: settings.is_utf8 != 0,
        rows_estimate: settings.rows_estimate,
        plan_ns: settings.plan_ns,
        threads: settings.threads as usize,
        socket,
    })
}

/// # Safety
/// As [`dray_stream_open`].
unsafe fn type_of(described: &DrayType, depth: usize) -> Result<PgType, (Code, String)> {
    let internal = |what: &str| (Code::Internal, what.to_owned());
    if depth > DEPTH_MAX {
        return Err(internal("a type is nested too deep"));
    }
    // SAFETY: the caller's promise.
    let members = unsafe { slice(described.member, described.members as usize) };
    let inner = || match members {
        // SAFETY: the caller's promise.
        [only] => unsafe { type_of(&*only.pg_type, depth + 1) }.map(Box::new),
        _ => Err(internal("a type was described without what it is made of")),
    };
    let kind = match described.kind {
        0 => Kind::Base,
        1 => Kind::Enum,
        2 => Kind::Domain(inner()?),
        3 => Kind::Array { item: inner()?, delimiter: described.delimiter },
        4 => {
            let mut attributes = Vec::with_capacity(members.len());
            for member in members {
                // SAFETY: the caller's promise.
                let (name, pg_type) =
                    unsafe { (text(member.name)?, type_of(&*member.pg_type, depth + 1)?) };
                attributes.push((name.to_owned(), pg_type));
            }
            Kind::Composite(attributes)
        }
        5 => Kind::Range(inner()?),
        6 => Kind::Multirange(inner()?),
        _ => return Err(internal("a type was described as of an unknown kind")),
    };
    // SAFETY: the caller's promise.
    let (name, extension) = unsafe { (text(described.name)?, text(described.extension)?) };
    // The extensions whose types have columns of their own (citext, hstore) have varlenas. What is
    // not one must not be read as one, whatever its extension calls itself.
    let extension = if (described.typlen, described.typalign) == VARLENA { extension } else { "" };
    Ok(PgType {
        oid: described.oid,
        typmod: described.typmod,
        name: name.to_owned(),
        extension: extension.to_owned(),
        kind,
    })
}
