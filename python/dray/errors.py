"""Exceptions: one class for each kind of failure, all derived from :class:`Error`."""

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
    """The base class of this package's exceptions.

    Attributes
    ----------
    kind : str
        The kind of failure, one word for each subclass.
    message : str
        What failed, in one sentence.
    hint : str or None
        What the user can do about it.
    sqlstate : str or None
        The server's SQLSTATE, five characters.
    code : int or None
        The number of an error of MySQL's or MariaDB's, such as 1205 for a lock that was waited for
        too long. Many of their errors share the SQLSTATE HY000.
    """

    kind: str = "error"

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        sqlstate: str | None = None,
        code: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.sqlstate = sqlstate
        self.code = code

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class ConnectionError(Error, builtins.ConnectionError):
    """The server can't be reached, or the connection broke. A result read so far is incomplete."""

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
    """Memory, disk or connections ran out: at the server, or here for :func:`dray.sort`."""

    kind = "resources"


class LimitError(Error):
    """A row, a chunk or the statement itself exceeds a limit. The message says which."""

    kind = "limit"


class Cancelled(Error):
    """The statement was cancelled."""

    kind = "cancelled"


class ProtocolError(Error):
    """The client or the server broke the protocol, or bytes were damaged in transit."""

    kind = "protocol"


class UsageError(Error, ValueError):
    """The call is wrong: a bad uri, option or parameter, or a busy or closed connection."""

    kind = "usage"


class InternalError(Error):
    """A defect in Dray, at the server or in this package."""

    kind = "internal"
