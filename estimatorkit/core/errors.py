"""Error classes with TensorFlow's status codes, and `explain`, which words every message.

Errors met while a graph runs are `OpError`s, one subclass a status code, as in `tf.errors`; errors
met while a graph is built are `ValueError` and `TypeError`, as in TensorFlow. Every message has up
to four parts, put together by `explain`: what went wrong, what was expected, what came, where it
was made, what to try.

    Exception
    +-- OpError
        +-- CancelledError, UnknownError, InvalidArgumentError, DeadlineExceededError,
            NotFoundError, AlreadyExistsError, PermissionDeniedError, UnauthenticatedError,
            ResourceExhaustedError, FailedPreconditionError, AbortedError, OutOfRangeError,
            UnimplementedError, InternalError, UnavailableError, DataLossError
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any
from typing import Self as _Self  # the module is public as it is


def explain(
    problem: str,
    *,
    expected: object = None,
    received: object = None,
    made_at: object = None,
    hint: str | None = None,
) -> str:
    """Words an error: the problem, then the parts that are given, one a line.

    Args:
        problem: one sentence without a full stop, naming the thing (op, layer, key, file).
        expected: what would have been right.
        received: what came instead.
        made_at: the user's line that made the thing, `file:line` (anything with a `str`).
        hint: what to try.
    """
    parts = [problem.rstrip(".") + "."]
    if expected is not None:
        parts.append(f"  expected: {expected}")
    if received is not None:
        parts.append(f"  received: {received}")
    if made_at is not None:
        parts.append(f"  made at:  {made_at}")
    if hint is not None:
        parts.append(f"  hint:     {hint}")
    return "\n".join(parts)


def value_error(problem: str, **parts: Any) -> ValueError:
    """A `ValueError` worded by `explain`."""
    return ValueError(explain(problem, **parts))


def type_error(problem: str, **parts: Any) -> TypeError:
    """A `TypeError` worded by `explain`."""
    return TypeError(explain(problem, **parts))


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """Returns `did you mean 'x'?` for the nearest of `known`, or None where nothing is near."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else None


# Status codes: what `error_code` of an exception is.
OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


class OpError(Exception):
    """Something failed while a graph ran.

    Args:
        node_def: the operation as a `NodeDef`; None for that of `op`.
        op: the `Operation` that failed, or None.
        message: what happened.
        error_code: the status code; a subclass sets its own.
    """

    error_code: int = UNKNOWN

    def __init__(self, node_def: Any, op: Any, message: str, error_code: int | None = None) -> None:
        super().__init__(message)
        self._node_def = node_def
        self.op = op
        self.message = message
        if error_code is not None:
            self.error_code = error_code

    @classmethod
    def explained(cls, problem: str, *, op: Any = None, **parts: Any) -> _Self:
        """An error of an operation, or of none; the other arguments are those of `explain`."""
        return cls(None, op, explain(problem, **parts))

    @property
    def node_def(self) -> Any:
        """The operation that failed as a `NodeDef`, or None."""
        return getattr(self.op, "node_def", None) if self._node_def is None else self._node_def

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled without the operation, which belongs to a graph of this process."""
        return _unpickled, (type(self), self.message, self.error_code)


def _unpickled(kind: type[OpError], message: str, error_code: int) -> OpError:
    error = kind.__new__(kind)
    OpError.__init__(error, None, None, message, error_code)
    return error


class CancelledError(OpError):
    """The call was cancelled, for example by closing a queue or a session."""

    error_code = CANCELLED


class UnknownError(OpError):
    """An error without a class of its own."""

    error_code = UNKNOWN


class InvalidArgumentError(OpError):
    """A value has a shape, a dtype or content that the op cannot take."""

    error_code = INVALID_ARGUMENT


class DeadlineExceededError(OpError):
    """The time allowed ran out."""

    error_code = DEADLINE_EXCEEDED


class NotFoundError(OpError):
    """A file, a checkpoint or a key is not there."""

    error_code = NOT_FOUND


class AlreadyExistsError(OpError):
    """Something that was to be made exists."""

    error_code = ALREADY_EXISTS


class PermissionDeniedError(OpError):
    """The process may not do this."""

    error_code = PERMISSION_DENIED


class UnauthenticatedError(OpError):
    """The caller gave no valid credentials."""

    error_code = UNAUTHENTICATED


class ResourceExhaustedError(OpError):
    """Memory, disk or a quota is used up."""

    error_code = RESOURCE_EXHAUSTED


class FailedPreconditionError(OpError):
    """The system is not in the state needed: above all, a variable without a value is read."""

    error_code = FAILED_PRECONDITION


class AbortedError(OpError):
    """The call was given up, usually for a conflict with another."""

    error_code = ABORTED


class OutOfRangeError(OpError):
    """The input has ended: an iterator or a closed queue has no more elements."""

    error_code = OUT_OF_RANGE


class UnimplementedError(OpError):
    """The op exists, but not for these arguments."""

    error_code = UNIMPLEMENTED


class InternalError(OpError):
    """An invariant of the package is broken: please report it."""

    error_code = INTERNAL


class UnavailableError(OpError):
    """A task or a service cannot be reached now; trying again may help."""

    error_code = UNAVAILABLE


class DataLossError(OpError):
    """A file is truncated or corrupt."""

    error_code = DATA_LOSS


_CLASSES: dict[int, type[OpError]] = {each.error_code: each for each in OpError.__subclasses__()}


def exception_type_from_error_code(error_code: int) -> type[OpError]:
    """The class of the errors of a status code.

    Raises:
        KeyError: there is none.
    """
    return _CLASSES[error_code]


def error_code_from_exception_type(cls: type[OpError]) -> int:
    """The status code of a class of errors."""
    return cls.error_code


def __dir__() -> list[str]:
    hidden = {
        "annotations",
        "difflib",
        "Any",
        "Iterable",
        "did_you_mean",
        "explain",
        "type_error",
        "value_error",
    }
    return sorted(name for name in globals() if name[0].isalpha() and name not in hidden)
