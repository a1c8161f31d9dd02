"""`LossScaleOptimizer`: loss scaling around a Keras optimizer (see `loss_scale`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from estimatorkit.core.errors import type_error
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.keras.optimizers import by_name
from estimatorkit.keras.optimizers.optimizer import Optimizer
from estimatorkit.train.optimizers.loss_scale import (
    GROWTH_STEPS,
    INITIAL_SCALE,
    DynamicLossScale,
    FixedLossScale,
    MixedPrecisionLossScaleOptimizer,
)
from estimatorkit.train.optimizers.optimizer import GradientAndVariable


class LossScaleOptimizer(MixedPrecisionLossScaleOptimizer):
    """Wraps an optimizer to scale the loss, so that float16 gradients do not underflow.

    A step whose gradients are not all finite is skipped: it changes neither the variables nor
    `iterations`. Other attributes are those of the wrapped optimizer.

    Source: `tf.keras.mixed_precision.LossScaleOptimizer`.

    Args:
        inner_optimizer: the optimizer to wrap.
        dynamic: whether to adjust the scale: it is halved when gradients are not finite, and
            doubled after `dynamic_growth_steps` finite steps.
        initial_scale: the initial scale, 2^15 by default; if not dynamic, the fixed scale.
        dynamic_growth_steps: the number of finite steps before the scale doubles; 2000 by default.

    Raises:
        TypeError: `inner_optimizer` is not an optimizer.
        ValueError: the arguments contradict each other.
    """

    def __init__(
        self,
        inner_optimizer: Any,
        dynamic: bool = True,
        initial_scale: float | None = None,
        dynamic_growth_steps: int | None = None,
    ) -> None:
        if not dynamic and initial_scale is None:
            raise ValueError('"initial_scale" must be specified if "dynamic" is False')
        if not dynamic and dynamic_growth_steps is not None:
            raise ValueError(
                f'"dynamic_growth_steps" must be None if "dynamic" is False, got: '
                f"{dynamic_growth_steps}"
            )
        if isinstance(inner_optimizer, MixedPrecisionLossScaleOptimizer):
            raise type_error(
                "LossScaleOptimizer cannot wrap another LossScaleOptimizer",
                received=repr(inner_optimizer),
            )
        scale = INITIAL_SCALE if initial_scale is None else float(initial_scale)
        steps = GROWTH_STEPS if dynamic_growth_steps is None else dynamic_growth_steps
        super().__init__(
            inner_optimizer, DynamicLossScale(scale, steps) if dynamic else FixedLossScale(scale)
        )
        self._config = {
            "dynamic": dynamic,
            "initial_scale": scale,
            "dynamic_growth_steps": steps if dynamic else None,
        }

    @property
    def inner_optimizer(self) -> Any:
        """The optimizer whose loss is scaled."""
        return self._optimizer

    @property
    def dynamic(self) -> bool:
        """Whether the scale is adjusted to the gradients."""
        return bool(self._config["dynamic"])

    @property
    def loss_scale(self) -> Tensor:
        """The current scale, a float32 scalar."""
        return self._loss_scale()

    @property
    def initial_scale(self) -> Any:
        """The initial scale."""
        return self._config["initial_scale"]

    @property
    def dynamic_growth_steps(self) -> Any:
        """The number of finite steps before the scale doubles; None if it is fixed."""
        return self._config["dynamic_growth_steps"]

    @property
    def dynamic_counter(self) -> Variable | None:
        """The variable that counts finite steps; None if the scale is fixed."""
        scale = self._loss_scale
        return scale.variables()[1] if isinstance(scale, DynamicLossScale) else None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_optimizer" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._optimizer, name)

    def __setattr__(self, name: str, value: Any) -> None:
        inner = vars(self).get("_optimizer")
        if inner is not None and name in ("lr", "learning_rate", "iterations"):
            setattr(inner, name, value)
        else:
            super().__setattr__(name, value)

    def minimize(  # type: ignore[override]
        self,
        loss: Any,
        var_list: Any = None,
        grad_loss: Any = None,
        name: str | None = None,
        tape: Any = None,
        *,
        global_step: Variable | None = None,
    ) -> Operation:
        """Returns an operation that minimizes `loss`; see `Optimizer.minimize`."""
        made = loss() if callable(loss) else loss
        chosen = var_list() if callable(var_list) else var_list
        pairs = self.compute_gradients(made, chosen, grad_loss=grad_loss)
        return self.apply_gradients(pairs, name, global_step=global_step)

    def get_updates(self, loss: Any, params: Any) -> list[Operation]:
        """Returns a list of the operations that make an optimizer step."""
        return [self.minimize(loss, params)]

    def apply_gradients(  # type: ignore[override]
        self,
        grads_and_vars: Iterable[GradientAndVariable],
        name: str | None = None,
        experimental_aggregate_gradients: bool = True,
        skip_gradients_aggregation: bool = False,
        *,
        global_step: Variable | None = None,
    ) -> Operation:
        """Applies unscaled gradients where all are finite; see `Optimizer.apply_gradients`."""
        pairs = list(grads_and_vars)
        if isinstance(self._optimizer, Optimizer):
            if global_step is not None:
                self._optimizer.iterations = global_step
            # Created here, not in the branch for finite gradients, whose scope would become part of
            # their names.
            self._optimizer.build(
                [variable for gradient, variable in pairs if gradient is not None]
            )
        return super().apply_gradients(pairs, global_step, name)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments as plain values."""
        return {"inner_optimizer": by_name.serialize(self._optimizer), **self._config}

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> LossScaleOptimizer:
        """Creates an optimizer from the result of `get_config`."""
        arguments = dict(config)
        if not arguments.get("dynamic", True):
            arguments.pop("dynamic_growth_steps", None)
        inner = by_name.deserialize(arguments.pop("inner_optimizer"), custom_objects)
        return cls(inner, **arguments)


from_config = LossScaleOptimizer.from_config


__all__ = ["LossScaleOptimizer"]
