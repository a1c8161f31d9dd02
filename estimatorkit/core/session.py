"""`Session`: runs parts of a graph and holds the values of its variables.

A run looks up its plan by (fetches, feeds); the first run of such a pair makes it, later ones only
convert the feeds, call the segments and convert the results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import jax
import numpy as np

from estimatorkit.core import nest
from estimatorkit.core.conversion import as_array
from estimatorkit.core.default_session import default_session, get_default_session
from estimatorkit.core.dtypes import resource, string
from estimatorkit.core.errors import explain
from estimatorkit.core.executor import PlanRunner, State
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.plan import Plan, make_plan
from estimatorkit.core.tensor import Operation, Tensor


class Session:
    """Runs operations of a graph and holds the values of its variables.

    Args:
        target: '' for this process (others come with clusters).
        graph: the graph; the default graph by default.
        config: accepted for TensorFlow's signature.

    As a context manager it is the default session (and its graph the default graph) inside the
    block, and is closed at its end.
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        if target:
            raise ValueError(
                explain(
                    "Session: this target cannot be reached",
                    expected="'' (this process)",
                    received=repr(target),
                )
            )
        self.graph = get_default_graph() if graph is None else graph
        self.config = config
        self.state = State(self.graph)
        self._runs: dict[Any, _Run] = {}
        self._closed = False
        self._entered: list[Any] = []

    @property
    def sess_str(self) -> str:
        """The target."""
        return ""

    # -- running

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """Runs what `fetches` needs, and nothing else.

        Args:
            fetches: a tensor, an operation, a variable, a name of one, or lists, tuples and dicts
                of these, nested as wished.
            feed_dict: values that stand in for tensors, by tensor or name.
            options, run_metadata: accepted for TensorFlow's signature.

        Returns:
            Values in the structure of `fetches`: arrays, scalars for 0-d tensors, None for
            operations.

        Raises:
            InvalidArgumentError: a placeholder is not fed, or an operation refuses its inputs.
            FailedPreconditionError: a variable has no value yet.
            RuntimeError: the session is closed.
            TypeError, ValueError, KeyError: a fetch or a feed is none, or is not in the graph.
        """
        kind = type(fetches)
        key: Any
        if kind is list or kind is tuple:
            key = (kind, *fetches, *(feed_dict or ()), len(fetches))
        else:
            key = (kind, fetches, *(feed_dict or ()))
        try:
            run = self._runs.get(key)
        except TypeError:  # a nested structure cannot be a key as it is
            run = None
            key = (_structure_key(fetches), *(feed_dict or ()))
            run = self._runs.get(key)
        if run is None:
            run = self._runs[key] = self._prepare(fetches, tuple(feed_dict or ()))
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        return run(feed_dict)

    def _prepare(self, fetches: Any, feed_keys: tuple[Any, ...]) -> _Run:
        if not self.graph.get_operations():
            raise RuntimeError(
                "The Session graph is empty. Add operations to the graph before calling run()."
            )
        leaves = [self._fetch(leaf) for leaf in nest.flatten(fetches)]
        feeds = [self._feed(key) for key in feed_keys]
        tensors = list(dict.fromkeys(leaf for leaf in leaves if isinstance(leaf, Tensor)))
        targets = [leaf for leaf in leaves if isinstance(leaf, Operation)]
        plan = make_plan(self.graph, tensors, targets, feeds)
        positions = [tensors.index(leaf) if isinstance(leaf, Tensor) else None for leaf in leaves]
        return _Run(PlanRunner(plan, self.state), feed_keys, feeds, fetches, positions)

    def _fetch(self, leaf: Any) -> Tensor | Operation:
        try:
            return _value_of(self.graph.as_graph_element(leaf))
        except TypeError as error:
            raise TypeError(
                f"Fetch argument {leaf!r} has invalid type {type(leaf).__name__}, must be a string "
                f"or Tensor. ({error})"
            ) from error
        except (KeyError, ValueError) as error:
            raise ValueError(
                f"Fetch argument {leaf!r} cannot be interpreted as a Tensor. ({error})"
            ) from error

    def _feed(self, key: Any) -> Tensor:
        try:
            found = self.graph.as_graph_element(key, allow_operation=False)
        except (TypeError, ValueError, KeyError) as error:
            raise type(error)(f"Cannot interpret feed_dict key as Tensor: {error}") from error
        return cast(Tensor, _value_of(found))

    def plan(self, fetches: Any, feeds: Sequence[Any] = ()) -> Plan:
        """What a run of `fetches` with these feeds would do; print its `describe()`."""
        return self._prepare(fetches, tuple(feeds)).runner.plan

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """A function of the values of `feed_list` that runs `fetches` without `run`'s look-up."""
        keys = tuple(feed_list or ())
        run = self._prepare(fetches, keys)

        def call(*values: Any) -> Any:
            if self._closed:
                raise RuntimeError("Attempted to use a closed Session.")
            return run(dict(zip(keys, values, strict=True)))

        return call

    def load_variable(self, variable: Any, value: Any) -> None:
        """Puts a value into a variable.

        Args:
            variable: a `Variable` of the graph.
            value: an array of its dtype and shape.

        Raises:
            ValueError: the shape differs.
        """
        array = as_array(value, variable.dtype)
        if not variable.shape.is_compatible_with(array.shape):
            raise ValueError(
                explain(
                    f"the value does not fit variable {variable.op.name}",
                    expected=f"shape {variable.shape}",
                    received=f"shape {array.shape}",
                    made_at=variable.op.source,
                )
            )
        # A copy of its own: donation must not reach into the caller's array.
        self.state.values[variable.op.name] = np.array(array)

    # -- life

    def close(self) -> None:
        """Ends the session and gives its memory back. Closing twice is no error."""
        if not self._closed:
            self._closed = True
            self._runs.clear()
            self.state.values.clear()
            for held in self.state.resources.values():
                close = getattr(held, "close", None)
                if close is not None:
                    close()
            self.state.resources.clear()

    def as_default(self) -> Any:
        """A context manager that makes this the default session, without closing it at the end."""
        return default_session(self)

    def __enter__(self) -> Session:
        graph = self.graph.as_default()
        session = default_session(self)
        graph.__enter__()
        session.__enter__()
        self._entered.append((graph, session))
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        graph, session = self._entered.pop()
        session.__exit__(kind, error, traceback)
        graph.__exit__(kind, error, traceback)
        self.close()

    def __repr__(self) -> str:
        return f"<Session of {self.graph!r}>"


class InteractiveSession(Session):
    """The default session from its making to its closing, for shells and notebooks."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._default = default_session(self)
        self._default.__enter__()
        self._graph_context = None if graph is None else graph.as_default()
        if self._graph_context is not None:
            self._graph_context.__enter__()

    def close(self) -> None:
        """Ends the session; it is no longer the default."""
        if not self._closed:
            if self._graph_context is not None:
                self._graph_context.__exit__(None, None, None)
            self._default.__exit__(None, None, None)
        super().close()


class _Run:
    """A prepared run: converts feeds, runs the plan, packs the results."""

    def __init__(
        self,
        runner: PlanRunner,
        feed_keys: tuple[Any, ...],
        feeds: Sequence[Tensor],
        fetches: Any,
        positions: Sequence[int | None],
    ) -> None:
        self.runner = runner
        self._feeds = list(zip(feed_keys, feeds, strict=True))
        self._converters = [_FeedConverter(tensor) for tensor in feeds]
        self._fetches = fetches
        self._positions = positions
        # The two usual forms, a single fetch and a flat list, are packed without walking the
        # structure.
        self._single = not nest.is_nested(fetches) and positions[0] is not None
        self._flat_list = (
            type(fetches) is list
            and len(nest.flatten(fetches)) == len(fetches)
            and not any(nest.is_nested(each) for each in fetches)
        )

    def __call__(self, feed_dict: Mapping[Any, Any] | None) -> Any:
        values: list[Any] = []
        if feed_dict:
            values = [
                convert(value)
                for convert, value in zip(self._converters, feed_dict.values(), strict=True)
            ]
        results = self.runner.run(values)
        if self._single:
            return results[0]
        leaves = [None if position is None else results[position] for position in self._positions]
        if self._flat_list:
            return leaves
        return nest.pack_sequence_as(self._fetches, leaves)


class _FeedConverter:
    """Makes an array of a fed value and checks its shape, unless it is that of the value before."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self._dtype = tensor.dtype.numpy_dtype
        self._is_string = tensor.dtype is string
        self._seen: tuple[int, ...] | None = None

    def __call__(self, value: Any) -> Any:
        array = (
            value
            if isinstance(value, jax.Array) and value.dtype == self._dtype
            else self._array(value)
        )
        if array.shape != self._seen:
            if not self._tensor.shape.is_compatible_with(array.shape):
                raise ValueError(
                    explain(
                        f"Cannot feed value of shape {array.shape} for Tensor "
                        f"{self._tensor.name!r}, which has shape {str(self._tensor.shape)!r}",
                        made_at=self._tensor.op.source,
                    )
                )
            self._seen = array.shape
        return array

    def _array(self, value: Any) -> Any:
        if self._is_string:
            return as_array(value, string)
        if isinstance(value, (Tensor, Operation)):
            raise TypeError(
                "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include "
                f"Python scalars, strings, lists and numpy arrays. Got {value}."
            )
        try:
            return np.asarray(value, self._dtype)
        except (TypeError, ValueError) as error:
            raise type(error)(
                explain(
                    f"Cannot feed this value for Tensor {self._tensor.name!r}: {error}",
                    expected=f"{self._tensor.dtype.name} of shape {self._tensor.shape}",
                    received=repr(value)[:200],
                    made_at=self._tensor.op.source,
                )
            ) from error


def _value_of(element: Tensor | Operation) -> Tensor | Operation:
    """The element, or, for a variable's handle ('w:0'), the variable's value ('w/read:0')."""
    if isinstance(element, Tensor) and element.dtype is resource:
        return element.graph.get_tensor_by_name(f"{element.op.name}/read:0")
    return element


def _structure_key(fetches: Any) -> Any:
    """A hashable stand-in for a nested structure of fetches."""
    if isinstance(fetches, Mapping):
        return (type(fetches), *((key, _structure_key(value)) for key, value in fetches.items()))
    if isinstance(fetches, (list, tuple)):
        return (type(fetches), *map(_structure_key, fetches))
    return fetches


__all__ = ["InteractiveSession", "Session", "get_default_session"]
