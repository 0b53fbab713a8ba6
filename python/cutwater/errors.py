# SPDX-License-Identifier: Apache-2.0
"""Errors. Each is a ``cutwater.Error`` and the Python kind that users would catch anyway."""

from __future__ import annotations


class Error(Exception):
    """Anything that cutwater raises on purpose."""


class InvalidArgument(Error, ValueError):
    """Something was asked for that cannot be; the text names the value and the way out."""


class WrongType(Error, TypeError):
    """A value of a kind that cannot be used here."""


class OutOfRange(Error, IndexError):
    """There is no such sample."""


class NotFound(Error, FileNotFoundError):
    """A file or folder is missing."""


class InputOutputError(Error, OSError):
    """The operating system refused."""


class Unavailable(Error, ConnectionError):
    """A service is gone."""


class Timeout(Error, TimeoutError):
    """A wait ended without its condition."""


class StaleStore(Error, ValueError):
    """Kept results are of other data, or of another pipeline, than what they were asked for."""


class Closed(Error, ValueError):
    """The loader was closed."""


class InternalError(Error, AssertionError):
    """A defect of cutwater itself; please report it."""


class SampleError(Error, ValueError):
    """One sample cannot be delivered. The text has all four attributes."""

    def __init__(self, message: str, id: int = -1, path: str = "", op: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.id = id
        self.path = path
        self.op = op
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return (SampleError, (str(self), self.id, self.path, self.op, self.reason))


# In the order of the C++ enum Code; bad samples are made by from_failure.
_BY_CODE: tuple[type[Error], ...] = (
    InvalidArgument,
    NotFound,
    SampleError,
    InputOutputError,
    Unavailable,
    Timeout,
    StaleStore,
    Closed,
    InternalError,
)


def from_failure(code: int, message: str, reason: str, id: int, path: str, op: str) -> Error:
    """The exception for a failure of the native engine."""
    kind = _BY_CODE[code]
    if kind is SampleError:
        return SampleError(message, id, path, op, reason)
    return kind(message)
