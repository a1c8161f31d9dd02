"""`MultiHead`: several heads over the logits of one model, trained by the sum of their losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.serving.export_outputs import ExportOutput, PredictOutput
from estimatorkit.layers import metrics
from estimatorkit.ops.math import elementwise
from estimatorkit.premade.head import Head, Metrics, Outcome
from estimatorkit.train.saving.saved_model_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY


class MultiHead(Head):
    """Combines the heads of several tasks (`tf.estimator.MultiHead`).

    Logits: one tensor `(batch, ..., sum of the heads' dimensions)`, which is split in the order of
    the heads, or a dict by head name. Labels: a dict by head name.

    The loss is the weighted sum of the heads' losses. Metrics: those of each head, whose keys end
    with `/<name>`, and `loss/<name>`. Predictions have the keys `(<name>, <key>)`.

    Exported: the first head's default as 'serving_default'; for each head its default as `<name>`
    and the others as `<name>/<signature>`; all predictions as 'predict', by `<name>/<key>`.

    Args:
        heads: heads with unique names.
        head_weights: the weight of each head's loss; all 1 by default.

    Raises:
        ValueError: there are no heads, names are missing or repeated, or the number of weights
            differs.
    """

    def __init__(self, heads: Sequence[Head], head_weights: Sequence[float] | None = None) -> None:
        if not heads:
            raise ValueError(f"Must specify heads. Given: {heads}")
        if head_weights and len(head_weights) != len(heads):
            raise ValueError(
                "heads and head_weights must have the same size. Given len(heads): "
                f"{len(heads)}. Given len(head_weights): {len(head_weights)}."
            )
        for head in heads:
            if head.name is None:
                raise ValueError(f"All given heads must have name specified. Given: {head}")
        names = [str(head.name) for head in heads]
        if len(set(names)) < len(names):
            raise value_error("two heads have the same name", received=names)
        self._heads = dict(zip(names, heads, strict=True))
        self._weights = tuple(head_weights or (1.0,) * len(heads))

    @property
    def name(self) -> str:
        """The heads' names, joined by '_'."""
        return "_".join(self._heads)

    @property
    def heads(self) -> dict[str, Head]:
        """The heads by name, in order."""
        return dict(self._heads)

    @property
    def logits_dimension(self) -> int:
        """The sum of the heads' dimensions."""
        return sum(head.logits_dimension for head in self._heads.values())

    @property
    def loss_reduction(self) -> str:
        """The loss reduction of all heads.

        Raises:
            ValueError: they differ.
        """
        found = [head.loss_reduction for head in self._heads.values()]
        if len(set(found)) > 1:
            raise ValueError(
                f"The loss_reduction must be the same for different heads. Given: {found}"
            )
        return found[0]

    def predictions(self, logits: Any, keys: Sequence[Any] | None = None) -> dict[Any, Tensor]:
        """Predictions by (head's name, key).

        Args:
            logits: see the class.
            keys: which pairs; all by default.

        Raises:
            ValueError: the logits do not fit.
        """
        own = self._split(logits)
        found = {
            (name, key): tensor
            for name, head in self._heads.items()
            for key, tensor in head.predictions(own[name]).items()
        }
        return found if keys is None else {key: found[key] for key in keys}

    def _split(self, logits: Any) -> dict[str, Any]:
        """The logits of each head."""
        if isinstance(logits, Mapping):
            return self._of_heads("logits", logits)
        tensor = convert_to_tensor(logits, name="logits")
        last = tensor.shape[-1] if tensor.shape.rank else None
        dimensions = [head.logits_dimension for head in self._heads.values()]
        if last not in (None, sum(dimensions)):
            raise value_error(
                f"Could not split logits of shape {tensor.shape} among the heads with "
                f"individual logits dimensions: {dimensions}",
                expected=f"{sum(dimensions)} as the last dimension",
                received=f"{tensor.name} {tensor.shape}",
                made_at=tensor.op.source,
                hint=f"use units={sum(dimensions)} in the last layer",
            )
        parts, start = {}, 0
        with get_default_graph().name_scope("split_logits"):
            for name, dimension in zip(self._heads, dimensions, strict=True):
                parts[name] = tensor[..., start : start + dimension]
                start += dimension
        return parts

    def _of_heads(self, what: str, given: Any) -> dict[str, Any]:
        """The part of `given` for each head, by its name."""
        if not isinstance(given, Mapping):
            raise value_error(
                f"{what} must be a dict. Given: {given}",
                expected=f"a dict with the keys {list(self._heads)}",
                hint="return (features, {head: labels, ...}) from input_fn",
            )
        missing = [name for name in self._heads if name not in given]
        if missing:
            raise value_error(
                f"{what} has missing values for head(s): {missing}",
                expected=f"the keys {list(self._heads)}",
                received=f"the keys {list(given)}",
                hint=did_you_mean(missing[0], [str(key) for key in given]),
            )
        return dict(given)

    def _outcome(
        self,
        features: Any,
        logits: Any,
        labels: Any,
        regularization_losses: Sequence[Tensor] | None,
    ) -> Outcome:
        own, truth = self._split(logits), self._of_heads("labels", labels)
        outcomes = {}
        for name, head in self._heads.items():
            with get_default_graph().name_scope(name):
                outcomes[name] = head._outcome_of_class(
                    features, own[name], truth[name], None, None
                )
        with get_default_graph().name_scope("merge_losses"):
            loss = self._merged([each.loss for each in outcomes.values()], regularization_losses)
            soft = None
            if any(each.smoothed is not None for each in outcomes.values()):
                minimized = [each.minimized for each in outcomes.values()]
                soft = self._merged(minimized, regularization_losses)
        return Outcome(
            loss,
            lambda: _merged_metrics(outcomes, regularization_losses),
            lambda: {f"loss/{name}": each.minimized for name, each in outcomes.items()},
            soft,
        )

    def _merged(self, losses: Sequence[Tensor], more: Sequence[Tensor] | None) -> Tensor:
        """The weighted sum of the heads' losses, and of regularization losses."""
        weighted = [
            each if weight == 1.0 else each * weight
            for each, weight in zip(losses, self._weights, strict=True)
        ]
        return elementwise.add_n([*weighted, *(more or ())])

    def _tag(self, key: str) -> str:
        return key

    def _export_outputs(self, predictions: Mapping[Any, Tensor]) -> dict[str, ExportOutput]:
        found: dict[str, ExportOutput] = {}
        for name, head in self._heads.items():
            mine = {key: tensor for (head_, key), tensor in predictions.items() if head_ == name}
            outputs = head._export_outputs(mine)
            found.setdefault(
                DEFAULT_SERVING_SIGNATURE_DEF_KEY, outputs[DEFAULT_SERVING_SIGNATURE_DEF_KEY]
            )
            for key, output in outputs.items():
                is_default = key == DEFAULT_SERVING_SIGNATURE_DEF_KEY
                found[name if is_default else f"{name}/{key}"] = output
        merged = {f"{name}/{key}": tensor for (name, key), tensor in predictions.items()}
        return {**found, "predict": PredictOutput(merged)}


def _merged_metrics(
    outcomes: Mapping[str, Outcome], regularization_losses: Sequence[Tensor] | None
) -> Metrics:
    found = {}
    if regularization_losses:
        total = elementwise.add_n(regularization_losses)
        # As in TensorFlow, with the names of all heads.
        key = f"regularization_loss/{'_'.join(outcomes)}"
        found[key] = metrics.mean(total, name="regularization_loss")
    for name, outcome in outcomes.items():
        found[f"loss/{name}"] = metrics.mean(outcome.loss, name=f"loss/{name}")
        with get_default_graph().name_scope(name):
            found |= outcome.metrics()
    return found


__all__ = ["MultiHead"]
