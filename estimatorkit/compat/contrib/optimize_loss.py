"""`contrib.layers.optimize_loss`: the training operation of a loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from estimatorkit.compat.train.optimizers.multitask_optimizer import clip_gradients_by_global_norm
from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_collection, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array import array
from estimatorkit.ops.files import summary
from estimatorkit.ops.math import random
from estimatorkit.ops.variables.initializers import Constant
from estimatorkit.ops.variables.variable_scope import get_variable, variable_scope
from estimatorkit.train.global_steps import get_global_step
from estimatorkit.train.optimizers import clip
from estimatorkit.train.optimizers.optimizer import Optimizer
from estimatorkit.train.optimizers.optimizers import (
    AdagradOptimizer,
    AdamOptimizer,
    FtrlOptimizer,
    GradientDescentOptimizer,
    MomentumOptimizer,
    RMSPropOptimizer,
)

OPTIMIZER_CLS_NAMES: dict[str, Callable[[Any], Optimizer]] = {
    "Adagrad": AdagradOptimizer,
    "Adam": AdamOptimizer,
    "Ftrl": FtrlOptimizer,
    "Momentum": lambda learning_rate: MomentumOptimizer(learning_rate, momentum=0.9),
    "RMSProp": RMSPropOptimizer,
    "SGD": GradientDescentOptimizer,
}
OPTIMIZER_SUMMARIES = (
    "learning_rate",
    "loss",
    "gradients",
    "gradient_norm",
    "global_gradient_norm",
)
_DEFAULT_SUMMARIES = ("loss", "learning_rate", "global_gradient_norm")


def optimize_loss(
    loss: Any,
    global_step: Any,
    learning_rate: Any,
    optimizer: Any,
    gradient_noise_scale: float | None = None,
    gradient_multipliers: Mapping[Any, Any] | None = None,
    clip_gradients: Any = None,
    learning_rate_decay_fn: Callable[[Any, Any], Any] | None = None,
    update_ops: Sequence[Any] | None = None,
    variables: Sequence[Any] | None = None,
    name: str | None = None,
    summaries: Sequence[str] | None = None,
    colocate_gradients_with_ops: bool = False,
    increment_global_step: bool = True,
) -> Any:
    """A tensor that runs a training step and returns the loss (`tf.contrib.layers.optimize_loss`).

    Args:
        loss: a scalar.
        global_step: the step counter; None for the graph's, which it may not have.
        learning_rate: a number, which becomes a variable, or a tensor; None if the optimizer has
            one.
        optimizer: a name ('Adagrad', 'Adam', 'Ftrl', 'Momentum', 'RMSProp', 'SGD'), an optimizer,
            its class, or a function that makes one, given the learning rate or no arguments.
        gradient_noise_scale: the standard deviation of normal noise added to the gradients.
        gradient_multipliers: factors of gradients by variable or its name, as in `x:0`.
        clip_gradients: the maximum global norm of the gradients, or a function from (gradient,
            variable) pairs to such pairs.
        learning_rate_decay_fn: maps the learning rate and the step to the rate to use, of which a
            summary is written; ignored if there is no learning rate.
        update_ops: operations that run before the step; those in UPDATE_OPS by default.
        variables: those to train; all trainable ones by default.
        name: the variable scope; 'OptimizeLoss' by default.
        summaries: the summaries to write, of `OPTIMIZER_SUMMARIES`; the loss, the decayed learning
            rate and the global gradient norm by default.
        colocate_gradients_with_ops: accepted for compatibility only.
        increment_global_step: whether to increment the step counter.

    Raises:
        ValueError: an argument is invalid, or there is no global step for the decay function.
    """
    wanted = _DEFAULT_SUMMARIES if summaries is None else tuple(summaries)
    unknown = [each for each in wanted if each not in OPTIMIZER_SUMMARIES]
    if unknown:
        raise ValueError(
            f"Summaries should be one of [{', '.join(OPTIMIZER_SUMMARIES)}], you provided "
            f"{unknown[0]}."
        )
    with variable_scope(name, "OptimizeLoss", [loss, global_step]):
        value = convert_to_tensor(loss)
        step = get_global_step() if global_step is None else global_step
        updates = get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else update_ops
        if updates:
            with get_default_graph().control_dependencies(list(updates)):
                value = builtin_ops.identity(value)
        rate = _learning_rate(learning_rate)
        if rate is not None and learning_rate_decay_fn is not None:
            if step is None:
                raise ValueError("global_step is required for learning_rate_decay_fn.")
            rate = learning_rate_decay_fn(rate, step)
            if "learning_rate" in wanted:
                summary.scalar("learning_rate", rate)
        chosen = _optimizer(optimizer, rate)
        pairs = chosen.compute_gradients(value, variables)
        pairs = [(gradient, each) for gradient, each in pairs if gradient is not None]
        if gradient_noise_scale is not None:
            pairs = [(_noisy(gradient, gradient_noise_scale), each) for gradient, each in pairs]
        if gradient_multipliers is not None:
            pairs = [_scaled(gradient, each, gradient_multipliers) for gradient, each in pairs]
        _summarize_norm(pairs, wanted, "gradient_norm")
        if callable(clip_gradients):
            pairs = clip_gradients(pairs)
        elif isinstance(clip_gradients, (int, float)):
            pairs = clip_gradients_by_global_norm(pairs, clip_gradients)
        elif clip_gradients is not None:
            raise ValueError(f"Unknown type {type(clip_gradients)} for clip_gradients")
        if "loss" in wanted:
            summary.scalar("loss", value)
        _summarize(pairs, wanted)
        if clip_gradients is not None:
            _summarize_norm(pairs, wanted, "clipped_gradient_norm")
        train = chosen.apply_gradients(
            pairs, global_step=step if increment_global_step else None, name="train"
        )
        with get_default_graph().control_dependencies([train]):
            return builtin_ops.identity(value, "control_dependency")


def _learning_rate(given: Any) -> Any:
    if given is None:
        return given
    if hasattr(given, "op"):
        if given.shape.rank in (0, None):
            return given
        raise ValueError(
            f"Learning rate should be 0d Tensor or float. Got {given} of type {type(given)}"
        )
    if isinstance(given, bool) or not isinstance(given, (int, float)) or given < 0:
        raise value_error(
            "Invalid learning_rate", expected="a number from 0 on", received=repr(given)
        )
    return get_variable("learning_rate", [], trainable=False, initializer=Constant(float(given)))


def _optimizer(given: Any, rate: Any) -> Optimizer:
    if isinstance(given, str):
        if given not in OPTIMIZER_CLS_NAMES:
            raise ValueError(
                f"Optimizer name should be one of [{', '.join(OPTIMIZER_CLS_NAMES)}], you "
                f"provided {given}."
            )
        given = OPTIMIZER_CLS_NAMES[given]
        if rate is None:
            raise ValueError("learning_rate must be given with an optimizer's name")
    made = given
    if not isinstance(given, Optimizer) and callable(given):
        made = given() if rate is None else given(rate)
    if not isinstance(made, Optimizer):
        raise value_error(
            "Unrecognized optimizer",
            expected="a name, an optimizer, its class, or a function that makes one",
            received=repr(given),
        )
    return made


def _noisy(gradient: Any, scale: float) -> Any:
    dense = convert_to_tensor(gradient)
    return dense + random.truncated_normal(array.shape(dense), dtype=dense.dtype) * scale


def _scaled(gradient: Any, variable: Variable, factors: Mapping[Any, Any]) -> tuple[Any, Variable]:
    key = variable if variable in factors else variable.name
    if key not in factors:
        return gradient, variable
    return clip.scale_gradient(gradient, factors[key]), variable


def _summarize(pairs: Sequence[tuple[Any, Any]], wanted: Sequence[str]) -> None:
    for gradient, variable in pairs:
        values = getattr(gradient, "values", gradient)
        if values is None:
            continue
        own = variable.name.replace(":", "_")
        if "gradients" in wanted:
            summary.histogram(f"gradients/{own}", values)
        if "gradient_norm" in wanted:
            summary.scalar(f"gradient_norm/{own}", clip.global_norm([values]))


def _summarize_norm(pairs: Sequence[tuple[Any, Any]], wanted: Sequence[str], name: str) -> None:
    if pairs and ("global_gradient_norm" in wanted or "gradient_norm" in wanted):
        norm = clip.global_norm([gradient for gradient, _ in pairs])
        summary.scalar(f"global_norm/{name}", norm)
