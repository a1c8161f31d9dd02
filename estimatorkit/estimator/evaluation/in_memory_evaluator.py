"""`InMemoryEvaluatorHook`: evaluations within `Estimator.train`, independent of its checkpoints."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.interop.events import MetricsWriter
from estimatorkit.train.global_steps import get_global_step
from estimatorkit.train.hooks.hooks import FinishedSteps, SessionRunHook, check_hooks
from estimatorkit.train.saving.saver import Saver


class InMemoryEvaluatorHook(SessionRunHook):
    """Evaluates the model at the start, at regular steps and at the end of `Estimator.train`.

    Metrics equal those of `Estimator.evaluate` and are written to the same place; the checkpoints
    of `model_dir` are unaffected. Difference from TensorFlow: if the last step is a multiple of
    `every_n_iter`, it is evaluated once, not twice.

    Args:
        estimator: the `Estimator`.
        input_fn: see `Estimator.evaluate`.
        steps: the number of batches; all by default.
        hooks: hooks of the evaluation.
        name: the evaluation's name, if there are several.
        every_n_iter: steps between evaluations.

    Raises:
        ValueError: `every_n_iter` or `steps` is not positive, or the estimator trains on several
            machines.
    """

    def __init__(
        self,
        estimator: Any,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        name: str | None = None,
        every_n_iter: int = 100,
    ) -> None:
        if every_n_iter is None or every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        config = estimator.config
        if config.num_ps_replicas > 0 or config.num_worker_replicas > 1:
            raise value_error(
                "InMemoryEvaluator supports only single machine (aka Local) setting",
                received=f"{config.num_worker_replicas} workers, "
                f"{config.num_ps_replicas} parameter servers",
                hint="use train_and_evaluate",
            )
        self._estimator = estimator
        self._input_fn = input_fn
        self._steps = steps
        self._hooks = check_hooks(hooks)
        self._writer = MetricsWriter(estimator.eval_dir(name))
        self._every = every_n_iter
        self._evaluated = 0

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Evaluates the untrained model."""
        self._evaluate(session, _step(session))

    def next_control_step(self, global_step: int) -> int | None:
        """The step of the next evaluation."""
        return max(self._evaluated + self._every, global_step + 1)

    def after_steps(self, steps: FinishedSteps) -> None:
        """Evaluates the model if due."""
        if steps.last >= self._evaluated + self._every:
            self._evaluate(steps.session, steps.last)

    def end(self, session: Any) -> None:
        """Evaluates the trained model."""
        step = _step(session)
        if step != self._evaluated:
            self._evaluate(session, step)

    def close(self) -> None:
        """Closes the event file that all evaluations share."""
        self._writer.close()

    def _evaluate(self, session: Any, step: int) -> None:
        with tempfile.TemporaryDirectory(prefix="estimatorkit-") as folder:
            with session.graph.as_default():
                saver = Saver()
            path = saver.save(
                session,
                f"{folder}/model.ckpt",
                global_step=step,
                write_meta_graph=False,
                write_state=False,
            )
            self._estimator._evaluate(self._input_fn, self._steps, self._hooks, path, self._writer)
        self._evaluated = step


def _step(session: Any) -> int:
    return int(session.run(get_global_step(session.graph)))
