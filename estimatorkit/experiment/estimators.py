"""Optimizers and premade estimators as data: one class each, with its arguments.

Keys are argument names, except `activation` (`activation_fn`). `ESTIMATORS` is the table; feature
columns, `model_dir` and `config` come from other sections (added by `build`).
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from estimatorkit.experiment.sections import (
    Count,
    Model,
    NotNegative,
    Number,
    Positive,
    Switch,
    Text,
    name_or_type,
    wrong,
)

# -- learning rates


class Schedule(Model):
    """The common arguments of learning rates that change during training."""

    factory: ClassVar[str]
    type: str
    learning_rate: Annotated[Positive, Field(description="the first one, after the warm-up")]
    warmup_steps: Annotated[
        int, Field(strict=True, ge=0, description="steps in which it grows from 0")
    ] = 0


_DecaySteps = Annotated[Count | None, Field(description="null: the whole training")]


class CosineDecay(Schedule):
    """Half a cosine wave down to `alpha` times the first rate (Loshchilov and Hutter 2017)."""

    factory: ClassVar[str] = "cosine_decay"
    type: Literal["cosine_decay"] = "cosine_decay"
    decay_steps: _DecaySteps = None
    alpha: NotNegative = 0.0


class ExponentialDecay(Schedule):
    """Times `decay_rate` every `decay_steps` steps."""

    factory: ClassVar[str] = "exponential_decay"
    type: Literal["exponential_decay"] = "exponential_decay"
    decay_steps: _DecaySteps = None
    decay_rate: Positive
    staircase: Switch = False


class PolynomialDecay(Schedule):
    """A polynomial down to `end_learning_rate`; a line by default."""

    factory: ClassVar[str] = "polynomial_decay"
    type: Literal["polynomial_decay"] = "polynomial_decay"
    decay_steps: _DecaySteps = None
    end_learning_rate: NotNegative = 0.0
    power: Positive = 1.0


class Constant(Schedule):
    """The same rate after a warm-up."""

    factory: ClassVar[str] = ""
    type: Literal["constant"] = "constant"


LearningRate = Annotated[
    Annotated[Positive, Tag("a number")]
    | Annotated[CosineDecay, Tag("cosine_decay")]
    | Annotated[ExponentialDecay, Tag("exponential_decay")]
    | Annotated[PolynomialDecay, Tag("polynomial_decay")]
    | Annotated[Constant, Tag("constant")],
    Discriminator(lambda value: name_or_type(value, "a number")),
    Field(description="the step size, a number > 0; or {type: cosine_decay, learning_rate: 0.01}"),
]

# -- optimizers


class SGD(Model):
    """Plain gradient descent."""

    factory: ClassVar[str] = "GradientDescentOptimizer"
    type: Literal["SGD"] = "SGD"
    learning_rate: LearningRate


class Momentum(Model):
    """Gradient descent with momentum."""

    factory: ClassVar[str] = "MomentumOptimizer"
    type: Literal["Momentum"] = "Momentum"
    learning_rate: LearningRate
    momentum: Annotated[NotNegative, Field(description="share of the last step kept, such as 0.9")]
    use_nesterov: Switch = False


class Adagrad(Model):
    """Adagrad (Duchi et al. 2011)."""

    factory: ClassVar[str] = "AdagradOptimizer"
    type: Literal["Adagrad"] = "Adagrad"
    learning_rate: LearningRate
    initial_accumulator_value: NotNegative = 0.1


class ProximalAdagrad(Model):
    """Adagrad with penalties on the weights (Duchi and Singer 2009)."""

    factory: ClassVar[str] = "ProximalAdagradOptimizer"
    type: Literal["ProximalAdagrad"] = "ProximalAdagrad"
    learning_rate: LearningRate
    initial_accumulator_value: Positive = 0.1
    l1_regularization_strength: NotNegative = 0.0
    l2_regularization_strength: NotNegative = 0.0


class Adadelta(Model):
    """Adadelta (Zeiler 2012)."""

    factory: ClassVar[str] = "AdadeltaOptimizer"
    type: Literal["Adadelta"] = "Adadelta"
    learning_rate: LearningRate = 0.001
    rho: NotNegative = 0.95
    epsilon: Positive = 1e-8


class Adam(Model):
    """Adam (Kingma and Ba 2015)."""

    factory: ClassVar[str] = "AdamOptimizer"
    type: Literal["Adam"] = "Adam"
    learning_rate: LearningRate = 0.001
    beta1: NotNegative = 0.9
    beta2: NotNegative = 0.999
    epsilon: Positive = 1e-8


class RMSProp(Model):
    """RMSProp (Tieleman and Hinton 2012)."""

    factory: ClassVar[str] = "RMSPropOptimizer"
    type: Literal["RMSProp"] = "RMSProp"
    learning_rate: LearningRate
    decay: NotNegative = 0.9
    momentum: NotNegative = 0.0
    epsilon: Positive = 1e-10
    centered: Switch = False


class Ftrl(Model):
    """FTRL-Proximal (McMahan et al. 2013)."""

    factory: ClassVar[str] = "FtrlOptimizer"
    type: Literal["Ftrl"] = "Ftrl"
    learning_rate: LearningRate
    learning_rate_power: Annotated[float, Field(strict=True, allow_inf_nan=False, le=0)] = -0.5
    initial_accumulator_value: NotNegative = 0.1
    l1_regularization_strength: NotNegative = 0.0
    l2_regularization_strength: NotNegative = 0.0
    l2_shrinkage_regularization_strength: NotNegative = 0.0


class LazyAdam(Model):
    """Adam that changes only the rows of embeddings that a batch has."""

    factory: ClassVar[str] = "LazyAdamOptimizer"
    type: Literal["LazyAdam"] = "LazyAdam"
    learning_rate: LearningRate = 0.001
    beta1: NotNegative = 0.9
    beta2: NotNegative = 0.999
    epsilon: Positive = 1e-8


class RowwiseAdagrad(Model):
    """Adagrad with one accumulator for each row of an embedding (Mudigere et al. 2022)."""

    factory: ClassVar[str] = "RowwiseAdagradOptimizer"
    type: Literal["RowwiseAdagrad"] = "RowwiseAdagrad"
    learning_rate: LearningRate
    initial_accumulator_value: NotNegative = 0.1


Optimizer = Annotated[
    Annotated[Literal["Adagrad", "Adam", "Ftrl", "RMSProp", "SGD"], Tag("a name")]
    | Annotated[SGD, Tag("SGD")]
    | Annotated[Momentum, Tag("Momentum")]
    | Annotated[Adagrad, Tag("Adagrad")]
    | Annotated[ProximalAdagrad, Tag("ProximalAdagrad")]
    | Annotated[Adadelta, Tag("Adadelta")]
    | Annotated[Adam, Tag("Adam")]
    | Annotated[RMSProp, Tag("RMSProp")]
    | Annotated[Ftrl, Tag("Ftrl")]
    | Annotated[LazyAdam, Tag("LazyAdam")]
    | Annotated[RowwiseAdagrad, Tag("RowwiseAdagrad")],
    Discriminator(name_or_type),
    Field(description="a name, with the estimator's own learning rate; or {type: Adam, ...}"),
]
OPTIMIZERS = (
    *(SGD, Momentum, Adagrad, ProximalAdagrad, Adadelta, Adam, RMSProp, Ftrl),
    *(LazyAdam, RowwiseAdagrad),
)

# -- common arguments

Activation = Annotated[
    Literal["relu", "relu6", "elu", "selu", "leaky_relu", "tanh", "sigmoid", "softplus"],
    Field(description="the hidden layers' activation (the argument activation_fn)"),
]
Combiner = Literal["sum", "mean", "sqrtn"]
HiddenUnits = Annotated[
    tuple[Count, ...], Field(min_length=1, description="units of each hidden layer")
]
Dropout = Annotated[
    float | None, Field(strict=True, ge=0, lt=1, description="probability to drop a hidden unit")
]


class WarmStart(Model):
    """The source of initial values (`WarmStartSettings`)."""

    ckpt_to_initialize_from: Annotated[Text, Field(description="a checkpoint, or its folder")]
    vars_to_warm_start: Annotated[
        Text, Field(description="a regular expression of variables' names")
    ] = ".*"


WarmStartFrom = Annotated[
    Annotated[Text, Tag("a folder")] | Annotated[WarmStart, Tag("settings")],
    Discriminator(lambda value: "settings" if isinstance(value, dict | WarmStart) else "a folder"),
    Field(description="a model_dir or checkpoint whose values are the first ones"),
]


class EstimatorArguments(Model):
    """The base class; `columns` maps the experiment's keys of feature columns to the argument that
    takes them and whether they must be numeric; those in `optional_columns` may be left out.
    `takes_sequences`: whether the key `sequences` is needed; else it is an error.
    """

    columns: ClassVar[dict[str, tuple[str, bool]]] = {}
    optional_columns: ClassVar[tuple[str, ...]] = ()
    takes_sequences: ClassVar[bool] = False
    type: str


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

    columns = {"features": ("feature_columns", True)}  # noqa: RUF012

    hidden_units: HiddenUnits
    optimizer: Optimizer = "Adagrad"
    activation: Activation = "relu"
    dropout: Dropout = None
    batch_norm: Switch = False
    warm_start_from: WarmStartFrom | None = None


class Linear(Supervised):
    """The common arguments of linear models."""

    columns = {"features": ("feature_columns", False)}  # noqa: RUF012

    optimizer: Optimizer = "Ftrl"
    sparse_combiner: Combiner = "sum"
    warm_start_from: WarmStartFrom | None = None


class Combined(Supervised):
    """The arguments of a linear model combined with a network."""

    columns = {  # noqa: RUF012
        "linear_features": ("linear_feature_columns", False),
        "dnn_features": ("dnn_feature_columns", True),
    }

    linear_optimizer: Optimizer = "Ftrl"
    linear_sparse_combiner: Combiner = "sum"
    dnn_hidden_units: HiddenUnits
    dnn_optimizer: Optimizer = "Adagrad"
    dnn_activation: Activation = "relu"
    dnn_dropout: Dropout = None
    batch_norm: Switch = False
    warm_start_from: WarmStartFrom | None = None


class Recommender(Network):
    """The common arguments of click-through models: embeddings in `features` are fields."""

    columns = {  # noqa: RUF012
        "features": ("feature_columns", True),
        "linear_features": ("linear_feature_columns", False),
    }
    optional_columns = ("linear_features",)

    linear_optimizer: Optimizer = "Ftrl"


class Behaviours(Classifier, Network):
    """The common arguments of models of behaviour sequences; the targets join `features`."""

    optional_columns = ("features",)
    takes_sequences = True

    n_classes: Literal[2] = 2
    activation: Activation | Literal["dice"] = "dice"  # type: ignore[assignment]
    attention_units: HiddenUnits = (80, 40)
    attention_softmax: Annotated[
        Switch, Field(description="whether the attention of a sequence sums to 1")
    ] = False


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

    expert_units: HiddenUnits
    gate_units: Annotated[
        tuple[Count, ...], Field(description="units of each hidden layer of a gate")
    ] = ()


class Baseline(Supervised):
    """The common arguments of models that ignore the features."""

    optimizer: Optimizer = "Ftrl"


# -- estimators


class DNNClassifier(Classifier, Network):
    """A fully connected network for classification."""

    type: Literal["DNNClassifier"] = "DNNClassifier"


class DNNRegressor(Regressor, Network):
    """A fully connected network for regression."""

    type: Literal["DNNRegressor"] = "DNNRegressor"


class LinearClassifier(Classifier, Linear):
    """A linear model for classification."""

    type: Literal["LinearClassifier"] = "LinearClassifier"


class LinearRegressor(Regressor, Linear):
    """A linear model for regression."""

    type: Literal["LinearRegressor"] = "LinearRegressor"


class DNNLinearCombinedClassifier(Classifier, Combined):
    """A wide and deep model (linear model and network) for classification."""

    type: Literal["DNNLinearCombinedClassifier"] = "DNNLinearCombinedClassifier"


class DNNLinearCombinedRegressor(Regressor, Combined):
    """A wide and deep model (linear model and network) for regression."""

    type: Literal["DNNLinearCombinedRegressor"] = "DNNLinearCombinedRegressor"


class BaselineClassifier(Classifier, Baseline):
    """Ignores the features and learns class frequencies."""

    type: Literal["BaselineClassifier"] = "BaselineClassifier"


class BaselineRegressor(Regressor, Baseline):
    """Ignores the features and learns the mean label."""

    type: Literal["BaselineRegressor"] = "BaselineRegressor"


class DeepFM(Classifier, Recommender):
    """A factorization machine beside a network over the same embeddings (arXiv:1703.04247)."""

    type: Literal["DeepFM"] = "DeepFM"


class DCN(Classifier, Recommender):
    """A cross network beside a network (arXiv:1708.05123, arXiv:2008.13535)."""

    type: Literal["DCN"] = "DCN"
    cross_layers: Count = 2
    version: Annotated[
        Literal[1, 2], Field(description="1: cross layers have weight vectors; 2: matrices")
    ] = 2
    rank: Annotated[Count | None, Field(description="of the matrices; null: full ones")] = None
    experts: Annotated[Count, Field(description="low-rank matrices that are mixed")] = 1
    structure: Annotated[
        Literal["parallel", "stacked"],
        Field(description="whether the network is beside the cross network or on top of it"),
    ] = "parallel"

    @model_validator(mode="after")
    def _matrices_fit(self) -> Self:
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


class xDeepFM(Classifier, Recommender):
    """A compressed interaction network beside a network (arXiv:1803.05170)."""

    type: Literal["xDeepFM"] = "xDeepFM"
    cin_layers: Annotated[
        tuple[Count, ...],
        Field(min_length=1, description="feature maps of each compressed interaction layer"),
    ] = (128, 128)
    cin_split_half: Annotated[
        Switch, Field(description="half of the maps feed the next layer, the others the logits")
    ] = False
    cin_activation: Annotated[Activation | None, Field(description="of the maps; null: none")] = (
        None
    )


class AutoInt(Classifier, Recommender):
    """Self-attention among embeddings, beside a network (arXiv:1810.11921)."""

    type: Literal["AutoInt"] = "AutoInt"
    hidden_units: Annotated[
        tuple[Count, ...], Field(description="units of each hidden layer; []: no network")
    ] = ()
    attention_layers: Count = 3
    num_heads: Count = 2
    key_dim: Annotated[Count, Field(description="length of each head's vectors")] = 8
    use_residual: Switch = True


class FiBiNET(Classifier, Recommender):
    """Bilinear products of reweighted embeddings under a network (arXiv:1905.09433)."""

    type: Literal["FiBiNET"] = "FiBiNET"
    bilinear_type: Annotated[
        Literal["all", "each", "interaction"],
        Field(description="one matrix for all, one for each field, or one for each pair"),
    ] = "interaction"
    reduction_ratio: Annotated[Count, Field(description="fields per unit of the weights")] = 3


class DIN(Behaviours):
    """A network over the behaviours that concern the target item (arXiv:1706.06978)."""

    type: Literal["DIN"] = "DIN"


class DIEN(Behaviours):
    """A network over interests that evolve along a sequence (arXiv:1809.03672)."""

    type: Literal["DIEN"] = "DIEN"
    attention_softmax: Annotated[
        Switch, Field(description="whether the attention of a sequence sums to 1")
    ] = True
    auxiliary_weight: Annotated[
        NotNegative, Field(description="of the loss of predicting the next behaviour; 0: none")
    ] = 1.0
    auxiliary_units: HiddenUnits = (100, 50)
    update: Annotated[
        Literal["scale", "replace", "released"],
        Field(description="how the attention changes the update gate"),
    ] = "scale"


class MMoE(Mixture):
    """Experts that all labels share, and a gate for each label (doi:10.1145/3219819.3220007)."""

    type: Literal["MMoE"] = "MMoE"
    num_experts: Count = 3
    expert_units: HiddenUnits = (256, 128)


class PLE(Mixture):
    """Shared experts, and experts of each label, in levels (doi:10.1145/3383313.3412236)."""

    type: Literal["PLE"] = "PLE"
    num_levels: Count = 2
    num_shared_experts: Count = 1
    num_task_experts: Count = 1
    expert_units: HiddenUnits = (256,)


class ESMM(MultiTask):
    """Clicks, and clicks with conversion, of all examples shown (arXiv:1804.07931)."""

    type: Literal["ESMM"] = "ESMM"

    def tasks(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """See `MultiTask.tasks`; the heads are always called `ctr` and `ctcvr`."""
        if len(labels) != 2:
            raise wrong(
                f"names {len(labels)} column(s)",
                at=("data", "label"),
                expected="2 for ESMM: a click, and a click with conversion",
            )
        return ("ctr", "ctcvr")


class KMeans(EstimatorArguments):
    """Clusters examples by distance; there are no labels."""

    columns = {"features": ("feature_columns", True)}  # noqa: RUF012

    type: Literal["KMeans"] = "KMeans"
    num_clusters: Count
    initial_clusters: Literal["random", "kmeans_plus_plus"] = "random"
    distance_metric: Literal["squared_euclidean", "cosine"] = "squared_euclidean"
    use_mini_batch: Switch = True
    mini_batch_steps_per_iteration: Count = 1


class TwoTower(Weighted):
    """A network for users and one for items; there are no labels: rows are pairs of both."""

    columns = {  # noqa: RUF012
        "user_features": ("user_feature_columns", True),
        "item_features": ("item_feature_columns", True),
    }

    type: Literal["TwoTower"] = "TwoTower"
    user_hidden_units: tuple[Count, ...] = ()
    item_hidden_units: tuple[Count, ...] = ()
    embedding_dimension: Count = 32
    item_id: Annotated[
        Text | None, Field(description="the column with the ids of items, which item_features read")
    ] = None
    normalize: Annotated[Switch, Field(description="whether embeddings have the length 1")] = True
    temperature: Annotated[Positive, Field(description="divides the scores in the loss")] = 0.05
    estimate_sampling_probability: Annotated[
        Switch, Field(description="correct the softmax by how often items occur; needs item_id")
    ] = False
    frequency_buckets: Count = 1 << 17
    frequency_hashes: Count = 1
    frequency_rate: Annotated[float, Field(strict=True, gt=0, le=1)] = 0.01
    top_k: Annotated[tuple[Count, ...], Field(description="the k of metrics")] = (1, 10, 100)
    optimizer: Optimizer = "Adagrad"
    activation: Activation = "relu"
    dropout: Dropout = None
    batch_norm: Switch = False
    warm_start_from: WarmStartFrom | None = None

    @model_validator(mode="after")
    def _has_ids(self) -> Self:
        if self.estimate_sampling_probability and self.item_id is None:
            raise wrong(
                "needs the ids of items",
                at=("estimate_sampling_probability",),
                expected="item_id: a column",
            )
        return self


Estimator = Annotated[
    DNNClassifier
    | DNNRegressor
    | LinearClassifier
    | LinearRegressor
    | DNNLinearCombinedClassifier
    | DNNLinearCombinedRegressor
    | BaselineClassifier
    | BaselineRegressor
    | DeepFM
    | DCN
    | xDeepFM
    | AutoInt
    | FiBiNET
    | DIN
    | DIEN
    | MMoE
    | PLE
    | ESMM
    | KMeans
    | TwoTower,
    Field(discriminator="type"),
]
