"""Datasets in Keras's form (`tf.keras.datasets`): `mnist` and `fashion_mnist`.

`estimatorkit.data.datasets` has these and others.
"""

from __future__ import annotations

from typing import Any

from estimatorkit.core.errors import explain
from estimatorkit.lazy import attach

_get, __dir__, __all__ = attach(__name__, __file__)
_MISSING = ("boston_housing", "cifar10", "cifar100", "imdb", "reuters")


def __getattr__(name: str) -> Any:
    """Imports the public name `name`."""
    if name in _MISSING:
        raise AttributeError(
            explain(
                f"keras.datasets.{name} has no loader here",
                expected=f"one of {', '.join(__all__)}",
                hint="numpy.load reads the .npz files in which Keras keeps such data sets; "
                "data.datasets has california_housing for houses and movie_reviews for reviews",
            )
        )
    return _get(name)
