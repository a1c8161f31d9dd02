"""Adapts models of Keras 3 on its JAX backend to estimators (extra `keras`).

The model's `stateless_call` is one operation of the graph (`ops.control.jax_functions`); its
variables become variables of the graph, named by their paths. Losses, metrics and the optimizer are
recreated from their configs with `estimatorkit.keras`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from estimatorkit.core.errors import type_error, value_error
from estimatorkit.estimator.adapted_model import AdaptedModel, Called, inputs_by_name
from estimatorkit.keras import optimizers
from estimatorkit.ops.control.jax_functions import jax_function
from estimatorkit.ops.variables.variable_scope import get_variable

_OPTIMIZER_ARGUMENTS = (
    "name",
    "learning_rate",
    "clipnorm",
    "global_clipnorm",
    "clipvalue",
    "weight_decay",
    "beta_1",
    "beta_2",
    "epsilon",
    "amsgrad",
    "rho",
    "momentum",
    "centered",
    "nesterov",
    "initial_accumulator_value",
    "learning_rate_power",
    "l1_regularization_strength",
    "l2_regularization_strength",
    "l2_shrinkage_regularization_strength",
    "beta",
)


class Keras3Model(AdaptedModel):
    """A compiled model of Keras 3.

    Args:
        model: a built and compiled model on the JAX backend.

    Raises:
        TypeError: it is not a model of Keras 3.
        ValueError: it uses another backend, or is not built or compiled.
    """

    def __init__(self, model: Any) -> None:
        if not hasattr(model, "stateless_call"):
            raise type_error(
                "model_to_estimator: not a model",
                expected="a keras.Model of estimatorkit or of Keras 3",
                received=type(model),
            )
        import keras

        problem = None
        if keras.backend.backend() != "jax":
            problem = "Keras runs on another backend", "KERAS_BACKEND=jax before keras is imported"
        elif not model.built:
            problem = "the model is not built", "give it an Input, or call model.build(shape)"
        elif not model.compiled or model.get_compile_config() is None:
            problem = "The given keras model has not been compiled yet", "call model.compile(...)"
        if problem is not None:
            raise value_error(problem[0], received=model, hint=problem[1])
        compiled = model.get_compile_config()
        self._model = model
        self.loss = compiled["loss"]
        self.loss_weights = compiled["loss_weights"]
        self.metrics = compiled["metrics"]
        self.weighted_metrics = compiled["weighted_metrics"]
        self.optimizer = _optimizer(compiled["optimizer"])
        counts = Counter(each.path for each in model.variables)
        self._names = {
            id(each): each.path if counts[each.path] == 1 else f"{each.path}_{number}"
            for number, each in enumerate(model.variables)
        }
        self.first_values = {
            self._names[id(each)]: np.asarray(each.value)
            for each in (*model.trainable_variables, *model.non_trainable_variables)
        }

    @contextmanager
    def called(self, features: Any, training: bool) -> Iterator[Called]:
        """Calls the model on variables of the default graph."""
        model = self._model
        trainable = [self._variable(each, True) for each in model.trainable_variables]
        others = [self._variable(each, False) for each in model.non_trainable_variables]
        names = [tensor.name for tensor in getattr(model, "inputs", None) or ()]
        given = inputs_by_name(features, names)
        if isinstance(given, Mapping) and names:
            given = [given[name] for name in names]

        def call(trained: Any, fixed: Any, inputs: Any) -> Any:
            outputs, changed, losses = model.stateless_call(
                trained, fixed, inputs, training=training, return_losses=True
            )
            return _by_name(model, outputs), list(changed), list(losses)

        outputs, changed, losses = jax_function(
            call, [each.value() for each in trainable], [each.value() for each in others], given
        )
        updates = []
        if training:
            updates = [
                variable.assign(value) for variable, value in zip(others, changed, strict=True)
            ]
        yield Called(list(outputs), list(outputs.values()), list(losses), updates, trainable)

    def _variable(self, variable: Any, trainable: bool) -> Any:
        value = np.asarray(variable.value)
        return get_variable(
            self._names[id(variable)],
            value.shape,
            value.dtype,
            lambda shape, dtype=None, partition_info=None: value,
            trainable=trainable,
        )


def _by_name(model: Any, outputs: Any) -> dict[str, Any]:
    """Outputs by name: that of the layer, if the model knows it."""
    if isinstance(outputs, Mapping):
        return dict(outputs)
    listed = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    names = list(getattr(model, "output_names", None) or ())
    if len(names) != len(listed) and getattr(model, "layers", None) and len(listed) == 1:
        names = [model.layers[-1].name]
    if len(names) != len(listed):
        names = [f"output_{number + 1}" for number in range(len(listed))]
    return dict(zip(names, listed, strict=True))


def _optimizer(config: Mapping[str, Any]) -> Any:
    """Converts an optimizer of Keras 3 to one of this package."""
    inner = {
        key: value
        for key, value in config["config"].items()
        if key in _OPTIMIZER_ARGUMENTS and value is not None
    }
    return optimizers.deserialize({"class_name": config["class_name"], "config": inner})


__all__ = ["Keras3Model"]
