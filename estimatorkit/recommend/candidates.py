"""`export_candidates`: an exported model that holds its items and answers with the best for a user.

The items' embeddings and ids are variables of the exported graph, so that a server, which knows
nothing of them, multiplies a user's embedding by all in one call.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import as_dtype, float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.estimator.extenders import extended
from estimatorkit.estimator.serving.export_outputs import ExportOutput
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.estimator.warm_starting import not_trained
from estimatorkit.ops.array import indexing
from estimatorkit.ops.array.ranking import top_k
from estimatorkit.ops.math import linalg
from estimatorkit.ops.nn.nearest_neighbors import nearest_neighbors
from estimatorkit.ops.variables.initializers import Zeros
from estimatorkit.ops.variables.variable_collections import global_variables
from estimatorkit.ops.variables.variable_scope import get_variable, variable_scope
from estimatorkit.recommend.retrieval_head import (
    ITEM_EMBEDDING,
    ITEM_ID,
    USER_EMBEDDING,
    OutputOfItsInputs,
)
from estimatorkit.train.saving.saved_model_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from estimatorkit.train.saving.saver import Saver
from estimatorkit.train.sessions.scaffold import Scaffold

TOP_K, APPROXIMATE_TOP_K = "top_k", "approximate_top_k"

Array = NDArray[Any]


def export_candidates(
    estimator: Any,
    export_dir_base: str | os.PathLike[str],
    serving_input_receiver_fn: Callable[[], Any],
    items_input_fn: Callable[[], Any],
    k: int = 10,
    approximate: bool = False,
    checkpoint_path: str | os.PathLike[str] | None = None,
    **options: Any,
) -> bytes:
    """Exports a retrieval model with all items, as `Estimator.export_saved_model`.

    The signature `top_k`, which is also `serving_default`, maps the features of users to `ids`
    `(batch, k)`, those of the items of highest score, and `scores`, float32 `(batch, k)`, both in
    descending order of scores. It is exact: the product with all items. The other signatures are
    the model's own; that of pairs is `score`.

    Args:
        estimator: a `TwoTower` with an `item_id`, or another estimator whose predictions are
            `user_embedding`, `item_embedding` and `item_id`.
        export_dir_base: the folder of the exports.
        serving_input_receiver_fn: makes a `ServingInputReceiver`; the features of users are enough.
        items_input_fn: the features of all items, each once, as for `predict`.
        k: the number of items to answer with; 10 by default.
        approximate: whether there is also the signature `approximate_top_k`, then the default,
            which finds the items by an index of faiss (the extra `ann`), built when the model is
            loaded; for millions of items. TensorFlow's SavedModel in the folder then has neither
            this signature nor the initialization of tables. False by default.
        checkpoint_path: the checkpoint; the newest by default.
        options: other arguments of `export_saved_model`.

    Returns:
        The path of the export, as bytes.

    Raises:
        ValueError: the model is not trained, its predictions lack something, an id is not unique,
            or there are fewer than k items.
        ImportError: faiss is not installed.
    """
    checkpoint = estimator._checkpoint_or_none(checkpoint_path)
    if checkpoint is None:
        raise not_trained(estimator.model_dir)
    candidates = _Candidates.of(estimator, items_input_fn, checkpoint)
    if not 1 <= k <= len(candidates.ids):
        raise value_error(
            "k does not fit the number of items",
            expected=f"1 <= k <= {len(candidates.ids)} items",
            received=k,
        )

    def extend(spec: EstimatorSpec, features: Any, labels: Any, config: Any) -> EstimatorSpec:
        if spec.mode != ModeKeys.PREDICT:
            return spec
        _check_predictions(spec.predictions, [USER_EMBEDDING], "serving_input_receiver_fn")
        user = spec.predictions[USER_EMBEDDING]
        embeddings, ids = candidates.variables()
        saver = _WithCandidates(
            spec.scaffold.saver, {embeddings: candidates.embeddings, ids: candidates.ids}
        )
        best = top_k(linalg.matmul(user, embeddings, transpose_b=True), k)
        outputs: dict[str, ExportOutput] = {TOP_K: _output(ids, best.values, best.indices)}
        if approximate:
            outputs[APPROXIMATE_TOP_K] = _output(ids, *nearest_neighbors(user, embeddings, k))
        default = outputs[APPROXIMATE_TOP_K if approximate else TOP_K]
        return spec._replace(
            export_outputs={
                **(spec.export_outputs or {}),
                **outputs,
                DEFAULT_SERVING_SIGNATURE_DEF_KEY: default,
            },
            scaffold=Scaffold(saver=saver, copy_from_scaffold=spec.scaffold),
        )

    path: bytes = extended(estimator, extend).export_saved_model(
        export_dir_base, serving_input_receiver_fn, checkpoint_path=checkpoint, **options
    )
    return path


def _output(ids: Variable, scores: Tensor, places: Tensor) -> OutputOfItsInputs:
    return OutputOfItsInputs({"ids": indexing.gather(ids, places), "scores": scores})


def _check_predictions(predictions: Any, keys: list[str], source: str) -> None:
    known = list(predictions) if isinstance(predictions, Mapping) else []
    missing = [key for key in keys if key not in known]
    if missing:
        raise value_error(
            f"the model's predictions lack {', '.join(missing)}",
            expected=", ".join(keys),
            received=", ".join(map(str, known)) or "none",
            hint=f"the features of {source} must be those of the tower, and of item_id",
        )


@dataclass(frozen=True)
class _Candidates:
    """All items: float32 `(items, dimension)`, and ids `(items,)`."""

    embeddings: Array
    ids: Array

    @staticmethod
    def of(estimator: Any, items_input_fn: Callable[[], Any], checkpoint: str) -> _Candidates:
        wanted = [ITEM_EMBEDDING, ITEM_ID]
        found: dict[str, list[Array]] = {key: [] for key in wanted}
        for batch in estimator.predict(
            items_input_fn, checkpoint_path=checkpoint, yield_single_examples=False
        ):
            _check_predictions(batch, wanted, "items_input_fn")
            for key in wanted:
                found[key].append(batch[key])
        if not found[ITEM_ID]:
            raise value_error("items_input_fn has no items", expected="at least one batch")
        embeddings, ids = (np.concatenate(found[key]) for key in wanted)
        distinct, counts = np.unique(ids, return_counts=True)
        if len(distinct) != len(ids):
            raise value_error(
                "items_input_fn repeats an item",
                expected="each id once",
                received=f"{distinct.tolist()[counts.argmax()]!r} {counts.max()} times",
            )
        return _Candidates(embeddings, ids)

    def variables(self) -> tuple[Variable, Variable]:
        """Variables of their shapes, in the graph in force."""
        with variable_scope("candidates"):
            embeddings, ids = (
                get_variable(name, values.shape, dtype, Zeros(), trainable=False)
                for name, values, dtype in (
                    ("embeddings", self.embeddings, float32),
                    ("ids", self.ids, as_dtype(self.ids.dtype)),
                )
            )
        return embeddings, ids


class _WithCandidates(Saver):
    """Restores a model from its checkpoint, and variables that are not in it from arrays.

    Args:
        inner: the model's own saver, if it has one.
        values: by variable.
    """

    def __init__(self, inner: Saver | None, values: Mapping[Variable, Array]) -> None:
        super().__init__()
        others = [each for each in global_variables() if all(each is not new for new in values)]
        self._inner = inner or Saver(others)
        self._values = dict(values)

    def restore(self, sess: Any, save_path: str | os.PathLike[str] | None) -> None:
        """See `Saver`."""
        self._inner.restore(sess, save_path)
        for variable, value in self._values.items():
            variable.load(value, sess)


__all__ = ["export_candidates"]
