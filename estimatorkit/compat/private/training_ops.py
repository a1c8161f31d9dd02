"""`tf.python.training.training_ops`: optimizer steps as functions (`apply_adam`, ...).

Called by users' own optimizers. A variable or a slot is a `Variable` or its handle; each function
returns the variable's new value, the `resource_...` variants the operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from estimatorkit.compat.arguments import signature_of
from estimatorkit.compat.train.optimizers import contrib_rules
from estimatorkit.core import registry
from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.train.optimizers import optimizer_rules as rules
from estimatorkit.train.optimizers.update_rule import UpdateRule

# TensorFlow's parameter names in order, and their names here.
_NAMES = {"lr": "learning_rate", "alpha": "learning_rate", "rho": "decay"}
_FLAGS = {"use_nesterov": False, "update_slots": True}
_ADAM = "var m v beta1_power beta2_power lr beta1 beta2 epsilon grad"


def _function(
    rule: UpdateRule,
    nesterov: UpdateRule | None,
    parameters: str,
    flags: str = "",
    given: Mapping[str, float] | None = None,
) -> Callable[..., Operation]:
    """The function of an update rule.

    Args:
        rule: the rule; `nesterov` with the flag `use_nesterov`.
        parameters: TensorFlow's parameters, including the gradient.
        flags: those after `use_locking`.
        given: hyperparameters of the rule that TensorFlow's function lacks.
    """
    names = parameters.split()
    state = names[: 1 + len(rule.slots)]
    defaults = {"use_locking": False, **{name: _FLAGS[name] for name in flags.split()}}
    signature = signature_of({**dict.fromkeys(names, ...), **defaults, "name": None})

    def apply(*args: Any, **kwargs: Any) -> Operation:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = bound.arguments
        if not values.get("update_slots", True):
            raise value_error("update_slots=False is not supported: slots are updated")
        chosen = nesterov if nesterov is not None and values["use_nesterov"] else rule
        with get_default_graph().name_scope(values["name"]):
            handles = [getattr(values[name], "handle", values[name]) for name in state]
            gradient = values["delta" if "delta" in names else "grad"]
            numbers = dict(given or {})
            numbers |= {_NAMES.get(name, name): values[name] for name in names[len(state) :]}
            hyperparameters = [
                convert_to_tensor(numbers[name], dtype_hint=float32)
                for name in chosen.hyperparameters
            ]
            inputs = [*handles, convert_to_tensor(gradient), *hyperparameters]
            return registry.apply(f"Apply{chosen.name}", inputs)

    return apply


def _with_value(function: Callable[..., Operation]) -> Callable[..., Tensor]:
    def apply(var: Any, *args: Any, **kwargs: Any) -> Tensor:
        with get_default_graph().control_dependencies([function(var, *args, **kwargs)]):
            return make("ReadVariableOp", {"resource": getattr(var, "handle", var)})

    return apply


resource_apply_adam = _function(rules.adam, contrib_rules.nesterov_adam, _ADAM, "use_nesterov")
resource_apply_gradient_descent = _function(rules.gradient_descent, None, "var alpha delta")
resource_apply_momentum = _function(
    rules.momentum, rules.nesterov_momentum, "var accum lr grad momentum", "use_nesterov"
)
resource_apply_adagrad = _function(
    rules.adagrad, None, "var accum lr grad", "update_slots", {"epsilon": 0.0}
)
resource_apply_rms_prop = _function(rules.rms_prop, None, "var ms mom lr rho momentum epsilon grad")
apply_adam = _with_value(resource_apply_adam)
apply_gradient_descent = _with_value(resource_apply_gradient_descent)
apply_momentum = _with_value(resource_apply_momentum)
apply_adagrad = _with_value(resource_apply_adagrad)
apply_rms_prop = _with_value(resource_apply_rms_prop)
