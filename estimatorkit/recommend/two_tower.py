"""`TwoTower`: retrieval by a network for users and one for items.

Variables: `user_tower/...` and `item_tower/...`, each as a deep network's (`dnn`), whose logits are
the embeddings.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import Graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.layers.feature_column import (
    FeatureColumn,
    make_parse_example_spec,
    normalize_columns,
)
from estimatorkit.ops.array import array, joining
from estimatorkit.ops.nn import nn
from estimatorkit.ops.sparse.joining import sparse_concat
from estimatorkit.ops.text.fingerprints import fingerprints
from estimatorkit.ops.variables.variable_scope import variable_scope
from estimatorkit.premade.dnn import (
    Activation,
    check_dropout,
    checked_units,
    layered_logits,
    optimizer_of,
)
from estimatorkit.premade.parts import OptimizerLike, Part, Premade
from estimatorkit.recommend.item_frequency import ItemFrequency
from estimatorkit.recommend.retrieval_head import (
    CATALOGUE,
    ITEM,
    NEGATIVE,
    USER,
    Catalogue,
    RetrievalHead,
    feature_column_of,
)
from estimatorkit.train.saving.column_notes import note_columns

_ESTIMATED = "estimated_sampling_probability"


@dataclass(frozen=True)
class Tower:
    """A network from features to embeddings.

    Attributes:
        name: the variable scope.
        columns: its dense feature columns.
        hidden_units: the width of each hidden layer.
        dimension: the size of the embeddings.
        normalize: whether they have the length 1.
        activation_fn, dropout, batch_norm: see `dnn_logits`.
    """

    name: str
    columns: Sequence[FeatureColumn]
    hidden_units: Sequence[int]
    dimension: int
    normalize: bool
    activation_fn: Activation
    dropout: float | None
    batch_norm: bool

    @property
    def keys(self) -> tuple[str, ...]:
        """The features that it reads."""
        return tuple(make_parse_example_spec(self.columns))

    def __call__(self, features: Any, mode: str, reuse: bool | None = None) -> Tensor:
        """The embeddings of a batch, float32 `(batch, dimension)`."""
        note_columns(self.name, (column.name for column in self.columns))
        with variable_scope(self.name, reuse=reuse):
            embedding = layered_logits(
                features,
                mode,
                self.dimension,
                self.hidden_units,
                self.columns,
                activation_fn=self.activation_fn,
                dropout=self.dropout,
                batch_norm=self.batch_norm,
                partitioner=None,
                outer=None,
            )
        return nn.l2_normalize(embedding, 1) if self.normalize else embedding


@dataclass(frozen=True)
class _Towers:
    """The logits of a `RetrievalHead`; see `TwoTower` for the attributes."""

    user: Tower
    item: Tower
    item_id: str | None
    sampling_probability: str | None
    frequency: ItemFrequency | None
    negative_prefix: str | None
    candidates: Callable[[], Any] | None

    def __call__(self, features: Any, mode: str, units: int) -> dict[str, Any]:
        if not isinstance(features, dict):
            raise value_error("a TwoTower's features are a dict", received=f"{features!r:.200}")
        if mode == ModeKeys.PREDICT:
            towers = [each for each in (self.user, self.item) if features.keys() >= {*each.keys}]
            if len(towers) == 1:
                name = USER if towers[0] is self.user else ITEM
                return {name: towers[0](features, mode)}
            return {USER: self.user(features, mode), ITEM: self.item(features, mode)}
        if self.negative_prefix is not None:
            features.update(self._with_negatives(features, self.negative_prefix))
        found: dict[str, Any] = {USER: self.user(features, mode)}
        items = self.item(features, mode)
        if self.negative_prefix is None:
            found[ITEM] = items
        else:
            batch = array.shape(found[USER])[0]
            found[ITEM], found[NEGATIVE] = items[:batch], items[batch:]
        if self.frequency is not None:
            ids = fingerprints(feature_column_of(features, self.item_id))
            features[_ESTIMATED] = self.frequency.probability(ids, mode == ModeKeys.TRAIN)
        if mode == ModeKeys.EVAL and self.candidates is not None:
            found[CATALOGUE] = self._catalogue(self.candidates)
        return found

    def _with_negatives(self, features: Mapping[str, Any], prefix: str) -> dict[str, Any]:
        """The items' features of the batch, followed by those of the negatives."""
        keys = dict.fromkeys([*self.item.keys, self.item_id, self.sampling_probability])
        shared = [key for key in self.user.keys if key in keys]
        if shared:
            raise value_error(
                "with negatives, users and items cannot have a feature in common",
                received=", ".join(shared),
            )
        missing = [f"{prefix}{key}" for key in keys if key and f"{prefix}{key}" not in features]
        if missing:
            raise value_error(
                "negatives need every feature of an item",
                expected=", ".join(f"{prefix}{key}" for key in keys if key),
                received=f"no {', '.join(missing)}",
            )
        return {key: _appended(features[key], features[f"{prefix}{key}"]) for key in keys if key}

    def _catalogue(self, candidates: Callable[[], Any]) -> Catalogue:
        """All items; their embeddings are computed where local variables are initialized, which is
        once an evaluation.
        """
        rows = {key: convert_to_tensor(values) for key, values in rows_of(candidates).items()}
        ids = fingerprints(feature_column_of(rows, self.item_id))
        embeddings = self.item(rows, ModeKeys.PREDICT, reuse=True)
        variables = [
            Variable(
                value, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES], name=CATALOGUE
            )
            for value in (embeddings, ids)
        ]
        return Catalogue(*variables)


def _appended(items: Any, negatives: Any) -> Any:
    """Rows of items, and those of negatives: `(rows, ...)` or `(batch, n, ...)`."""
    if isinstance(items, SparseTensor) or isinstance(negatives, SparseTensor):
        return sparse_concat(0, [items, negatives], expand_nonconcat_dims=True)
    first, others = convert_to_tensor(items), convert_to_tensor(negatives)
    whole = array.shape(first)
    dims = [whole[axis] if dim is None else dim for axis, dim in enumerate(first.shape.dims or ())]
    return joining.concat([first, array.reshape(others, [-1, *dims[1:]])], 0)


def rows_of(input_fn: Callable[[], Any]) -> dict[str, NDArray[Any]]:
    """The features of all batches of an input, as arrays.

    Args:
        input_fn: returns a `Dataset` of batches of features, or features as arrays.

    Raises:
        ValueError: there are none, or they are not a dict of dense values.
    """
    with Graph().as_default():
        given = input_fn()
        batches = [given] if isinstance(given, Mapping) else list(given.as_numpy_iterator())
    batches = [each[0] if isinstance(each, tuple) else each for each in batches]
    if not batches or not isinstance(batches[0], Mapping):
        raise value_error(
            "candidates are features of items by name",
            expected="a Dataset of batches of dicts, or a dict of arrays",
            received=f"{given!r:.200}",
        )
    return {key: np.concatenate([np.asarray(each[key]) for each in batches]) for key in batches[0]}


class TwoTower(Premade):
    """Retrieval: a network for users, one for items, and the inner product of their embeddings.

    Trained on pairs of a user and an item, such as clicks, by an in-batch sampled softmax: each
    user is to tell its own item from those of the others in the batch (see `RetrievalHead`). Yi et
    al., "Sampling-Bias-Corrected Neural Modeling for Large Corpus Item Recommendations" (RecSys
    2019); `tfrs.tasks.Retrieval`.

    Example:
        ```python
        import estimatorkit as tf

        def embedded(key, words):
            words = tf.feature_column.categorical_column_with_vocabulary_list(key, words)
            return tf.feature_column.embedding_column(words, 32)

        model = tf.estimator.TwoTower(
            [embedded("user", users)], [embedded("movie", movies)], item_id="movie"
        )
        model.train(lambda: tf.data.Dataset.from_tensor_slices(clicks).shuffle(10_000).batch(512))
        ```

    Features: those of the columns, the ids and the weight column; there are no labels. If
    `predict` or a serving input has the features of one tower only, the other is omitted.

    Metrics of `evaluate`: `average_loss` (weighted mean over examples), `loss` (mean over batches),
    `in_batch_top_<k>_accuracy`; with `candidates` also `recall_at_<k>`; `global_step`. Predictions,
    for each example: `user_embedding`, `item_embedding`, `score`, and with an `item_id` feature
    `item_id`. Exports have the signatures `user` and `item` (features to embeddings) and
    `serving_default` (the scores of pairs); see `export_candidates` for those of the best items.

    Args:
        user_feature_columns: dense columns of users.
        item_feature_columns: dense columns of items.
        user_hidden_units: the width of each hidden layer of the users' network; none by default.
        item_hidden_units: those of the items'.
        embedding_dimension: the size of the embeddings.
        model_dir: where checkpoints and logs go; a temporary folder by default.
        item_id: the key of the items' ids, strings or integers, one per item: items with the id of
            the user's own item are not negatives. None (default): every other item of a batch is.
        normalize: whether embeddings have the length 1 (default), so that scores are cosines.
        temperature: divides the scores in the loss; 0.05 by default, for cosines.
        sampling_probability: the key of the probability with which an item is in a batch, for the
            correction of the softmax; None (default) for no correction.
        estimate_sampling_probability: whether to estimate that probability from the batches
            (`ItemFrequency`); needs `item_id`. False by default.
        frequency_buckets: the number of buckets of the estimation; 2**17 by default.
        frequency_hashes: the number of its hash functions; 1 by default.
        frequency_rate: the share of the newest interval in its moving average; 0.01 by default.
        negative_prefix: for further negatives, shared by a batch: features whose key is this and
            that of an item's feature (with ids and probability) hold rows of items `(rows, ...)`,
            or n of each example, `(batch, n, ...)`. None (default) for none. An estimated
            probability counts them as items of the batch.
        candidates: for `recall_at_<k>`, all items: a function that returns a `Dataset` of batches
            of items' features, or features as arrays; needs `item_id`. They are held in memory, and
            a batch is compared with all of them. None (default) for no such metrics.
        top_k: the numbers k of metrics.
        weight_column: the key or `NumericColumn` of the examples' weights in the loss and the
            metrics; None (default) for weights of 1.
        optimizer: an `Optimizer`, a function without arguments that returns one, or a name, as for
            `DNNClassifier`; 'Adagrad' by default.
        activation_fn: applied after each hidden layer; `nn.relu` by default, None for none.
        dropout: the probability of dropping an output of a hidden layer in training; None (default)
            for no dropout.
        batch_norm: whether to normalize after each hidden layer; False by default.
        config: a `RunConfig`.
        warm_start_from: see `Estimator`.
        loss_reduction: 'sum_over_batch_size' (default: the mean over the batch), 'sum', or another
            of `losses.Reduction`, but not NONE.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        user_feature_columns: FeatureColumn | Iterable[FeatureColumn],
        item_feature_columns: FeatureColumn | Iterable[FeatureColumn],
        user_hidden_units: Iterable[int] = (),
        item_hidden_units: Iterable[int] = (),
        embedding_dimension: int = 32,
        model_dir: str | os.PathLike[str] | None = None,
        item_id: str | None = None,
        normalize: bool = True,
        temperature: float = 0.05,
        sampling_probability: str | None = None,
        estimate_sampling_probability: bool = False,
        frequency_buckets: int = 131_072,
        frequency_hashes: int = 1,
        frequency_rate: float = 0.01,
        negative_prefix: str | None = None,
        candidates: Callable[[], Any] | None = None,
        top_k: Sequence[int] = (1, 10, 100),
        weight_column: Any = None,
        optimizer: OptimizerLike = "Adagrad",
        activation_fn: Activation = nn.relu,
        dropout: float | None = None,
        batch_norm: bool = False,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = "sum_over_batch_size",
    ) -> None:
        frequency = None
        if estimate_sampling_probability:
            if sampling_probability is not None:
                raise value_error(
                    "the sampling probability is either a feature or estimated",
                    expected="sampling_probability or estimate_sampling_probability",
                    received="both",
                )
            frequency = ItemFrequency(frequency_buckets, frequency_hashes, frequency_rate)
        if item_id is None and (frequency is not None or candidates is not None):
            raise value_error(
                "candidates and an estimated sampling probability need the items' ids",
                expected="item_id, the key of a feature",
                received=None,
            )
        check_dropout(dropout)
        head = RetrievalHead(
            embedding_dimension,
            temperature,
            item_id,
            _ESTIMATED if frequency is not None else sampling_probability,
            weight_column,
            loss_reduction,
            top_k,
        )
        user, item = (
            Tower(
                f"{name}_tower",
                normalize_columns(columns),
                checked_units(hidden_units),
                embedding_dimension,
                normalize,
                activation_fn,
                dropout,
                batch_norm,
            )
            for name, columns, hidden_units in (
                (USER, user_feature_columns, user_hidden_units),
                (ITEM, item_feature_columns, item_hidden_units),
            )
        )
        towers = _Towers(
            user, item, item_id, sampling_probability, frequency, negative_prefix, candidates
        )

        columns = [*user.columns, *item.columns]
        part = Part(towers, lambda: optimizer_of(optimizer), columns=columns)
        super().__init__(head, [part], model_dir, config, warm_start_from)


__all__ = ["Tower", "TwoTower", "rows_of"]
