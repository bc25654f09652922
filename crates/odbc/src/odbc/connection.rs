//! A connection, with the environment that it belongs to.

use std::ptr::null_mut;

use odbc_sys::{
    AttrOdbcVersion, CompletionType, ConnectionAttribute, DriverConnectOption,
    EnvironmentAttribute, HDbc, HEnv, HStmt, Handle, HandleType, InfoType, SQLAllocHandle,
    SQLDisconnect, SQLDriverConnectW, SQLEndTran, SQLFreeHandle, SQLGetConnectAttrW, SQLGetInfoW,
    SQLSetConnectAttrW, SQLSetEnvAttr, SqlReturn,
};

use super::{Diagnostic, check, dbc, env, narrow, wide};

/// The time to connect, in seconds.
const LOGIN_TIMEOUT: usize = 30;
/// `SQL_MODE_READ_ONLY`.
const MODE_READ_ONLY: usize = 1;
/// `SQL_AUTOCOMMIT_OFF`.
const AUTOCOMMIT_OFF: usize = 0;
/// `SQL_CD_TRUE`.
const IS_DEAD: u32 = 1;
/// `SQL_IS_UINTEGER`: the attribute is a number.
const IS_NUMBER: i32 = -5;

/// A connection to a database.
#[derive(Debug)]
pub(crate) struct Connection {
    env: HEnv,
    dbc: HDbc,
    is_connected: bool,
}

impl Connection {
    /// Connects, as read-only as the driver can.
    pub(crate) fn open(connection_string: &str, read_only: bool) -> Result<Self, Diagnostic> {
        let (env, dbc) = handles()?;
        let mut connection = Self { env, dbc, is_connected: false };
        // Drivers may not know these two.
        let _ = connection.set(ConnectionAttribute::LOGIN_TIMEOUT, LOGIN_TIMEOUT);
        if read_only {
            let _ = connection.set(ConnectionAttribute::ACCESS_MODE, MODE_READ_ONLY);
        }
        let text = wide(connection_string);
        let mut completed = vec![0_u16; 8192];
        let mut length = 0;
        // SAFETY: the handle is valid. The text ends with a zero (length -3), and the buffer is
        // longer than the driver is told.
        let returned = unsafe {
            SQLDriverConnectW(
                dbc,
                null_mut(),
                text.as_ptr(),
                -3,
                completed.as_mut_ptr(),
                4096,
                &mut length,
                DriverConnectOption::NoPrompt,
            )
        };
        check(returned, super::dbc(dbc), "SQLDriverConnect")?;
        connection.is_connected = true;
        Ok(connection)
    }

    fn set(&self, attribute: ConnectionAttribute, value: usize) -> Result<(), Diagnostic> {
        // SAFETY: the handle is valid. These attributes are numbers, which come in the pointer.
        let returned =
            unsafe { SQLSetConnectAttrW(self.dbc, attribute, value as *mut _, IS_NUMBER) };
        check(returned, dbc(self.dbc), "SQLSetConnectAttr").map(drop)
    }

    /// From now on, statements run in transactions, which end by [`Self::rollback`].
    pub(crate) fn begin_transactions(&self) -> Result<(), Diagnostic> {
        self.set(ConnectionAttribute::AUTOCOMMIT, AUTOCOMMIT_OFF)
    }

    pub(crate) fn rollback(&self) -> Result<(), Diagnostic> {
        // SAFETY: the handle is valid.
        let returned =
            unsafe { SQLEndTran(HandleType::Dbc, self.dbc.as_handle(), CompletionType::Rollback) };
        check(returned, dbc(self.dbc), "SQLEndTran").map(drop)
    }

    /// Whether the driver knows that the connection is lost.
    pub(crate) fn is_dead(&self) -> bool {
        let mut value = [0_u32; 4];
        // SAFETY: the handle is valid, and the value has room for a number of any width.
        let returned = unsafe {
            SQLGetConnectAttrW(
                self.dbc,
                ConnectionAttribute::CONNECTION_DEAD,
                value.as_mut_ptr().cast(),
                IS_NUMBER,
                null_mut(),
            )
        };
        returned == SqlReturn::SUCCESS && value.first() == Some(&IS_DEAD)
    }

    /// A text about the driver or the database; empty if the driver does not know it.
    pub(crate) fn info_text(&self, info: InfoType) -> String {
        let mut text = vec![0_u16; 1024];
        let mut length = 0;
        // SAFETY: the handle is valid, and the buffer is longer than the driver is told, in bytes.
        let returned =
            unsafe { SQLGetInfoW(self.dbc, info, text.as_mut_ptr().cast(), 1024, &mut length) };
        match returned {
            SqlReturn::SUCCESS | SqlReturn::SUCCESS_WITH_INFO => narrow(&text, text.len()),
            _ => String::new(),
        }
    }

    /// A number about the driver or the database, of 16 or 32 bits.
    pub(crate) fn info_number(&self, info: InfoType) -> Option<u32> {
        let mut value = [0_u32; 4];
        let mut length = 0;
        // SAFETY: the handle is valid, and the value has room for a number of any width.
        let returned =
            unsafe { SQLGetInfoW(self.dbc, info, value.as_mut_ptr().cast(), 16, &mut length) };
        (returned == SqlReturn::SUCCESS).then_some(value[0])
    }

    pub(super) fn allocate_statement(&self) -> Result<HStmt, Diagnostic> {
        let mut handle = Handle::null();
        // SAFETY: the connection's handle is valid, and the new one is written to a variable.
        let returned =
            unsafe { SQLAllocHandle(HandleType::Stmt, self.dbc.as_handle(), &mut handle) };
        check(returned, dbc(self.dbc), "SQLAllocHandle")?;
        Ok(handle.as_hstmt())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.is_connected {
            // A transaction that is open keeps the connection open.
            let _ = self.rollback();
        }
        // SAFETY: the handles are valid, and nothing uses them afterwards: statements borrow the
        // connection. What can't be freed ends with the process.
        unsafe {
            if self.is_connected {
                let _ = SQLDisconnect(self.dbc);
            }
            let _ = SQLFreeHandle(HandleType::Dbc, self.dbc.as_handle());
            let _ = SQLFreeHandle(HandleType::Env, self.env.as_handle());
        }
    }
}

/// An environment for version 3.80 of ODBC, or 3 if its drivers know no later one, and a connection
/// in it.
fn handles() -> Result<(HEnv, HDbc), Diagnostic> {
    let mut handle = Handle::null();
    // SAFETY: an environment has no parent, and the new handle is written to a variable.
    let returned = unsafe { SQLAllocHandle(HandleType::Env, Handle::null(), &mut handle) };
    if returned != SqlReturn::SUCCESS {
        return Err(Diagnostic::driver("the ODBC driver manager gives no environment"));
    }
    let environment = handle.as_henv();
    // SAFETY: the handle is valid, and this attribute is a number, which comes in the pointer.
    let returned = unsafe {
        let version = AttrOdbcVersion::Odbc3_80;
        SQLSetEnvAttr(environment, EnvironmentAttribute::OdbcVersion, version.into(), 0)
    };
    check(returned, env(environment), "SQLSetEnvAttr")?;
    // SAFETY: the environment's handle is valid, and the new one is written to a variable.
    let returned = unsafe { SQLAllocHandle(HandleType::Dbc, environment.as_handle(), &mut handle) };
    check(returned, env(environment), "SQLAllocHandle")?;
    Ok((environment, handle.as_hdbc()))
}
