//! Leases of a connection. A connection runs one statement at a time: the result of a statement
//! leases it and returns it at its end.

#![allow(unsafe_code, reason = "a lease moves its connection out when it is dropped")]

use std::borrow::{Borrow, BorrowMut};
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::connection::Connection;

/// Holds a connection between statements. Clones share the slot.
#[derive(Debug, Clone)]
pub struct ConnectionSlot(Arc<Mutex<State>>);

#[derive(Debug)]
enum State {
    Available(Box<Connection>),
    Leased,
    Closed,
}

/// Why a connection can't be leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseError {
    /// A statement has it.
    Leased,
    /// It was closed.
    Closed,
}

impl ConnectionSlot {
    /// A slot with this connection.
    pub fn new(connection: Connection) -> Self {
        Self(Arc::new(Mutex::new(State::Available(Box::new(connection)))))
    }

    /// Leases the connection until the lease is dropped.
    ///
    /// # Errors
    /// When the connection is leased already, or closed.
    pub fn lease(&self) -> Result<Lease, LeaseError> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Leased) {
            State::Available(connection) => {
                Ok(Lease { connection: ManuallyDrop::new(connection), slot: self.clone() })
            }
            State::Leased => Err(LeaseError::Leased),
            State::Closed => {
                *state = State::Closed;
                Err(LeaseError::Closed)
            }
        }
    }

    /// Closes the connection. A leased connection closes when its lease ends.
    pub fn close(&self) {
        // The connection is dropped after the lock is released: closing a socket may wait.
        let closed = std::mem::replace(&mut *self.lock(), State::Closed);
        drop(closed);
    }

    /// Whether the connection was closed.
    pub fn is_closed(&self) -> bool {
        matches!(*self.lock(), State::Closed)
    }

    /// Held for moments only: no caller waits for anything else meanwhile.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Exclusive use of a connection. Dropping the lease returns the connection to its slot.
#[derive(Debug)]
pub struct Lease {
    connection: ManuallyDrop<Box<Connection>>,
    slot: ConnectionSlot,
}

impl Borrow<Connection> for Lease {
    fn borrow(&self) -> &Connection {
        &self.connection
    }
}

impl BorrowMut<Connection> for Lease {
    fn borrow_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // SAFETY: `drop` runs once for a value, and nothing reads the field after it.
        let connection = unsafe { ManuallyDrop::take(&mut self.connection) };
        let mut state = self.slot.lock();
        debug_assert!(!matches!(*state, State::Available(_)), "a leased connection is in its slot");
        if matches!(*state, State::Leased) {
            *state = State::Available(connection);
        }
    }
}
