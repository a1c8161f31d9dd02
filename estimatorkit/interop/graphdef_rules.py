"""What rules for TensorFlow's node types are made of: `Node`, what they get, and `Rule`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import value_error
from estimatorkit.core.registry import constant_value
from estimatorkit.core.tensor import Tensor
from estimatorkit.interop import attr_values


@dataclass(frozen=True)
class Node:
    """A node of TensorFlow's graph while it is made here.

    Attributes:
        proto: its `NodeDef`.
        inputs: tensors of this graph.
        name: the name that its operation gets, with a '/' at its end (taken as it is).
    """

    proto: Any
    inputs: list[Tensor]
    name: str

    def __getitem__(self, key: Any) -> Any:
        """An attribute by name, or an input by position."""
        if isinstance(key, str):
            return attr_values.decode(self.proto.attr[key])
        return self.inputs[key]

    def get(self, key: str, default: Any) -> Any:
        """An attribute, or `default` (files may leave out attributes that have their default)."""
        return self[key] if key in self.proto.attr else default

    def known(self, position: int) -> NDArray[Any]:
        """The value of an input that must be a constant."""
        value = constant_value(self.inputs[position])
        if value is None:
            raise value_error(
                f"node {self.proto.name!r} ({self.proto.op}): input {position} must be known "
                "when the graph is built",
                expected="a constant",
                received=self.inputs[position],
            )
        return np.asarray(value)

    def ints(self, position: int) -> list[int]:
        """`known` as a list of ints."""
        return [int(each) for each in np.atleast_1d(self.known(position))]


Call: TypeAlias = Callable[[Any, Node], Any]


class Rule(NamedTuple):
    """What a node type is here.

    Attributes:
        function: a public name of the package, or '' where an operation is made directly.
        call: makes what stands for the node, given the function and the node.
        takes_handles: whether handles of variables are passed on as they are.
    """

    function: str
    call: Call
    takes_handles: bool = False
