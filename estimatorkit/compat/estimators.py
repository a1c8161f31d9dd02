"""TensorFlow 1's premade estimators: `tf.compat.v1.estimator.DNNClassifier` etc.

They are subclasses, made from a table, with four differences: losses are sums, optimizers given by
name have the defaults of `tf.compat.v1.train`, a partitioner can partition the embedding tables,
and metrics have version 1's values (AUC by the trapezoidal rule).
"""

from __future__ import annotations

import inspect
from typing import Any

from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.layers.losses import Reduction
from estimatorkit.ops.variables.partitioned_variables import min_max_variable_partitioner
from estimatorkit.premade import baseline, boosted_trees, dnn, dnn_linear_combined, linear
from estimatorkit.premade.parts import Premade


def _version_1(base: type[Premade], partitioner: str | None, after: str | None) -> type[Premade]:
    """A premade estimator with version 1's arguments and defaults.

    Args:
        base: the estimator.
        partitioner: the name of the partitioner argument, or None.
        after: the argument that it follows.
    """
    parameters = []
    for parameter in inspect.signature(base.__init__).parameters.values():
        if parameter.name == "loss_reduction":
            parameter = parameter.replace(default=Reduction.SUM)
        parameters.append(parameter)
        if partitioner is not None and parameter.name == after:
            parameters.append(parameter.replace(name=partitioner, default=None, annotation=Any))
    signature = inspect.Signature(parameters)

    def __init__(self: Premade, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        self._partitioner = given.pop(partitioner, None) if partitioner is not None else None
        if partitioner is not None and self._partitioner is None:
            servers = (given.get("config") or RunConfig()).num_ps_replicas
            if servers > 1:
                cut = min_max_variable_partitioner(servers, min_slice_size=_MOST_BYTES)
                self._partitioner = cut
        base.__init__(**given)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    doc = (
        f"{base.__doc__}\n    As in TensorFlow 1: losses are sums, and optimizers given by name "
        "have the numbers of `train`.\n    "
    )
    if partitioner is not None:
        doc += (
            f"`{partitioner}` cuts the tables of the inputs; see `get_variable`. By default, where "
            "there are several parameter servers, those of more than 64 MiB.\n    "
        )
    return type(
        base.__name__,
        (base,),
        {"__init__": __init__, "__doc__": doc, "__module__": __name__, "_version": 1},
    )


def _with_version_1_metrics(base: type[Any]) -> type[Any]:
    """An estimator whose losses are means in version 1, too."""
    return type(
        base.__name__, (base,), {"__doc__": base.__doc__, "__module__": __name__, "_version": 1}
    )


_MOST_BYTES = 64 << 20  # the minimum size of a slice
_DNN = ("input_layer_partitioner", "dropout")
_LINEAR = ("partitioner", "config")
_NONE = (None, None)

DNNClassifier = _version_1(dnn.DNNClassifier, *_DNN)
DNNEstimator = _version_1(dnn.DNNEstimator, *_DNN)
DNNRegressor = _version_1(dnn.DNNRegressor, *_DNN)
LinearClassifier = _version_1(linear.LinearClassifier, *_LINEAR)
LinearEstimator = _version_1(linear.LinearEstimator, *_LINEAR)
LinearRegressor = _version_1(linear.LinearRegressor, *_LINEAR)
BaselineClassifier = _version_1(baseline.BaselineClassifier, *_NONE)
BaselineEstimator = _version_1(baseline.BaselineEstimator, *_NONE)
BaselineRegressor = _version_1(baseline.BaselineRegressor, *_NONE)
BoostedTreesClassifier = _with_version_1_metrics(boosted_trees.BoostedTreesClassifier)
BoostedTreesRegressor = _with_version_1_metrics(boosted_trees.BoostedTreesRegressor)
DNNLinearCombinedClassifier = _version_1(
    dnn_linear_combined.DNNLinearCombinedClassifier, "input_layer_partitioner", "label_vocabulary"
)
DNNLinearCombinedEstimator = _version_1(
    dnn_linear_combined.DNNLinearCombinedEstimator, "input_layer_partitioner", "dnn_dropout"
)
DNNLinearCombinedRegressor = _version_1(
    dnn_linear_combined.DNNLinearCombinedRegressor, "input_layer_partitioner", "weight_column"
)
