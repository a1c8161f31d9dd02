"""User errors, with the command's exit codes."""

from __future__ import annotations


class ConfigurationError(ValueError):
    """A configuration or override is invalid."""

    exit_code: int = 2


class DataError(ValueError):
    """The data or model folder does not fit the experiment, for example because a column is
    missing.
    """

    exit_code: int = 1
