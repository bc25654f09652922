//! Where a connection is: at home, lent to a result, or closed.

#![allow(unsafe_code, reason = "a loan moves its connection out when it ends")]

use std::borrow::{Borrow, BorrowMut};
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dray_client::Connection;

/// A connection's place. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Home(Arc<Mutex<Place>>);

enum Place {
    Here(Box<Connection>),
    Lent,
    Closed,
}

/// Why a connection can't be lent.
pub(crate) enum Refusal {
    Lent,
    Closed,
}

impl Home {
    pub(crate) fn new(connection: Connection) -> Self {
        Self(Arc::new(Mutex::new(Place::Here(Box::new(connection)))))
    }

    /// Lends the connection until the loan is dropped.
    pub(crate) fn lend(&self) -> Result<Loan, Refusal> {
        let mut place = self.lock();
        match std::mem::replace(&mut *place, Place::Lent) {
            Place::Here(connection) => {
                Ok(Loan { connection: ManuallyDrop::new(connection), home: self.clone() })
            }
            Place::Lent => Err(Refusal::Lent),
            Place::Closed => {
                *place = Place::Closed;
                Err(Refusal::Closed)
            }
        }
    }

    /// Closes the connection; if it is lent, when it comes back.
    pub(crate) fn close(&self) {
        let closed = std::mem::replace(&mut *self.lock(), Place::Closed);
        drop(closed);
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(*self.lock(), Place::Closed)
    }

    /// Held for a moment only, and never while waiting for Python's lock.
    fn lock(&self) -> MutexGuard<'_, Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection on loan: it goes home when this is dropped.
pub(crate) struct Loan {
    connection: ManuallyDrop<Box<Connection>>,
    home: Home,
}

impl Borrow<Connection> for Loan {
    fn borrow(&self) -> &Connection {
        &self.connection
    }
}

impl BorrowMut<Connection> for Loan {
    fn borrow_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        // SAFETY: a value is dropped once, and nothing reads the field afterwards.
        let connection = unsafe { ManuallyDrop::take(&mut self.connection) };
        let mut place = self.home.lock();
        if matches!(*place, Place::Lent) {
            *place = Place::Here(connection);
        }
    }
}
