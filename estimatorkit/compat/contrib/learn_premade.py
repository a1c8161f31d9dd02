"""`tf.contrib.learn`'s premade estimators: `tf.estimator`'s with their older arguments and `fit`.

`predict` returns classes or numbers; losses are means over the batch, as in contrib.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from estimatorkit.compat import estimators
from estimatorkit.compat.arguments import signature_of
from estimatorkit.compat.contrib.learn_estimators import Learner
from estimatorkit.layers.feature_column import numeric_column
from estimatorkit.layers.losses import Reduction


class _Premade(Learner):
    """A premade estimator with the argument names of `tf.contrib.learn`."""

    _array_key = ""
    _key: str  # the key of the prediction that `predict` returns

    def predict(
        self,
        x: Any = None,
        input_fn: Callable[..., Any] | None = None,
        batch_size: int | None = None,
        outputs: Sequence[str] | None = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """Class ids, or a regressor's numbers, unless other `outputs` are requested.

        See `Learner.predict`.
        """
        if outputs:
            return super().predict(x, input_fn, batch_size, outputs, as_iterable)
        values = self._values(self._key, x, input_fn, batch_size)
        numbers = (each[0] if len(each) == 1 else each for each in values)
        return numbers if as_iterable else np.stack(list(numbers))

    def _predict_numbers(
        self,
        x: Any = None,
        input_fn: Callable[..., Any] | None = None,
        batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """Class ids, or a regressor's numbers, of each example; see `predict`."""
        return self.predict(x, input_fn, batch_size, as_iterable=as_iterable)

    def _values(self, key: str, x: Any, input_fn: Any, batch_size: int | None) -> Iterator[Any]:
        """Yields one of the predictions for each example."""
        rows = super().predict(x, input_fn, batch_size, [key])
        return (row[key] for row in rows)


class Classifier(_Premade):
    """A premade classifier."""

    _key = "class_ids"

    predict_classes = _Premade._predict_numbers

    def predict_proba(
        self,
        x: Any = None,
        input_fn: Callable[..., Any] | None = None,
        batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """The class probabilities, `(classes,)` per example."""
        values = self._values("probabilities", x, input_fn, batch_size)
        return values if as_iterable else np.stack(list(values))


class Regressor(_Premade):
    """A premade regressor."""

    _key = "predictions"

    predict_scores = _Premade._predict_numbers


_RENAMED = {"weight_column_name": "weight_column", "label_keys": "label_vocabulary"}
_NEEDLESS = ("fix_global_step_increment_bug",)  # the global step counts steps
_REFUSED = {
    "gradient_clip_norm": "give an optimizer whose compute_gradients clips",
    "enable_centered_bias": "the bias of the last layer does the same",
    "feature_engineering_fn": "change the features in input_fn",
    "embedding_lr_multipliers": "use estimator.Estimator with a model_fn of your own",
    "joint_linear_weights": "use estimator.Estimator with a model_fn of your own",
    "_joint_weight": "use estimator.Estimator with a model_fn of your own",
    "input_layer_min_slice_size": "use estimator's input_layer_partitioner",
}


def _premade(name: str, kind: type[_Premade], arguments: str) -> type[_Premade]:
    """One of `contrib.learn`'s premade estimators.

    Args:
        name: also that of the wrapped estimator.
        kind: the base class.
        arguments: their names in contrib.learn's order.
    """
    base: Any = getattr(estimators, name)
    defaults = inspect.signature(base).parameters
    given = {}
    for each in arguments.split():
        known = defaults.get(_RENAMED.get(each, each))
        given[each] = known.default if known is not None else None
    required = [each for each, default in given.items() if default is inspect.Parameter.empty]
    signature = signature_of({**dict.fromkeys(["self", *required], ...), **given})

    def __init__(self: _Premade, *args: Any, **kwargs: Any) -> None:
        given = dict(signature.bind(self, *args, **kwargs).arguments)
        for each in ("self", *_NEEDLESS):
            given.pop(each, None)
        for each, instead in _REFUSED.items():
            if given.pop(each, None):
                raise ValueError(f"contrib.learn.{name} takes no {each} here; {instead}")
        chosen = {_RENAMED.get(key, key): value for key, value in given.items()}
        for key in [key for key, value in chosen.items() if value is None]:
            del chosen[key]
        core = base(**chosen, loss_reduction=Reduction.SUM_OVER_BATCH_SIZE)
        Learner.__init__(self, core)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    doc = (
        f"`tf.estimator.{name}` with `fit`, by contrib.learn's arguments; "
        f"{', '.join(each for each in _REFUSED if each in arguments.split())} are refused.\n"
    )
    return type(name, (kind,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})


_DNN = "hidden_units feature_columns model_dir "
_LATE = "gradient_clip_norm enable_centered_bias "
_BOTH = (
    "linear_feature_columns linear_optimizer joint_linear_weights dnn_feature_columns "
    "dnn_optimizer dnn_hidden_units dnn_activation_fn dnn_dropout " + _LATE
)
DNNClassifier = _premade(
    "DNNClassifier",
    Classifier,
    f"{_DNN} n_classes weight_column_name optimizer activation_fn dropout {_LATE} config "
    "feature_engineering_fn embedding_lr_multipliers input_layer_min_slice_size label_keys",
)
DNNRegressor = _premade(
    "DNNRegressor",
    Regressor,
    f"{_DNN} weight_column_name optimizer activation_fn dropout {_LATE} config "
    "feature_engineering_fn label_dimension embedding_lr_multipliers input_layer_min_slice_size",
)
LinearClassifier = _premade(
    "LinearClassifier",
    Classifier,
    f"feature_columns model_dir n_classes weight_column_name optimizer {_LATE} _joint_weight "
    "config feature_engineering_fn label_keys",
)
LinearRegressor = _premade(
    "LinearRegressor",
    Regressor,
    f"feature_columns model_dir weight_column_name optimizer {_LATE} label_dimension "
    "_joint_weight config feature_engineering_fn",
)
DNNLinearCombinedClassifier = _premade(
    "DNNLinearCombinedClassifier",
    Classifier,
    f"model_dir n_classes weight_column_name {_BOTH} config feature_engineering_fn "
    "embedding_lr_multipliers input_layer_min_slice_size label_keys fix_global_step_increment_bug",
)
DNNLinearCombinedRegressor = _premade(
    "DNNLinearCombinedRegressor",
    Regressor,
    f"model_dir weight_column_name {_BOTH} config feature_engineering_fn label_dimension "
    "embedding_lr_multipliers input_layer_min_slice_size fix_global_step_increment_bug",
)


def infer_real_valued_columns_from_input(x: Any) -> list[Any]:
    """Numeric columns for arrays given to `fit` as `x`.

    Args:
        x: an array `(rows, features)`, or a dict of arrays.
    """
    arrays = x if isinstance(x, Mapping) else {"": x}
    return [numeric_column(name, np.shape(value)[1:] or (1,)) for name, value in arrays.items()]
