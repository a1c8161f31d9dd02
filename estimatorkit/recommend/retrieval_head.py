"""`RetrievalHead`: trains embeddings of users and items by an in-batch sampled softmax.

The items of a batch are the classes for each of its users. As they are sampled by popularity,
their logits are corrected by the logarithm of the sampling probability.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32, int32
from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.estimator.serving.export_outputs import ExportOutput, PredictOutput
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.layers import metrics
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.linalg.diagonals import matrix_diag_part
from estimatorkit.ops.math import elementwise, linalg, reduce
from estimatorkit.ops.nn import nn
from estimatorkit.ops.text.fingerprints import fingerprints
from estimatorkit.premade.head import Metrics
from estimatorkit.premade.label_checks import weights_of
from estimatorkit.premade.single_head import SUM_OVER_BATCH_SIZE, Batch, SingleHead
from estimatorkit.train.saving.saved_model_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY

USER, ITEM, NEGATIVE, CATALOGUE = "user", "item", "negative", "catalogue"
USER_EMBEDDING, ITEM_EMBEDDING = "user_embedding", "item_embedding"
SCORE, ITEM_ID = "score", "item_id"

_LEAST_PROBABILITY = 1e-6  # as in TensorFlow Recommenders' SamplingProbablityCorrection
_LEAST_LOGIT = float(np.finfo(np.float32).min) / 100  # as there, for accidental hits


class Catalogue(NamedTuple):
    """All items that can be retrieved.

    Attributes:
        embeddings: float32 `(items, dimension)`.
        fingerprints: of their ids, int64 `(items,)`.
    """

    embeddings: Any
    fingerprints: Any


class RetrievalHead(SingleHead):
    """Retrieval of items for users by the inner product of their embeddings.

    The loss of an example is the softmax cross-entropy of its item among all candidates: the items
    of the batch and further negatives,

        -log softmax(<user, item_j> / temperature - log(probability_j))[own item],

    excluding candidates with the id of the user's own item (accidental hits). This is the loss of
    `tfrs.tasks.Retrieval`, with the sampling bias correction of Yi et al., "Sampling-Bias-Corrected
    Neural Modeling for Large Corpus Item Recommendations" (RecSys 2019).

    Logits: a dict of 'user' and 'item', float32 `(batch, dimension)`, of which predictions need one
    only; further items as 'negative', float32 `(negatives, dimension)`; and for metrics a
    `Catalogue` as 'catalogue'. Candidates are the items of the batch, then the negatives. There are
    no labels.

    Predictions: `user_embedding` and `item_embedding`, float32 `(batch, dimension)`; with both
    `score`, their inner product, float32 `(batch,)`; and `item_id`, the feature of that name.

    Metrics: `average_loss`, and `in_batch_top_<k>_accuracy`: how often the own item is among the k
    candidates of highest score, without correction. With a catalogue also `recall_at_<k>`: how
    often it is among the k best of all items, which is the hit rate, as each example has one item.

    Under a strategy with several replicas, the candidates are those of a replica.

    Args:
        embedding_dimension: the size of the embeddings.
        temperature: divides the scores in the loss; 1 by default.
        item_id: the key of the feature with the ids of the candidates, strings or integers
            `(candidates,)` or `(candidates, 1)`; None (default): accidental hits are not left out.
        sampling_probability: the key of the feature with the probability that a candidate is among
            those of a batch, `(candidates,)` or `(candidates, 1)`, clipped to [1e-6, 1]; None
            (default) for no correction.
        weight_column: the key or `NumericColumn` of the examples' weights in the loss and the
            metrics; None (default) for weights of 1.
        loss_reduction: 'sum_over_batch_size' (default: the mean over the batch), 'sum' (as in
            TensorFlow Recommenders), or another of `losses.Reduction`, but not NONE.
        top_k: the numbers of best candidates for metrics.
        name: the head's name, appended to the keys of metrics as `/name`; None by default.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        embedding_dimension: int,
        temperature: float = 1.0,
        item_id: str | None = None,
        sampling_probability: str | None = None,
        weight_column: Any = None,
        loss_reduction: str = SUM_OVER_BATCH_SIZE,
        top_k: Sequence[int] = (1, 10, 100),
        name: str | None = None,
    ) -> None:
        if embedding_dimension < 1:
            raise value_error(
                "embedding_dimension must be positive",
                expected=">= 1",
                received=embedding_dimension,
            )
        if not temperature > 0:
            raise value_error("temperature must be positive", expected="> 0", received=temperature)
        if any(k < 1 for k in top_k):
            raise value_error("top_k must be positive", expected="ints >= 1", received=list(top_k))
        super().__init__(embedding_dimension, 1, weight_column, loss_reduction, None, name)
        self._temperature = float(temperature)
        self._item_id = item_id
        self._sampling_probability = sampling_probability
        self._top_k = tuple(top_k)

    # -- predictions

    @property
    def prediction_keys(self) -> tuple[str, ...]:
        """The keys of `predictions`."""
        return (USER_EMBEDDING, ITEM_EMBEDDING, SCORE)

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, Tensor]:
        """Predictions by key: those that the given embeddings have.

        Args:
            logits: embeddings by 'user' and 'item'.
            keys: the keys to compute; all by default.

        Raises:
            ValueError: a key is unknown, or the logits have the wrong shape.
        """
        for key in keys or ():
            if key not in self.prediction_keys:
                raise value_error(
                    f"Prediction key must be in PredictionKeys, given: {key}",
                    expected=f"some of {self.prediction_keys}",
                    hint=did_you_mean(key, self.prediction_keys),
                )
        given = self._embeddings(logits)
        found: dict[Any, Tensor] = {}
        with get_default_graph().name_scope("predictions"):
            if USER in given:
                found[USER_EMBEDDING] = builtin_ops.identity(given[USER], USER_EMBEDDING)
            if ITEM in given:
                found[ITEM_EMBEDDING] = builtin_ops.identity(given[ITEM], ITEM_EMBEDDING)
            if len(found) == 2:
                product = found[USER_EMBEDDING] * found[ITEM_EMBEDDING]
                found[SCORE] = reduce.reduce_sum(product, 1, name=SCORE)
        return {key: value for key, value in found.items() if keys is None or key in keys}

    def create_estimator_spec(
        self, features: Mapping[str, Any], mode: str, *args: Any, **kwargs: Any
    ) -> EstimatorSpec:
        """See `Head`; predictions have the items' ids, too."""
        spec = super().create_estimator_spec(features, mode, *args, **kwargs)
        if mode != ModeKeys.PREDICT or self._item_id not in features:
            return spec
        ids = feature_column_of(features, self._item_id)
        return spec._replace(predictions={**spec.predictions, ITEM_ID: ids})

    def _embeddings(self, logits: Any) -> dict[str, Tensor]:
        known = {USER, ITEM, NEGATIVE, CATALOGUE}
        if not isinstance(logits, Mapping) or not logits or logits.keys() - known:
            raise value_error(
                "the logits of a RetrievalHead are embeddings by name",
                expected=f"a dict of {USER!r} and {ITEM!r}",
                received=f"{logits!r:.200}",
            )
        return {key: self._checked_logits(logits[key]) for key in logits if key != CATALOGUE}

    def _export_outputs(self, predictions: Mapping[Any, Tensor]) -> dict[str, ExportOutput]:
        outputs: dict[str, ExportOutput] = {}
        if SCORE in predictions:
            pairs = PredictOutput({SCORE: predictions[SCORE]})
            outputs.update({DEFAULT_SERVING_SIGNATURE_DEF_KEY: pairs, SCORE: pairs})
        for name, key in ((USER, USER_EMBEDDING), (ITEM, ITEM_EMBEDDING)):
            if key in predictions:
                outputs[name] = OutputOfItsInputs({key: predictions[key]})
        return outputs

    def _predict(self, logits: Tensor, keys: Iterable[str]) -> dict[str, Tensor]:
        return {}  # `predictions` takes two tensors

    # -- loss and metrics

    def _batch(
        self, features: Any, logits: Any, labels: Any, counted: Tensor | None = None
    ) -> Batch:
        """Each user's scores of the candidates, and the loss of the own one."""
        given = self._embeddings(logits)
        if USER not in given or ITEM not in given:
            raise value_error(
                "the loss needs embeddings of users and of items",
                expected=f"a dict of {USER!r} and {ITEM!r}",
                received=list(given),
            )
        if labels is not None:
            raise value_error(
                "a RetrievalHead takes no labels: an example is a user and an item",
                received=labels,
                hint="give the labels' influence as weights (weight_column)",
            )
        users = given[USER]
        items = joining.concat([given[key] for key in (ITEM, NEGATIVE) if key in given], 0)
        scores = linalg.matmul(users, items, transpose_b=True)
        hits = None if self._item_id is None else self._accidental_hits(features, users, items)
        corrected = _without(hits, scores / self._temperature - self._log_probability(features))
        targets = self._targets(labels, users)
        unweighted = self._unweighted_loss(targets, corrected)
        weights = weights_of(features or {}, self._weight_column, unweighted, False)
        catalogue = logits.get(CATALOGUE)
        return _Retrieved(
            _without(hits, scores),
            targets,
            weights,
            unweighted,
            targets,
            users,
            catalogue,
            features,
        )

    def _log_probability(self, features: Any) -> Any:
        """The logarithm of the candidates' sampling probability, `(1, candidates)`."""
        key = self._sampling_probability
        if key is None:
            return 0.0
        given = elementwise.cast(feature_column_of(features, key), float32)
        return elementwise.log(elementwise.clip_by_value(given, _LEAST_PROBABILITY, 1.0))[None, :]

    def _accidental_hits(self, features: Any, users: Tensor, items: Tensor) -> Tensor:
        """Whether a candidate is the own item, in another place; bool `(batch, candidates)`."""
        ids = fingerprints(feature_column_of(features, self._item_id))
        own, every = (filling.range_(array.shape(each)[0]) for each in (users, items))
        same = elementwise.equal(indexing.gather(ids, own)[:, None], ids[None, :])
        return elementwise.logical_and(same, elementwise.not_equal(own[:, None], every[None, :]))

    def _targets(self, labels: Any, logits: Tensor) -> Tensor:
        return filling.range_(array.shape(logits)[0])[:, None]

    def _unweighted_loss(self, targets: Tensor, logits: Tensor) -> Tensor:
        loss = nn.sparse_softmax_cross_entropy_with_logits(labels=targets[:, 0], logits=logits)
        return loss[:, None]

    def _metrics(self, batch: Any) -> Metrics:
        own = matrix_diag_part(batch.logits)[:, None]
        found = self._hit_rates("in_batch_top_{}_accuracy", batch.logits, own, batch.weights)
        if batch.catalogue is not None:
            scores = linalg.matmul(batch.users, batch.catalogue.embeddings, transpose_b=True)
            ids = fingerprints(feature_column_of(batch.features, self._item_id))
            there = indexing.gather(ids, batch.targets)
            # The two scores of the user's own item, within and outside the batch, may differ by
            # rounding.
            others = _without(elementwise.equal(there, batch.catalogue.fingerprints), scores)
            found.update(self._hit_rates("recall_at_{}", others, own, batch.weights))
        return found

    def _hit_rates(self, key: str, scores: Tensor, own: Tensor, weights: Tensor | None) -> Metrics:
        """How often fewer than k scores are better than that of the own item, for each k."""
        better = elementwise.cast(elementwise.greater(scores, own), int32)
        rank = reduce.reduce_sum(better, 1, keepdims=True)
        return {
            (name := key.format(k)): metrics.mean(
                elementwise.cast(elementwise.less(rank, k), float32), weights, name=name
            )
            for k in self._top_k
        }


@dataclass(frozen=True)
class _Retrieved(Batch):
    """A batch whose logits are the scores of every candidate for each user.

    Attributes:
        users: the users' embeddings.
        catalogue: all items, or None.
        features: the features.
    """

    users: Tensor
    catalogue: Catalogue | None
    features: Any


class OutputOfItsInputs(PredictOutput):
    """A `PredictOutput` whose signature has only those inputs on which its outputs depend."""

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """See `ExportOutput`."""
        needed: dict[Operation, None] = {each.op: None for each in self.outputs.values()}
        queue = list(needed)
        while queue:
            op = queue.pop()
            above = [*(each.op for each in op.inputs), *op.control_inputs]
            queue += [each for each in above if each not in needed]
            needed.update(dict.fromkeys(above))
        taken = {
            key: tensor
            for key, tensor in receiver_tensors.items()
            if any(
                each.op in needed
                for each in (tensor._components() if isinstance(tensor, SparseTensor) else [tensor])
            )
        }
        return super().as_signature_def(taken)


def _without(hits: Tensor | None, scores: Tensor) -> Tensor:
    """Scores that are as low as possible where there is a hit."""
    if hits is None:
        return scores
    return indexing.where(hits, filling.ones_like(scores) * _LEAST_LOGIT, scores)


def feature_column_of(features: Any, key: Any) -> Tensor:
    """A feature with one value each, as `(rows,)`.

    Raises:
        ValueError: it is missing, or has several values.
    """
    if not isinstance(features, Mapping) or key not in features:
        known = [str(each) for each in features] if isinstance(features, Mapping) else []
        raise value_error(
            f"feature {key!r} is missing",
            expected=f"features with {key!r}, one value for each candidate",
            received=", ".join(known) or "none",
            hint=did_you_mean(str(key), known),
        )
    tensor = convert_to_tensor(features[key])
    if tensor.shape.rank != 1 and (tensor.shape.rank != 2 or tensor.shape[1] not in (1, None)):
        raise value_error(
            f"feature {key!r} must have one value for each candidate",
            expected="shape (candidates,) or (candidates, 1)",
            received=f"{tensor.name} {tensor.shape}",
            made_at=tensor.op.source,
        )
    return array.reshape(tensor, [-1])


__all__ = [
    "CATALOGUE",
    "Catalogue",
    "ITEM",
    "ITEM_EMBEDDING",
    "ITEM_ID",
    "NEGATIVE",
    "OutputOfItsInputs",
    "RetrievalHead",
    "SCORE",
    "USER",
    "USER_EMBEDDING",
    "feature_column_of",
]
