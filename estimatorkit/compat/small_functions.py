"""Small functions of TensorFlow 1's top level that are used by old programs only."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from estimatorkit.core.builtin_ops import identity
from estimatorkit.core.dtypes import complex64, complex128, float64
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.math import random
from estimatorkit.ops.math.elementwise import cast
from estimatorkit.ops.variables.variable_scope import variable_scope


class AggregationMethod:
    """Ways to add gradients, accepted by `gradients` without effect: XLA chooses."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


def add_to_collections(names: Iterable[str] | str, value: Any) -> None:
    """`Graph.add_to_collections` of the default graph."""
    get_default_graph().add_to_collections(names, value)


def to_double(x: Any, name: str = "ToDouble") -> Tensor:
    """`cast` to float64."""
    return cast(x, float64, name)


def to_complex64(x: Any, name: str = "ToComplex64") -> Tensor:
    """`cast` to complex64."""
    return cast(x, complex64, name)


def to_complex128(x: Any, name: str = "ToComplex128") -> Tensor:
    """`cast` to complex128."""
    return cast(x, complex128, name)


def identity_n(input: Sequence[Any], name: str | None = None) -> list[Tensor]:
    """`identity` of each tensor of a list."""
    if not input:
        raise ValueError("identity_n: the list of tensors must not be empty.")
    with get_default_graph().name_scope(name or "IdentityN"):
        return [identity(each) for each in input]


class Template:
    """See `make_template`.

    Attributes:
        name: the name given.
        func: the function.
        variable_scope: the scope of its variables; None before it is created.
    """

    def __init__(
        self, name: str, func: Callable[..., Any], unique_name: str | None, getter: Any
    ) -> None:
        if name is None:
            raise ValueError("name cannot be None.")
        self.name = name
        self.func = func
        self.variable_scope: Any = None
        self._called = False
        self._where = (unique_name, name), {"custom_getter": getter}

    def take_scope(self) -> None:
        """Creates the variable scope now, but the name scope at the first call."""
        names, options = self._where
        with variable_scope(*names, **options, auxiliary_name_scope=False) as scope:
            self.variable_scope = scope

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function with the template's variables.

        Raises:
            ValueError: a later call creates a variable that the first one did not.
        """
        names, options = self._where
        if self.variable_scope is None:
            inside = variable_scope(*names, **options)
        else:
            inside = variable_scope(self.variable_scope, reuse=True if self._called else None)
        with inside as scope:
            before = len(get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES))
            result = self.func(*args, **kwargs)
            made = get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES)[before:]
        if self._called and made:
            raise value_error(
                "Trainable variable created when calling a template after the first time, "
                "perhaps you used tf.Variable when you meant tf.get_variable",
                received=made,
            )
        if self.variable_scope is None:
            self.variable_scope = scope
        self._called = True
        return result

    @property
    def var_scope(self) -> Any:
        """The older name of `variable_scope`."""
        return self.variable_scope

    @property
    def variable_scope_name(self) -> str | None:
        """The scope's name with a trailing '/'; None before it is created."""
        return None if self.variable_scope is None else f"{self.variable_scope.name}/"

    @property
    def variables(self) -> list[Any]:
        """The global and local variables in its scope; empty before the first call."""
        return self.global_variables + self.local_variables

    @property
    def global_variables(self) -> list[Any]:
        """The global variables in its scope."""
        return self._collected(GraphKeys.GLOBAL_VARIABLES)

    @property
    def local_variables(self) -> list[Any]:
        """The local variables in its scope."""
        return self._collected(GraphKeys.LOCAL_VARIABLES)

    @property
    def trainable_variables(self) -> list[Any]:
        """The trainable variables in its scope."""
        return self._collected(GraphKeys.TRAINABLE_VARIABLES)

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The global variables in its scope that are not trainable."""
        trainable = set(self.trainable_variables)
        return [variable for variable in self.global_variables if variable not in trainable]

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables

    def _collected(self, key: str) -> list[Any]:
        if not self._called:
            return []
        return list(get_default_graph().get_collection(key, self.variable_scope_name))


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Any = None,
    **kwargs: Any,
) -> Template:
    """A function whose first call creates its variables, which all later calls reuse.

    Args:
        name_: the variable scope's name, made unique.
        func_: the function; it creates variables by `get_variable`.
        create_scope_now_: create the scope now instead of at the first call.
        unique_name_: a name that is not made unique.
        custom_getter_: as in `variable_scope`.
        kwargs: arguments of `func_` in addition to those of each call.
    """
    given = functools.partial(func_, **kwargs) if kwargs else func_
    template = Template(name_, given, unique_name_, custom_getter_)
    if create_scope_now_:
        template.take_scope()
    return template


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The seeds of the graph and of a random operation created now.

    Args:
        op_seed: the operation's own.

    Returns:
        Both None if neither the graph nor the operation has a seed.
    """
    seeds = random.get_seed(op_seed)
    return (0, 2**31 - 1) if seeds == (0, 0) else seeds or (None, None)
