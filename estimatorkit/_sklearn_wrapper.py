"""`Wrapper`: what `SKClassifier` and `SKRegressor` of `estimatorkit.sklearn` share.

It makes features of tables, trains the estimator inside, keeps its folder (`_Model`), predicts, and
is copied with its checkpoint's arrays.
"""

from __future__ import annotations

import copy
import inspect
import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from estimatorkit import feature_columns as inference
from estimatorkit._sklearn_base import Classes, Parameters, as_frame, is_frame, quiet
from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.readers.frames import as_columns
from estimatorkit.estimator.best_epoch import train_to_best
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.layers.feature_column import numeric_column
from estimatorkit.premade import tabular
from estimatorkit.storage.checkpoint import read_checkpoint, write_checkpoint

ARRAY = "x"
"""The key of the feature that an array is: float32 `(rows, features)`."""

WEIGHT = "sample_weight"
"""The key of the feature with the weights of rows."""

HIDDEN_UNITS = {"hidden_units": (64, 32), "dnn_hidden_units": (64, 32)}
"""The default of arguments for which an estimator has none."""
OFFERED = (
    "columns",
    "feature_columns",
    "linear_feature_columns",
    "dnn_feature_columns",
    "n_classes",
    "label_dimension",
    "label_vocabulary",
    "weight_column",
    "train_steps",
    "held_out_fn",
    "model_dir",
    "config",
)
# What is done if a parameter is None, by estimator.
_SETTINGS: dict[str, Any] = {"epochs": 30, "batch_size": 32, "validation_fraction": 0.0}
_SETTINGS_OF_TABLES = {
    "epochs": tabular.usual_epochs,
    "batch_size": tabular.usual_batch_size,
    "validation_fraction": 0.15,
    "patience": 64,
}

# All predictions are made in batches of this many rows, the last one filled up: one compilation,
# and a row's prediction does not depend on how many others there are, to the last bit.
_ROWS = 256


class _Model:
    """A trained model in a new folder, which goes with it where it is temporary.

    Args:
        make: makes the estimator for a folder.
        parent: the folder of the folder; None for a temporary one.
    """

    def __init__(self, make: Callable[[str], Estimator], parent: Any) -> None:
        if parent is not None:
            os.makedirs(parent, exist_ok=True)
        prefix = "estimatorkit-" if parent is None else "fit-"
        folder = tempfile.mkdtemp(prefix=prefix, dir=parent)
        if parent is None:
            weakref.finalize(self, shutil.rmtree, folder, True)
        self.estimator = make(folder)
        self.checkpoint: str | None = None
        self._predictor: Any = None

    def trained(self, checkpoint: str | None) -> None:
        """Goes on with a checkpoint."""
        self.checkpoint, self._predictor = checkpoint, None

    def predict(self, features: Mapping[str, NDArray[Any]], key: str) -> NDArray[Any]:
        """The predictions of one key, `(rows, ...)`."""
        if self._predictor is None:
            self._predictor = self.estimator.as_predictor(self.checkpoint, [key])
        rows = len(next(iter(features.values())))
        found = []
        for start in range(0, rows, _ROWS):
            places = np.minimum(np.arange(start, start + _ROWS), rows - 1)
            batch = self._predictor.batch({name: each[places] for name, each in features.items()})
            found.append(batch[key][: rows - start])
        return np.concatenate(found)


class Wrapper(Parameters):
    """The base of `SKClassifier` and `SKRegressor`."""

    estimator: Any
    _known: dict[str, Callable[..., Estimator]]
    _model: _Model
    feature_names_in_: NDArray[Any]

    def _set(
        self,
        feature_columns: Any = None,
        epochs: int | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        validation_fraction: float | None = None,
        patience: int | None = None,
        standardize: bool = True,
        model_dir: str | os.PathLike[str] | None = None,
        random_state: Any = None,
        verbose: bool = False,
        **arguments: Any,
    ) -> None:
        self.feature_columns = feature_columns
        self.epochs = epochs
        self.steps = steps
        self.batch_size = batch_size
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.standardize = standardize
        self.model_dir = model_dir
        self.random_state = random_state
        self.verbose = verbose
        for name, value in arguments.items():
            setattr(self, name, value)

    # -- the estimator inside

    def _setting(self, name: str) -> Any:
        """A parameter, or where it is None what suits the estimator."""
        given = getattr(self, name)
        if given is not None:
            return given
        maker = self._maker()
        of_tables = isinstance(maker, type) and issubclass(maker, tabular.TabularEstimator)
        return (_SETTINGS_OF_TABLES if of_tables else _SETTINGS).get(name)

    @property
    def estimator_(self) -> Estimator:
        """The estimator that was trained."""
        check_is_fitted(self)
        return self._model.estimator

    @property
    def model_dir_(self) -> str:
        """The folder of the model."""
        return self.estimator_.model_dir

    def _maker(self) -> Callable[..., Estimator]:
        if callable(self.estimator):
            made: Callable[..., Estimator] = self.estimator
            return made
        if self.estimator not in self._known:
            raise value_error(
                f"{type(self).__name__} does not know the estimator {self.estimator!r}",
                expected=f"one of {sorted(self._known)}, or a function that returns one",
                received=repr(self.estimator),
                hint=did_you_mean(str(self.estimator), self._known),
            )
        return self._known[self.estimator]

    @property
    def _reads_once(self) -> bool:
        return getattr(self._maker(), "reads_once", False)

    @property
    def _takes_columns(self) -> str:
        return getattr(self._maker(), "takes_columns", "dense")

    def _for(self, rows: int, name: str) -> Any:
        """A setting for so many rows."""
        given = self._setting(name)
        return given(rows) if callable(given) else given

    def _more_parameters(self) -> set[str]:
        return set(parameters_of(self._maker())) - set(OFFERED)

    def _arguments(self) -> dict[str, Any]:
        own = {*parameters_of(Wrapper._set), "estimator"}
        return {name: value for name, value in self.get_params().items() if name not in own}

    def _made(self, model_dir: str) -> Estimator:
        """Makes the estimator for what `fit` saw."""
        maker = self._maker()
        taken = parameters_of(maker)
        config = RunConfig(
            model_dir=model_dir,
            tf_random_seed=self._seed,
            save_summary_steps=None,
            save_checkpoints_steps=2**31,  # the first step and the last are saved
            keep_checkpoint_max=(self._setting("patience") or 0) + 2,
            log_step_count_steps=100 if self.verbose else None,
        )
        offered = {
            "columns": self.columns_,
            "feature_columns": self.columns_ if self._takes_columns == "dense" else self._wide,
            "linear_feature_columns": self._wide,
            "dnn_feature_columns": self.columns_,
            "weight_column": WEIGHT,
            "train_steps": self._planned_steps,
            "config": config,
            **self._label_arguments(),
        }
        arguments = {name: value for name, value in HIDDEN_UNITS.items() if needs(taken.get(name))}
        arguments |= {name: value for name, value in offered.items() if name in taken}
        for name, value in self._arguments().items():
            if name not in taken and not _takes_any(maker):
                raise value_error(
                    f"{type(self).__name__} got the parameter {name!r}, which neither it nor "
                    f"{getattr(maker, '__name__', maker)} takes",
                    expected=f"one of {sorted({*self.get_params(), *taken} - {name})}",
                    received=f"{name}={value!r}"[:200],
                    hint=did_you_mean(name, taken),
                )
            arguments[name] = copy.copy(value)
        return maker(**arguments)

    def _label_arguments(self) -> dict[str, Any]:
        raise NotImplementedError

    # -- data

    def _table(self, X: Any, *, reset: bool, as_array: bool = True) -> Any:
        if reset:  # what a column becomes never depends on the others
            self._as_array = not is_frame(X)
        table = super()._table(X, reset=reset, as_array=self._as_array)
        if self._as_array or is_frame(table):
            return table
        return as_frame(table, self.feature_names_in_)

    def _learn_columns(self, table: Any) -> None:
        """Chooses columns for a table, and how it is made features of."""
        self._inferred: Any = None
        self._center: Any = 0.0
        self._scale: Any = 1.0
        given = self.feature_columns
        if given is None and is_frame(table):
            # Numbers as they are, as in an array.
            fill = self._takes_columns != "raw"
            given = inference.infer(table, buckets=0, fill_missing=fill)
        if isinstance(given, inference.InferredColumns):
            self._inferred, self.columns_, self._wide = given, given.columns, given.wide
        elif given is not None:
            self.columns_ = self._wide = tuple(given)
        else:
            self.columns_ = self._wide = (numeric_column(ARRAY, (table.shape[1],)),)
            if self.standardize:
                self._center, deviation = table.mean(axis=0), table.std(axis=0)
                self._scale = np.where(deviation > 0, deviation, 1.0)

    def _features(self, table: Any) -> dict[str, NDArray[Any]]:
        if self._inferred is not None:
            table = self._inferred.prepare(table)
        if not is_frame(table):
            return {ARRAY: ((table - self._center) / self._scale).astype(np.float32)}
        columns = as_columns(table)
        return {str(name): np.asarray(column) for name, column in columns.items()}

    def _fed_labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        return labels

    def _opened(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, classes: Any = None
    ) -> tuple[Any, NDArray[Any], NDArray[Any]]:
        """Table, labels and weights, checked."""
        table = self._table(X, reset=reset)
        labels = self._labels(y, reset=reset, classes=classes)
        if len(labels) != len(table):
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: "
                f"{[len(table), len(labels)]}"
            )
        if sample_weight is not None and "weight_column" not in parameters_of(self._maker()):
            raise value_error(
                "the estimator does not support sample_weight",
                expected="a function with the argument weight_column",
                received=repr(self.estimator),
            )
        return table, labels, self._weights(sample_weight, labels)

    # -- training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Trains a new model.

        Args:
            X: an array `(rows, features)` of numbers, or a DataFrame, whose columns may be words,
                dates and numbers with missing values (see `feature_columns.infer`); a column
                becomes the same feature whatever the others are.
            y: the labels, `(rows,)`; of regressors also `(rows, labels)`.
            sample_weight: `(rows,)`, weights of rows in the loss; 1 by default.

        Returns:
            The wrapper.

        Raises:
            ValueError: a parameter or the data do not fit.
            TypeError: `X` is sparse.
        """
        self._check_settings()
        table, labels, weights = self._opened(X, y, sample_weight, reset=True)
        kept = self._validation(table, labels, weights)
        table, labels, weights = kept[0]
        epochs = self._for(len(labels), "epochs")
        self._begin(table, self._steps(len(labels), epochs))
        self._train(table, labels, weights, epochs, kept[1])
        return self

    @available_if(lambda self: not self._reads_once)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> Self:
        """Trains on: one epoch over these rows (or `steps` steps); not with boosted trees.

        Args:
            X, y, sample_weight: as for `fit`. Columns are chosen from the first rows that come.
            classes: all classes that will come; in the first call only.

        Returns:
            The wrapper.
        """
        self._check_settings()
        first = not self.__sklearn_is_fitted__()
        table, labels, weights = self._opened(X, y, sample_weight, reset=first, classes=classes)
        if first:
            self._begin(table)
        self._train(table, labels, weights, 1, None)
        return self

    def _check_settings(self) -> None:
        for name in ("epochs", "batch_size", "steps", "patience"):
            value = getattr(self, name)
            if value is not None and (not hasattr(value, "__index__") or value < 1):
                raise value_error(
                    f"{name} is not a positive int", expected=">= 1", received=repr(value)
                )
        held_out = self._setting("validation_fraction")
        if not 0 <= held_out < 1:
            raise value_error(
                "validation_fraction is out of range",
                expected="0 <= validation_fraction < 1",
                received=repr(held_out),
            )
        if self.patience is not None and (held_out == 0 or self.steps is not None):
            raise value_error(
                "patience needs a validation set, and epochs instead of steps",
                expected="validation_fraction > 0, and no steps",
                received=f"validation_fraction={held_out}, steps={self.steps}",
            )

    def _steps(self, rows: int, epochs: int) -> int:
        return self.steps or math.ceil(rows * epochs / self._for(rows, "batch_size"))

    def _begin(self, table: Any, steps: int | None = None) -> None:
        """Starts a new model in its own folder; `steps` is the length of the whole training."""
        self._planned_steps = steps
        self._learn_columns(table)
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._model = _Model(self._made, self.model_dir)
        self.history_: list[dict[str, float]] = []

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a model was trained to its end."""
        return hasattr(self, "_model") and self._model.checkpoint is not None

    def _validation(self, *arrays: Any) -> tuple[Any, Any]:
        held_out = self._setting("validation_fraction")
        if not held_out:
            return arrays, None
        split = train_test_split(
            *arrays,
            test_size=held_out,
            random_state=check_random_state(self.random_state).randint(2**31 - 1),
            stratify=arrays[1] if isinstance(self, Classes) else None,
        )
        return split[::2], split[1::2]

    def _dataset(self, table: Any, labels: NDArray[Any], weights: NDArray[Any]) -> Dataset:
        features = self._features(table)
        if "weight_column" in parameters_of(self._maker()):
            features[WEIGHT] = weights
        return Dataset.from_tensor_slices((features, self._fed_labels(labels)))

    def _train(
        self, table: Any, labels: NDArray[Any], weights: NDArray[Any], epochs: int, validation: Any
    ) -> None:
        rows, model = len(labels), self._model
        epochs = 1 if self._reads_once else epochs
        data = self._dataset(table, labels, weights)
        shuffled = data.shuffle(rows, seed=self._seed).repeat().batch(self._for(rows, "batch_size"))
        steps = self._steps(rows, epochs)
        with quiet(not self.verbose):
            if validation is None:
                model.estimator.train(lambda: shuffled, steps=steps)
                model.trained(model.estimator.latest_checkpoint())
            else:
                held_out = self._dataset(*validation).batch(_ROWS)
                self._train_and_watch(shuffled, held_out, steps, epochs)
        self.n_steps_ = int(model.estimator.get_variable_value("global_step"))

    def _train_and_watch(self, data: Dataset, held_out: Dataset, steps: int, epochs: int) -> None:
        """Trains epoch by epoch; the model of the epoch with the smallest loss stays if there is a
        patience, that of the last one otherwise.
        """
        estimator, patience = self._model.estimator, self._setting("patience")
        rounds = 1 if self.steps else epochs
        found = train_to_best(estimator, lambda: data, lambda: held_out, steps, rounds, patience)
        self.history_, self.best_epoch_ = found.history, found.epoch
        last = estimator.latest_checkpoint()
        self._model.trained(last if patience is None else found.checkpoint)

    # -- predicting

    def _predicted(self, X: Any, key: str) -> NDArray[Any]:
        check_is_fitted(self)
        features = self._features(self._table(X, reset=False))
        with quiet(not self.verbose):
            return self._model.predict(features, key)

    # -- copies

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        model = state.pop("_model", None)
        if model is not None and model.checkpoint is not None:
            saved = read_checkpoint(model.checkpoint)
            state["_checkpoint"] = os.path.basename(model.checkpoint), saved.tensors, saved.state
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        saved = state.pop("_checkpoint", None)
        super().__setstate__(state)
        if saved is not None:
            name, tensors, more = saved
            self._model = _Model(self._made, None)
            folder = self._model.estimator.model_dir
            self._model.trained(os.fspath(write_checkpoint(folder, name, tensors, more)))


def needs(parameter: inspect.Parameter | None) -> bool:
    """Whether there is a parameter without a default."""
    return parameter is not None and parameter.default in (parameter.empty, None)


def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def _takes_any(function: Callable[..., Any]) -> bool:
    return any(each.kind is each.VAR_KEYWORD for each in parameters_of(function).values())
