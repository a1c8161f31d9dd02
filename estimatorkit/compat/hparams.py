"""`contrib.training.HParams`: hyperparameters, named numbers, strings and lists."""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

# A name, an optional index, and a value or a bracketed list.
_ASSIGNMENT = re.compile(
    r"(?P<name>[a-zA-Z][\w.]*)(?:\[\s*(?P<index>\d+)\s*\])?\s*=\s*"
    r"(?:(?P<value>[^,\[]*)|\[(?P<list>[^\]]*)\])(?:$|,\s*)"
)


@dataclass
class HParamDef:
    """The values of an `HParams`, as returned by `HParams.to_proto`.

    Attributes:
        hparam: the values by name.
    """

    hparam: dict[str, Any] = field(default_factory=dict)


class HParams:
    """Hyperparameters as attributes; each keeps its initial type.

    Args:
        hparam_def: the result of `to_proto`, instead of values.
        model_structure: the result of `get_model_structure`.
        **kwargs: the values: numbers, strings, bools, or lists of one of these.

    Raises:
        ValueError: both `hparam_def` and values are given, or `add_hparam` rejects one.
    """

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        self._hparam_types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        if hparam_def:
            if not isinstance(hparam_def, HParamDef):
                raise AssertionError(f"hparam_def must be an HParamDef. Received: {hparam_def!r}")
            if kwargs:
                raise ValueError("hparam_def and initialization values are mutually exclusive")
            kwargs = hparam_def.hparam
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a value.

        Raises:
            ValueError: the name is taken, or the value is an empty list.
        """
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        is_list = isinstance(value, (list, tuple))
        if is_list and not value:
            raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
        self._hparam_types[name] = (type(value[0] if is_list else value), is_list)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Changes a value; ints are converted to float if the value was a float.

        Raises:
            KeyError: there is no such name.
            ValueError: the value has another type, or exactly one of old and new value is a list.
        """
        if name not in self._hparam_types:
            raise KeyError(f"Unknown hyperparameter {name}; there are {sorted(self._hparam_types)}")
        kind, is_list = self._hparam_types[name]
        if isinstance(value, list) and not is_list:
            raise ValueError(f"Must not pass a list for single-valued parameter: {name}")
        if is_list and not isinstance(value, list):
            raise ValueError(f"Must pass a list for multi-valued parameter: {name}.")
        setattr(self, name, _like(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Removes a value."""
        if self._hparam_types.pop(name, None) is not None:
            delattr(self, name)

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Changes several values; see `set_hparam`."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    set_from_map = override_from_dict

    def parse(self, values: str) -> HParams:
        """Changes values by a string like 'learning_rate=0.1,layers=[3,4]'.

        Raises:
            ValueError: the string is malformed; see `parse_values`.
        """
        kinds = {name: kind for name, (kind, _) in self._hparam_types.items()}
        return self.override_from_dict(parse_values(values, kinds))

    def parse_json(self, values_json: str) -> HParams:
        """Changes values by a JSON object."""
        return self.override_from_dict(json.loads(values_json))

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """The values as a JSON object; the arguments are those of `json.dumps`."""
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def to_proto(self, export_scope: str | None = None) -> HParamDef:
        """The values as an `HParamDef`, for `HParams(hparam_def=...)`."""
        return HParamDef(self.values())

    @staticmethod
    def from_proto(hparam_def: HParamDef, import_scope: str | None = None) -> HParams:
        """`HParams(hparam_def=hparam_def)`."""
        return HParams(hparam_def=hparam_def)

    def set_model_structure(self, model_structure: Any) -> None:
        """Sets the result of `get_model_structure`."""
        self._model_structure = model_structure

    def get_model_structure(self) -> Any:
        """The value passed to the constructor or `set_model_structure`."""
        return self._model_structure

    def values(self) -> dict[str, Any]:
        """The values by name."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key: str, default: Any = None) -> Any:
        """The value named `key`, or the default.

        Raises:
            ValueError: the default has another type than the value.
        """
        if key not in self._hparam_types:
            return default
        kind, is_list = self._hparam_types[key]
        if default is not None:
            if is_list != isinstance(default, list):
                raise ValueError(
                    f"Hparam '{key}' of type '{f'list<{kind}>' if is_list else kind}' is "
                    f"incompatible with default={default}"
                )
            _like(key, kind, default)
        return getattr(self, key)

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def __getattr__(self, name: str) -> Any:
        # Called for unknown attributes only; declared so that typed programs can read values.
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.values().items())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({sorted(self.values().items())})"


def parse_values(
    values: str, type_map: Mapping[str, type], ignore_unknown: bool = False
) -> dict[str, Any]:
    """Parses assignments such as 'rate=0.1,layers=[3,4],weights[2]=5'.

    Args:
        values: the assignments, separated by commas.
        type_map: the type of each value, or of the elements of a list, by name.
        ignore_unknown: whether to ignore names that are not in `type_map`.

    Returns:
        By name a value, a list, or for assignments to elements a dict from index to value.

    Raises:
        ValueError: the string is malformed, or a name is not in `type_map` or assigned twice.
    """
    found: dict[str, Any] = {}
    position = 0
    while position < len(values):
        match = _ASSIGNMENT.match(values, position)
        if match is None:
            raise ValueError(f"Malformed hyperparameter value: {values[position:]}")
        position = match.end()
        name, index = match["name"], match["index"]
        if match["list"] is not None and index is not None:
            raise ValueError("Assignment of a list to a list index.")
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(f"Unknown hyperparameter type for {name}")
        value = _parsed(match, type_map[name], values)
        target: Any = found if index is None else found.setdefault(name, {})
        key: Any = name if index is None else int(index)
        if not isinstance(target, dict) or key in target:
            what = name if not isinstance(target, dict) or index is None else f"{name}[{index}]"
            raise ValueError(f"Multiple assignments to variable '{what}' in {values}")
        target[key] = value
    return found


def _parsed(match: re.Match[str], kind: type, values: str) -> Any:
    """The value of an assignment."""
    parse: Callable[[str], Any] = _bool if kind is bool else kind
    try:
        if match["list"] is not None:
            return [parse(each) for each in re.split("[ ,]", match["list"]) if each]
        return parse(match["value"])
    except ValueError:
        text = match["value"] if match["list"] is None else match["list"]
        raise ValueError(
            f"Could not parse hparam '{match['name']}' of type '{kind.__name__}' with value "
            f"'{text}' in {values}"
        ) from None


def _bool(text: str) -> bool:
    known = {"true": True, "True": True, "false": False, "False": False}
    return known[text] if text in known else bool(int(text))


def _like(name: str, kind: type, value: Any) -> Any:
    """Casts a value, or each element of a list, to the type of a hyperparameter."""
    if isinstance(value, list):
        return [_like(name, kind, each) for each in value]
    if type(value) is kind or kind is type(None):
        return value
    text = (str, bytes)
    if (
        (issubclass(kind, text) and not isinstance(value, text))
        or issubclass(kind, bool) != isinstance(value, bool)
        or (issubclass(kind, numbers.Integral) and not isinstance(value, numbers.Integral))
        or (issubclass(kind, numbers.Number) and not isinstance(value, numbers.Number))
    ):
        raise ValueError(f"Could not cast hparam '{name}' of type '{kind}' from value {value!r}")
    return kind(value)
