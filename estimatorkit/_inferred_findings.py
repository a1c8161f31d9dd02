"""What becomes of each column of a table: features, columns and one line that says why (private).

`find` looks at one pandas Series and gives a `Finding`. The thresholds are constants here and
arguments in `Limits`; `estimatorkit.feature_columns.infer` documents them. Nothing here changes
data: a `Feature` holds the steps that make it, which `prepare` takes and which are printed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from estimatorkit._inferred_cells import reading
from estimatorkit._inferred_code import Call, Scaling, Step, apply, shown
from estimatorkit.data.cell_looks import Look
from estimatorkit.layers import feature_column

if TYPE_CHECKING:
    import pandas as pd

MAX_INTEGERS = 12  # months; more distinct integers are numbers
ROWS_AN_INTEGER = 5  # so many rows each integer has on average, or else they are numbers
NEARLY_UNIQUE, MANY_ROWS = 0.9, 100
TEXT_UNIQUE, TEXT_WORDS = 0.5, 2.5  # text is distinct in so many rows, of so many words on average
WORD_BUCKETS = 256
UNSEEN = 0.005  # a larger share of words that are out of the vocabulary is noted
MISSING_FLAG = 0.05
DATES = 0.95  # which part of the words must be dates
MAX_DIMENSION = 50
_ISO_DATE = r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
ID_SPAN = 4  # so many times wider than the rows may the range of their ids be
_NAME_WORDS = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_IDS_NAMES = frozenset(("id", "uuid", "guid"))
_JOINED_ID = re.compile(
    "(?:user|customer|client|passenger|patient|person|member|employee|account|order|invoice|"
    "transaction|session|product|item|record|row|case|house|loan|listing)(?:id|no|nr|number)"
)
_TIMES = frozenset(("year", "month", "week", "day", "hour", "minute", "second", "time", "date"))
_TIMES |= {"epoch", "timestamp"}
_IDS = (Step("fillna", (-1,)), Step("astype", ("int64",)))  # -1 counts for nothing


@dataclass(frozen=True)
class Limits:
    """The thresholds that users choose: see `infer`."""

    max_vocabulary: int
    embedding_from: int
    buckets: int
    fill_missing: bool = True
    text: Literal["drop", "hash", "embed"] = "hash"


@dataclass(frozen=True)
class Feature:
    """A feature and the columns that read it.

    Attributes:
        key: its key.
        source: the label of the table's column of which it is made.
        steps: from that to the feature.
        bases: the calls that get variables of their own in source, with the ends of their names.
        deep: makes a dense column; None if no column reads it (a weight).
        wide: makes a column for linear models.
    """

    key: str
    source: Any
    steps: tuple[Step, ...]
    bases: tuple[tuple[str, Call], ...] = ()
    deep: Call | None = None
    wide: Call | None = None


@dataclass(frozen=True)
class Finding:
    """A column of the table: why it became what it became, and the features made of it."""

    name: str
    note: str
    features: tuple[Feature, ...] = ()


def find(
    label: Any,
    series: pd.Series[Any],
    limits: Limits,
    taken: Collection[str],
    look: Look | None = None,
) -> Finding:
    """What becomes of a column.

    Args:
        label: the column's label in the table.
        series: its values.
        limits: thresholds.
        taken: the names of all columns, which derived features must not have.
        look: how its text is written; None if it stays as it is.
    """
    found = _Column(label, series, limits, set(taken), look).finding()
    return found if look is None else replace(found, note=f"{look}: {found.note}")


def dimension(ids: int) -> int:
    """The length of the vectors of an embedding of `ids` values: 1.6 ids^0.56, at most 50."""
    return min(MAX_DIMENSION, round(1.6 * math.pow(ids, 0.56)))


def hash_buckets(distinct: int) -> int:
    """The first power of two from twice the number of distinct values on."""
    return int(2 ** (2 * distinct - 1).bit_length())


def read_steps(series: pd.Series[Any]) -> tuple[str, tuple[Step, ...]]:
    """What a column holds, and the steps after which pandas knows it.

    Returns:
        'number', 'flag', 'text', 'category', 'date', 'nothing' or 'other'; and the steps.
    """
    import pandas as pd

    dtype: Any = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "category", ()
    if isinstance(dtype, pd.PeriodDtype):
        return "date", (Step("dt.to_timestamp"),)
    if pd.api.types.is_datetime64_any_dtype(dtype):
        # Arrow's dates without a time have no hours.
        in_arrow = isinstance(dtype, pd.ArrowDtype)
        return "date", (Step("astype", ("datetime64[us]",)),) if in_arrow else ()
    if pd.api.types.is_timedelta64_dtype(dtype):
        return "number", (Step("dt.total_seconds"),)
    if pd.api.types.is_bool_dtype(dtype):
        return "flag", ()
    if pd.api.types.is_complex_dtype(dtype):
        return "other", ()
    if pd.api.types.is_numeric_dtype(dtype):
        return "number", ()
    inside = pd.api.types.infer_dtype(series, skipna=True)
    if inside in ("string", "empty"):
        return ("text" if inside == "string" else "nothing"), ()
    if inside == "bytes":
        return "text", (Step("str.decode", ("utf-8", "replace")),)
    if inside == "boolean":
        return "flag", (Step("astype", ("boolean",)),)
    if inside in ("integer", "floating", "mixed-integer-float", "decimal"):
        return "number", (Step("pd.to_numeric"),)
    if inside in ("datetime64", "datetime", "date"):
        return "date", (Step("pd.to_datetime", (), (("errors", "coerce"),)),)
    simple = series.dropna().map(lambda each: isinstance(each, (str, int, float))).all()
    return ("text" if simple else "other"), ()


class _Column:
    """A column that is being looked at."""

    def __init__(
        self,
        label: Any,
        series: pd.Series[Any],
        limits: Limits,
        taken: set[str],
        look: Look | None,
    ) -> None:
        self.label, self.key = label, str(label)
        self.series, self.limits, self.taken = series, limits, taken
        self.kind, self.steps = read_steps(series)
        if look is not None:
            self.kind = "number" if look.format.kind == "number" else "text"
            self.steps = (reading(look.format),)
        self.missing = np.asarray(series.isna(), bool)

    # -- one finding

    def finding(self) -> Finding:
        if self.kind == "other":
            example = shown(self.series.dropna().iloc[0])[:60]
            return self.left_out(
                f"{self.series.dtype}, for example {example}", "no numbers, words or dates"
            )
        if self.kind == "nothing" or self.missing.all():
            return self.left_out(str(self.series.dtype), "all values are missing")
        values = apply(self.steps, self.series)
        if self.kind == "text":
            words = values.astype("string").fillna("")
            self.missing = np.asarray(words == "", bool)
            if self.missing.all():
                return self.left_out(str(self.series.dtype), "all values are empty")
            if words[~self.missing].str.fullmatch(_ISO_DATE).mean() >= DATES:
                keywords = (("format", "ISO8601"), ("errors", "coerce"), ("utc", True))
                self.kind, self.steps = "date", (*self.steps, Step("pd.to_datetime", (), keywords))
                return self.dates(apply(self.steps, self.series))
            return self.words(words)
        if self.kind == "flag":
            return self.flags(values)
        if self.kind == "category":
            return self.categories(values)
        return self.dates(values) if self.kind == "date" else self.numbers(values)

    def facts(self, distinct: int, more: str) -> str:
        """Dtype, distinct values, share missing, and more."""
        share = self.missing.mean()
        lacking = f"{share:.1%} missing" if share >= 0.0005 else "few missing"
        if not self.missing.any():
            lacking = "none missing"
        values = "value" if distinct == 1 else "distinct values"
        return f"{self.series.dtype}, {distinct:,} {values}, {lacking}, {more}"

    def found(self, facts: str, outcome: str, *features: Feature) -> Finding:
        return Finding(self.key, f"{facts} -> {outcome}", features)

    def left_out(self, facts: str, why: str) -> Finding:
        return Finding(self.key, f"{facts} -> left out: {why}")

    def constant(self, facts: str) -> Finding:
        """Of a single value: only whether it is there can tell something."""
        if self.missing.mean() <= MISSING_FLAG:
            return self.left_out(facts, "constant")
        flag = self.missing_flag()
        return self.found(facts, f"constant; whether it is missing: {shown(flag.key)}", flag)

    def derived(self, end: str) -> str:
        """The key of a feature made of this column, which no other has."""
        key = f"{self.key}_{end}"
        while key in self.taken:
            key += "_"
        self.taken.add(key)
        return key

    # -- kinds of columns

    def numbers(self, series: Any) -> Finding:
        values = np.asarray(series.astype("float64"), np.float64)
        infinite = np.isinf(values)
        self.missing = ~np.isfinite(values)
        finite = values[~self.missing]
        distinct = np.unique(finite)
        if not len(finite):
            return self.left_out(str(self.series.dtype), "no value is finite")
        whole = bool((distinct == np.floor(distinct)).all() and abs(distinct).max() < 2**53)
        facts = self.facts(
            len(distinct), f"{_number(distinct[0], whole)} to {_number(distinct[-1], whole)}"
        )
        if len(distinct) == 1:
            return self.constant(facts)
        why = self.id_of_rows(distinct) if whole else ""
        if why:
            return self.left_out(facts, why)
        steps = self.steps
        if infinite.any():
            facts += f", {infinite.sum()} infinite ones taken as missing"
            infinities = (float("inf"), -float("inf"))
            steps = (*steps, Step("replace", (infinities, float("nan"))))
        few = len(distinct) <= MAX_INTEGERS and len(finite) >= ROWS_AN_INTEGER * len(distinct)
        if whole and few and distinct[0] >= 0:
            steps = (*steps, Step("astype", ("Int64",)), *_IDS)
            return self.integers(facts, [int(each) for each in distinct], steps)
        feature, scaled = number(self.key, self.label, steps, finite, self.limits)
        features = [feature]
        outcome = f"numeric, {'scaled' if scaled else 'as it is'}"
        if not self.limits.fill_missing:
            return self.found(facts, f"{outcome}, missing: NaN", *features)
        if self.missing.any():
            outcome += f", missing: median {_number(np.median(finite), whole)}"
        if self.missing.mean() > MISSING_FLAG:
            features.append(self.missing_flag(infinite=bool(infinite.any())))
            outcome += f" and {shown(features[1].key)}"
        return self.found(facts, outcome, *features)

    def id_of_rows(self, distinct: NDArray[Any]) -> str:
        """Why integers tell rows apart and nothing else; '' if they may be measurements.

        Rows drawn from numbered ones have all different numbers of a narrow range. That 100
        measurements of a range of 400 are all different has a chance of 1 in 100,000, unless they
        are times.
        """
        rows, span = len(self.missing), distinct[-1] - distinct[0] + 1
        if rows <= MANY_ROWS or len(distinct) < rows - self.missing.sum():
            return ""
        if len(distinct) == rows == span:
            return "it numbers the rows"
        words = [each.lower() for each in _NAME_WORDS.findall(self.key)]
        if words and (words[-1] in _IDS_NAMES or _JOINED_ID.fullmatch(words[-1])):
            return "each row has another, and the name says id"
        if len(distinct) == rows and span <= ID_SPAN * rows and _TIMES.isdisjoint(words):
            return "each row has another, of a narrow range, as numbers of rows have"
        return ""

    def integers(self, facts: str, values: list[int], steps: tuple[Step, ...]) -> Finding:
        """By vocabulary, not by identity, of which an integer that is new is an error."""
        column = Call(
            feature_column.categorical_column_with_vocabulary_list, (self.key, tuple(values))
        )
        return self.categorical(facts, "vocabulary", len(values), column, steps)

    def flags(self, series: Any) -> Finding:
        present = series.dropna()
        facts = self.facts(present.nunique(), f"{present.astype('float64').mean():.1%} true")
        if present.nunique() == 1:
            return self.constant(facts)
        # By way of `boolean`: at another time flags may have missing values, and be objects then.
        boolean = Step("astype", ("boolean",))
        steps = (boolean, Step("astype", ("Int64",)), *_IDS)
        column = Call(
            feature_column.categorical_column_with_identity, (self.key,), (("num_buckets", 2),)
        )
        return self.categorical(facts, "identity", 2, column, steps)

    def words(self, words: Any) -> Finding:
        present = words[~self.missing]
        counts = present.value_counts()
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        word, count = ordered[0]
        facts = self.facts(len(ordered), f"{shown(word)[:40]} {count / len(words):.1%}")
        if len(ordered) == 1:
            return self.constant(facts)
        many = len(words) > MANY_ROWS
        if many and len(ordered) > max(self.limits.max_vocabulary, TEXT_UNIQUE * len(present)):
            count = float(present.str.count(r"\S+").mean())
            if count >= TEXT_WORDS:
                return self.text(facts, count)
        if many and len(ordered) > NEARLY_UNIQUE * len(present):
            return self.left_out(facts, "nearly each row has another, as names and ids do")
        once = sum(count == 1 for _, count in ordered) / len(present)
        if once >= UNSEEN:  # the share of unseen words is that of those seen once (Good 1953)
            facts += f", about {once:.1%} of other rows have other words"
        return self.vocabulary(facts + _mostly_numbers(present), [each for each, _ in ordered])

    def text(self, facts: str, count: float) -> Finding:
        """Free text, of so many words on average."""
        facts = f"{facts}, text of {count:.1f} words"
        if self.limits.text == "drop":
            return self.left_out(facts, "free text (text: hash keeps its words)")
        steps = (*self.steps, Step("astype", ("string",)), Step("fillna", ("",)))
        make = feature_column.categorical_column_with_hashed_words
        column = Call(make, (self.key,), (("hash_bucket_size", WORD_BUCKETS),))
        dense, shape = Call(feature_column.indicator_column, (column,)), "indicator"
        if self.limits.text == "embed":
            dense, shape = self.dense(column, 2 * WORD_BUCKETS)
        feature = Feature(self.key, self.label, steps, (("", column),), dense, column)
        how = f"hashed words and pairs of words, {WORD_BUCKETS} buckets each"
        return self.found(facts, f"{how}, {shape}", feature)

    def categories(self, series: Any) -> Finding:
        listed = list(series.dtype.categories)
        counts = series.value_counts()
        facts = self.facts(len(listed), f"{shown(counts.index[0])[:40]} {counts.iloc[0]} times")
        if len(listed) == 1:
            return self.constant(facts)
        integers = all(isinstance(each, (int, np.integer)) for each in listed)
        if integers and min(listed) >= 0 and len(listed) <= self.limits.max_vocabulary:
            steps = (Step("astype", ("Int64",)), *_IDS)
            return self.integers(facts, sorted(int(each) for each in listed), steps)
        if not all(isinstance(each, str) for each in listed):
            # As words, ranges of integers become (0.0, 4.0], not (0, 4], where one is missing.
            self.steps = (*self.steps, Step("cat.rename_categories", (str,)))
        return self.vocabulary(facts, [str(each) for each in listed if str(each)])

    def vocabulary(self, facts: str, words: list[str]) -> Finding:
        steps = (*self.steps, Step("astype", ("string",)), Step("fillna", ("",)))
        if len(words) <= self.limits.max_vocabulary:
            column = Call(
                feature_column.categorical_column_with_vocabulary_list, (self.key, tuple(words))
            )
            return self.categorical(facts, "vocabulary", len(words), column, steps)
        buckets = (("hash_bucket_size", hash_buckets(len(words))),)
        column = Call(feature_column.categorical_column_with_hash_bucket, (self.key,), buckets)
        return self.categorical(facts, f"{buckets[0][1]:,} hash buckets", len(words), column, steps)

    def categorical(
        self, facts: str, how: str, ids: int, column: Call, steps: tuple[Step, ...]
    ) -> Finding:
        dense, shape = self.dense(column, ids)
        feature = Feature(self.key, self.label, steps, (("", column),), dense, column)
        return self.found(facts, f"{how}, {shape}", feature)

    def dense(self, column: Call, ids: int) -> tuple[Call, str]:
        """What makes ids dense, and the words for it."""
        if ids < self.limits.embedding_from:
            return Call(feature_column.indicator_column, (column,)), "indicator"
        size = dimension(ids)
        made = Call(feature_column.embedding_column, (column,), (("dimension", size),))
        return made, f"embedding of {size}"

    def dates(self, times: Any) -> Finding:
        self.missing = np.asarray(times.isna(), bool)
        present = times[~self.missing]
        if not len(present):
            return self.left_out(str(self.series.dtype), "no value is a date")
        first, last = present.min(), present.max()
        facts = self.facts(present.nunique(), f"{first:%Y-%m-%d} to {last:%Y-%m-%d}")
        features = []
        if present.dt.year.nunique() > 1:
            key, years = self.derived("year"), np.asarray(present.dt.year, np.float64)
            steps = (*self.steps, Step("dt.year", None))
            features.append(number(key, self.label, steps, years, self.limits)[0])
        # Months are 1 to 12, days of the week 0 (Monday) to 6.
        parts = (("month", "month", 13), ("weekday", "day_of_week", 7), ("hour", "hour", 24))
        for end, attribute, ids in parts:
            if getattr(present.dt, attribute).nunique() > 1:
                key = self.derived(end)
                column = Call(
                    feature_column.categorical_column_with_identity, (key,), (("num_buckets", ids),)
                )
                dense, _ = self.dense(column, ids)
                steps = (*self.steps, Step(f"dt.{attribute}", None), *_IDS)
                features.append(Feature(key, self.label, steps, (("", column),), dense, column))
        if not features and present.nunique() > 1:
            return self.left_out(facts, "year, month, day of the week and hour are all the same")
        if not features:
            return self.constant(facts)
        keys = ", ".join(shown(feature.key) for feature in features)
        return self.found(facts, f"parts of the date: {keys}", *features)

    def missing_flag(self, *, infinite: bool = False) -> Feature:
        """The feature that says with 1 that a value is missing."""
        key = self.derived("missing")
        steps = self.steps
        if infinite:
            infinities = (float("inf"), -float("inf"))
            steps = (*steps, Step("replace", (infinities, float("nan"))))
        if self.kind == "text":
            steps = (*steps, Step("fillna", ("",)), Step("eq", ("",)))
        else:
            steps = (*steps, Step("isna"))
        dense = Call(feature_column.numeric_column, (key,))
        identity = feature_column.categorical_column_with_identity
        wide = Call(identity, (key,), (("num_buckets", 2),))
        steps = (*steps, Step("astype", ("int64",)))
        return Feature(key, self.label, steps, (), dense, wide)


# -- numbers


def number(
    key: str, label: Any, steps: tuple[Step, ...], finite: NDArray[Any], limits: Limits
) -> tuple[Feature, bool]:
    """A numeric feature, and whether it is scaled.

    Args:
        key: the feature's key.
        label: the column's label in the table.
        steps: from the column to the numbers.
        finite: those that are there.
        limits: how many ranges the column for linear models has, and what missing ones become.
    """
    scaling = _scaling(finite)
    # Single precision has 7 digits; a time in seconds needs more until its mean is taken away.
    far = scaling is not None and abs(scaling.center) > 1e4 * scaling.scale
    if not limits.fill_missing and not far:
        # What takes missing numbers scales them itself, and a tree may split at a number that
        # another program would scale to its neighbour.
        scaling = None
    keywords = () if scaling is None else (("normalizer_fn", scaling),)
    dense = Call(feature_column.numeric_column, (key,), keywords)
    steps = (*steps, Step("astype", ("float64" if far else "float32",)))
    if limits.fill_missing:
        steps = (*steps, Step("fillna", (_rounded(float(np.median(finite)), 7),)))
    bases, wide = [("", dense)], dense
    boundaries = _boundaries(finite, limits.buckets)
    if boundaries:
        plain = Call(feature_column.numeric_column, (key,))  # ranges are of the numbers as they are
        wide = Call(
            feature_column.bucketized_column, (plain,), (("boundaries", tuple(boundaries)),)
        )
        bases.append(("_buckets", wide))
    return Feature(key, label, steps, tuple(bases), dense, wide), scaling is not None


def _scaling(finite: NDArray[Any]) -> Scaling | None:
    """Mean and deviation; None if numbers are within [-1, 1] and spread widely there."""
    center, scale = float(finite.mean()), float(finite.std())
    if abs(finite).max() <= 1.0 and scale >= 0.1:
        return None
    scale = _rounded(scale, 5)
    return Scaling(round(center, 4 - math.floor(math.log10(scale))), scale)


def _boundaries(finite: NDArray[Any], buckets: int) -> list[float]:
    """Quantiles, each once, above the least number."""
    if buckets < 2:
        return []
    least = finite.min()
    shares = np.linspace(0, 1, buckets + 1)[1:-1]
    found = np.quantile(finite, shares, method="higher")
    if len(np.unique(found[found > least])) < 2:  # nearly all are the least: ranges of the others
        others = finite[finite > least]
        found = np.quantile(others, [0.0, *shares], method="higher")
    # The shortest text that gives the same single-precision number: 0.1, not 0.10000000149.
    short = {float(str(np.float32(each))) for each in found if each > least}
    return sorted(short)


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def _number(value: Any, whole: bool) -> str:
    return f"{int(value):,}" if whole and value == int(value) else f"{float(value):.6g}"


def _mostly_numbers(words: Any) -> str:
    """A remark on words that were meant to be numbers."""
    import pandas as pd

    numeric = np.asarray(pd.to_numeric(words, errors="coerce").notna(), bool)
    if numeric.mean() <= 0.5:
        return ""
    if numeric.all():
        return ", all numbers: with .astype(float) the column is numeric"
    other = shown(words[~numeric].iloc[0])[:20]
    return (
        f", {numeric.mean():.0%} of them numbers: read {other!r} as missing (na_values=) to make "
        "the column numeric"
    )
