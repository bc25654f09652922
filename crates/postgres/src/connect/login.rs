//! Login by tokio-postgres over a borrowed socket.
//!
//! Only tokio-postgres's knowledge of passwords, MD5 and SCRAM is used. Its future reads and writes
//! a blocking socket, so it is ready when it is polled and needs no runtime.

use std::cell::RefCell;
use std::future::{Future, Ready, ready};
use std::io::{self, Read, Write};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use dray_net::{Socket, Wait};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::error::DbError;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

use super::login_messages::{LoginMessages, LoginState};
use super::params::ConnectParams;
use super::tls::channel_binding;
use crate::error::{Error, ErrorKind, Result};

/// A failed login.
pub(crate) struct Refusal {
    pub(crate) error: Error,
    /// Whether the server refused before it knew the user. With another encryption it may accept.
    pub(crate) unauthenticated: bool,
}

/// Logs in, and returns the socket as it is after ReadyForQuery.
pub(crate) fn log_in(
    socket: Socket,
    params: &ConnectParams,
    password: Option<&str>,
    wait: &mut Wait<'_>,
) -> Result<(Socket, LoginState), Refusal> {
    let mut config = Config::new();
    config.user(&params.user).dbname(&params.dbname).application_name(&params.application_name);
    config.channel_binding(params.channel_binding);
    if let Some(password) = password {
        config.password(password);
    }
    if let Some(options) = &params.options {
        config.options(options);
    }
    // TLS has started already. With "direct" tokio-postgres does not ask the server for it, only
    // the stream for its channel binding.
    config.ssl_mode(if socket.is_tls() { SslMode::Require } else { SslMode::Disable });
    config.ssl_negotiation(SslNegotiation::Direct);
    let started = StartedTls(channel_binding(&socket));
    let deadline = wait.deadline();
    let messages = LoginMessages::new(
        socket,
        wait.until(deadline),
        params.required_auth.clone(),
        password.is_some(),
    );
    let messages = Rc::new(RefCell::new(messages));
    // Dropping the client and the connection neither writes nor closes anything.
    let result =
        finish(config.connect_raw(BorrowedSocket(Rc::clone(&messages)), started), &messages)
            .map(|result| result.map(drop));
    let lost = || Error::new(ErrorKind::Protocol, "the login did not give the socket back");
    let Some(messages) = Rc::into_inner(messages).map(RefCell::into_inner) else {
        return Err(Refusal { error: lost(), unauthenticated: false });
    };
    let cause = match result {
        Ok(Ok(())) => return Ok((messages.socket, messages.state)),
        Ok(Err(cause)) => cause,
        Err(error) => return Err(Refusal { error, unauthenticated: false }),
    };
    Err(match (messages.failure, cause.as_db_error()) {
        (Some(error), _) => Refusal { error, unauthenticated: false },
        (None, Some(refused)) => Refusal {
            error: server_error(refused, &messages.state),
            unauthenticated: !messages.state.authenticated,
        },
        (None, None) => {
            let kind = if messages.state.authenticated {
                ErrorKind::Protocol
            } else {
                ErrorKind::Authentication
            };
            let what = cause.to_string();
            let error = Error::new(kind, what);
            let error = cause.into_source().into_iter().fold(error, Error::with_cause);
            Refusal { error, unauthenticated: false }
        }
    })
}

/// Runs a future that is ready at each poll, within the time to connect.
fn finish<F: Future>(future: F, messages: &RefCell<LoginMessages<'_>>) -> Result<F::Output> {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return Ok(output);
        }
        let ended = messages
            .try_borrow_mut()
            .map_err(io::Error::other)
            .and_then(|mut messages| messages.wait.check());
        ended.map_err(|cause| {
            Error::new(ErrorKind::Connection, "the login did not end").with_cause(cause)
        })?;
    }
}

/// The server's error. Poolers have other codes for a wrong password, so the stage of the login
/// decides, too.
fn server_error(refused: &DbError, state: &LoginState) -> Error {
    let kind = match refused.code().code() {
        code if code.starts_with("28") => ErrorKind::Authentication,
        _ if state.asked && !state.authenticated => ErrorKind::Authentication,
        _ => ErrorKind::Connection,
    };
    let mut message = refused.message().to_owned();
    if let Some(detail) = refused.detail() {
        message = format!("{message}: {detail}");
    }
    Error::new(kind, message)
        .with_sqlstate(refused.code().code())
        .with_hint(refused.hint().unwrap_or_default())
}

/// The socket as tokio-postgres sees it.
struct BorrowedSocket<'a>(Rc<RefCell<LoginMessages<'a>>>);

impl<'a> BorrowedSocket<'a> {
    fn with<T>(
        &self,
        use_it: impl FnOnce(&mut LoginMessages<'a>) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        let messages = self.0.try_borrow_mut();
        Poll::Ready(
            messages.map_err(io::Error::other).and_then(|mut messages| use_it(&mut messages)),
        )
    }
}

impl AsyncRead for BorrowedSocket<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.with(|messages| {
            let read = messages.read(buffer.initialize_unfilled())?;
            buffer.advance(read);
            Ok(())
        })
    }
}

impl AsyncWrite for BorrowedSocket<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.with(|messages| messages.write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(Write::flush)
    }

    /// The borrowed socket stays open.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// TLS that has started already, as its channel binding.
struct StartedTls(Option<Vec<u8>>);

impl<'a> TlsConnect<BorrowedSocket<'a>> for StartedTls {
    type Stream = BorrowedTls<'a>;
    type Error = io::Error;
    type Future = Ready<io::Result<BorrowedTls<'a>>>;

    fn connect(self, socket: BorrowedSocket<'a>) -> Self::Future {
        ready(Ok(BorrowedTls { socket, binding: self.0 }))
    }
}

/// A [`BorrowedSocket`] that is encrypted below.
struct BorrowedTls<'a> {
    socket: BorrowedSocket<'a>,
    binding: Option<Vec<u8>>,
}

impl AsyncRead for BorrowedTls<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl AsyncWrite for BorrowedTls<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

impl TlsStream for BorrowedTls<'_> {
    fn channel_binding(&self) -> ChannelBinding {
        self.binding.clone().map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}
