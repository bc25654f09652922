"""Exceptions, one class for each kind of failure; all are :class:`Error`."""

from __future__ import annotations

import builtins

__all__ = [
    "AuthenticationError",
    "Cancelled",
    "ConnectionError",
    "Error",
    "ExecutionError",
    "InternalError",
    "LimitError",
    "ProtocolError",
    "QueryError",
    "ResourcesError",
    "UsageError",
]


class Error(Exception):
    """What every exception of this package is.

    Attributes
    ----------
    kind : str
        What kind of thing went wrong: one word for each subclass.
    message : str
        One sentence.
    hint : str or None
        What the user can do.
    sqlstate : str or None
        The SQLSTATE that the server gave.
    """

    kind: str = "error"

    def __init__(self, message: str, hint: str | None = None, sqlstate: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.sqlstate = sqlstate

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class ConnectionError(Error, builtins.ConnectionError):
    """The server can't be reached, or the connection broke. What had arrived of a result is not
    whole.
    """

    kind = "connection"


class AuthenticationError(Error):
    """The token is missing or wrong, or the server's certificate is not trusted."""

    kind = "authentication"


class QueryError(Error):
    """The SQL does not parse, bind or plan."""

    kind = "query"


class ExecutionError(Error):
    """The statement failed while it ran."""

    kind = "execution"


class ResourcesError(Error):
    """The server ran out of memory, disk or connections."""

    kind = "resources"


class LimitError(Error):
    """A row or chunk is larger than a limit; the message says what it needs."""

    kind = "limit"


class Cancelled(Error):
    """The statement was cancelled."""

    kind = "cancelled"


class ProtocolError(Error):
    """One end broke the protocol, or bytes were damaged on their way."""

    kind = "protocol"


class UsageError(Error, ValueError):
    """The call can't be done: a bad uri, option or parameter; a connection that is busy or closed."""

    kind = "usage"


class InternalError(Error):
    """A defect in the server."""

    kind = "internal"
