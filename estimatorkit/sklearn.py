"""Estimators in scikit-learn's form: `fit`, `predict`, `score`; for pipelines and searches.

`SKClassifier` and `SKRegressor` wrap any estimator, by name or as a function that makes one;
`SKDNNClassifier`, `SKLinearRegressor` and the other `SK<name>` are those of the premade ones.
(TensorFlow has no such module; `SKCompat` of its early versions was less.)

A fitted wrapper owns a model folder, temporary unless `model_dir` is given, which is removed when
the wrapper is collected. A copy (`copy.deepcopy`, or by joblib to another process) carries the
parameters, what was learnt of the table, and the checkpoint's arrays; it writes these into a
temporary folder of its own.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit._sklearn_base import Classes, Numbers, probabilities
from estimatorkit._sklearn_wrapper import HIDDEN_UNITS, OFFERED, Wrapper, needs, parameters_of
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.lazy import listing
from estimatorkit.premade import (
    baseline,
    boosted_trees,
    dnn,
    dnn_linear_combined,
    ensemble,
    linear,
    tabular,
)

_CLASSIFIERS: dict[str, Callable[..., Estimator]] = {
    "BaselineClassifier": baseline.BaselineClassifier,
    "BoostedTreesClassifier": boosted_trees.BoostedTreesClassifier,
    "DNNClassifier": dnn.DNNClassifier,
    "DNNLinearCombinedClassifier": dnn_linear_combined.DNNLinearCombinedClassifier,
    "EnsembleClassifier": ensemble.EnsembleClassifier,
    "LinearClassifier": linear.LinearClassifier,
    "TabularClassifier": tabular.TabularClassifier,
}
_REGRESSORS: dict[str, Callable[..., Estimator]] = {
    "BaselineRegressor": baseline.BaselineRegressor,
    "BoostedTreesRegressor": boosted_trees.BoostedTreesRegressor,
    "DNNLinearCombinedRegressor": dnn_linear_combined.DNNLinearCombinedRegressor,
    "DNNRegressor": dnn.DNNRegressor,
    "EnsembleRegressor": ensemble.EnsembleRegressor,
    "LinearRegressor": linear.LinearRegressor,
    "TabularRegressor": tabular.TabularRegressor,
}


class SKClassifier(Classes, Wrapper):
    """A classifier with scikit-learn's interface.

    Args:
        estimator: 'DNNClassifier' (default), 'LinearClassifier', 'DNNLinearCombinedClassifier',
            'TabularClassifier', 'BoostedTreesClassifier' or 'BaselineClassifier'; or a function
            that returns an estimator. It is called with those of the following that it accepts:
            `columns` (or `feature_columns`), `n_classes`, `label_vocabulary`, `weight_column`,
            `config`, and the `arguments`. The estimator's predictions must include 'probabilities',
            or 'predictions' for regressors.
        feature_columns: the feature columns, or a result of `feature_columns.infer`; by default
            inferred from a DataFrame. An array becomes a single feature 'x', float32 `(rows,
            features)`.
        epochs: the number of passes over the rows. None (default) for 30; tabular estimators get
            more (`premade.tabular.usual_epochs`), and boosted trees read the rows once.
        steps: the number of steps to train, instead of `epochs`.
        batch_size: rows per step. None (default) for 32, 256 of tabular estimators.
        validation_fraction: the fraction of the rows that is held out to measure the loss after
            each epoch (`history_`). None (default) for 0, 0.15 of tabular estimators.
        patience: the number of epochs without a smaller validation loss after which training stops
            and the best epoch's model is kept. None (default) trains all epochs and keeps the last
            model, the best of tabular estimators.
        standardize: whether to scale the columns of an array to mean 0 and standard deviation 1, if
            no `feature_columns` are given; True by default.
        model_dir: the folder where each `fit` stores its model, in a new folder `fit-...`; None
            (default) for a temporary folder.
        random_state: as in scikit-learn. An int yields the same model each time, bit for bit.
        verbose: whether to log; False by default.
        arguments: arguments of the estimator: `hidden_units` ((64, 32) by default), `optimizer`,
            ...

    Attributes:
        classes_: the sorted labels; strings become the model's `label_vocabulary`.
        n_features_in_, feature_names_in_: as in scikit-learn.
        columns_: the feature columns.
        estimator_, model_dir_: the underlying `Estimator`, and its folder.
        history_: metrics on the held-out rows, by epoch; `best_epoch_` counts from 1.
        n_steps_: the number of training steps.

    Example:
        ```python
        model = SKClassifier("DNNClassifier", hidden_units=(32, 16), random_state=1)
        print(cross_val_score(model, frame, labels))
        ```
    """

    _known = _CLASSIFIERS

    def __init__(self, estimator: Any = "DNNClassifier", **parameters: Any) -> None:
        self.estimator = estimator
        self._set(**parameters)

    def _label_arguments(self) -> dict[str, Any]:
        return {"n_classes": len(self.classes_), "label_vocabulary": self._vocabulary()}

    def _vocabulary(self) -> list[str] | None:
        """The classes where they are words and the estimator takes them."""
        words = all(isinstance(each, str) for each in self.classes_)
        fits = words and "label_vocabulary" in parameters_of(self._maker())
        return [str(each) for each in self.classes_] if fits else None

    def _fed_labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        words = self._vocabulary()
        return (
            labels if words is None else np.array([each.encode() for each in words], object)[labels]
        )

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Returns the probabilities of the classes, in the order of `classes_`.

        Args:
            X: as for `fit`.

        Returns:
            float64 `(rows, classes)`.
        """
        return probabilities(self._predicted(X, "probabilities"))

    def __sklearn_tags__(self) -> Any:
        """scikit-learn's description of what it can do."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = self.estimator == "BaselineClassifier"
        return tags


class SKRegressor(Numbers, Wrapper):
    """A regressor with scikit-learn's interface.

    Labels are not scaled: use a `TransformedTargetRegressor` for large ones.

    Args:
        estimator: 'DNNRegressor' (default), 'LinearRegressor', 'DNNLinearCombinedRegressor',
            'BoostedTreesRegressor' or 'BaselineRegressor'; or a function that returns an
            estimator (called with `label_dimension` instead of `n_classes`).
        parameters: see `SKClassifier`.
    """

    _known = _REGRESSORS

    def __init__(self, estimator: Any = "DNNRegressor", **parameters: Any) -> None:
        self.estimator = estimator
        self._set(**parameters)

    def _label_arguments(self) -> dict[str, Any]:
        return {"label_dimension": math.prod(self._label_shape)}

    def predict(self, X: Any) -> NDArray[Any]:
        """Returns predictions, float64 `(rows,)`, or `(rows, labels)` if `fit` had such labels.

        Args:
            X: as for `fit`.
        """
        found = np.asarray(self._predicted(X, "predictions"), np.float64)
        return found.reshape(len(found), *self._label_shape)

    def __sklearn_tags__(self) -> Any:
        """scikit-learn's description of what it can do."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self.estimator == "BaselineRegressor"
        tags.target_tags.multi_output = self.estimator != "BoostedTreesRegressor"
        return tags


def _named(name: str, base: type[Any], maker: Callable[..., Estimator]) -> Any:
    """`base` for one estimator, with that one's arguments in its signature."""

    def __init__(self: Any, **parameters: Any) -> None:
        self._set(**(_defaults | parameters))

    own = [
        each.replace(
            kind=each.KEYWORD_ONLY,
            default=HIDDEN_UNITS.get(each.name, each.default) if needs(each) else each.default,
        )
        for each in inspect.signature(maker).parameters.values()
        if each.name not in OFFERED
    ]
    settings = [
        each.replace(kind=each.KEYWORD_ONLY)
        for each in inspect.signature(Wrapper._set).parameters.values()
        if each.name not in ("self", "arguments")
    ]
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    vars(__init__)["__signature__"] = inspect.Signature([first, *own, *settings])
    _defaults = {each.name: each.default for each in own}
    doc = f"`{base.__name__}` of `estimator.{name}`; takes the arguments of both."
    members = {"__init__": __init__, "estimator": name, "__doc__": doc, "__module__": __name__}
    return type(f"SK{name}", (base,), members)


SKBaselineClassifier: type[SKClassifier] = _named(
    "BaselineClassifier", SKClassifier, baseline.BaselineClassifier
)
SKBoostedTreesClassifier: type[SKClassifier] = _named(
    "BoostedTreesClassifier", SKClassifier, boosted_trees.BoostedTreesClassifier
)
SKDNNClassifier: type[SKClassifier] = _named("DNNClassifier", SKClassifier, dnn.DNNClassifier)
SKDNNLinearCombinedClassifier: type[SKClassifier] = _named(
    "DNNLinearCombinedClassifier", SKClassifier, dnn_linear_combined.DNNLinearCombinedClassifier
)
SKEnsembleClassifier: type[SKClassifier] = _named(
    "EnsembleClassifier", SKClassifier, ensemble.EnsembleClassifier
)
SKEnsembleRegressor: type[SKRegressor] = _named(
    "EnsembleRegressor", SKRegressor, ensemble.EnsembleRegressor
)
SKLinearClassifier: type[SKClassifier] = _named(
    "LinearClassifier", SKClassifier, linear.LinearClassifier
)
SKBaselineRegressor: type[SKRegressor] = _named(
    "BaselineRegressor", SKRegressor, baseline.BaselineRegressor
)
SKBoostedTreesRegressor: type[SKRegressor] = _named(
    "BoostedTreesRegressor", SKRegressor, boosted_trees.BoostedTreesRegressor
)
SKDNNRegressor: type[SKRegressor] = _named("DNNRegressor", SKRegressor, dnn.DNNRegressor)
SKDNNLinearCombinedRegressor: type[SKRegressor] = _named(
    "DNNLinearCombinedRegressor", SKRegressor, dnn_linear_combined.DNNLinearCombinedRegressor
)
SKLinearRegressor: type[SKRegressor] = _named(
    "LinearRegressor", SKRegressor, linear.LinearRegressor
)
SKTabularClassifier: type[SKClassifier] = _named(
    "TabularClassifier", SKClassifier, tabular.TabularClassifier
)
SKTabularRegressor: type[SKRegressor] = _named(
    "TabularRegressor", SKRegressor, tabular.TabularRegressor
)

__dir__ = listing(__name__)
__all__: Sequence[str] = [
    "SKClassifier",
    "SKRegressor",
    "SKBaselineClassifier",
    "SKBaselineRegressor",
    "SKBoostedTreesClassifier",
    "SKBoostedTreesRegressor",
    "SKDNNClassifier",
    "SKDNNRegressor",
    "SKDNNLinearCombinedClassifier",
    "SKDNNLinearCombinedRegressor",
    "SKEnsembleClassifier",
    "SKEnsembleRegressor",
    "SKLinearClassifier",
    "SKLinearRegressor",
    "SKTabularClassifier",
    "SKTabularRegressor",
]
