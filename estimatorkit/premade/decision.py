"""`with_threshold`: classifiers of two classes that decide at another probability than one half."""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Iterator
from typing import Any

from estimatorkit.core.conversion import constant
from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.extenders import extended
from estimatorkit.estimator.spec import EstimatorSpec

_THRESHOLD = contextvars.ContextVar[float | None]("threshold", default=None)


def scores_to_decide_by(logits: Tensor) -> Tensor:
    """The scores whose largest is the class, under the threshold of the model that is built.

    Args:
        logits: those of both classes, the first of which is 0, float32 `(batch, ..., 2)`.
    """
    threshold = _THRESHOLD.get()
    if threshold is None:
        return logits
    least = math.log(threshold) - math.log1p(-threshold)
    scores: Tensor = logits + constant([least, 0.0], logits.dtype)  # exactly: 0 is added to logits
    return scores


@contextlib.contextmanager
def _deciding_at(threshold: float) -> Iterator[None]:
    token = _THRESHOLD.set(threshold)
    try:
        yield
    finally:
        _THRESHOLD.reset(token)


def with_threshold(estimator: Estimator, threshold: float) -> Estimator:
    """Returns a classifier that predicts the second class from another probability on.

    The threshold is a constant of the graph: `predict`, evaluations (`accuracy`, `precision` and
    `recall`) and exported models have the same classes. Probabilities, and metrics of them, stay as
    they are. Not in TensorFlow, whose classifiers take the more probable class; scikit-learn has
    `FixedThresholdClassifier`.

    Args:
        estimator: a classifier of two classes, whose `model_dir` is shared.
        threshold: the second class is predicted where its probability is above this number, more
            than 0 and less than 1.

    Raises:
        ValueError: the threshold is out of its range; on building the model, it has no two classes.
    """
    if not 0.0 < threshold < 1.0:
        raise value_error(
            "the threshold of a decision is a probability",
            expected="0 < threshold < 1",
            received=repr(threshold),
        )

    def checked(spec: EstimatorSpec, *_: Any) -> EstimatorSpec:
        if spec.predictions is not None and "logistic" not in spec.predictions:
            raise value_error(
                "only models of two classes have a threshold",
                expected="predictions of a BinaryClassHead",
                received=", ".join(sorted(map(str, spec.predictions))),
            )
        return spec

    return extended(estimator, checked, lambda: _deciding_at(threshold))


__all__ = ["scores_to_decide_by", "with_threshold"]
