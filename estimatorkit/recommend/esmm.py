"""Entire space multi-task model: `ESMM`.

Variables: `esmm/input_from_feature_columns/...`, and for `ctr` and `cvr`
`esmm/<task>/hiddenlayer_<i>/{kernel,bias}`, `esmm/<task>/logits/{kernel,bias}`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.layers.feature_column import FeatureColumn
from estimatorkit.ops.array import joining
from estimatorkit.ops.math import reduce
from estimatorkit.ops.nn import nn
from estimatorkit.premade.classification_heads import BinaryClassHead
from estimatorkit.premade.dnn import Activation
from estimatorkit.premade.multi_head import MultiHead
from estimatorkit.premade.parts import OptimizerLike, Premade
from estimatorkit.recommend.mmoe import multi_task_part


def logit_of_product(one: Tensor, other: Tensor) -> Tensor:
    """The logit of sigmoid(one) * sigmoid(other), without overflow or cancellation.

    It is -log(exp(-one) + exp(-other) + exp(-one - other)).
    """
    return -reduce.reduce_logsumexp(joining.stack([-one, -other, -one - other]), 0)


class _EntireSpaceHead(MultiHead):
    """The heads `ctr` and `ctcvr` over the logits of `ctr` and `cvr`, `(batch, 2)`."""

    def __init__(self, weight_column: Any, loss_reduction: str, head_weights: Any) -> None:
        def head(name: str) -> BinaryClassHead:
            return BinaryClassHead(weight_column, loss_reduction=loss_reduction, name=name)

        super().__init__([head("ctr"), head("ctcvr")], head_weights)
        self._cvr = head("cvr")

    def predictions(self, logits: Any, keys: Sequence[Any] | None = None) -> dict[Any, Tensor]:
        """Predictions by (head's name, key), those of `cvr` too; see `MultiHead`."""
        own = convert_to_tensor(logits, name="logits")
        found = super().predictions(own)
        found |= {("cvr", k): each for k, each in self._cvr.predictions(own[..., 1:]).items()}
        return found if keys is None else {key: found[key] for key in keys}

    def _split(self, logits: Any) -> dict[str, Any]:
        ctr, cvr = joining.split(convert_to_tensor(logits, name="logits"), 2, -1)
        return {"ctr": ctr, "ctcvr": logit_of_product(ctr, cvr)}


class ESMM(Premade):
    """Entire space multi-task model (Ma et al. 2018, arXiv:1804.07931).

    Two networks over the same columns, whose embeddings they share, predict clicks (`ctr`) and
    conversions of clicked examples (`cvr`). The loss is that of clicks and of clicks with
    conversion, whose probability is the product (`ctcvr`), over all examples, clicked or not.

    Labels: a dict of `ctr`, 1 for a click, and `ctcvr`, 1 for a click with conversion, else 0;
    `(batch,)` or `(batch, 1)`. Metrics: those of `BinaryClassHead`, such as `auc/ctcvr`.
    Predictions: those of `BinaryClassHead` by `(task, key)`, for `ctr`, `ctcvr` and `cvr`.

    Args:
        hidden_units: the width of each hidden layer of both networks.
        feature_columns: the model's inputs: dense columns.
        model_dir: where checkpoints and logs go; a temporary folder by default.
        task_weights: the weights of the losses of `ctr` and `ctcvr`; both 1 by default.
        weight_column, optimizer, activation_fn, dropout, config, warm_start_from, loss_reduction,
            batch_norm: see `DNNClassifier`.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        hidden_units: Iterable[int],
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        model_dir: str | os.PathLike[str] | None = None,
        task_weights: Sequence[float] | None = None,
        weight_column: Any = None,
        optimizer: OptimizerLike = "Adagrad",
        activation_fn: Activation = nn.relu,
        dropout: float | None = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        batch_norm: bool = False,
    ) -> None:
        part = multi_task_part(
            "esmm",
            lambda net, _: [net, net],
            {"ctr": 1, "cvr": 1},
            hidden_units,
            feature_columns,
            optimizer,
            activation_fn,
            dropout,
            batch_norm,
        )
        head = _EntireSpaceHead(weight_column, loss_reduction, task_weights)
        super().__init__(head, [part], model_dir, config, warm_start_from)


__all__ = ["ESMM"]
