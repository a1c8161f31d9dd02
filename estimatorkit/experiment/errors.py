"""User errors, with the command's exit codes."""

from __future__ import annotations

from typing import Any, Self

from estimatorkit.core.errors import explain


class UserError(ValueError):
    """The base class."""

    exit_code: int = 1

    @classmethod
    def explained(cls, problem: str, **parts: Any) -> Self:
        """An error; the arguments are those of `core.errors.explain`."""
        return cls(explain(problem, **parts))


class ConfigurationError(UserError):
    """A configuration or override is invalid."""

    exit_code = 2


class DataError(UserError):
    """The data or model folder does not fit the experiment, for example because a column is
    missing.
    """
