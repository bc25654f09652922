//! The functions that C calls. `../../src/dray.h` declares each of them.
//!
//! An entry returns 0 or more on success. On failure it returns a negative code, and writes a
//! message to the [`DrayError`].
//!
//! Every entry that takes a stream relies on the same promise of its caller: the stream came from
//! [`dray_stream_open`], has not been closed, and no other entry uses it at the same time. C keeps
//! it easily, because a backend calls entries from its one thread only.

use std::ffi::{CStr, c_char, c_int};
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dray_format::{Limits, WEIGHTLESS_MAX};
use dray_pgtypes::{Format, Kind, Options, PgType};

use crate::datum::{Datums, TupleInPlace};
use crate::failure::Failure;
use crate::interrupts;
use crate::reserve;
use crate::row_assembler::{ColumnDescription, Step};
use crate::settings::{Settings, chosen};
use crate::stream::{Frame, Stream};
use crate::workers::panic_text;

/// The bytes of a message, with its terminating zero.
const MESSAGE_BYTES: usize = 1024;
/// The memory that a type takes in a stream, with its fields in schemas and its columns. It comes
/// from the reserve if need be.
const TYPE_BYTES: usize = 8192;
/// The `typlen` and `typalign` of an ordinary varlena.
const VARLENA: (i16, u8) = (-1, b'i');
/// The deepest nesting of types that is described. What is deeper comes as text, and so does each
/// type that contains it.
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

/// What a row needs next: the `DRAY_…` codes of `dray.h`.
const DONE: i32 = 0;
const FULL: i32 = 1;
const NEEDS_DETOASTING: i32 = 2;
const NEEDS_BINARY: i32 = 3;
const NEEDS_TEXT: i32 = 4;
const NEEDS_DATUMS: i32 = 5;

/// The options of the statement, and what the server knows.
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
    /// Digits of money after the point; negative if the server does not say.
    money_scale: i32,
    checksums: u8,
    is_utf8: u8,
    client_is_local: u8,
    /// The most threads to start for encoding.
    threads: u32,
    /// The descriptor of the client's connection; negative if there is none.
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

/// A member of a type (its base, its items, an attribute), or a column.
#[repr(C)]
pub struct DrayMember {
    name: *const c_char,
    pg_type: *const DrayType,
    not_null: u8,
}

/// Consecutive bytes of a frame.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DrayPart {
    bytes: *const u8,
    len: usize,
}

/// A stream, opaque to C.
pub struct DrayStream {
    stream: Stream,
    /// The frame that C has: valid until the next call.
    parts: Vec<DrayPart>,
}

/// One call from C. What C passes is valid while it is borrowed: lifetimes are tied to it.
struct Call;

/// Prepares the library. Panics are not printed to the server's log: entries return their text as
/// an error. `cancel` and `die` are the flags by which the server asks a statement to end.
///
/// # Safety
/// Both flags are valid for reads for the rest of the process, and only signal handlers of the
/// calling thread write to them while an entry runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_init(cancel: *mut c_int, die: *mut c_int) {
    // SAFETY: the caller promises the same.
    unsafe { interrupts::watch([cancel, die]) };
    // If this panics, the default hook stays, which prints.
    let _ = catch_unwind(|| std::panic::set_hook(Box::new(|_| {})));
}

/// Opens a stream of `count` columns. `types` is the number of types that they are made of, each
/// counted at every mention. `*stream` is written on success only; short memory may turn a success
/// into a failure after that, and then the stream must still be closed.
///
/// # Safety
/// - `settings` is valid for reads. Its strings end with a zero.
/// - `columns` is valid for reads of `count` members, or `count` is 0. So are the members of each
///   type, of which there are `members`. The names and extensions of types and members end with a
///   zero.
/// - All of these are initialized, and do not change during the call.
/// - `stream` and `error` are valid for writes. They need not be initialized.
/// - The descriptor `settings.socket` is negative, or open until the stream has been closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_stream_open(
    settings: *const DraySettings,
    columns: *const DrayMember,
    count: usize,
    types: u32,
    stream: *mut *mut DrayStream,
    error: *mut DrayError,
) -> i32 {
    let open = |call: &Call| {
        let reserve_bytes = reserve::RESERVE_BYTES_MIN + types as usize * TYPE_BYTES;
        if !reserve::prepare(reserve_bytes) {
            return Err((Code::Memory, String::new()));
        }
        // Only what this stream takes from the reserve counts.
        reserve::take_used();
        // SAFETY: the caller promises valid settings and columns.
        let (settings, columns) =
            unsafe { (settings_of(call, &*settings)?, slice(call, columns, count)) };
        let mut described = Vec::with_capacity(count);
        for column in columns {
            // SAFETY: the caller promises valid columns.
            let (name, pg_type) =
                unsafe { (text(call, column.name)?, type_of(call, &*column.pg_type, 0)?) };
            let (name, not_null) = (name.to_owned(), column.not_null != 0);
            described.push(ColumnDescription { name, pg_type, not_null });
        }
        let opened = Stream::open(settings, &described, reserve_bytes).map_err(coded)?;
        let opened = Box::into_raw(Box::new(DrayStream { stream: opened, parts: Vec::new() }));
        // SAFETY: the caller promises that `stream` may be written to.
        unsafe { stream.write(opened) };
        Ok(DONE)
    };
    // SAFETY: the caller promises that `error` may be written to.
    unsafe { enter(error, open) }
}

/// Ends the threads of a stream. Only [`dray_stream_close`] may follow.
///
/// # Safety
/// The stream is open, and no other entry uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_stream_stop(stream: *mut DrayStream) {
    // SAFETY: the caller promises an open stream that nothing else uses.
    let _ = catch_unwind(AssertUnwindSafe(|| unsafe { (*stream).stream.stop() }));
}

/// Frees a stream, and the reserve.
///
/// # Safety
/// The stream is open, and no other entry uses it, now or later. The parts of its last frame are
/// not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_stream_close(stream: *mut DrayStream) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: `dray_stream_open` made the stream from a box, and the caller gives it up.
        drop(unsafe { Box::from_raw(stream) });
        reserve::release();
    }));
}

/// Appends a row as it lies on its table's page. `data` is the tuple's data, and `present` its null
/// bitmap, a bit per column; null if no value is NULL. If a value is not ordinary, this returns
/// `DRAY_NEEDS_DATUMS`, and [`dray_push_row`] goes on with the row.
///
/// # Safety
/// - The stream is open, and no other entry uses it. No row is under construction.
/// - `data` points to a tuple that has a value for each column of the stream, of the type that was
///   described, as heap tuples have it: at the alignment of its type, after the values before it.
/// - `present` is null, or valid for reads of a bit for each column.
/// - The tuple's buffer stays pinned during the call, and the tuple does not change.
/// - `error` is valid for writes. It need not be initialized.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_push_tuple(
    stream: *mut DrayStream,
    data: *const u8,
    present: *const u8,
    error: *mut DrayError,
) -> i32 {
    let push = |_: &Call| {
        // SAFETY: the caller promises an open stream that nothing else uses, and a tuple with its
        // columns, valid for the call.
        let step = unsafe { (*stream).stream.push_row(TupleInPlace::new(data, present)) };
        Ok(match step.map_err(coded)? {
            Step::Done => DONE,
            Step::Full => FULL,
            Step::NeedsDetoasting(_) | Step::NeedsSerialized(_) => NEEDS_DATUMS,
        })
    };
    // SAFETY: the caller promises that `error` may be written to.
    unsafe { enter(error, push) }
}

/// Appends a row, or goes on with the row under construction: after [`dray_push_tuple`], after
/// [`dray_push_serialized`], or once its value has been detoasted. If this returns one of the other
/// `DRAY_NEEDS_…`, `*column` is the column whose value is needed.
///
/// # Safety
/// - The stream is open, and no other entry uses it.
/// - `datums` and `nulls` are valid for reads of `count` elements, and `count` is the number of
///   columns of the stream.
/// - A datum whose element of `nulls` is 0 is a value of the type that was described for its
///   column. If that is passed by reference, the datum points to the whole value.
/// - The values do not change during the call; those on pages stay pinned.
/// - A row under construction goes on with the same values. Only that of `*column` may have become
///   its detoasted form.
/// - `column` and `error` are valid for writes. They need not be initialized.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_push_row(
    stream: *mut DrayStream,
    datums: *const usize,
    nulls: *const u8,
    count: usize,
    column: *mut u32,
    error: *mut DrayError,
) -> i32 {
    let push = |call: &Call| {
        // SAFETY: the caller promises both arrays.
        let row = unsafe { Datums::new(slice(call, datums, count), slice(call, nulls, count)) };
        // SAFETY: the caller promises an open stream that nothing else uses, and a row with its
        // columns, valid for the call.
        let step = unsafe { (*stream).stream.push_row(row) };
        let (step, at) = match step.map_err(coded)? {
            Step::Done => return Ok(DONE),
            Step::Full => return Ok(FULL),
            Step::NeedsDetoasting(at) => (NEEDS_DETOASTING, at),
            Step::NeedsSerialized(at) => {
                // SAFETY: the caller promises an open stream that nothing else uses.
                let format = unsafe { (*stream).stream.format(at) };
                (if format == Format::Binary { NEEDS_BINARY } else { NEEDS_TEXT }, at)
            }
        };
        // A result has at most 1,664 columns.
        // SAFETY: the caller promises that `column` may be written to.
        unsafe { column.write(at as u32) };
        Ok(step)
    };
    // SAFETY: the caller promises that `error` may be written to.
    unsafe { enter(error, push) }
}

/// Appends the value at which the row has stopped, as its type's send or output function made it.
/// [`dray_push_row`] then goes on with the row.
///
/// # Safety
/// - The stream is open, and no other entry uses it.
/// - `bytes` is valid for reads of `len` bytes, which do not change during the call, or `len` is 0.
/// - `error` is valid for writes. It need not be initialized.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_push_serialized(
    stream: *mut DrayStream,
    bytes: *const u8,
    len: usize,
    error: *mut DrayError,
) -> i32 {
    let push = |call: &Call| {
        // SAFETY: the caller promises an open stream that nothing else uses, and the bytes.
        let pushed = unsafe { (*stream).stream.push_serialized(slice(call, bytes, len)) };
        pushed.map(|()| DONE).map_err(coded)
    };
    // SAFETY: the caller promises that `error` may be written to.
    unsafe { enter(error, push) }
}

/// The frame that opens the stream, in `*count` parts. They are valid until the next entry that
/// takes the stream.
///
/// # Safety
/// - The stream is open, and no other entry uses it.
/// - `parts`, `count` and `error` are valid for writes. They need not be initialized.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_start(
    stream: *mut DrayStream,
    parts: *mut *const DrayPart,
    count: *mut usize,
    error: *mut DrayError,
) -> i32 {
    let start = |_: &Call| {
        // SAFETY: the caller promises an open stream that nothing else uses.
        let DrayStream { stream, parts: frame_parts } = unsafe { &mut *stream };
        let frame = stream.start().map_err(coded)?;
        // SAFETY: the caller promises that both may be written to.
        unsafe { hand_over(frame_parts, frame, parts, count) };
        Ok(DONE)
    };
    // SAFETY: the caller promises that `error` may be written to.
    unsafe { enter(error, start) }
}

/// The frame of the next chunk, after the state frame that it needs, in `*count` parts. They are
/// valid until the next entry that takes the stream. Returns 1 if there is a chunk, and 0 if not.
/// `is_last` says that all rows have been appended.
///
/// # Safety
/// - The stream is open, and no other entry uses it. No row is under construction.
/// - `parts`, `count` and `error` are valid for writes. They need not be initialized.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_next_chunk(
    stream: *mut DrayStream,
    is_last: bool,
    parts: *mut *const DrayPart,
    count: *mut usize,
    error: *mut DrayError,
) -> i32 {
    let next_chunk = |_: &Call| {
        // SAFETY: the caller promises an open stream that nothing else uses.
        let DrayStream { stream, parts: frame_parts } = unsafe { &mut *stream };
        let Some(frame) = stream.next_chunk(is_last).map_err(coded)? else { return Ok(0) };
        // SAFETY: the caller promises that both may be written to.
        unsafe { hand_over(frame_parts, frame, parts, count) };
        Ok(1)
    };
    // SAFETY: the caller promises that `error` may be written to.
    unsafe { enter(error, next_chunk) }
}

/// The frame that ends the stream, in `*count` parts. They are valid until the next entry that
/// takes the stream. `socket_ns` is the time that sending took, and `total_ns` that of the whole
/// statement.
///
/// # Safety
/// - The stream is open, and no other entry uses it.
/// - `parts`, `count` and `error` are valid for writes. They need not be initialized.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dray_finish(
    stream: *mut DrayStream,
    socket_ns: u64,
    total_ns: u64,
    parts: *mut *const DrayPart,
    count: *mut usize,
    error: *mut DrayError,
) -> i32 {
    let finish = |_: &Call| {
        // SAFETY: the caller promises an open stream that nothing else uses.
        let DrayStream { stream, parts: frame_parts } = unsafe { &mut *stream };
        let frame = stream.finish(socket_ns, total_ns).map_err(coded)?;
        // SAFETY: the caller promises that both may be written to.
        unsafe { hand_over(frame_parts, frame, parts, count) };
        Ok(DONE)
    };
    // SAFETY: the caller promises that `error` may be written to.
    unsafe { enter(error, finish) }
}

/// Makes all allocations fail from the `n`th on, counted from now; 0 for none.
#[cfg(feature = "test-allocator")]
#[unsafe(no_mangle)]
pub extern "C" fn dray_test_fail_after(n: usize) {
    reserve::fail_after(n);
}

/// Runs an entry. Catches panics, and turns a failure into a code and a message.
///
/// # Safety
/// `error` is valid for writes. It need not be initialized.
#[inline]
unsafe fn enter(
    error: *mut DrayError,
    run: impl FnOnce(&Call) -> Result<i32, (Code, String)>,
) -> i32 {
    let result = catch_unwind(AssertUnwindSafe(|| run(&Call)));
    // A stream that used the reserve ends here, whatever the entry returned.
    let (code, message) = match (result, reserve::take_used()) {
        (Ok(Ok(step)), false) => return step,
        (_, true) => (Code::Memory, String::new()),
        (Ok(Err(failed)), false) => failed,
        (Err(panic), false) => (Code::Internal, panic_text(&*panic)),
    };
    let len = message.floor_char_boundary(MESSAGE_BYTES - 1);
    debug_assert!(len < MESSAGE_BYTES);
    // SAFETY: the caller promises that the message may be written to, and `len` is below its size.
    // C need not have initialized it, so no reference to it is made.
    unsafe {
        let out = (&raw mut (*error).message).cast::<u8>();
        for (at, byte) in message.as_bytes()[..len].iter().enumerate() {
            // A zero would end the text for C.
            out.add(at).write(if *byte == 0 { b'?' } else { *byte });
        }
        out.add(len).write(0);
    }
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

/// Gives C a frame. `frame_parts` points into it, and must live as long as C uses it.
///
/// # Safety
/// `parts` and `count` are valid for writes. They need not be initialized.
unsafe fn hand_over(
    frame_parts: &mut Vec<DrayPart>,
    (head, body): Frame<'_>,
    parts: *mut *const DrayPart,
    count: *mut usize,
) {
    frame_parts.clear();
    frame_parts.push(DrayPart { bytes: head.as_ptr(), len: head.len() });
    frame_parts.extend(body.iter().map(|part| DrayPart { bytes: part.as_ptr(), len: part.len() }));
    // SAFETY: the caller promises that both may be written to.
    unsafe {
        parts.write(frame_parts.as_ptr());
        count.write(frame_parts.len());
    }
}

/// An array that C has passed.
///
/// # Safety
/// `pointer` is aligned and valid for reads of `len` initialized values, which do not change during
/// the call, or `len` is 0.
unsafe fn slice<T>(_: &Call, pointer: *const T, len: usize) -> &[T] {
    // SAFETY: the caller's promise. The result borrows the call.
    if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(pointer, len) } }
}

/// A string that C has passed.
///
/// # Safety
/// `pointer` is valid for reads up to a zero, and the text does not change during the call.
unsafe fn text(_: &Call, pointer: *const c_char) -> Result<&str, (Code, String)> {
    // SAFETY: the caller's promise. The result borrows the call.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map_err(|_| (Code::Encoding, "the name of a column or type is not UTF-8".to_owned()))
}

/// # Safety
/// The strings of the settings end with a zero, and do not change during the call. The socket is
/// negative, or open until the stream has been closed.
unsafe fn settings_of(call: &Call, settings: &DraySettings) -> Result<Settings, (Code, String)> {
    let option = |what: String| (Code::Option, what);
    // SAFETY: the caller promises the strings.
    let (compression, numeric, nonfinite) = unsafe {
        (
            text(call, settings.compression)?,
            text(call, settings.numeric)?,
            text(call, settings.nonfinite)?,
        )
    };
    let is_open = settings.socket >= 0;
    // SAFETY: the caller promises that the socket stays open while the stream uses it.
    let socket = is_open.then(|| unsafe { BorrowedFd::borrow_raw(settings.socket) });
    Ok(Settings {
        limits: Limits {
            chunk_bytes_max: settings.chunk_bytes_max,
            decoded_bytes_max: settings.decoded_bytes_max,
            row_bytes_max: settings.row_bytes_max,
        },
        // A row without columns has no bytes, and chunks have a limit of values without bytes.
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
/// The names and members of the type, and of all types that it is made of, are valid for reads and
/// do not change during the call. Names end with a zero.
unsafe fn type_of(
    call: &Call,
    described: &DrayType,
    depth: usize,
) -> Result<PgType, (Code, String)> {
    let internal = |what: &str| (Code::Internal, what.to_owned());
    // SAFETY: the caller promises the members.
    let members = unsafe { slice(call, described.member, described.members as usize) };
    let inner = || match members {
        // SAFETY: the caller promises the types of members.
        [only] => unsafe { type_of(call, &*only.pg_type, depth + 1) }.map(Box::new),
        _ => Err(internal("a type was described without its one member")),
    };
    let kind = match described.kind {
        0 => Kind::Base,
        _ if depth >= DEPTH_MAX => Kind::Base,
        1 => Kind::Enum,
        2 => Kind::Domain(inner()?),
        3 => Kind::Array { item: inner()?, delimiter: described.delimiter },
        4 => {
            let mut attributes = Vec::with_capacity(members.len());
            for member in members {
                // SAFETY: the caller promises the names and types of members.
                let (name, pg_type) = unsafe {
                    (text(call, member.name)?, type_of(call, &*member.pg_type, depth + 1)?)
                };
                attributes.push((name.to_owned(), pg_type));
            }
            Kind::Composite(attributes)
        }
        5 => Kind::Range(inner()?),
        6 => Kind::Multirange(inner()?),
        _ => return Err(internal("a type was described with an unknown kind")),
    };
    // SAFETY: the caller promises the names.
    let (name, extension) =
        unsafe { (text(call, described.name)?, text(call, described.extension)?) };
    // The extensions whose types have columns of their own (citext, hstore) define varlenas. A type
    // that is not a varlena must not be read as one, whatever its extension is called.
    let extension = if (described.typlen, described.typalign) == VARLENA { extension } else { "" };
    Ok(PgType {
        oid: described.oid,
        typmod: described.typmod,
        name: name.to_owned(),
        extension: extension.to_owned(),
        kind,
    })
}
