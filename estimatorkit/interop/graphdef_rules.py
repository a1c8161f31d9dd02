"""`Rule`: imports a node type of TensorFlow; `Node`: the argument of rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import value_error
from estimatorkit.core.registry import fixed_value
from estimatorkit.core.tensor import Tensor
from estimatorkit.interop import attr_values


@dataclass(frozen=True)
class Node:
    """A node of TensorFlow's graph during import.

    Attributes:
        proto: its `NodeDef`.
        inputs: tensors of this graph.
        name: the name of its operation, with a trailing '/' (used verbatim).
    """

    proto: Any
    inputs: list[Tensor]
    name: str

    def __getitem__(self, key: Any) -> Any:
        """Returns an attribute by name, or an input by position."""
        if isinstance(key, str):
            return attr_values.decode(self.proto.attr[key])
        return self.inputs[key]

    def get(self, key: str, default: Any) -> Any:
        """Returns an attribute, or `default` (files may omit default values)."""
        return self[key] if key in self.proto.attr else default

    def known(self, position: int) -> NDArray[Any]:
        """Returns the value of an input that must be a constant."""
        value = fixed_value(self.inputs[position])
        if value is None:
            raise value_error(
                f"node {self.proto.name!r} ({self.proto.op}): input {position} must be a constant",
                expected="a constant",
                received=self.inputs[position],
            )
        return np.asarray(value)

    def number(self, position: int) -> Any:
        """Returns the value of an input, an int or a list of ints; the tensor if it is unknown."""
        value = fixed_value(self.inputs[position])
        return self.inputs[position] if value is None else np.asarray(value).tolist()


Call: TypeAlias = Callable[[Any, Node], Any]


class Rule(NamedTuple):
    """The import of a node type.

    Attributes:
        function: a public name of the package, or '' if `call` creates an operation directly.
        call: creates the node's result, given the function and the node.
        takes_handles: whether variable handles are passed unread.
    """

    function: str
    call: Call
    takes_handles: bool = False
