"""The two errors that are the user's to mend, each with the exit code of the command."""

from __future__ import annotations


class ConfigurationError(ValueError):
    """A configuration or an override cannot be used as it is written."""

    exit_code: int = 2


class DataError(ValueError):
    """The data or the model folder do not fit the experiment: a column is missing, say."""

    exit_code: int = 1
