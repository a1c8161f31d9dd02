"""The schema of experiments: frozen pydantic models, one per section of the YAML file.

`Experiment` is the root; feature columns are in `columns`, data in `sources`, estimators and
optimizers in `estimators`. Unknown keys are rejected, scalars are strict (no text for numbers),
lists become tuples, and defaults are TensorFlow's unless the field's description says otherwise. A
model holds values only: `load` makes one from a file, `build` and `tables` turn it into the objects
that `runner` runs, and `model_dump(mode="json")` is the YAML that loads to the same value.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from estimatorkit.experiment.arguments import Arguments, Kinds
from estimatorkit.experiment.columns import Feature, Read, Sequence, all_reads, kinds_that
from estimatorkit.experiment.decisions import Threshold
from estimatorkit.experiment.estimators import (
    ESTIMATORS,
    Classifier,
    EstimatorArguments,
    MultiTask,
    Regressor,
    Supervised,
    TwoTower,
)
from estimatorkit.experiment.formats import parsers
from estimatorkit.experiment.sections import (
    Count,
    Model,
    OneKey,
    Positive,
    Switch,
    Text,
    Texts,
    Whole,
    Word,
    short,
    wrong,
)
from estimatorkit.experiment.sources import MEASURES, Data
from estimatorkit.experiment.tuning.space import Dimension

if TYPE_CHECKING:
    from estimatorkit.data.cell_formats import CellFormat

Features = tuple[Feature, ...]
Mode = Annotated[Literal["auto", "min", "max"], Field(description="whether lower is better")]

# -- features


class Infer(Arguments):
    """Feature columns inferred from the training data (`feature_columns.infer`)."""

    place = "feature_columns:infer"
    types = dict.fromkeys(("fill_missing", "label", "read_text", "weight"))

    without: Annotated[
        tuple[Text, ...],
        Field(description="columns of the data to leave out; label and weight are"),
    ] = ()
    buckets: Annotated[
        int, Field(strict=True, ge=0, description="ranges of numbers for linear models")
    ] = 10
    buckets_in_network: Annotated[
        Switch, Field(description="the network gets these ranges, too, beside the numbers")
    ] = False


def _infer_of(value: Any) -> Any:
    """Converts `infer: true` to `infer: {}`, and `false` to None."""
    return ({} if value else None) if isinstance(value, bool) else value


class Derived(OneKey):
    """A feature that is computed from a column of the data, in exported models, too.

    It is 1 where a value is missing, or a part of an ISO date (see `data.formats` for others).
    Numbers: the year, the days since 1970, the place in the year and the time of day as sine and
    cosine, 1 at weekends. Ids, -1 if missing: the month (1 to 12), the day (1 to 31), the day of
    the week (Monday is 0), the hour.
    """

    example: ClassVar[str] = "{month: sold}"

    missing: Text | None = None
    year: Text | None = None
    days: Text | None = None
    season_sin: Text | None = None
    season_cos: Text | None = None
    clock_sin: Text | None = None
    clock_cos: Text | None = None
    weekend: Text | None = None
    month: Text | None = None
    day: Text | None = None
    weekday: Text | None = None
    hour: Text | None = None

    @property
    def source(self) -> str:
        """The column of the data."""
        return str(self.value)

    @property
    def read(self) -> Read:
        """How the column is read."""
        return Read(self.source, "any" if self.kind == "missing" else "string")


# -- phases


class _Hook(Arguments):
    types = {"output_dir": None}  # noqa: RUF012

    type: str


class _LogTensors(_Hook):
    tensors: Annotated[Texts, Field(description="names in the graph, such as global_step:0")]
    every_n_iter: Count | None = 100


class _Profiler(_Hook):
    save_steps: Count | None = 1000


HOOKS = Kinds(
    _Hook,
    {
        "step_counter": "train:StepCounterHook",
        "log_tensors": ("train:LoggingTensorHook", _LogTensors),
        "profiler": ("train:ProfilerHook", _Profiler),
    },
)


class EarlyStopping(Arguments):
    """Stops training when a metric no longer improves (`estimator.EarlyStopping`)."""

    place = "estimator:EarlyStopping"

    metric: Text = "loss"
    mode: Mode = "auto"
    restore_best: Switch = True
    evaluation: Annotated[
        Word | None,
        Field(description="a name of data.also_evaluate; null: the main rows, or data.select"),
    ] = None


def _with_text_keys(value: Any) -> Any:
    return {str(key): each for key, each in value.items()} if isinstance(value, dict) else value


class Train(Model):
    """Training settings."""

    batch_size: Count = 32
    steps: Annotated[Count | None, Field(description="steps of this run, after those before")] = (
        None
    )
    max_steps: Annotated[Count | None, Field(description="steps in all, over every run")] = None
    epochs: Annotated[
        Positive | None, Field(description="passes over the data in all, over every run")
    ] = None
    shuffle_buffer: Annotated[
        Count | None, Field(description="examples to shuffle among; null keeps the file's order")
    ] = 1000
    stop_at: Annotated[
        Positive | None,
        Field(description="the epoch to end at already; schedules are those of the whole training"),
    ] = None
    early_stopping: EarlyStopping | None = None
    class_weights: Annotated[
        Literal["balanced"] | dict[str, Positive] | None,
        BeforeValidator(_with_text_keys),
        Field(description="weights of the classes in the loss: balanced, or {yes: 3}; others 1"),
    ] = None
    mixed_precision: Annotated[
        Switch, Field(description="networks compute in bfloat16, with variables in float32")
    ] = False
    hooks: tuple[Annotated[Any, HOOKS], ...] = ()

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        given = [name for name in ("steps", "max_steps", "epochs") if getattr(self, name)]
        if len(given) != 1:
            raise wrong(
                f"gives {'both ' if len(given) == 2 else ''}{' and '.join(given)}"
                if given
                else "gives neither steps nor max_steps nor epochs",
                expected="steps: 1000 (1000 more at every run) or max_steps: 1000 (1000 in all)",
                hint="null takes one away, as in --set train.steps=null." if given else None,
            )
        return self

    def last_step(self, rows: int, start: int = 0) -> int:
        """The global step at which training ends.

        Args:
            rows: the number of training rows.
            start: the global step of the latest checkpoint.
        """
        if self.epochs is not None:
            return math.ceil(rows * self.epochs / self.batch_size)
        return self.max_steps or start + (self.steps or 0)


def _rhythm(text: str) -> str:
    if not re.fullmatch(r"epoch|[1-9]\d* (epoch|step|sec)s?", text):
        raise wrong(
            f"is {text!r}, which is no interval",
            expected="epoch, 2 epochs, 500 steps or 60 secs",
        )
    return text


class Evaluate(Model):
    """Evaluation settings."""

    batch_size: Count = 32
    steps: Annotated[Count | None, Field(description="batches; null takes every example")] = None
    every: Annotated[
        str,
        AfterValidator(_rhythm),
        Field(description="epoch, 2 epochs, 500 steps or 60 secs; a checkpoint is saved each time"),
    ] = "epoch"
    folds: Annotated[
        int | None,
        Field(strict=True, ge=2, description="cross-validation of so many; see data.part"),
    ] = None
    training: Annotated[
        Switch, Field(description="the training examples, too: curves of both show overfitting")
    ] = False

    @property
    def rhythm(self) -> tuple[int, Literal["epoch", "step", "sec"]]:
        """How many epochs, steps or seconds are between two evaluations."""
        number, _, unit = self.every.rpartition(" ")
        return int(number or 1), unit.rstrip("s")  # type: ignore[return-value]


class Metric(Model):
    """A metric of `keras.metrics`, with the arguments of its class."""

    model_config = ConfigDict(extra="allow")

    type: Literal[
        "AUC",
        "AveragePrecision",
        "BinaryAccuracy",
        "BinaryCrossentropy",
        "Calibration",
        "CategoricalAccuracy",
        "CategoricalCrossentropy",
        "CosineSimilarity",
        "F1Score",
        "FBetaScore",
        "FalseNegatives",
        "FalsePositives",
        "GroupAUC",
        "HitRate",
        "KLDivergence",
        "ListRecall",
        "LogCoshError",
        "MeanAbsoluteError",
        "MeanAbsolutePercentageError",
        "MeanAveragePrecision",
        "MeanReciprocalRank",
        "MeanSquaredError",
        "MeanSquaredLogarithmicError",
        "NDCG",
        "NormalizedCrossEntropy",
        "Poisson",
        "Precision",
        "PrecisionAtRecall",
        "R2Score",
        "Recall",
        "RecallAtPrecision",
        "RootMeanSquaredError",
        "SensitivityAtSpecificity",
        "SparseTopKCategoricalAccuracy",
        "SpecificityAtSensitivity",
        "TopKCategoricalAccuracy",
        "TrueNegatives",
        "TruePositives",
    ]

    @property
    def group(self) -> str | None:
        """The column that a ranking metric groups examples by."""
        group = (self.model_extra or {}).get("group")
        return None if group is None else str(group)


class Predict(Model):
    """Prediction settings."""

    batch_size: Count = 1024
    threshold: Annotated[
        Threshold | None,
        Field(
            description="the second of two classes is predicted above this probability: 0.3, or the"
            " one with the best f1, {precision: 0.9}, {recall: 0.8} or {cost: {missed: 10,"
            " false_alarm: 1}} on the rows of the evaluation; null: 0.5"
        ),
    ] = None


class Export(Arguments):
    """The common arguments of exports."""

    types = {"event_file_pattern": None}  # noqa: RUF012

    type: str
    name: Annotated[Word, Field(description="the folder in model_dir/export")]
    inputs: Annotated[
        Literal["features", "examples"],
        Field(description="what clients send: features as they are, or serialized Examples"),
    ] = "features"
    top_k: Annotated[
        Count | None,
        Field(description="hold data.candidates, and answer a user with that many (TwoTower)"),
    ] = None
    approximate: Annotated[
        Switch, Field(description="find these by an index of faiss, for millions of items")
    ] = False


class _Final(Export):
    name: Word = "final"


class _Latest(Export):
    name: Word = "latest"


class ExportBest(Export):
    """Exports the model that is better than all others (`BestExporter`)."""

    name: Word = "best"
    metric: Annotated[
        Text | None, Field(description="that of train.early_stopping, or loss, unless given")
    ] = None
    mode: Mode = "auto"
    at_end: Annotated[
        Switch,
        Field(description="false: export whenever a model is better than those before it"),
    ] = True


EXPORTS = Kinds(
    Export,
    {
        "final": ("estimator:FinalExporter", _Final),
        "latest": ("estimator:LatestExporter", _Latest),
        "best": ("estimator:BestExporter", ExportBest),
    },
)


class Run(Arguments):
    """What to write during training, and how long to wait for others (`RunConfig`)."""

    place = "estimator:RunConfig"
    types = {  # noqa: RUF012
        "experimental_max_worker_delay_secs": None,
        "protocol": None,
        "tf_random_seed": None,
        "save_checkpoints_steps": None,
        "save_checkpoints_secs": None,
    }

    keep_checkpoint_max: Annotated[
        int, Field(strict=True, ge=0, description="newest checkpoints to keep; 0 keeps all")
    ] = 5
    save_summary_steps: Count = 100
    loggers: Annotated[
        tuple[Literal["mlflow", "wandb"], ...],
        Field(description="trackers that get losses and metrics, beside TensorBoard's files"),
    ] = ()


@dataclass(frozen=True)
class Selection:
    """How the best evaluated checkpoint is chosen: it becomes the model at the end.

    Attributes:
        metric: its name.
        mode: whether lower is better.
        evaluation: the name of the evaluation; None for the main one.
    """

    metric: str
    mode: Literal["auto", "min", "max"]
    evaluation: str | None = None


_SHARE_FOR_THRESHOLD = 0.2
"""The share of the rows that chooses a threshold, where `data.holdout` is not given."""


def _at(data: Any, *keys: str) -> Any:
    """A setting of a document; None where there is none."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


FEATURE_LISTS = ("features", "linear_features", "dnn_features", "user_features", "item_features")
"""The keys of lists of columns."""


class Experiment(Model):
    """One experiment: data, features, estimator, training and evaluation."""

    name: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z0-9{][A-Za-z0-9._{}-]*$",
            description="a name for the experiment; {train.batch_size} becomes that setting",
        ),
    ]
    model_dir: Annotated[
        Text, Field(description="where the model is kept; runs/<name> unless given")
    ] = ""
    seed: Annotated[
        Whole | None, Field(description="of weights and order; null: a new one a run")
    ] = None
    data: Annotated[Data, Field(description="train, evaluate and label: where the examples are")]
    features: Annotated[
        Features, Field(description="the feature columns; none for a Baseline estimator")
    ] = ()
    linear_features: Annotated[
        Features,
        Field(description="the linear model's columns (DNNLinearCombined..., DeepFM, ...)"),
    ] = ()
    dnn_features: Annotated[
        Features, Field(description="the network's columns (DNNLinearCombined...)")
    ] = ()
    user_features: Annotated[Features, Field(description="the users' columns (TwoTower)")] = ()
    item_features: Annotated[Features, Field(description="the items' columns (TwoTower)")] = ()
    sequences: Annotated[
        tuple[Sequence, ...],
        Field(description="behaviours and their targets (DIN, DIEN): {target, history, dimension}"),
    ] = ()
    derive: Annotated[
        dict[Text, Derived] | None,
        Field(description="features computed from columns: {age_missing: {missing: age}}"),
    ] = None
    infer: Annotated[
        Infer | None,
        BeforeValidator(_infer_of, json_schema_input_type=bool | Infer | None),
        Field(description="true: columns from the training data, beside those that are listed"),
    ] = None
    estimator: Annotated[
        EstimatorArguments, ESTIMATORS, Field(description="the model: type and its arguments")
    ]
    train: Annotated[Train, Field(description="how long to train: steps or max_steps or epochs")]
    evaluate: Evaluate = Evaluate()
    metrics: Annotated[
        tuple[Annotated[Metric, BeforeValidator(short("type"))], ...],
        Field(description="more metrics, by class: [Precision, {type: NDCG, k: 5, group: user}]"),
    ] = ()
    predict: Predict = Predict()
    export: Annotated[
        tuple[Annotated[Export, EXPORTS, BeforeValidator(short("type"))], ...],
        Field(description="final, latest, or {type: best, metric: auc}, ..."),
    ] = ()
    run: Run = Run()
    tune: Annotated[
        dict[Text, Dimension] | None,
        Field(description="settings to search: {train.batch_size: {choice: [32, 128]}}"),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _default_model_dir(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("name"), str):
            return {"model_dir": f"runs/{data['name']}"} | data
        return data

    @model_validator(mode="before")
    @classmethod
    def _rows_that_choose_a_threshold(cls, data: Any) -> Any:
        """A threshold that is chosen has rows of its own, which neither train nor measure."""
        if not isinstance(data, dict):
            return data
        rule = _at(data, "predict", "threshold")
        apart = _at(data, "evaluate", "folds"), _at(data, "train", "early_stopping", "evaluation")
        known = *apart, _at(data, "data", "select")
        if not isinstance(rule, str | dict) or any(each is not None for each in known):
            return data
        given = _at(data, "data")
        if not isinstance(given, dict):
            return data
        share = given.get("holdout") or _SHARE_FOR_THRESHOLD
        return data | {"data": given | {"select": share}}

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        self._check_columns()
        self._check_sequences()
        self._check_reads()
        self._check_labels()
        self._check_two_classes()
        self._check_towers()
        self._check_candidates()
        self._check_class_weights()
        self._check_names()
        self._check_groups()
        self._check_folds()
        return self

    def _check_columns(self) -> None:
        taken = self.estimator.columns
        for key in FEATURE_LISTS:
            features: Features = getattr(self, key)
            if features and taken and key not in taken:
                raise wrong(
                    f"is given, but {self.estimator.type} does not take it",
                    at=(key,),
                    expected=f"its columns in {' and '.join(taken)}",
                )
            needed = key in taken and key not in self.estimator.optional_columns
            if needed and not features and self.infer is None:
                raise wrong(
                    f"is empty, and {self.estimator.type} needs features",
                    at=(key,) if key in self.model_fields_set else (),
                    expected=f"at least one feature column, {key}: [numeric: SepalLength]",
                    hint="infer: true proposes columns from the training data.",
                )
            wanted = "gives_numbers" if key in taken and taken[key][1] == "dense" else None
            for place, feature in enumerate(features):
                if wanted and not feature.arguments.gives_numbers:
                    raise wrong(
                        f"is a column of ids ({feature.kind}), which a network cannot take",
                        at=(key, place),
                        expected=f"a column of numbers: {kinds_that('gives_numbers')}",
                        hint=f"indicator: {{{feature.kind}: ...}}, or an embedding of it.",
                    )

    def _check_sequences(self) -> None:
        kind, takes = self.estimator.type, self.estimator.takes_sequences
        if takes and not self.sequences:
            raise wrong(
                f"is empty, and {kind} needs behaviours",
                at=("sequences",) if "sequences" in self.model_fields_set else (),
                expected="sequences: [{target: {hash_bucket: ...}, history: items, dimension: 16}]",
            )
        if self.sequences and not takes:
            raise wrong(
                f"is given, but {kind} does not take it",
                at=("sequences",),
                expected="an estimator of sequences, DIN or DIEN",
            )
        given = [each.negatives is not None for each in self.sequences]
        if any(given) and (kind != "DIEN" or not all(given)):
            raise wrong(
                "give negatives, which are DIEN's, and of all sequences or of none",
                at=("sequences",),
                expected="negatives: a column of lists, in each; without them, steps are drawn",
            )

    def _check_reads(self) -> None:
        for key in self.derived:
            if key in {each.source for each in self.derived.values()}:
                raise wrong(
                    "has the name of a column that it is derived from",
                    at=("derive", key),
                    expected="a name of its own",
                )
        try:
            self.reads  # noqa: B018
        except ValueError as error:
            raise wrong(
                f"reads {str(error)!r} as text and as numbers",
                at=(next(key for key in self.estimator.columns or ("features",)),),
                expected="one of them: a column of the data has one type",
            ) from None
        for key, read in self.column_reads.items():
            given = (self.data.formats or {}).get(key) if key not in self.derived else None
            is_number = read.dtype not in ("string", "any")
            if given is not None and given.type != "text" and is_number != (given.type == "number"):
                raise wrong(
                    f"says {given.type}, and features read {'numbers' if is_number else 'text'}",
                    at=("data", "formats", key),
                    expected="the same kind: number for columns of numbers",
                )

    def _check_candidates(self) -> None:
        if self.data.candidates is not None and self.item_id is None:
            raise wrong(
                f"is given, but {self.estimator.type} does not take it",
                at=("data", "candidates"),
                expected="a TwoTower with an item_id",
            )
        for place, each in enumerate(self.export):
            if each.top_k is None and each.approximate:
                raise wrong(
                    "is given without top_k",
                    at=("export", place, "approximate"),
                    expected="how many items to answer with, such as top_k: 10",
                )
            if each.top_k is not None and self.data.candidates is None:
                raise wrong(
                    "is given, and there are no items to answer with",
                    at=("export", place, "top_k"),
                    expected="rows of items in data.candidates, such as {csv: items.csv}",
                )

    def _check_towers(self) -> None:
        if not isinstance(self.estimator, TwoTower):
            return
        if self.infer is not None:
            raise wrong(
                "cannot tell columns of users from those of items",
                at=("infer",),
                expected="user_features and item_features",
            )
        item_id = self.item_id
        read = all_reads(each for one in self.item_features for each in one.arguments.reads())
        if item_id is not None and item_id not in read:
            raise wrong(
                f"{item_id!r} is not read by item_features",
                at=("estimator", "item_id"),
                expected=f"one of {', '.join(read)}",
            )

    def _check_labels(self) -> None:
        estimator, label, names = self.estimator, self.data.label or (), self.data.class_names
        labels = 1 if isinstance(estimator, Supervised) else 0
        labels = estimator.label_dimension if isinstance(estimator, Regressor) else labels
        if isinstance(estimator, MultiTask):
            self._check_tasks(estimator)
        elif len(label) != labels:
            raise wrong(
                f"names {len(label)} column(s)",
                at=("data", "label"),
                expected=f"{labels} for this {estimator.type} (label_dimension of a regressor)",
            )
        for column in label:
            if column in self.reads:
                raise wrong(
                    f"names {column!r}, which is a feature too",
                    at=("data", "label"),
                    expected="a column that is not among the features",
                )
        if names is not None and not isinstance(estimator, Classifier):
            raise wrong(
                f"is given, but {estimator.type} has no classes",
                at=("data", "class_names"),
                expected="no class_names, or a classifier",
            )
        if isinstance(estimator, Classifier) and names and len(names) != estimator.n_classes:
            raise wrong(
                f"has {len(names)} names",
                at=("data", "class_names"),
                expected=f"{estimator.n_classes} names, as many as estimator.n_classes",
            )

    def _check_two_classes(self) -> None:
        estimator = self.estimator
        is_binary = isinstance(estimator, Classifier) and estimator.n_classes == 2
        if self.predict.threshold is not None and not is_binary:
            raise wrong(
                f"is given, and this {estimator.type} has no two classes",
                at=("predict", "threshold"),
                expected="a classifier with n_classes: 2",
            )
        if self.data.holdout_stratified and not isinstance(estimator, Classifier):
            raise wrong(
                f"is given, and {estimator.type} has no classes",
                at=("data", "holdout_stratified"),
                expected="a classifier",
            )

    def _check_tasks(self, estimator: MultiTask) -> None:
        label = self.data.label or ()
        tasks = estimator.tasks(label)  # wrong numbers are an error
        for name in label:
            if label.count(name) > 1 or not re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_.-]*", name):
                raise wrong(
                    f"names {name!r}, which cannot be the name of a head",
                    at=("data", "label"),
                    expected="different names of letters, digits, '_', '.' and '-'",
                )
        weights = estimator.task_weights
        if weights is not None and len(weights) != len(tasks):
            raise wrong(
                f"has {len(weights)} numbers",
                at=("estimator", "task_weights"),
                expected=f"{len(tasks)}, as many as labels",
            )

    def _check_class_weights(self) -> None:
        estimator, given = self.estimator, self.train.class_weights
        if given is None:
            return
        at = ("train", "class_weights")
        if not isinstance(estimator, Classifier):
            raise wrong(
                f"is given, but {estimator.type} has no classes", at=at, expected="a classifier"
            )
        known = estimator.label_vocabulary or tuple(map(str, range(estimator.n_classes)))
        unknown = [] if given == "balanced" else [name for name in given if name not in known]
        if unknown:
            raise wrong(
                f"names {unknown[0]!r}, which is no class",
                at=at,
                expected=f"weights of {', '.join(known)}",
            )

    def _check_groups(self) -> None:
        kinds = ("GroupAUC", "HitRate", "ListRecall", "MeanAveragePrecision", "MeanReciprocalRank")
        for place, each in enumerate(self.metrics):
            if each.type in (*kinds, "NDCG") and each.group is None:
                raise wrong(
                    f"is {each.type}, and lacks the column that it groups examples by",
                    at=("metrics", place),
                    expected=f"{{type: {each.type}, group: user_id}}",
                )

    def _check_folds(self) -> None:
        data, folds = self.data, self.evaluate.folds
        if folds is None and not data.measures_apart:
            raise wrong(
                "gives neither evaluate nor holdout",
                at=("data",),
                expected=MEASURES,
                hint="evaluate: {folds: 5} at the top is cross-validation.",
            )
        if folds is not None and data.select is not None:
            raise wrong(
                "is given beside evaluate.folds, whose fits keep a fifth of their rows for it",
                at=("data", "select"),
                expected="one of them",
            )

    def _check_names(self) -> None:
        stopping, more = self.train.early_stopping, list(self.data.also_evaluate or ())
        if stopping is not None and stopping.evaluation not in (None, *more):
            raise wrong(
                f"is {stopping.evaluation!r}, which is none of data.also_evaluate",
                at=("train", "early_stopping", "evaluation"),
                expected=f"one of {', '.join(more)}" if more else "null",
            )
        best = next((each for each in self.export if isinstance(each, ExportBest)), None)
        if best is not None and best.metric and stopping is not None and stopping.restore_best:
            place = self.export.index(best)
            if best.metric != stopping.metric:
                raise wrong(
                    f"is {best.metric}, and train.early_stopping.metric is {stopping.metric}",
                    at=("export", place, "metric"),
                    expected="the same metric: both say which checkpoint is the best",
                    hint=f"metric: {stopping.metric}",
                )
        names = [each.name for each in self.export]
        for place, name in enumerate(names):
            if name in names[:place]:
                raise wrong(
                    f"has the name {name!r} of another one",
                    at=("export", place),
                    expected="a name of its own: each is a folder of model_dir/export",
                )
        known = (("eval", "data.evaluate"), ("train", "data.train"), ("select", "data.select"))
        for taken, source in known:
            if taken in more:
                raise wrong(
                    f"names one {taken!r}, as {source} is called",
                    at=("data", "also_evaluate"),
                    expected="another name",
                )

    @property
    def derived(self) -> dict[str, Derived]:
        """`derive`, empty if there is none."""
        return self.derive or {}

    @property
    def column_reads(self) -> dict[str, Read]:
        """What the listed feature columns read: columns of the data, and derived features."""
        listed = (each.arguments for key in FEATURE_LISTS for each in getattr(self, key))
        return all_reads(read for each in (*listed, *self.sequences) for read in each.reads())

    @property
    def reads(self) -> dict[str, Read]:
        """The columns of the data that features read or derive from, in order, with their types."""
        found = self.column_reads
        read = [each for key, each in found.items() if key not in self.derived]
        found = all_reads([*read, *(each.read for each in self.derived.values())])
        written = self.formats
        return {key: Read(key, "string") if key in written else each for key, each in found.items()}

    @property
    def formats(self) -> dict[str, CellFormat]:
        """What reads the cells of columns that `data.formats` describes."""
        return parsers(self.data.formats)

    @property
    def feature_keys(self) -> tuple[str, ...]:
        """The names of these columns."""
        return tuple(self.reads)

    @property
    def of_items(self) -> Experiment:
        """The experiment with only the columns of `item_features`."""
        read = all_reads(read for each in self.item_features for read in each.arguments.reads())
        derived = {name: each for name, each in self.derived.items() if name in read}
        return self.model_copy(update={"user_features": (), "derive": derived})

    @property
    def selection(self) -> Selection | None:
        """How the best checkpoint is chosen; None if the last one is the model."""
        stopping = self.train.early_stopping
        by = "select" if self.data.select else None
        if stopping is not None and stopping.restore_best:
            return Selection(stopping.metric, stopping.mode, stopping.evaluation or by)
        best = next((each for each in self.export if isinstance(each, ExportBest)), None)
        return None if best is None else Selection(best.metric or "loss", best.mode, by)

    @property
    def tasks(self) -> dict[str, str]:
        """The column of each head's labels, by the head's name; empty unless there are several."""
        kind, label = self.estimator, self.data.label or ()
        if not isinstance(kind, MultiTask):
            return {}
        return dict(zip(kind.tasks(label), label, strict=True))

    @property
    def negatives(self) -> dict[str, Read]:
        """The columns of negatives, which are only needed for training."""
        return all_reads(
            read for each in self.sequences for steps in each.steps[1:] for read in steps.reads()
        )

    @property
    def groups(self) -> tuple[str, ...]:
        """The columns that metrics group examples by."""
        found = (each.group for each in self.metrics)
        return tuple(dict.fromkeys(each for each in found if each is not None))

    @property
    def item_id(self) -> str | None:
        """The item id column of a `TwoTower`; None for other estimators."""
        return getattr(self.estimator, "item_id", None)

    @property
    def weight_column(self) -> str | None:
        """The column of example weights."""
        return getattr(self.estimator, "weight_column", None)
