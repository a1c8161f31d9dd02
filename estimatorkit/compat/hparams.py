"""`contrib.training.HParams`: a set of named numbers, strings and lists."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class HParams:
    """Values by name, read as attributes; each keeps the type that it began with."""

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **values: Any) -> None:
        self._values: dict[str, Any] = {}
        for name, value in values.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a value.

        Raises:
            ValueError: the name is taken.
        """
        if name in self._values or hasattr(type(self), name):
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        self._values[name] = value

    def set_hparam(self, name: str, value: Any) -> None:
        """Changes a value; it is converted to the type it had.

        Raises:
            KeyError: there is no such name.
            ValueError: the value cannot be converted.
        """
        if name not in self._values:
            raise KeyError(f"Unknown hyperparameter {name}; there are {sorted(self._values)}")
        self._values[name] = _as_before(name, self._values[name], value)

    def del_hparam(self, name: str) -> None:
        """Takes a value out."""
        self._values.pop(name, None)

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Changes several values."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def parse(self, values: str) -> HParams:
        """Changes the values in a string like 'learning_rate=0.1,layers=[3,4]'.

        Raises:
            ValueError: the string cannot be read.
        """
        for part in _split(values):
            name, sign, text = part.partition("=")
            if not sign:
                raise ValueError(f"Could not parse hparam: {part!r}, expected name=value")
            name = name.strip()
            if name not in self._values:
                raise ValueError(f"Unknown hyperparameter type for {name}")
            old = self._values[name]
            given: Any = text.strip()
            if given.startswith("["):
                given = [each.strip() for each in given.strip("[]").split(",") if each.strip()]
                sample = old[0] if isinstance(old, (list, tuple)) and old else ""
                given = [_as_before(name, sample, each) for each in given]
            self.set_hparam(name, given)
        return self

    def parse_json(self, values_json: str) -> HParams:
        """Changes the values in a JSON object."""
        return self.override_from_dict(json.loads(values_json))

    def to_json(self, indent: Any = None, sort_keys: bool = False, **_: Any) -> str:
        """The values as a JSON object."""
        return json.dumps(self._values, indent=indent, sort_keys=sort_keys)

    def values(self) -> dict[str, Any]:
        """The values by name."""
        return dict(self._values)

    def get(self, key: str, default: Any = None) -> Any:
        """The value called `key`, or the default."""
        return self._values.get(key, default)

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"'HParams' object has no attribute {name!r}")
        return self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            super().__setattr__(name, value)
        elif name in self._values:
            self.set_hparam(name, value)
        else:
            raise AttributeError(f"there is no hyperparameter {name!r}; add it with add_hparam")

    def __repr__(self) -> str:
        return f"HParams({', '.join(f'{k}={v!r}' for k, v in sorted(self._values.items()))})"


def _split(values: str) -> list[str]:
    """The parts between commas that are not within brackets."""
    parts, depth = [""], 0
    for letter in values:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in parts if part.strip()]


def _as_before(name: str, old: Any, new: Any) -> Any:
    if old is None or new is None or (isinstance(new, type(old)) and not isinstance(new, bool)):
        return new
    if isinstance(old, bool):
        known = {"true": True, "1": True, "false": False, "0": False}
        if str(new).lower() in known:
            return known[str(new).lower()]
    elif isinstance(old, (int, float, str)) and not isinstance(new, (list, tuple, dict)):
        converted = type(old)(new)
        if converted == new or isinstance(new, str):
            return converted
    elif isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)):
        return type(old)(new)
    raise ValueError(
        f"Could not cast hparam {name!r} of type {type(old).__name__} from value {new!r}"
    )
