"""Optimizers and premade estimators as data: the arguments of their constructors.

Keys are argument names, except `activation` (`activation_fn`). `OPTIMIZERS` and `ESTIMATORS` are
the tables; feature columns, `model_dir` and `config` come from other sections (added by `build`).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from estimatorkit.experiment.arguments import Arguments, Kinds
from estimatorkit.experiment.sections import (
    Count,
    Model,
    NotNegative,
    Number,
    Positive,
    Switch,
    Text,
    wrong,
)

# -- learning rates


class Schedule(Arguments):
    """The common arguments of learning rates that change during training."""

    types = {"decay_rate": Positive, "power": Positive, "name": None}  # noqa: RUF012

    type: str
    learning_rate: Annotated[Positive, Field(description="the first one, after the warm-up")]
    warmup_steps: Annotated[
        int, Field(strict=True, ge=0, description="steps in which it grows from 0")
    ] = 0


class Decay(Schedule):
    """The common arguments of those that decay."""

    decay_steps: Annotated[Count | None, Field(description="null: the whole training")] = None


class _ToZero(Decay):
    end_learning_rate: NotNegative = 0.0


class _FlatFirst(Decay):
    flat: Annotated[
        float, Field(strict=True, ge=0, lt=1, description="share of the steps before the decay")
    ] = 0.5


SCHEDULES = Kinds(
    Schedule,
    {
        "cosine_decay": ("train:cosine_decay", Decay),
        "exponential_decay": ("train:exponential_decay", Decay),
        "polynomial_decay": ("train:polynomial_decay", _ToZero),
        "coslog_decay": ("train:coslog_decay", Decay),
        "flat_cosine_decay": ("train:flat_cosine_decay", _FlatFirst),
        "constant": "",
    },
    ("a number", Positive),
)

# -- optimizers


class OptimizerArguments(Arguments):
    """The base class of optimizers."""

    types = {  # noqa: RUF012
        "learning_rate": Annotated[
            Any,
            SCHEDULES,
            Field(
                description="the step size, a number > 0; or {type: cosine_decay, "
                "learning_rate: 0.01}"
            ),
        ],
        "learning_rate_power": Annotated[float, Field(strict=True, allow_inf_nan=False, le=0)],
        "momentum": Annotated[
            NotNegative, Field(description="share of the last step kept, such as 0.9")
        ],
        "epsilon": Positive,
        "factors": None,
        "name": None,
        "use_locking": None,
    }

    type: str


class _Adagrad(OptimizerArguments):
    epsilon: NotNegative = 0.0


class _Proximal(OptimizerArguments):
    initial_accumulator_value: Positive = 0.1


OPTIMIZERS = Kinds(
    OptimizerArguments,
    {
        "SGD": "train:GradientDescentOptimizer",
        "Momentum": "train:MomentumOptimizer",
        "Adagrad": ("train:AdagradOptimizer", _Adagrad),
        "ProximalAdagrad": ("train:ProximalAdagradOptimizer", _Proximal),
        "Adadelta": "train:AdadeltaOptimizer",
        "Adam": "train:AdamOptimizer",
        "RMSProp": "train:RMSPropOptimizer",
        "Ftrl": "train:FtrlOptimizer",
        "LazyAdam": "train:LazyAdamOptimizer",
        "RowwiseAdagrad": ("train:RowwiseAdagradOptimizer", _Adagrad),
        "AdamW": "train:AdamWOptimizer",
    },
    ("a name", Literal["Adagrad", "Adam", "Ftrl", "RMSProp", "SGD"]),
)
Optimizer = Annotated[
    Any,
    OPTIMIZERS,
    Field(description="a name, with the estimator's own learning rate; or {type: Adam, ...}"),
]

# -- common arguments

Activation = Annotated[
    Literal["relu", "relu6", "elu", "selu", "leaky_relu", "tanh", "sigmoid", "softplus"],
    Field(description="the hidden layers' activation (the argument activation_fn)"),
]


class WarmStart(Arguments):
    """The source of initial values (`WarmStartSettings`)."""

    place = "estimator:WarmStartSettings"

    ckpt_to_initialize_from: Annotated[Text, Field(description="a checkpoint, or its folder")]


WarmStartFrom = Annotated[
    Annotated[Text, Tag("a folder")] | Annotated[WarmStart, Tag("settings")],
    Discriminator(lambda value: "settings" if isinstance(value, dict | WarmStart) else "a folder"),
    Field(description="a model_dir or checkpoint whose values are the first ones"),
]


class EstimatorArguments(Arguments):
    """The base class; `columns` maps the experiment's keys of feature columns to the argument that
    takes them and the kind of columns (see `Estimator.takes_columns`); those in `optional_columns`
    may be left out. `takes_sequences`: whether the key `sequences` is needed; else it is an error.
    """

    columns: ClassVar[dict[str, tuple[str, Literal["dense", "ids", "raw"]]]] = {}
    optional_columns: ClassVar[tuple[str, ...]] = ()
    takes_sequences: ClassVar[bool] = False
    renamed = {  # noqa: RUF012
        "activation": "activation_fn",
        "dnn_activation": "dnn_activation_fn",
        "cin_activation": "cin_activation_fn",
    }
    types = {  # noqa: RUF012
        "attention_activation": Activation | Literal["dice"],
        "cin_activation_fn": Activation | None,
        "combiner": Literal["sum", "mean", "sqrtn"],
        "dropout": Annotated[
            float | None,
            Field(strict=True, ge=0, lt=1, description="probability to drop a hidden unit"),
        ],
        "frequency_rate": Annotated[float, Field(strict=True, gt=0, le=1)],
        "negative_prefix": None,
        "optimizer": Optimizer,
        "sampling_probability": None,
        "seed": None,
        "temperature": Positive,
        "top_k": tuple[Count, ...],
        "warm_start_from": WarmStartFrom | None,
    }

    type: str

    @property
    def reads_once(self) -> bool:
        """Whether a training reads the rows once, and ends with its only checkpoint."""
        return bool(self.function().reads_once)


class Weighted(EstimatorArguments):
    """The common arguments of estimators whose examples have weights."""

    weight_column: Annotated[
        Text | None, Field(description="the column with each example's weight")
    ] = None
    loss_reduction: Annotated[
        Literal["sum_over_batch_size", "sum"], Field(description="how a batch's losses are joined")
    ] = "sum_over_batch_size"


class Supervised(Weighted):
    """The base class of estimators with labels."""


class Classifier(Supervised):
    """The common arguments of classifiers."""

    n_classes: Annotated[int, Field(strict=True, ge=2)] = 2
    label_vocabulary: Annotated[
        tuple[Text, ...] | None,
        Field(description="the labels in class order, where labels are text"),
    ] = None

    @model_validator(mode="after")
    def _vocabulary_fits(self) -> Self:
        if self.label_vocabulary is not None and len(self.label_vocabulary) != self.n_classes:
            raise wrong(
                f"has {len(self.label_vocabulary)} labels",
                at=("label_vocabulary",),
                expected=f"{self.n_classes} labels, as many as n_classes",
            )
        return self


class LabelScaling(Model):
    """The mean and standard deviation of the labels."""

    mean: Number
    deviation: Positive


class Regressor(Supervised):
    """The common arguments of regressors."""

    label_dimension: Annotated[Count, Field(description="numbers to predict an example")] = 1
    label_scaling: Annotated[
        LabelScaling | None,
        Field(
            description="the loss is that of standardized labels; predictions are in the label's"
            " units. infer sets it"
        ),
    ] = None


class Network(Supervised):
    """The common arguments of fully connected networks."""

    columns = {"features": ("feature_columns", "dense")}  # noqa: RUF012

    activation: Activation = "relu"


class Tabular(Supervised):
    """The common arguments of networks for tables."""

    columns = {"features": ("feature_columns", "raw")}  # noqa: RUF012

    train_steps: Annotated[
        Count | None,
        Field(description="steps of the learning rate's schedule; null: the whole training"),
    ] = None


class Linear(Supervised):
    """The common arguments of linear models."""

    columns = {"features": ("feature_columns", "ids")}  # noqa: RUF012


_UNUSED = (
    "n_batches_per_layer",
    "center_bias",
    "quantile_sketch_epsilon",
    "train_in_memory",
    "tree_complexity",
    "min_node_weight",
    "pruning_mode",
)
"""Arguments of boosted trees that change nothing, or must have their defaults."""


class Trees(Supervised):
    """The common arguments of models with boosted trees, which read the training set once."""

    columns = {"features": ("feature_columns", "raw")}  # noqa: RUF012
    types = EstimatorArguments.types | {
        "n_trees": Count,
        "max_depth": Count,
        "min_examples": Count,
        "learning_rate": Annotated[
            float, Field(strict=True, gt=0, le=1, description="factor of the leaves' values")
        ],
        "regularization": NotNegative,
        "early_stopping_fraction": Annotated[
            float, Field(strict=True, ge=0, lt=1, description="fraction of the rows held out")
        ],
        **dict.fromkeys(_UNUSED),
    }


class Ensemble(Trees):
    """The common arguments of ensembles, which choose epochs and weights by held-out rows."""

    folds: Annotated[
        Count, Field(description="parts of the rows; each member is trained on all but one of each")
    ] = 1


class Combined(Supervised):
    """The arguments of a linear model combined with a network."""

    columns = {  # noqa: RUF012
        "linear_features": ("linear_feature_columns", "ids"),
        "dnn_features": ("dnn_feature_columns", "dense"),
    }

    dnn_hidden_units: Annotated[
        tuple[Count, ...], Field(min_length=1, description="units of each hidden layer")
    ]
    dnn_activation: Activation = "relu"


class Recommender(Classifier, Network):
    """The common arguments of click-through models: embeddings in `features` are fields."""

    columns = {  # noqa: RUF012
        "features": ("feature_columns", "dense"),
        "linear_features": ("linear_feature_columns", "ids"),
    }
    optional_columns = ("linear_features",)


class Behaviours(Classifier, Network):
    """The common arguments of models of behaviour sequences; the targets join `features`."""

    optional_columns = ("features",)
    takes_sequences = True

    n_classes: Literal[2] = 2
    activation: Activation | Literal["dice"] = "dice"  # type: ignore[assignment]


class MultiTask(Network):
    """The common arguments of models with several labels, each 0 or 1."""

    task_weights: Annotated[
        tuple[Positive, ...] | None, Field(description="of the labels' losses; null: all 1")
    ] = None

    def tasks(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """The names of the heads of the columns `data.label`; wrong numbers raise an error."""
        if len(labels) < 2:
            raise wrong(
                f"names {len(labels)} column(s)",
                at=("data", "label"),
                expected=f"at least 2 for {self.type}, as in label: [click, purchase]",
            )
        return labels


class Mixture(MultiTask):
    """The common arguments of mixtures of experts."""


class Baseline(Supervised):
    """The common arguments of models that ignore the features."""


# -- estimators


class CrossNetwork(Recommender):
    """The arguments of `DCN`."""

    @model_validator(mode="after")
    def _matrices_fit(self: Any) -> Any:
        if self.version == 1 and (self.rank is not None or self.experts > 1):
            raise wrong(
                "is 1, which has no matrices", at=("version",), expected="version: 2 with a rank"
            )
        if self.experts > 1 and self.rank is None:
            raise wrong(
                "are several, and there is no rank",
                at=("experts",),
                expected="rank: 32, as low-rank matrices are mixed",
            )
        return self


class ESMM(MultiTask):
    """Clicks, and clicks with conversion, of all examples shown (arXiv:1804.07931)."""

    def tasks(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """See `MultiTask.tasks`; the heads are always called `ctr` and `ctcvr`."""
        if len(labels) != 2:
            raise wrong(
                f"names {len(labels)} column(s)",
                at=("data", "label"),
                expected="2 for ESMM: a click, and a click with conversion",
            )
        return ("ctr", "ctcvr")


class _KMeans(EstimatorArguments):
    columns = {"features": ("feature_columns", "dense")}  # noqa: RUF012

    initial_clusters: Literal["random", "kmeans_plus_plus"] = "random"
    distance_metric: Literal["squared_euclidean", "cosine"] = "squared_euclidean"


class TwoTower(Weighted):
    """A network for users and one for items; there are no labels: rows are pairs of both."""

    columns = {  # noqa: RUF012
        "user_features": ("user_feature_columns", "dense"),
        "item_features": ("item_feature_columns", "dense"),
    }

    activation: Activation = "relu"
    item_id: Annotated[
        Text | None, Field(description="the column with the ids of items, which item_features read")
    ] = None
    estimate_sampling_probability: Annotated[
        Switch, Field(description="correct the softmax by how often items occur; needs item_id")
    ] = False

    @model_validator(mode="after")
    def _has_ids(self) -> Self:
        if self.estimate_sampling_probability and self.item_id is None:
            raise wrong(
                "needs the ids of items",
                at=("estimate_sampling_probability",),
                expected="item_id: a column",
            )
        return self


ESTIMATORS = Kinds(
    EstimatorArguments,
    {
        "DNNClassifier": ("estimator:DNNClassifier", Classifier, Network),
        "DNNRegressor": ("estimator:DNNRegressor", Regressor, Network),
        "TabularClassifier": ("estimator:TabularClassifier", Classifier, Tabular),
        "TabularRegressor": ("estimator:TabularRegressor", Regressor, Tabular),
        "LinearClassifier": ("estimator:LinearClassifier", Classifier, Linear),
        "LinearRegressor": ("estimator:LinearRegressor", Regressor, Linear),
        "DNNLinearCombinedClassifier": (
            "estimator:DNNLinearCombinedClassifier",
            Classifier,
            Combined,
        ),
        "DNNLinearCombinedRegressor": (
            "estimator:DNNLinearCombinedRegressor",
            Regressor,
            Combined,
        ),
        "BaselineClassifier": ("estimator:BaselineClassifier", Classifier, Baseline),
        "BaselineRegressor": ("estimator:BaselineRegressor", Regressor, Baseline),
        "EnsembleClassifier": ("estimator:EnsembleClassifier", Classifier, Ensemble),
        "EnsembleRegressor": ("estimator:EnsembleRegressor", Regressor, Ensemble),
        "BoostedTreesClassifier": ("estimator:BoostedTreesClassifier", Classifier, Trees),
        "BoostedTreesRegressor": ("estimator:BoostedTreesRegressor", Regressor, Trees),
        "DeepFM": ("estimator:DeepFM", Recommender),
        "DCN": ("estimator:DCN", CrossNetwork),
        "xDeepFM": ("estimator:xDeepFM", Recommender),
        "AutoInt": ("estimator:AutoInt", Recommender),
        "FiBiNET": ("estimator:FiBiNET", Recommender),
        "DIN": ("estimator:DIN", Behaviours),
        "DIEN": ("estimator:DIEN", Behaviours),
        "MMoE": ("estimator:MMoE", Mixture),
        "PLE": ("estimator:PLE", Mixture),
        "ESMM": ("estimator:ESMM", ESMM),
        "KMeans": ("estimator.experimental:KMeans", _KMeans),
        "TwoTower": ("estimator:TwoTower", TwoTower),
    },
)
