"""Data sets, one module each; iris and digits are bundled, the others are downloaded on first use.

Each module has `load_data` and `DATA_SET`, which describes its files, their terms, and where they
may be put by hand (see `files`).
"""

from __future__ import annotations

from typing import Any

from estimatorkit.lazy import attach, names

_MODULES = (
    *("abalone", "automobile", "california_housing", "census", "digits", "fashion_mnist", "iris"),
    *("mnist", "movie_reviews", "text8"),
)
_lazy_getattr, __dir__, __all__ = attach(
    __name__,
    {
        **{name: f"{__name__}.{name}" for name in _MODULES},
        **names(f"{__name__}.all_data_sets", "catalogue"),
        **names(f"{__name__}.download", "DataFile Downloader"),
        **names(f"{__name__}.files", "DataSet cache_folder"),
        **names(f"{__name__}.splits", "split_rows"),
    },
)


def __getattr__(name: str) -> Any:
    """Imports the public name `name` on first use."""
    return _lazy_getattr(name)
