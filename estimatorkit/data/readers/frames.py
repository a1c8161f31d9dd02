"""Frames of pandas, polars and pyarrow, and scikit-learn data sets, as columns.

`open_frames` replaces frames in a structure of values by dicts of their columns. Frames are
recognized by type name, so that unused libraries are not imported; any other object with
`__arrow_c_stream__` is opened by pyarrow. Missing values, dates and ragged lists are errors that
name column and row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import nest
from estimatorkit.core.errors import type_error, value_error


def open_frames(structure: Any, path: str = "") -> Any:
    """Replaces frames and series in `structure`.

    Args:
        structure: nested values. A frame becomes the dict of its columns, a series an array, a
            `Bunch` of scikit-learn (features, target).
        path: the path in an outer structure, for messages: `['age']`.

    Raises:
        ValueError: a column holds missing values.
        TypeError: a column has no tensor equivalent.
    """
    if _is(structure, "sklearn", "Bunch"):
        return _open_bunch(structure)
    if not nest.is_nested(structure, lists_are_leaves=True):
        return as_columns(structure, path)
    mapping = isinstance(structure, Mapping)
    named = structure if mapping else dict(enumerate(structure))
    opened = {key: open_frames(child, f"{path}[{key!r}]") for key, child in named.items()}
    if all(opened[key] is child for key, child in named.items()):
        return structure
    if mapping:
        return opened if type(structure) is dict else type(structure)(opened)
    if nest.is_namedtuple(structure):
        return type(structure)(*opened.values())
    return type(structure)(opened.values())


def as_columns(value: Any, path: str = "") -> Any:
    """Converts a frame to a dict of arrays `(rows, ...)` and a series to an array; returns other
    values.

    `path` and errors are those of `open_frames`.
    """
    if _is(value, "pandas", "DataFrame"):
        columns = ((name, value.iloc[:, place]) for place, name in enumerate(value.columns))
        return _dict(columns, _pandas_column)
    if _is(value, "pandas", "Series"):
        return _pandas_column(value, _series(value.name, path))
    if _is(value, "polars", "LazyFrame"):
        raise type_error(
            "a polars LazyFrame has no rows yet",
            expected="a DataFrame",
            received="a LazyFrame",
            hint="call .collect() on it",
        )
    if _is(value, "polars", "DataFrame"):
        return _dict(((each.name, each) for each in value.get_columns()), _polars_column)
    if _is(value, "polars", "Series"):
        return _polars_column(value, _series(value.name, path))
    if hasattr(value, "__arrow_c_stream__") and not isinstance(value, np.ndarray):
        return _arrow_columns(value)
    return value


def _is(value: Any, library: str, name: str) -> bool:
    return any(
        each.__name__ == name and each.__module__.partition(".")[0] == library
        for each in type(value).__mro__
    )


def _series(name: Any, path: str) -> str:
    if path:
        return f"component {path}"
    return "the series" if name in (None, "") else f"the series {name!r}"


def _dict(columns: Iterable[tuple[Any, Any]], convert: Callable[[Any, str], Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for name, column in columns:
        if name in found:
            raise value_error(
                f"column {name!r} occurs twice in the frame",
                expected="unique names",
                hint="rename one of the two",
            )
        found[name] = convert(column, f"column {name!r}")
    return found


def _missing(where: str, row: int, received: Any, hint: str) -> ValueError:
    return value_error(
        f"{where} has a missing value at position {row}",
        expected="a value in each row",
        received=repr(received),
        hint=hint,
    )


def _unfit(where: str, received: Any, hint: str) -> TypeError:
    return type_error(
        f"{where} cannot be converted to a tensor",
        expected="numbers, booleans or strings",
        received=str(received),
        hint=hint,
    )


def _texts(values: Iterable[Any]) -> NDArray[Any]:
    texts = [value.encode() if isinstance(value, str) else bytes(value) for value in values]
    out = np.empty(len(texts), object)
    out[:] = texts
    return out


# -- pandas


def _pandas_column(series: Any, where: str) -> NDArray[Any]:
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind not in "OmM":
        return np.asarray(series)  # NaN among floats is a value
    if dtype.kind in "mM" or type(dtype).__name__ in ("PeriodDtype", "IntervalDtype"):
        hint = "convert it to numbers, for example with .astype('int64') (nanoseconds)"
        if type(dtype).__name__ in ("PeriodDtype", "IntervalDtype"):
            hint = "convert it to numbers or to text, for example with .astype(str)"
        raise _unfit(where, f"{dtype}: {series.iloc[0]}" if len(series) else dtype, hint)
    missing = np.asarray(series.isna())
    if missing.any():
        row = int(missing.argmax())
        fill = "0" if dtype.kind in "iufb" and type(dtype).__name__ != "CategoricalDtype" else "''"
        hint = f"fill missing values first, for example with .fillna({fill})"
        if type(dtype).__name__ == "CategoricalDtype":
            hint = "add a category for them: .cat.add_categories('').fillna('')"
        elif dtype.kind == "f":
            hint += ", or make them NaN with .astype('float32')"
        raise _missing(where, row, series.iloc[row], hint)
    if type(dtype).__name__ == "CategoricalDtype":
        categories = np.asarray(dtype.categories)
        if categories.dtype.kind in "OUT":
            categories = _texts(categories.tolist())
        return categories.take(np.asarray(series.cat.codes))
    if dtype.kind in "iufb":
        return np.asarray(series.to_numpy(getattr(dtype, "numpy_dtype", None)))
    if isinstance(dtype, np.dtype):
        return np.asarray(series)  # objects: texts, or an error on conversion
    return _texts(series.tolist())


# -- polars


def _polars_column(series: Any, where: str) -> NDArray[Any]:
    dtype = series.dtype
    name = str(dtype.base_type())
    hints = {
        "Decimal": "cast it: .cast(pl.Float64)",
        "List": "its rows may differ in length: pad them, and cast them to pl.Array",
        "Struct": "use .unnest() on the frame",
        "Object": "give the column a dtype that polars knows",
    }
    if dtype.is_temporal():
        raise _unfit(where, dtype, "convert it to numbers, for example with .cast(pl.Int64)")
    if name in hints:
        raise _unfit(where, dtype, hints[name])
    if series.null_count():
        row = int(series.is_null().arg_max())
        fill = "''" if name in ("String", "Categorical", "Enum", "Binary") else "0"
        raise _missing(
            where, row, None, f"fill missing values first, for example with .fill_null({fill})"
        )
    if name in ("String", "Categorical", "Enum", "Binary"):
        return _texts(series.to_list())
    return np.asarray(series.to_numpy())


# -- Arrow


def _arrow_columns(value: Any) -> Any:
    try:
        import pyarrow as arrow
    except ImportError as error:
        raise type_error(
            f"a {type(value).__name__} is opened by pyarrow",
            received=str(error),
            hint="pip install 'estimatorkit[arrow]', or give a dict of its columns",
        ) from error
    from estimatorkit.data.readers.arrow_columns import arrow_spec, arrow_values, first_null

    def convert(column: Any, where: str) -> NDArray[Any]:
        spec = arrow_spec(column.type, where)
        values = column.combine_chunks()
        if isinstance(values, arrow.ChunkedArray):  # without chunks
            values = arrow.array([], column.type)
        row = first_null(values)
        if row is not None:
            fill = "''" if spec.dtype.name == "string" else "0"
            hint = (
                f"fill missing values first, for example with pyarrow.compute.fill_null(x, {fill})"
            )
            raise _missing(where, row, None, hint)
        return arrow_values(values, spec)

    if isinstance(value, arrow.ChunkedArray):
        return convert(value, "the column")
    table = value if isinstance(value, arrow.Table) else arrow.table(value)
    names = zip(table.column_names, table.columns, strict=True)
    return _dict(names, convert)


# -- scikit-learn


def _open_bunch(bunch: Any) -> Any:
    """The features and the target; the features alone if there is no target."""
    data = bunch.get("data")
    if data is None:
        raise type_error(
            "a Bunch without data cannot be converted",
            expected="data, and optionally target",
            received=f"the keys {sorted(bunch)}",
        )
    if hasattr(data, "tocsr"):
        raise _unfit("data of the Bunch", type(data).__name__, "make it dense with .toarray()")
    features = as_columns(data)
    names = bunch.get("feature_names")
    if isinstance(features, np.ndarray) and names is not None and features.ndim == 2:
        features = {
            str(name): column for name, column in zip(names, features.T.copy(), strict=True)
        }
    target = bunch.get("target")
    return features if target is None else (features, as_columns(target))
