"""`tf.flags`: `absl.flags` with TensorFlow's additions.

Reading a flag parses the command line once if the program has not (because it does not call
`tf.app.run`); defining functions also accept `flag_name`, `default_value` and `docstring`.
`compat.tables` provides the rest of `absl.flags`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from absl import flags as absl_flags

_RENAMED = {"flag_name": "name", "default_value": "default", "docstring": "help"}


class FlagValues:
    """The values of a program's flags; the first read of a flag parses the command line.

    Args:
        values: the flags of absl.
    """

    def __init__(self, values: absl_flags.FlagValues) -> None:
        self.__dict__["_values"] = values

    def __getattr__(self, name: str) -> Any:
        """The value of a flag, or an attribute of absl's `FlagValues`."""
        values = self.__dict__["_values"]
        no_flag = name.startswith("_") or hasattr(type(values), name)  # requested by tools
        if not (values.is_parsed() or no_flag):
            values(sys.argv, known_only=True)
        return getattr(values, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets a flag."""
        setattr(self.__dict__["_values"], name, value)

    def __delattr__(self, name: str) -> None:
        """Removes a flag."""
        delattr(self.__dict__["_values"], name)

    def __getitem__(self, name: str) -> Any:
        """The flag object with a name."""
        return self.__dict__["_values"][name]

    def __setitem__(self, name: str, flag: Any) -> None:
        """Adds a flag."""
        self.__dict__["_values"][name] = flag

    def __contains__(self, name: str) -> bool:
        """Whether there is a flag of this name."""
        return name in self.__dict__["_values"]

    def __iter__(self) -> Iterator[str]:
        """The flags' names."""
        return iter(self.__dict__["_values"])

    def __len__(self) -> int:
        """The number of flags."""
        return len(self.__dict__["_values"])

    def __dir__(self) -> list[str]:
        """The flags' names, and the attributes of absl's values."""
        return dir(self.__dict__["_values"])

    def __str__(self) -> str:
        """The text of `--help`."""
        return str(self.__dict__["_values"])

    def __call__(self, argv: list[str], known_only: bool = False) -> list[str]:
        """Parses a command line; returns the arguments that are not flags."""
        rest: list[str] = self.__dict__["_values"](argv, known_only)
        return rest


FLAGS = FlagValues(absl_flags.FLAGS)


def _define(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function that defines a flag to also accept TensorFlow's keywords."""

    @functools.wraps(function)
    def define(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **{_RENAMED.get(name, name): kwargs[name] for name in kwargs})

    return define


DEFINE_string = _define(absl_flags.DEFINE_string)
DEFINE_boolean = _define(absl_flags.DEFINE_boolean)
DEFINE_bool = _define(absl_flags.DEFINE_bool)
DEFINE_float = _define(absl_flags.DEFINE_float)
DEFINE_integer = _define(absl_flags.DEFINE_integer)
