"""Error classes with TensorFlow's status codes, and `explain`, which words every message.

Errors while running a graph are `OpError`s, one subclass per status code, as in `tf.errors`; errors
while building a graph are `ValueError` and `TypeError`, as in TensorFlow. `explain` words every
message: the problem, what was expected, what was received, where it was created, and a hint.

    Exception
    +-- OpError
        +-- CancelledError, UnknownError, InvalidArgumentError, DeadlineExceededError,
            NotFoundError, AlreadyExistsError, PermissionDeniedError, UnauthenticatedError,
            ResourceExhaustedError, FailedPreconditionError, AbortedError, OutOfRangeError,
            UnimplementedError, InternalError, UnavailableError, DataLossError
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from typing import (
    Any,
    Self as _Self,  # private: the module's public names are API
)

_MOST_CHARACTERS = 4000
"""The longest text of what was received; it may be a whole file."""


def explain(
    problem: str,
    *,
    expected: object = None,
    received: object = None,
    made_at: object = None,
    hint: str | None = None,
) -> str:
    """Words an error message: the problem, then the given parts, one per line.

    Args:
        problem: one sentence without a full stop that names the op, layer, key or file.
        expected: what would have been valid.
        received: what was given instead.
        made_at: the line of user code that created it, `file:line` (anything with a `str`).
        hint: what to try.
    """
    parts = [problem.rstrip(".") + "."]
    if expected is not None:
        parts.append(f"  expected: {expected}")
    if received is not None:
        text = str(received)
        if len(text) > _MOST_CHARACTERS:
            text = f"{text[:_MOST_CHARACTERS]}... ({len(text)} characters)"
        parts.append(f"  received: {text}")
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
    """Returns `did you mean 'x'?` for the closest of `known`, or None if nothing is close.

    One that looks the same is `other_form`'s.
    """
    known = list(known)
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return other_form(word, known) or (f"did you mean {near[0]!r}?" if near else None)


def other_form(word: str, known: Iterable[str]) -> str | None:
    """A hint, if one of `known` is the same word in another Unicode normalization form."""
    if word.isascii():
        return None
    plain = unicodedata.normalize("NFC", word)
    if not any(unicodedata.normalize("NFC", each) == plain for each in known if each != word):
        return None
    return (
        f"{plain!r} is known in another Unicode normalization form, which looks the same; "
        "unicodedata.normalize('NFC', text) makes both equal"
    )


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
    """An error while running a graph.

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
        """An error, of an operation if given; the other arguments are those of `explain`."""
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
    """An error with no more specific class."""

    error_code = UNKNOWN


class InvalidArgumentError(OpError):
    """An op's input has an invalid shape, dtype or value."""

    error_code = INVALID_ARGUMENT


class DeadlineExceededError(OpError):
    """The deadline expired."""

    error_code = DEADLINE_EXCEEDED


class NotFoundError(OpError):
    """A file, checkpoint or key does not exist."""

    error_code = NOT_FOUND


class AlreadyExistsError(OpError):
    """The entity to be created, such as a file, already exists."""

    error_code = ALREADY_EXISTS


class PermissionDeniedError(OpError):
    """The process does not have permission for the operation."""

    error_code = PERMISSION_DENIED


class UnauthenticatedError(OpError):
    """The caller gave no valid credentials."""

    error_code = UNAUTHENTICATED


class ResourceExhaustedError(OpError):
    """Memory, disk space or a quota is exhausted."""

    error_code = RESOURCE_EXHAUSTED


class FailedPreconditionError(OpError):
    """The system is not in the required state; usually a variable is not initialized."""

    error_code = FAILED_PRECONDITION


class AbortedError(OpError):
    """The call was aborted, usually because of a conflict with another."""

    error_code = ABORTED


class OutOfRangeError(OpError):
    """The input has ended: an iterator or a closed queue has no more elements."""

    error_code = OUT_OF_RANGE


class UnimplementedError(OpError):
    """The operation is not supported for these arguments."""

    error_code = UNIMPLEMENTED


class InternalError(OpError):
    """An invariant of the package is broken: please report it."""

    error_code = INTERNAL


class UnavailableError(OpError):
    """A task or service is currently unreachable; retrying may help."""

    error_code = UNAVAILABLE


class DataLossError(OpError):
    """A file is truncated or corrupt."""

    error_code = DATA_LOSS


_CLASSES: dict[int, type[OpError]] = {each.error_code: each for each in OpError.__subclasses__()}


def exception_type_from_error_code(error_code: int) -> type[OpError]:
    """Returns the error class of a status code.

    Raises:
        KeyError: there is no such code.
    """
    return _CLASSES[error_code]


def error_code_from_exception_type(cls: type[OpError]) -> int:
    """Returns the status code of an error class."""
    return cls.error_code


def __dir__() -> list[str]:
    hidden = {
        "annotations",
        "difflib",
        "Any",
        "Iterable",
        "did_you_mean",
        "explain",
        "other_form",
        "type_error",
        "unicodedata",
        "value_error",
    }
    return sorted(name for name in globals() if name[0].isalpha() and name not in hidden)
