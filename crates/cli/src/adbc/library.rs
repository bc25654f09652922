//! A driver's library, loaded as driver managers load it.

#![allow(unsafe_code, reason = "a library of C functions")]

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use adbc_core::constants::{
    ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA, ADBC_STATUS_OK, ADBC_VERSION_1_1_0,
};
use adbc_ffi::{FFI_AdbcDatabase, FFI_AdbcDriver, FFI_AdbcDriverInitFunc, FFI_AdbcError};

/// The entry point, whose name follows from that of the library.
const INIT: &CStr = c"AdbcDriverDrayInit";

/// A loaded library. It stays loaded until the program ends: a driver may have threads.
#[derive(Debug)]
pub(super) struct Library(*mut c_void);

impl Library {
    /// Loads a library. An error says why it can't be loaded.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: the path is a C string. What the library runs when it is loaded is what the
        // caller wants to have run.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() { Err(last_error()) } else { Ok(Self(handle)) }
    }

    /// Asks the driver for its table of functions, and makes and releases a database. An error says
    /// what failed.
    pub(super) fn check(&self) -> Result<(), String> {
        // SAFETY: the handle is of a loaded library, the name is a C string.
        let symbol = unsafe { libc::dlsym(self.0, INIT.as_ptr()) };
        if symbol.is_null() {
            return Err(last_error());
        }
        // SAFETY: ADBC defines the type of the function of this name.
        let init = unsafe { std::mem::transmute::<*mut c_void, FFI_AdbcDriverInitFunc>(symbol) };
        let mut driver = FFI_AdbcDriver::default();
        let mut error = no_error();
        let table = (&raw mut driver).cast();
        // SAFETY: the table has the size of version 1.1.0, and the error is a valid one.
        let status = unsafe { init(ADBC_VERSION_1_1_0, table, &raw mut error) };
        succeeded(status, &error, "its initialization fails")?;
        let (Some(new), Some(release)) = (driver.DatabaseNew, driver.DatabaseRelease) else {
            return Err("its table of functions is not complete".to_owned());
        };
        let (private_data, private_driver) = (std::ptr::null_mut(), std::ptr::null());
        let mut database = FFI_AdbcDatabase { private_data, private_driver };
        // SAFETY: the driver has filled its table, and both arguments are valid.
        let status = unsafe { new(&raw mut database, &raw mut error) };
        succeeded(status, &error, "it makes no database")?;
        // SAFETY: the database was made by this driver and is released once.
        let status = unsafe { release(&raw mut database, &raw mut error) };
        succeeded(status, &error, "it does not release a database")
    }
}

fn no_error() -> FFI_AdbcError {
    FFI_AdbcError {
        message: std::ptr::null_mut(),
        vendor_code: ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA,
        sqlstate: [0; 5],
        release: None,
        private_data: std::ptr::null_mut(),
        private_driver: std::ptr::null(),
    }
}

fn succeeded(status: u8, error: &FFI_AdbcError, what: &str) -> Result<(), String> {
    if status == ADBC_STATUS_OK {
        return Ok(());
    }
    if error.message.is_null() {
        return Err(format!("{what} with status {status}"));
    }
    // SAFETY: a driver's message is a C string that lives until the error is released.
    let message = unsafe { CStr::from_ptr(error.message) };
    Err(format!("{what}: {}", message.to_string_lossy()))
}

/// What the dynamic linker says about its last failure.
fn last_error() -> String {
    // SAFETY: the text stays valid until the next call of the linker in this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the dynamic linker gives no reason".to_owned();
    }
    // SAFETY: it is not null, so it is a C string.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
