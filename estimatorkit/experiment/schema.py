"""What an experiment is: frozen pydantic models, one a section of the YAML file.

`Experiment` is the root. Unknown keys are refused, scalars are strict (no text for numbers), lists
become tuples, and every default is TensorFlow's unless the field's description says otherwise. A
model holds values only: `load` makes one from a file, `runner` acts on it, and
`model_dump(mode="json")` is the YAML that loads to the same value.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

Text = Annotated[str, Field(min_length=1)]
Whole = Annotated[int, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=1)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Positive = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0)]
NotNegative = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0)]
Switch = Annotated[bool, Field(strict=True)]
LearningRate = Annotated[Positive, Field(description="the step size, a number > 0")]


class Model(BaseModel):
    """The base of every section: frozen, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _wrong(
    problem: str, *, expected: str, at: tuple[str, ...] = (), hint: str | None = None
) -> PydanticCustomError:
    """An error over several keys, in the parts that `load` words; `at`: a path below the model."""
    parts = {"problem": problem, "expected": expected, "at": at, "hint": hint}
    return PydanticCustomError("experiment", "{at} {problem}", parts)


def _scalar_or_type(value: Any) -> str | None:
    """Tells a union's short form (a word) from its long form (a mapping with `type`)."""
    if isinstance(value, dict):
        kind = value.get("type")
        return kind if isinstance(kind, str) else None
    return getattr(value, "type", "a name")


# --------------------------------------------------------------------------------------------- data


class CsvSource(Model):
    """A CSV file whose first line names its columns."""

    csv: Annotated[Path, Field(description="the file; relative to the folder of the YAML file")]

    @field_validator("csv")
    @classmethod
    def _absolute(cls, path: Path, info: ValidationInfo) -> Path:
        folder = (info.context or {}).get("folder")
        return (folder / path.expanduser()).resolve() if folder else path


Source = Annotated[
    Annotated[Literal["iris_training", "iris_test"], Tag("bundled")]
    | Annotated[CsvSource, Tag("file")],
    Discriminator(lambda value: "file" if isinstance(value, dict | CsvSource) else "bundled"),
]

Labels = Annotated[
    tuple[Text, ...],
    BeforeValidator(
        lambda value: (value,) if isinstance(value, str) else value,
        json_schema_input_type=str | tuple[str, ...],
    ),
    Field(min_length=1),
]


class Data(Model):
    """Where the examples come from."""

    train: Annotated[
        Source, Field(description="a bundled split, or {csv: file}: the training examples")
    ]
    evaluate: Annotated[Source, Field(description="the examples that measure the model")]
    label: Annotated[Labels, Field(description="the column to predict (or a list of columns)")]
    class_names: Annotated[
        tuple[Text, ...] | None, Field(description="what to print for class 0, 1, ...")
    ] = None


# ----------------------------------------------------------------------------------------- features


class NumericArguments(Model):
    """Arguments of `estimatorkit.feature_column.numeric_column`."""

    key: Annotated[Text, Field(description="the column in the data")]
    default: Annotated[
        Number | None,
        Field(description="the value where the data has none; null: that is an error"),
    ] = None
    dtype: Literal["float32", "float64", "int32", "int64"] = "float32"


def _short(key: str) -> Callable[[Any], Any]:
    return lambda value: {key: value} if isinstance(value, str) else value


class Feature(Model):
    """A feature column: one key, its kind, with the column's name or its arguments."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    numeric: (
        Annotated[
            NumericArguments,
            BeforeValidator(_short("key"), json_schema_input_type=str | NumericArguments),
        ]
        | None
    ) = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if len(self._given()) != 1:
            kinds = ", ".join(type(self).model_fields)
            raise _wrong("names no kind of column", expected=f"one of {kinds}")
        return self

    def _given(self) -> dict[str, Model]:
        return {kind: value for kind, value in self if value is not None}

    @property
    def kind(self) -> str:
        """The kind of the column: the key that is given."""
        return next(iter(self._given()))

    @property
    def arguments(self) -> Any:
        """The arguments of the column's kind."""
        return self._given()[self.kind]

    @model_serializer(mode="wrap")
    def _only_the_kind(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {kind: value for kind, value in handler(self).items() if value is not None}


# --------------------------------------------------------------------------------------- optimizers


class SGD(Model):
    """Plain gradient descent."""

    type: Literal["SGD"] = "SGD"
    learning_rate: LearningRate


class Momentum(Model):
    """Gradient descent with momentum."""

    type: Literal["Momentum"] = "Momentum"
    learning_rate: LearningRate
    momentum: Annotated[NotNegative, Field(description="share of the last step kept, such as 0.9")]
    use_nesterov: Switch = False


class Adagrad(Model):
    """Adagrad (Duchi et al. 2011)."""

    type: Literal["Adagrad"] = "Adagrad"
    learning_rate: LearningRate
    initial_accumulator_value: NotNegative = 0.1


class Adam(Model):
    """Adam (Kingma and Ba 2015)."""

    type: Literal["Adam"] = "Adam"
    learning_rate: Positive = 0.001
    beta1: NotNegative = 0.9
    beta2: NotNegative = 0.999
    epsilon: Positive = 1e-8


class RMSProp(Model):
    """RMSProp (Tieleman and Hinton 2012)."""

    type: Literal["RMSProp"] = "RMSProp"
    learning_rate: LearningRate
    decay: NotNegative = 0.9
    momentum: NotNegative = 0.0
    epsilon: Positive = 1e-10
    centered: Switch = False


class Ftrl(Model):
    """FTRL-Proximal (McMahan et al. 2013)."""

    type: Literal["Ftrl"] = "Ftrl"
    learning_rate: LearningRate
    learning_rate_power: Annotated[float, Field(strict=True, allow_inf_nan=False, le=0)] = -0.5
    initial_accumulator_value: NotNegative = 0.1
    l1_regularization_strength: NotNegative = 0.0
    l2_regularization_strength: NotNegative = 0.0
    l2_shrinkage_regularization_strength: NotNegative = 0.0


Optimizer = Annotated[
    Annotated[Literal["Adagrad", "Adam", "Ftrl", "RMSProp", "SGD"], Tag("a name")]
    | Annotated[SGD, Tag("SGD")]
    | Annotated[Momentum, Tag("Momentum")]
    | Annotated[Adagrad, Tag("Adagrad")]
    | Annotated[Adam, Tag("Adam")]
    | Annotated[RMSProp, Tag("RMSProp")]
    | Annotated[Ftrl, Tag("Ftrl")],
    Discriminator(_scalar_or_type),
    Field(description="a name, with the estimator's own learning rate; or {type: Adam, ...}"),
]

# --------------------------------------------------------------------------------------- estimators


class EstimatorArguments(Model):
    """What all premade estimators take."""

    type: str
    weight_column: Annotated[
        Text | None, Field(description="the column with each example's weight")
    ] = None
    loss_reduction: Annotated[
        Literal["sum_over_batch_size", "sum"], Field(description="how a batch's losses are joined")
    ] = "sum_over_batch_size"


class Classifier(EstimatorArguments):
    """What classifiers take."""

    n_classes: Annotated[int, Field(strict=True, ge=2)] = 2
    label_vocabulary: Annotated[
        tuple[Text, ...] | None,
        Field(description="the labels in class order, where labels are text"),
    ] = None

    @model_validator(mode="after")
    def _vocabulary_fits(self) -> Self:
        if self.label_vocabulary is not None and len(self.label_vocabulary) != self.n_classes:
            raise _wrong(
                f"has {len(self.label_vocabulary)} labels",
                at=("label_vocabulary",),
                expected=f"{self.n_classes} labels, as many as n_classes",
            )
        return self


class Regressor(EstimatorArguments):
    """What regressors take."""

    label_dimension: Annotated[Count, Field(description="numbers to predict an example")] = 1


class Network(EstimatorArguments):
    """What fully connected networks take."""

    hidden_units: Annotated[
        tuple[Count, ...], Field(min_length=1, description="units of each hidden layer")
    ]
    optimizer: Optimizer = "Adagrad"
    activation: Annotated[
        Literal["relu", "relu6", "elu", "selu", "leaky_relu", "tanh", "sigmoid", "softplus"],
        Field(description="the hidden layers' activation (the argument activation_fn)"),
    ] = "relu"
    dropout: Annotated[
        float | None,
        Field(strict=True, ge=0, lt=1, description="probability to drop a hidden unit"),
    ] = None
    batch_norm: Switch = False


class Linear(EstimatorArguments):
    """What linear models take."""

    optimizer: Optimizer = "Ftrl"
    sparse_combiner: Literal["sum", "mean", "sqrtn"] = "sum"


class DNNClassifier(Classifier, Network):
    """A fully connected network that tells classes apart."""

    type: Literal["DNNClassifier"] = "DNNClassifier"


class DNNRegressor(Regressor, Network):
    """A fully connected network that predicts numbers."""

    type: Literal["DNNRegressor"] = "DNNRegressor"


class LinearClassifier(Classifier, Linear):
    """A linear model that tells classes apart."""

    type: Literal["LinearClassifier"] = "LinearClassifier"


class LinearRegressor(Regressor, Linear):
    """A linear model that predicts numbers."""

    type: Literal["LinearRegressor"] = "LinearRegressor"


class BaselineClassifier(Classifier):
    """Ignores the features and learns how frequent each class is."""

    type: Literal["BaselineClassifier"] = "BaselineClassifier"
    optimizer: Optimizer = "Ftrl"


class BaselineRegressor(Regressor):
    """Ignores the features and learns the label's mean."""

    type: Literal["BaselineRegressor"] = "BaselineRegressor"
    optimizer: Optimizer = "Ftrl"


Estimator = Annotated[
    DNNClassifier
    | DNNRegressor
    | LinearClassifier
    | LinearRegressor
    | BaselineClassifier
    | BaselineRegressor,
    Field(discriminator="type"),
]

# ------------------------------------------------------------------------------------------- phases


class Train(Model):
    """How to train."""

    batch_size: Count = 32
    steps: Annotated[Count | None, Field(description="steps of this run, after those before")] = (
        None
    )
    max_steps: Annotated[Count | None, Field(description="steps in all, over every run")] = None
    shuffle_buffer: Annotated[
        Count | None, Field(description="examples to shuffle among; null keeps the file's order")
    ] = 1000

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if (self.steps is None) == (self.max_steps is None):
            neither = self.steps is None
            raise _wrong(
                "gives neither steps nor max_steps"
                if neither
                else "gives both steps and max_steps",
                expected="steps: 1000 (1000 more at every run) or max_steps: 1000 (1000 in all)",
                hint=None if neither else "null takes one away, as in --set train.steps=null.",
            )
        return self


class Evaluate(Model):
    """How to evaluate."""

    batch_size: Count = 32
    steps: Annotated[Count | None, Field(description="batches; null takes every example")] = None


class Predict(Model):
    """How to predict."""

    batch_size: Count = 32


class Run(Model):
    """What is written while training (the arguments of `RunConfig`)."""

    save_checkpoints_steps: Count | None = None
    save_checkpoints_secs: Annotated[
        Count | None, Field(description="seconds; 600 unless save_checkpoints_steps is given")
    ] = 600
    keep_checkpoint_max: Annotated[
        int, Field(strict=True, ge=0, description="newest checkpoints to keep; 0 keeps all")
    ] = 5
    log_step_count_steps: Count | None = 100
    save_summary_steps: Count = 100

    @model_validator(mode="before")
    @classmethod
    def _steps_replace_seconds(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("save_checkpoints_steps") is not None:
            return {"save_checkpoints_secs": None} | data
        return data

    @model_validator(mode="after")
    def _one_rhythm(self) -> Self:
        if self.save_checkpoints_steps is not None and self.save_checkpoints_secs is not None:
            raise _wrong(
                "gives both save_checkpoints_steps and save_checkpoints_secs",
                expected="one of them; the other may be left out or null",
            )
        return self


class Experiment(Model):
    """One experiment: the data, the features, the estimator, and how it is trained and measured."""

    name: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="a name for the experiment")
    ]
    model_dir: Annotated[
        Text, Field(description="where the model is kept; runs/<name> unless given")
    ] = ""
    seed: Annotated[
        Whole | None, Field(description="of weights and order; null: a new one a run")
    ] = None
    data: Annotated[Data, Field(description="train, evaluate and label: where the examples are")]
    features: Annotated[
        tuple[Feature, ...], Field(description="the feature columns; none for a Baseline estimator")
    ] = ()
    estimator: Annotated[Estimator, Field(description="the model: type and its arguments")]
    train: Annotated[Train, Field(description="how long to train: steps or max_steps")]
    evaluate: Evaluate = Evaluate()
    predict: Predict = Predict()
    run: Run = Run()

    @model_validator(mode="before")
    @classmethod
    def _default_model_dir(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("name"), str):
            return {"model_dir": f"runs/{data['name']}"} | data
        return data

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        estimator, label, names = self.estimator, self.data.label, self.data.class_names
        if not self.features and not isinstance(estimator, BaselineClassifier | BaselineRegressor):
            raise _wrong(
                f"is empty, and {estimator.type} needs features",
                at=("features",),
                expected="at least one feature column, for example - numeric: SepalLength",
            )
        labels = estimator.label_dimension if isinstance(estimator, Regressor) else 1
        if len(label) != labels:
            raise _wrong(
                f"names {len(label)} column(s)",
                at=("data", "label"),
                expected=f"{labels} for this {estimator.type} (label_dimension of a regressor)",
            )
        for column in label:
            if column in self.feature_keys:
                raise _wrong(
                    f"names {column!r}, which is a feature too",
                    at=("data", "label"),
                    expected="a column that is not among the features",
                )
        if names is not None and not isinstance(estimator, Classifier):
            raise _wrong(
                f"is given, but {estimator.type} has no classes",
                at=("data", "class_names"),
                expected="no class_names, or a classifier",
            )
        if isinstance(estimator, Classifier) and names and len(names) != estimator.n_classes:
            raise _wrong(
                f"has {len(names)} names",
                at=("data", "class_names"),
                expected=f"{estimator.n_classes} names, as many as estimator.n_classes",
            )
        return self

    @property
    def feature_keys(self) -> tuple[str, ...]:
        """The columns of the data that the features read, in their order."""
        return tuple(dict.fromkeys(feature.arguments.key for feature in self.features))
