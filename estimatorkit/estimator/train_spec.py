"""`TrainSpec` and `EvalSpec`: the arguments of `train_and_evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from estimatorkit.estimator.arguments import check_count
from estimatorkit.estimator.serving.exporters import Exporter
from estimatorkit.train.hooks.checkpoint_hooks import CheckpointSaverListener
from estimatorkit.train.hooks.hooks import SessionRunHook


class _Train(NamedTuple):
    input_fn: Callable[..., Any]
    max_steps: int | None
    hooks: tuple[SessionRunHook, ...]
    saving_listeners: tuple[CheckpointSaverListener, ...]


class TrainSpec(_Train):
    """The training part of `train_and_evaluate` (`tf.estimator.TrainSpec`).

    Args:
        input_fn: as for `Estimator.train`.
        max_steps: the global step to stop at; None trains until the input ends or a hook stops it.
        hooks: `SessionRunHook`s, such as those of `early_stopping`.
        saving_listeners: `CheckpointSaverListener`s, which are called before the evaluation.

    Raises:
        TypeError: `input_fn` is not callable, or a hook or listener has the wrong type.
        ValueError: `max_steps` is not positive.
    """

    __slots__ = ()

    def __new__(
        cls,
        input_fn: Callable[..., Any],
        max_steps: int | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
        saving_listeners: Iterable[CheckpointSaverListener] | None = None,
    ) -> TrainSpec:
        _check_input_fn(input_fn)
        return super().__new__(
            cls,
            input_fn,
            check_count("max_steps", max_steps),
            _all_of(hooks, SessionRunHook, "hooks"),
            _all_of(saving_listeners, CheckpointSaverListener, "saving_listeners"),
        )


class _Eval(NamedTuple):
    input_fn: Callable[..., Any]
    steps: int | None
    name: str | None
    hooks: tuple[SessionRunHook, ...]
    exporters: tuple[Exporter, ...]
    start_delay_secs: float
    throttle_secs: float


class EvalSpec(_Eval):
    """The evaluating and exporting part of `train_and_evaluate` (`tf.estimator.EvalSpec`).

    Args:
        input_fn: as for `Estimator.evaluate`.
        steps: the number of batches; None for all. By default, batches after the 100th are ignored,
            with a message in the log.
        name: the evaluation's name, if there are several; results are written to 'eval_NAME'.
        hooks: `SessionRunHook`s.
        exporters: one or more `Exporter`s, called after each evaluation.
        start_delay_secs: how long the evaluator of a cluster waits before the first evaluation;
            ignored in a single process.
        throttle_secs: the minimum number of seconds between the starts of evaluations. The last
            checkpoint is always evaluated.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range, or two exporters have the same name.
    """

    __slots__ = ()

    def __new__(
        cls,
        input_fn: Callable[..., Any],
        steps: int | None = 100,
        name: str | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
        exporters: Exporter | Iterable[Exporter] | None = None,
        start_delay_secs: float = 120,
        throttle_secs: float = 600,
    ) -> EvalSpec:
        _check_input_fn(input_fn)
        steps = check_count("steps", steps)
        if name is not None and not isinstance(name, str):
            raise TypeError(f"`name` must be string, given: {name}")
        for key, value in (
            ("start_delay_secs", start_delay_secs),
            ("throttle_secs", throttle_secs),
        ):
            if value < 0:
                raise ValueError(f"Must specify {key} >= 0, given: {value}")
        return super().__new__(
            cls,
            input_fn,
            steps,
            name,
            _all_of(hooks, SessionRunHook, "hooks"),
            _checked_exporters(exporters),
            start_delay_secs,
            throttle_secs,
        )

    @property
    def label(self) -> str:
        """The evaluation's name, with a default."""
        return self.name or "eval"


def _check_input_fn(input_fn: Any) -> None:
    if not callable(input_fn):
        raise TypeError(f"`input_fn` must be callable, given: {input_fn}")


def _all_of(given: Iterable[Any] | None, kind: type, what: str) -> tuple[Any, ...]:
    members = tuple(given or ())
    for member in members:
        if not isinstance(member, kind):
            raise TypeError(f"All {what} must be `{kind.__name__}` instances, given: {member}")
    return members


def _checked_exporters(given: Any) -> tuple[Exporter, ...]:
    if not given:
        return ()
    exporters = [given] if isinstance(given, Exporter) else given
    if not isinstance(exporters, Iterable) or not all(
        isinstance(exporter, Exporter) for exporter in exporters
    ):
        raise TypeError(
            "`exporters` must be an Exporter, an iterable of Exporter, or `None`, "
            f"found {exporters}."
        )
    exporters = tuple(exporters)
    check_names([exporter.name for exporter in exporters])
    return exporters


def check_names(names: Sequence[Any]) -> None:
    """Validates the names of exporters, which are folder names.

    Raises:
        ValueError: a name is empty, not a string, or repeated.
    """
    for position, name in enumerate(names):
        if not name:
            raise ValueError(
                "An Exporter cannot have a name that is `None` or empty. All exporter names: "
                f"{list(names)}"
            )
        if not isinstance(name, str):
            raise ValueError(f"An Exporter must have a string name. Given: {type(name)}")
        if name in names[:position]:
            raise ValueError(
                "`exporters` must have unique names. Such a name cannot be `None`. All exporter "
                f"names: {list(names)}"
            )
