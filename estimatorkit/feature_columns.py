"""Feature columns from a table: `infer` looks at its columns and proposes what to make of them.

(TensorFlow has no such module: its own is `estimatorkit.feature_column`.) `InferredColumns` is the
proposal: the columns, the features that they read (`prepare`), one line for each column that says
why (`notes`), and Python source that makes the same (`code`), to be pasted and changed.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from estimatorkit._inferred_cells import looks, read_cells, reads_cells
from estimatorkit._inferred_code import (
    Call,
    RobustScaling,
    Scaling,
    Step,
    apply,
    comment,
    inline,
    render,
    render_series,
    robust_scaling,
    shown,
    variable,
)
from estimatorkit._inferred_findings import Feature, Finding, Limits, find, read_steps
from estimatorkit.core.errors import did_you_mean, type_error, value_error
from estimatorkit.html import html_table
from estimatorkit.layers.feature_column import FeatureColumn
from estimatorkit.lazy import listing
from estimatorkit.storage.filesystem import file_errors

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "InferredColumns",
    "RobustScaling",
    "Scaling",
    "infer",
    "read_cells",
    "robust_scaling",
]
__dir__ = listing(__name__)

_MAX_CLASSES = 20  # integer labels of more values are numbers
_RESERVED = ("pd", "tf", "fc", "prepare", "frame", "columns", "wide", "features", "labels")


@dataclass(frozen=True)
class InferredColumns(Sequence[FeatureColumn]):
    """The result of `infer`: a sequence of dense columns, for use as `feature_columns=`.

    `print` shows `code()`.

    Attributes:
        columns: dense columns, for DNNs.
        wide: categorical and bucketized columns, for linear models.
        findings: the outcome for each column of the table.
        label: a description of the label and the estimator for it; '' if no label was named.
        source: a description of the table.
    """

    columns: tuple[FeatureColumn, ...]
    wide: tuple[FeatureColumn, ...]
    findings: tuple[Finding, ...]
    label: str
    source: str

    @property
    def deep(self) -> tuple[FeatureColumn, ...]:
        """`columns`."""
        return self.columns

    @property
    def notes(self) -> dict[str, str]:
        """One line per column of the table: dtype, distinct values, share missing, and outcome."""
        return {finding.name: finding.note for finding in self.findings}

    def __len__(self) -> int:
        return len(self.columns)

    @overload
    def __getitem__(self, index: int) -> FeatureColumn: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[FeatureColumn, ...]: ...
    def __getitem__(self, index: int | slice) -> FeatureColumn | tuple[FeatureColumn, ...]:
        return self.columns[index]

    def __iter__(self) -> Iterator[FeatureColumn]:
        return iter(self.columns)

    def __str__(self) -> str:
        return self.code()

    def __repr__(self) -> str:
        return f"<InferredColumns from {self.source}: {[each.name for each in self.columns]}>"

    def _repr_html_(self) -> str:
        """A table of the notes, for notebooks."""
        return html_table(("column", "finding"), self.notes.items(), f"Columns of {self.source}")

    def prepare(self, table: Any) -> pd.DataFrame:
        """Returns the features that the columns read, without missing values.

        Numbers become float32 (float64 if the mean is 10,000 standard deviations from 0), ids int64
        and words strings. A missing number becomes the median of the table that was passed to
        `infer`, a missing id -1 and a missing word '', which are both ignored. A value that cannot
        be parsed as a date is missing.

        Args:
            table: as for `infer`, but all rows are used; the label is optional.

        Returns:
            A DataFrame of the features only, with the index of the table, for `pandas_input_fn` or
            `Dataset.from_tensor_slices`.

        Raises:
            ValueError: a column is missing or repeated.
        """
        import pandas as pd

        texts = {str(each.source) for each in self._features if reads_cells(each.steps)}
        frame, source = _open(table, None, texts)
        by_name = _by_name(frame, source)
        features: dict[str, Any] = {}
        for feature in self._features:
            _check_present(str(feature.source), by_name, source, "the features need a column")
            features[feature.key] = apply(feature.steps, by_name[str(feature.source)])
        return pd.DataFrame(features)

    def code(self) -> str:
        """Returns Python source that creates these columns and an equivalent of `prepare`.

        It defines `prepare`, `columns` and `wide`, in lines of at most 100 characters; the same
        table yields the same source.
        """
        taken, names = set(_RESERVED), dict[Call, str]()
        parts = []
        for finding in self.findings:
            lines = [comment(f"{shown(finding.name)}: {finding.note}")]
            for feature in finding.features:
                for end, call in feature.bases:
                    name = variable(feature.key + end, taken)
                    taken.add(name)
                    lines.append(f"{name} = {render(call, names, 0, len(name) + 3)}\n")
                    names[call] = name
            parts.append("".join(lines))
        deep = [each.deep for each in self._features if each.deep is not None]
        wide = [each.wide for each in self._features if each.wide is not None]
        parts += [_assignment("columns", deep, names), _assignment("wide", wide, names)]
        head = (
            comment(f"Made from {self.source} by estimatorkit.feature_columns.infer.")
            + "import pandas as pd\n\nimport estimatorkit as tf\n\nfc = tf.feature_column\n\n\n"
            + self._prepare_source()
            + "\n\n"
        )
        label = "".join(comment(line, code=True) for line in self.label.splitlines())
        return head + "\n".join([*parts, label] if label else parts)

    @property
    def _features(self) -> list[Feature]:
        return [feature for finding in self.findings for feature in finding.features]

    def _prepare_source(self) -> str:
        lines = []
        for feature in self._features:
            key = inline(feature.key, {})
            # A key that leaves no room for its value is written in pieces.
            before = f"{key if len(key) <= 60 else render(feature.key, {}, 12, 52)}: "
            used = 12 + len(before.rpartition("\n")[2])
            lines.append(
                f"            {before}{render_series(feature.source, feature.steps, 12, used)},\n"
            )
        return (
            "def prepare(frame):\n"
            '    """The features that the columns read, without missing values."""\n'
            "    return pd.DataFrame(\n        {\n" + "".join(lines) + "        }\n    )\n"
        )


def infer(
    table: Any,
    label: str | None = None,
    weight: str | None = None,
    *,
    max_vocabulary: int = 100,
    embedding_from: int = 30,
    buckets: int = 10,
    fill_missing: bool = True,
    read_text: bool = True,
    text: Literal["drop", "hash", "embed"] = "hash",
    sample_rows: int = 10_000,
) -> InferredColumns:
    """Proposes feature columns for a table.

    - Numbers become numeric columns, standardized unless they spread widely within [-1, 1]; for
      linear models they are bucketized into ranges with equally many rows. With more than 5 %
      missing values there is a second feature, `<name>_missing`.
    - Integers from 0 on with at most 12 distinct values, each in 5 rows on average, become
      categories with a vocabulary: values that first appear later are ignored. Booleans are their
      own ids.
    - Text of which 90 % is numbers (money, percents, units, decimal commas), dates in any form or
      booleans is read as such (`read_cells`), and words that differ in case or spaces only are one.
    - Words become a vocabulary, the most frequent first, or hash buckets, 2 to 4 times as many as
      distinct words. The vocabulary of a pandas Categorical is its categories.
    - Free text (words of which more than half are distinct in more than 100 rows, of 2.5 words or
      more each) becomes hashed words and pairs of words.
    - Dates, and words of which 95 % are ISO dates, become year, month, weekday and hour, except
      those that are constant.
    - Left out are columns with a single value; integers that are distinct in more than 100 rows and
      number them, fill a quarter of their range, or have a name such as `customer_id`; words that
      are distinct in more than 90 % of more than 100 rows, and values that are neither numbers nor
      words nor dates.

    Args:
        table: a pandas or polars DataFrame, a pyarrow Table, a dict of arrays, or the path of a
            CSV, Parquet, JSON lines, Excel, SQLite or DuckDB file, of which the first rows are
            read. How a CSV file is written is found by looking, as `estimatorkit init` does:
            delimiter, encoding, decimal sign, lines of notes, names (else column_1, column_2, ...).
        label: the name of the label column, which does not become a feature.
        weight: the name of the column of example weights; `prepare` keeps it.
        max_vocabulary: the largest number of distinct words for a vocabulary; more are hashed. 100
            by default.
        embedding_from: the smallest number of distinct values for which the dense column is an
            embedding, of dimension 1.6 n^0.56 for n values, at most 50, rather than an indicator.
            30 by default.
        buckets: the number of ranges of bucketized columns in `wide`; 10 by default. With 0, `wide`
            has numeric columns instead.
        fill_missing: replaces a missing number by the median, as networks and linear models need
            it. False leaves NaN, which boosted trees, `TabularClassifier` and ensembles take as
            what it is; there is no `<name>_missing` then. True by default.
        read_text: looks at how text is written. False takes it as it is. True by default.
        text: what becomes of free text: 'hash' (default) counts its words and pairs of words, by
            their hash; with 'embed' the dense column is an embedding; 'drop' leaves it out.
        sample_rows: the number of rows of a file to read; 10,000 by default.

    Returns:
        The columns, with `notes`, `code` and `prepare`.

    Raises:
        ValueError: the table has no rows, no usable column or a repeated name, a named column is
            missing, or a file cannot be read.
        TypeError: `table` is not a table.
        NotFoundError: the file does not exist.
    """
    least = {"max_vocabulary": 1, "embedding_from": 1, "buckets": 0, "sample_rows": 1}
    given = (max_vocabulary, embedding_from, buckets, sample_rows)
    for (name, lowest), value in zip(least.items(), given, strict=True):
        if value < lowest:
            raise value_error(f"{name} is too small", expected=f">= {lowest}", received=value)
    frame, source = _open(table, sample_rows)
    by_name = _by_name(frame, source)
    for role, chosen in (("label", label), ("weight", weight)):
        if chosen is not None:
            _check_present(str(chosen), by_name, source, f"there is no {role} column")
    if label is not None and label == weight:
        raise value_error(f"column {label!r} cannot be both label and weight", received=source)
    limits = Limits(max_vocabulary, embedding_from, buckets, fill_missing, text)
    others = {name: each for name, each in by_name.items() if name not in (str(label), str(weight))}
    seen = looks(others) if read_text else {}
    taken, findings = set(by_name), list[Finding]()
    for column in frame.columns:
        if str(column) == str(weight):
            findings.append(_weight(column, by_name[str(column)]))
        elif str(column) != str(label):
            name = str(column)
            found = find(column, by_name[name], limits, taken, seen.get(name))
            taken.update(feature.key for feature in found.features)
            findings.append(found)
    features = [feature for finding in findings for feature in finding.features]
    deep = tuple(each.deep.make() for each in features if each.deep is not None)
    wide = tuple(each.wide.make() for each in features if each.wide is not None)
    if not deep:
        lines = "; ".join(f"{shown(each.name)}: {each.note}" for each in findings)
        raise value_error(
            f"no column of {source} can be used as a feature", received=lines or "no columns"
        )
    told = "" if label is None else _label(str(label), by_name[str(label)], weight)
    return InferredColumns(deep, wide, tuple(findings), told, source)


# -- tables


def _open(
    table: Any, rows: int | None, texts: Collection[str] | None = None
) -> tuple[pd.DataFrame, str]:
    """A table as a DataFrame, and what to call it; of a file `rows` rows, all if None, with some
    columns as text.
    """
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return table, f"a DataFrame of {len(table):,} rows"
    if isinstance(table, (str, os.PathLike)):
        return _read(os.fspath(table), rows, texts)
    if isinstance(table, Mapping) and "data" in table and "feature_names" in table:
        raise type_error(
            "a scikit-learn dataset is not a table",
            expected="a DataFrame",
            received=type(table).__name__,
            hint="load it with as_frame=True and give its .frame",
        )
    if isinstance(table, Mapping):
        frame = pd.DataFrame(dict(table))
        return frame, f"a dict of {len(frame):,} rows"
    kind = type(table).__name__
    if hasattr(table, "to_pandas"):
        frame = table.to_pandas()
        if isinstance(frame, pd.DataFrame):
            return (
                frame,
                f"a {type(table).__module__.partition('.')[0]} table of {len(frame):,} rows",
            )
    raise type_error(
        f"a {kind} is not a table",
        expected="a pandas or polars DataFrame, a pyarrow Table, a dict of arrays, or the "
        "path of a file",
        received=repr(table)[:100],
        hint="call .collect() on it" if kind == "LazyFrame" else "try pandas.DataFrame(...)",
    )


def _read(path: str, rows: int | None, texts: Collection[str] | None) -> tuple[pd.DataFrame, str]:
    """The first rows of a file."""
    from estimatorkit.experiment.opened_frames import open_frame

    with file_errors("read", path):
        frame, assumed = open_frame(path, None if rows is None else rows + 1, texts)
    told = f" ({'; '.join(assumed)})" if assumed else ""
    name = os.path.basename(path) + told
    if rows is None or len(frame) <= rows:
        return frame, f"the {len(frame):,} rows of {name}"
    return frame.iloc[:rows], f"the first {rows:,} rows of {name}"


def _by_name(frame: pd.DataFrame, source: str) -> dict[str, Any]:
    """The columns of a frame by name."""
    for column in frame.columns:
        if not isinstance(column, (str, int, np.integer)):
            raise type_error(
                f"a column name in {source} is not a string",
                received=f"{column!r}",
                hint="set names, for example with frame.columns = [...]",
            )
    names = [str(column) for column in frame.columns]
    _check_distinct(names, source)
    if not len(frame):
        raise value_error(f"{source} has no rows", expected="at least one")
    return {name: frame.iloc[:, place] for place, name in enumerate(names)}


def _check_distinct(names: Sequence[str], source: str) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise value_error(
            f"duplicate column names in {source}",
            expected="unique names",
            received=repeated,
            hint="rename all but one",
        )


def _check_present(name: str, known: Mapping[str, Any], source: str, problem: str) -> None:
    if name not in known:
        raise value_error(
            f"{problem} {name!r} in {source}",
            expected=f"one of {list(known)}",
            received=repr(name),
            hint=did_you_mean(name, known),
        )


# -- weights and labels


def _weight(column: Any, series: Any) -> Finding:
    kind, steps = read_steps(series)
    if kind not in ("number", "flag"):
        raise value_error(
            f"column {str(column)!r} cannot be used as weights",
            expected="numbers",
            received=f"{series.dtype}, for example {series.iloc[0]!r}",
        )
    values = apply(steps, series).astype("float64")
    note = f"{series.dtype}, {values.min():.6g} to {values.max():.6g} -> the examples' weights"
    if series.isna().any():
        note += f", {series.isna().sum()} missing ones: 0"
    steps = (*steps, Step("astype", ("float32",)), Step("fillna", (0.0,)))
    return Finding(str(column), note, (Feature(str(column), column, steps),))


def _label(name: str, series: Any, weight: str | None) -> str:
    """What labels look like, and how to use them: lines."""
    present = series.dropna()
    if not len(present):
        raise value_error(f"all labels in column {name!r} are missing")
    kind, steps = read_steps(series)
    values = np.empty(0)
    if kind == "number":
        values = np.asarray(apply(steps, present).astype("float64"), np.float64)
    classes = len(present.unique())
    arguments = []
    if kind == "number" and (classes > _MAX_CLASSES or (values != np.floor(values)).any()):
        estimator, dtype = "Regressor", "float32"
        facts = f"{values.min():.6g} to {values.max():.6g}, mean {values.mean():.6g}"
    else:
        estimator, dtype = "Classifier", "int64"
        shares = present.value_counts(normalize=True).head(6)
        facts = f"{classes} classes: " + ", ".join(
            f"{shown(value)} {share:.1%}" for value, share in shares.items()
        )
        facts += ", ..." if classes > len(shares) else ""
        if kind == "number" and values.min() >= 0:
            classes = max(2, int(values.max()) + 1)
        elif kind != "flag":
            dtype = "str"
            words = tuple(sorted(str(value) for value in present.unique()))
            if len(words) <= _MAX_CLASSES:
                arguments.append(f"label_vocabulary={inline(words, {})}")
        if classes > 2:
            arguments.insert(0, f"n_classes={classes}")
    if weight is not None:
        arguments.append(f"weight_column={inline(weight, {})}")
    lines = [f"The label {shown(name)}: {series.dtype}, {facts}."]
    if len(present) < len(series):
        missing = len(series) - len(present)
        lines.append(
            f"{missing:,} rows have no label: leave them out first, with "
            f"frame.dropna(subset=[{inline(series.name, {})}])."
        )
    more = "".join(f", {argument}" for argument in arguments)
    return "\n".join(
        (
            *lines,
            f"features, labels = prepare(frame), frame[{inline(series.name, {})}]"
            f'.astype("{dtype}")',
            f"estimator = tf.estimator.DNN{estimator}([64, 32], columns{more})",
            f"or tf.estimator.Linear{estimator}(wide{more})",
        )
    )


def _assignment(name: str, calls: list[Call], names: Mapping[Call, str]) -> str:
    """The source of a list of columns."""
    return (
        f"{name} = [\n" + "".join(f"    {render(each, names, 4, 4)},\n" for each in calls) + "]\n"
    )
