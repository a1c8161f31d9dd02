"""What subclasses of `Estimator` may override, under TensorFlow's private names.

Public methods are not overridden, unless a subclass overrides `_assert_members_are_not_overridden`.
Of the private ones, `_call_input_fn`, `_call_model_fn`, `_create_global_step` and
`_create_and_assert_global_step` are called wherever a graph is built, and `_train_model`,
`_train_model_default` and `_train_with_estimator_spec` run a training if one is overridden. The
others of TensorFlow are not called here: a subclass that overrides one of them is refused, because
it would do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import Graph
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.train.global_steps import get_global_step
from estimatorkit.train.hooks.checkpoint_hooks import CheckpointSaverListener
from estimatorkit.train.hooks.hooks import SessionRunHook

_PUBLIC = (
    "config",
    "eval_dir",
    "evaluate",
    "experimental_export_all_saved_models",
    "export_saved_model",
    "export_savedmodel",
    "get_variable_names",
    "get_variable_value",
    "model_dir",
    "params",
    "predict",
    "train",
)
"""TensorFlow's public members that a subclass does not override."""

_TRAINING = ("_train_model", "_train_model_default", "_train_with_estimator_spec")

_NEVER_CALLED = {
    "_train_model_distributed": "train",
    "_actual_train_model_distributed": "train",
    "_train_with_estimator_spec_distributed": "train",
    "_actual_eval": "evaluate",
    "_convert_eval_steps_to_hooks": "evaluate",
    "_evaluate_build_graph": "evaluate",
    "_call_model_fn_eval": "evaluate",
    "_call_model_fn_eval_distributed": "evaluate",
    "_evaluate_run": "evaluate",
    "_evaluate_model": "evaluate",
    "_maybe_warm_start": "evaluate",
    "_extract_batch_length": "predict",
    "_extract_keys": "predict",
    "_get_features_from_input_fn": "predict",
    "_validate_features_in_predict_input": "predict",
    "_export_all_saved_models": "export_saved_model",
    "_add_meta_graph_for_mode": "export_saved_model",
}
"""TensorFlow's private methods that are not called here, by the method that calls them there."""


def refuse_public_overrides(estimator: Any, base: type) -> None:
    """Raises ValueError if an estimator's class itself overrides public members of `base`."""
    own = vars(type(estimator))
    overridden = [name for name in _PUBLIC if name in own and own[name] is not vars(base)[name]]
    if overridden:
        raise ValueError(
            f"Subclasses of Estimator cannot override members of Estimator. {type(estimator)} does "
            f"override {overridden}"
        )


def check_overrides(estimator: Any, base: type) -> None:
    """Raises ValueError if an estimator's class overrides a method that is never called.

    A class that also overrides the calling method is trusted to call it itself.
    """
    kind = type(estimator)
    for name, caller in _NEVER_CALLED.items():
        if hasattr(kind, name) and not _overrides(kind, base, caller):
            raise value_error(
                f"{kind.__name__} overrides {name}, which would do nothing",
                expected="overrides of methods that are called: _call_input_fn, _call_model_fn, "
                "_create_global_step, _create_and_assert_global_step, " + ", ".join(_TRAINING),
                received=name,
                hint=f"override {caller} and _assert_members_are_not_overridden, or use hooks",
            )


def overrides_training(estimator: Any, base: type) -> bool:
    """Whether an estimator's class overrides one of the steps of a training.

    Raises:
        ValueError: it does, and trains with other processes or devices.
    """
    if not any(_overrides(type(estimator), base, name) for name in _TRAINING):
        return False
    if estimator.cluster is not None or estimator._train_distribution is not None:
        raise value_error(
            f"{type(estimator).__name__} overrides a step of its training, which runs alone",
            expected="no parameter servers and no strategy",
            received=repr(estimator._train_distribution or "parameter servers"),
        )
    return True


def _overrides(kind: type, base: type, name: str) -> bool:
    return getattr(kind, name) is not getattr(base, name)


def train_in_steps(
    estimator: Any,
    input_fn: Callable[..., Any],
    hooks: Sequence[SessionRunHook],
    listeners: Sequence[CheckpointSaverListener],
) -> Any:
    """Builds an estimator's model in a new graph and calls its `_train_with_estimator_spec`.

    Args:
        estimator: an `Estimator`.
        input_fn: as for `Estimator.train`.
        hooks: the hooks, among them those that end the training.
        listeners: `CheckpointSaverListener`s.

    Returns:
        The last loss.
    """
    graph = Graph()
    graph.seed = estimator.config.tf_random_seed
    mode = ModeKeys.TRAIN
    with graph.as_default(), graph.device(estimator._device_fn):
        estimator._create_and_assert_global_step(graph)
        features, labels, started_by = estimator._get_features_and_labels_from_input_fn(
            input_fn, mode
        )
        spec = estimator._call_model_fn(features, labels, mode, estimator.config)
        step = get_global_step(graph)
        return estimator._train_with_estimator_spec(spec, [*started_by], [*hooks], step, listeners)


__all__ = ["check_overrides", "overrides_training", "refuse_public_overrides", "train_in_steps"]
