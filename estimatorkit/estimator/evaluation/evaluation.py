"""Computes a model's metrics over an input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from estimatorkit.core.errors import OutOfRangeError, type_error, value_error
from estimatorkit.core.nest import flatten, map_structure, pack_sequence_as
from estimatorkit.core.tensor import Tensor
from estimatorkit.distribute.replicas.replicas import PeerStopped
from estimatorkit.estimator.spec import EstimatorSpec
from estimatorkit.layers.metrics import mean
from estimatorkit.runtime.session import Session
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.hooks.hooks import SessionRunHook
from estimatorkit.train.sessions.coordinator import Coordinator
from estimatorkit.train.training import CheckedLoop, EndedByHook, empty_input, next_stretch

_MOST_STEPS = 1 << 30


class Evaluation:
    """The metrics of a model, including the mean of the batches' losses and the global step.

    Args:
        spec: the result of the `model_fn`; constructed in its graph.
        often: whether it is repeated, so that XLA compiles it from the first run on.

    Raises:
        ValueError: a metric is named 'loss' or 'global_step'.
    """

    def __init__(self, spec: EstimatorSpec, often: bool = False) -> None:
        self._often = often
        for name, quoted in (("loss", '"loss"'), ("global_step", "`global_step`")):
            if name in spec.eval_metric_ops:
                raise value_error(
                    f"Metric with name {quoted} is not allowed, because Estimator already "
                    "defines a default metric with the same name.",
                    hint="give it another name in eval_metric_ops",
                )
        metrics: dict[str, tuple[Any, Any]] = {**spec.eval_metric_ops, "loss": mean(spec.loss)}
        metrics = dict(sorted(metrics.items()))
        self._targets = [
            update.op if isinstance(update, Tensor) else update for _, update in metrics.values()
        ]
        self._counter = get_or_create_global_step()
        self._values = {
            name: map_structure(_value_of, value) for name, (value, _) in metrics.items()
        }
        self._after = [*flatten(self._values), self._counter._as_graph_element()]
        self._loop: CheckedLoop | None = None

    def run(
        self,
        session: Session,
        steps: int | None,
        hooks: Sequence[SessionRunHook],
        coord: Coordinator | None = None,
    ) -> dict[str, Any]:
        """Runs the updates over the input, many batches per call, and returns the final values.

        Args:
            steps: the maximum number of batches; None for all, or one if there is no input.
            hooks: already begun.
            coord: ends the evaluation if it is asked to stop.

        Raises:
            ValueError: the input has no elements.
        """
        if self._loop is None:
            self._loop = CheckedLoop(
                session,
                [],
                self._targets,
                self._after,
                "evaluation_step",
                is_brief=not self._often,
            )
        loop = self._loop
        most = steps or (_MOST_STEPS if loop.has_input else 1)
        first = int(session.run(self._counter))
        done = 0
        final: list[Any] = []
        stop: list[str] = []
        while not stop and done < most and not (coord and coord.should_stop()):
            # Hooks count steps: those of an evaluation continue from the model's.
            until, due = next_stretch(hooks, first + done)
            try:
                part = loop.run(min(until - first, most) - done, due, stop)
            except OutOfRangeError as error:
                if done == 0:
                    raise empty_input("evaluation") from error
                break
            except EndedByHook:
                final = [np.asarray(value) for value in session.run(self._after)]
                break
            except PeerStopped:
                break
            done += part.count
            final = part.after
            if part.ended:
                break
        loop.leave()
        plain = [_plain(value) for value in final[:-1]]
        results: dict[str, Any] = pack_sequence_as(self._values, plain)
        results["global_step"] = np.int64(final[-1])
        return results


def _plain(value: Any) -> Any:
    """Unwraps a scalar array."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def described(values: Mapping[str, Any]) -> str:
    """The values by name, in one line."""
    return ", ".join(f"{key} = {value}" for key, value in sorted(values.items()))


def _value_of(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    raise type_error("a metric's value must be a tensor", received=repr(value)[:200])


__all__ = ["Evaluation", "described"]
