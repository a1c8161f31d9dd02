"""All data sets by name."""

from __future__ import annotations

from estimatorkit.data.datasets import (
    abalone,
    automobile,
    california_housing,
    census,
    digits,
    fashion_mnist,
    iris,
    mnist,
    movie_reviews,
    movielens_1m,
    movielens_100k,
    text8,
)
from estimatorkit.data.datasets.files import DataSet

_MODULES = (
    abalone,
    automobile,
    california_housing,
    census,
    digits,
    fashion_mnist,
    iris,
    mnist,
    movie_reviews,
    movielens_100k,
    movielens_1m,
    text8,
)


def catalogue() -> dict[str, DataSet]:
    """Descriptions of all data sets, with their loaders, by name."""
    return {module.DATA_SET.name: module.DATA_SET for module in _MODULES}
