"""`Session`: runs parts of a graph and holds the values of its variables.

Plans are cached by (fetches, feeds): the first run of a pair makes the plan, later ones only
convert the feeds, call the segments and convert the results.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from estimatorkit.core import ports
from estimatorkit.core.conversion import as_array
from estimatorkit.core.default_session import default_session, get_default_session
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.x64 import x64
from estimatorkit.lazy import Port
from estimatorkit.runtime.lower import trace_segment
from estimatorkit.runtime.prepared_run import (
    PreparedRun,
    converted_feeds,
    structure_key,
)
from estimatorkit.runtime.session_config import read_config
from estimatorkit.runtime.state import RunPlan, State
from estimatorkit.runtime.targets import Target, target_of
from estimatorkit.runtime.xla.at_exit import native_call, watch
from estimatorkit.runtime.xla.placement import Placer, SessionDevice, session_devices
from estimatorkit.runtime.xla.timeline import Trace

if TYPE_CHECKING:
    from estimatorkit.runtime.steps.partial_run import PartialRun

_partial_run = Port("partial_run")

_LARGE = 1 << 20
"""The size in bytes from which a restored variable is transferred to its device immediately."""


class Session:
    """Runs operations of a graph and holds the values of its variables.

    Args:
        target: '' for a local session, or the target of a `train.Server`, whose sessions share
            variables, tables and queues.
        graph: the graph; the default graph by default.
        config: a `ConfigProto`; `session_config` lists the fields that have an effect.

    Used as a context manager, it is the default session, and its graph the default graph, inside
    the block; it is closed on exit.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: `config` or the environment names an unknown executor.
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        for name, value, kind, wanted in (
            ("graph", graph, (Graph, type(None)), "tf.Graph"),
            ("target", target, str, "string"),
        ):
            if not isinstance(value, kind):
                raise TypeError(
                    f"Argument `{name}` must be a {wanted}, but got "
                    f'"{type(value).__name__}": {value!r}'
                )
        self.graph = get_default_graph() if graph is None else graph
        self.config = config
        self._options = read_config(config)
        self._target = target
        self._opened = target_of(target, self._options.timeout)
        self.state = self._open_state(self._opened, self._options.placer)
        if self._options.executor is not None:
            self.state.executor = self._options.executor
        self._runs: dict[Any, PreparedRun] = {}
        self._preparing = threading.Lock()
        self._closed = False
        self._entered: list[Any] = []
        watch(self)

    def _open_state(self, target: Target, placer: Placer) -> State:
        return target.open_state(self.graph, placer)

    @property
    def sess_str(self) -> str:
        """The target."""
        return self._target

    @property
    def graph_def(self) -> Any:
        """The current graph as a `GraphDef`, with shapes if the configuration sets
        `graph_options.infer_shapes`.
        """
        return self.graph.as_graph_def(add_shapes=self._options.infer_shapes)

    @staticmethod
    def reset(target: str, containers: Sequence[str] | None = None, config: Any = None) -> None:
        """Clears the resources that the sessions of a target share.

        Args:
            target: the target of a `train.Server`.
            containers: without effect, as a target has a single container.
            config: without effect.

        Raises:
            NotFoundError: there is no such target.
        """
        opened = target_of(target)
        opened.clear()
        opened.leave()

    # -- running

    @native_call
    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """Runs the operations that `fetches` depends on and returns their values.

        Args:
            fetches: a tensor, operation, variable or the name of one, or an arbitrarily nested
                structure of lists, tuples and dicts of these.
            feed_dict: values to substitute for tensors, by tensor or name.
            options: `RunOptions`: `timeout_in_ms`, `trace_level` to measure the segments, and
                `output_partition_graphs` for the part of the graph that the fetches need.
            run_metadata: a `RunMetadata` that receives the timings of a traced run (`Timeline`)
                and that graph.

        Returns:
            Values in the structure of `fetches`: arrays, scalars for 0-d tensors, None for
            operations.

        Raises:
            InvalidArgumentError: a placeholder is not fed, or an operation rejects its inputs.
            FailedPreconditionError: a variable has no value yet.
            RuntimeError: the session is closed.
            TypeError, ValueError, KeyError: a fetch or feed is invalid or not in the graph, or
                `feed_dict` is not a mapping.
        """
        is_mapping = type(feed_dict) is dict or isinstance(feed_dict, Mapping)  # fastest first
        if feed_dict is not None and not is_mapping:
            raise TypeError(
                "feed_dict must be a dictionary or collections.abc.Mapping type object, instead of "
                f"{type(feed_dict).__name__!r}."
            )
        feed_dict = converted_feeds(feed_dict)
        kind = type(fetches)
        key: Any
        if kind is list or kind is tuple:
            key = (kind, *fetches, *(feed_dict or ()), len(fetches))
        else:
            key = (kind, fetches, *(feed_dict or ()))
        try:
            run = self._runs.get(key)
        except TypeError:  # a nested structure cannot be a dict key as it is
            run = None
            key = (structure_key(fetches), *(feed_dict or ()))
            run = self._runs.get(key)
        if self._closed:
            self._check_open()
        if run is None:
            with self._preparing:  # threads that start together compile once
                run = self._runs.get(key)
                if run is None:
                    run = self._runs[key] = self._prepare(fetches, tuple(feed_dict or ()))
        return self._run_prepared(run, feed_dict, options, run_metadata)

    def _run_prepared(
        self, run: PreparedRun, feed_dict: Mapping[Any, Any] | None, options: Any, metadata: Any
    ) -> Any:
        if options is None and metadata is None and not self._options.timeout:
            return run(feed_dict)
        return self._traced(run, feed_dict, options, metadata)

    def _traced(
        self, run: PreparedRun, feed_dict: Mapping[Any, Any] | None, options: Any, metadata: Any
    ) -> Any:
        """A run with a deadline, a trace, or its partition graph."""
        timeout = getattr(options, "timeout_in_ms", 0) / 1000
        trace = Trace() if getattr(options, "trace_level", 0) and metadata is not None else None
        with self.state.cancellation.deadline(timeout or self._options.timeout):
            results = run(feed_dict, trace)
        if metadata is not None:
            metadata.Clear()
        if trace is not None:
            trace.fill(metadata)
        if metadata is not None and getattr(options, "output_partition_graphs", False):
            names = [op.name for op in run.fetches.operations]
            part = ports.graph_util.extract_sub_graph(self.graph_def, names)
            metadata.partition_graphs.append(part)
        return results

    def _prepare(self, fetches: Any, feed_keys: tuple[Any, ...]) -> PreparedRun:
        if not self.graph.get_operations():
            raise RuntimeError(
                "The Session graph is empty. Add operations to the graph before calling run()."
            )
        return PreparedRun(self.graph, self.state, fetches, feed_keys, self._options.optimize)

    def plan(self, fetches: Any, feeds: Sequence[Any] = ()) -> RunPlan:
        """The plan of a run; print its `describe()`."""
        return self._prepare(fetches, tuple(feeds)).runner.plan

    def traced(
        self, fetches: Any, feeds: Sequence[Any] = (), unknown: int = 1
    ) -> list[jax.stages.Traced]:
        """Traces the XLA calls of a run without executing them.

        Args:
            fetches, feeds: as for `plan`.
            unknown: the size to assume for dimensions that are unknown before a run.

        Returns:
            One `Traced` for each device segment of the plan: print its `.jaxpr`,
            `.lower().as_text()` (StableHLO), or `.lower().compile().as_text()` (the optimized HLO).

        Raises:
            ValueError: a segment is compiled for the value of a feed.
        """
        segments = self._prepare(fetches, tuple(feeds)).runner.plan.segments
        return [trace_segment(each, unknown) for each in segments if each.place == "device"]

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """Returns a function that maps values of `feed_list` to those of `fetches`.

        Its calls skip the lookup of fetches and feeds that `run` does.

        Args:
            fetches: as for `run`.
            feed_list: the keys of the feeds, in the order in which their values are given.
            accept_options: whether the function takes `options` and `run_metadata` by keyword.

        Raises:
            TypeError: `feed_list` is not a list or tuple.
        """
        if not isinstance(feed_list, (list, tuple, type(None))):
            raise TypeError(
                f"Argument `feed_list` must be a list or tuple. Received: feed_list={feed_list!r}"
            )
        keys = tuple(feed_list or ())
        run = self._prepare(fetches, keys)

        @native_call
        def call(*values: Any, options: Any = None, run_metadata: Any = None) -> Any:
            if self._closed:
                self._check_open()
            feeds = dict(zip(keys, values, strict=True))
            return self._run_prepared(run, feeds, options, run_metadata)

        return call

    def _make_callable_from_options(self, callable_options: Any) -> Callable[..., list[Any]]:
        """`make_callable` with a `CallableOptions`.

        The function takes the values of `callable_options.feed`, in order, and `run_metadata` by
        keyword; it runs `target` and returns the values of `fetch`.
        """
        given = callable_options
        fetches = [list(given.fetch), list(given.target)]
        call = self.make_callable(fetches, list(given.feed), accept_options=True)
        options = given.run_options if given.HasField("run_options") else None

        def values(*args: Any, run_metadata: Any = None) -> list[Any]:
            found: list[Any] = call(*args, options=options, run_metadata=run_metadata)[0]
            return found

        return values

    def partial_run_setup(self, fetches: Any, feeds: Sequence[Any] | None = None) -> PartialRun:
        """Sets up a run in parts.

        Args:
            fetches: everything that the parts will fetch.
            feeds: all tensors that they will feed.

        Returns:
            The handle for `partial_run`.

        Raises:
            InvalidArgumentError: there is nothing to fetch or to run.
        """
        self._check_open()
        run: PartialRun = _partial_run.PartialRun(self.graph, self.state, fetches, feeds or ())
        return run

    @native_call
    def partial_run(
        self, handle: PartialRun, fetches: Any, feed_dict: Mapping[Any, Any] | None = None
    ) -> Any:
        """Runs the next part of a run set up by `partial_run_setup`; no operation runs twice.

        Raises:
            InvalidArgumentError: a fetch or feed was not declared or is repeated, or the handle is
                invalid.
        """
        self._check_open()
        return _partial_run.run_part(handle, fetches, feed_dict)

    def list_devices(self) -> list[SessionDevice]:
        """This process's devices, the default one first."""
        return session_devices()

    def load_variable(self, variable: Any, value: Any, copy: bool = True) -> None:
        """Sets the value of a variable.

        Args:
            variable: a `Variable` of the graph.
            value: an array of its dtype and shape.
            copy: False to transfer ownership of the array, which runs may then modify. A large one
                is moved to the device immediately.

        Raises:
            ValueError: the shape differs.
        """
        array = as_array(value, variable.dtype)
        if not variable.shape.is_compatible_with(array.shape):
            raise value_error(
                f"the shape of the value does not match variable {variable.op.name}",
                expected=f"shape {variable.shape}",
                received=f"shape {array.shape}",
                made_at=variable.op.source,
            )
        name = variable.op.name
        if copy:  # donation must not reach the caller's array
            array = np.array(array)
        elif array.nbytes >= _LARGE and not variable.dtype.on_host:
            with x64():
                array = self.state.initial(name, array, None)
                array.block_until_ready()  # then the host's copy can be freed
        self.state.put(name, array)

    # -- life

    def close(self) -> None:
        """Closes the session and frees its memory, except resources that its target shares.

        Closing again has no effect.
        """
        if not self._closed:
            self._closed = True
            self.state.cancel()
            self._runs.clear()
            self._opened.leave()

    def stop_daemons(self) -> None:
        """Called at exit: cancels runs on other tasks, for which servers of this process wait."""
        if self._opened.cluster is not None:
            self.state.cancel()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")

    def as_default(self) -> Any:
        """A context manager that makes this the default session, without closing it on exit."""
        return default_session(self)

    def __enter__(self) -> Session:
        if self._entered:
            raise RuntimeError(
                "Session context managers are not re-entrant. Use `Session.as_default()` if you "
                "want to enter a session multiple times."
            )
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


__all__ = ["Session", "get_default_session"]
