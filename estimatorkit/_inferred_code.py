"""Descriptions of calls that can both be carried out and be printed as source (private).

`Call` makes a feature column, a chain of `Step`s makes a feature from a column of a pandas frame.
Both give the same thing when they run as when their printed source runs, because there is one
description. Source stays within `WIDTH` columns, whatever names and words hold.
"""

from __future__ import annotations

import importlib
import keyword
import operator
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimatorkit.layers.numeric_embeddings import robust_statistics

WIDTH = 100
_NAME_LENGTH = 40
_MODULE = "fc"


@dataclass(frozen=True)
class Scaling:
    """The normalizer `(x - center) / scale`: equal to others with the same numbers.

    Attributes:
        center: the value that becomes 0.
        scale: the distance above `center` that becomes 1.
    """

    center: float
    scale: float

    def __call__(self, x: Any) -> Any:
        """Scales a tensor or an array."""
        return (x - self.center) / self.scale

    @property
    def source(self) -> str:
        """The source of an equivalent lambda."""
        return f"lambda x: (x {'+' if self.center < 0 else '-'} {abs(self.center)}) / {self.scale}"


@dataclass(frozen=True)
class RobustScaling:
    """The normalizer z / sqrt(1 + (z / limit)^2) of z = (x - center) / scale: outliers count less.

    RealMLP's (Holzmueller et al. 2024, arXiv:2407.04491, "robust scaling with smooth clipping");
    equal to others with the same numbers. `robust_scaling` makes it of values.

    Attributes:
        center: the value that becomes 0.
        scale: the distance above `center` where z is 1; 0: every number becomes 0.
        limit: the bound that large z approach.
    """

    center: float
    scale: float
    limit: float = 3.0

    def __call__(self, x: Any) -> Any:
        """Scales a tensor or an array."""
        z = (x - self.center) / self.scale if self.scale else (x - self.center) * 0.0
        return z / (1.0 + (z / self.limit) ** 2) ** 0.5

    @property
    def source(self) -> str:
        """The source of an equal normalizer."""
        return f"tf.feature_columns.{self!r}"


def robust_scaling(values: Any) -> RobustScaling:
    """The `RobustScaling` of a feature with these values.

    Args:
        values: numbers of any shape; NaN is ignored.

    Returns:
        `center` is the median and `scale` the difference of the quartiles; if they are equal, half
        of that of the greatest and the least value, which is 0 for constants.
    """
    numbers = np.asarray(values, np.float64)
    numbers = numbers[~np.isnan(numbers)]
    return RobustScaling(*robust_statistics(numbers))


@dataclass(frozen=True)
class Call:
    """A call of a function of `feature_column`.

    Attributes:
        function: the function.
        arguments: values: strings, numbers, scalings, tuples (which become lists), other calls.
        keywords: pairs of name and value.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...] = ()

    def make(self) -> Any:
        """What the call returns."""
        keywords = {name: _made(value) for name, value in self.keywords}
        return self.function(*map(_made, self.arguments), **keywords)

    @property
    def parts(self) -> list[tuple[str, Any]]:
        """What comes before each argument, and the argument."""
        named = [(f"{name}=", value) for name, value in self.keywords]
        return [("", value) for value in self.arguments] + named


def _made(value: Any) -> Any:
    if isinstance(value, Call):
        return value.make()
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Step:
    """One step from a column of a pandas frame to a feature.

    Attributes:
        path: the method (`astype`) or the attribute (`dt.month`) of a Series; what starts with
            `pd.` or `tf.` is a function of pandas or of this package that takes the Series.
        arguments: of the method; None: it is an attribute.
        keywords: of the function, pairs of name and value.
    """

    path: str
    arguments: tuple[Any, ...] | None = ()
    keywords: tuple[tuple[str, Any], ...] = ()

    @property
    def is_function(self) -> bool:
        """Whether it is a function of the Series, not a method."""
        return self.path.startswith(("pd.", "tf."))

    def apply(self, series: Any) -> Any:
        """The Series after the step."""
        if self.is_function:
            library, _, name = self.path.partition(".")
            module = importlib.import_module({"pd": "pandas", "tf": "estimatorkit"}[library])
            return operator.attrgetter(name)(module)(series, **dict(self.keywords))
        found = operator.attrgetter(self.path)(series)
        return found if self.arguments is None else found(*map(_made, self.arguments))

    def after(self, text: str) -> str:
        """The source of the step after that of a Series."""
        if self.is_function:
            return f"{self.path}({', '.join([text, *self.parts])})"
        given = "" if self.arguments is None else f"({', '.join(self.parts)})"
        return f"{text}.{self.path}{given}"

    @property
    def parts(self) -> list[str]:
        """The source of each argument."""
        named = [f"{name}={inline(value, {})}" for name, value in self.keywords]
        return [*(inline(value, {}) for value in self.arguments or ()), *named]


def apply(steps: Iterable[Step], series: Any) -> Any:
    """A Series after all steps."""
    for step in steps:
        series = step.apply(series)
    return series


# -- source

Names = Mapping[Call, str]


def inline(value: Any, names: Names) -> str:
    """A value's source in one line, however long.

    Args:
        value: as the arguments of a `Call`.
        names: the variables that hold what calls made.
    """
    if isinstance(value, Call):
        if value in names:
            return names[value]
        parts = [before + inline(each, names) for before, each in value.parts]
        return f"{_MODULE}.{value.function.__name__}({', '.join(parts)})"
    if isinstance(value, (Scaling, RobustScaling)):
        return value.source
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, tuple):
        return f"[{', '.join(inline(each, names) for each in value)}]"
    if isinstance(value, str) and value.isprintable():
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, float) and value in (float("inf"), -float("inf")):
        return f'float("{value}")'
    return 'float("nan")' if value != value else repr(value)


def render(value: Any, names: Names, indent: int, used: int) -> str:
    """A value's source within `WIDTH` columns.

    Args:
        value: as the arguments of a `Call`.
        names: the variables that hold what calls made.
        indent: of the line on which it starts.
        used: columns before it on that line.
    """
    line = inline(value, names)
    if used + len(line) < WIDTH:  # a comma may follow
        return line
    inner, end = " " * (indent + 4), " " * indent
    if isinstance(value, Call):
        parts = [
            inner + before + render(each, names, indent + 4, indent + 4 + len(before)) + ",\n"
            for before, each in value.parts
        ]
        return f"{_MODULE}.{value.function.__name__}(\n{''.join(parts)}{end})"
    if isinstance(value, tuple):
        return f"[\n{_filled(value, names, indent + 4)}{end}]"
    if isinstance(value, str):
        room = (WIDTH - indent - 8) // 2  # where each character is escaped, twice as wide
        pieces = [value[at : at + room] for at in range(0, len(value), room)]
        return "(\n" + "".join(f"{inner}{inline(each, {})}\n" for each in pieces) + f"{end})"
    return line


def _filled(values: tuple[Any, ...], names: Names, indent: int) -> str:
    """Items in sequence, as many a line as it holds."""
    lines = [" " * (indent - 1)]
    for value in values:
        text = inline(value, names)
        if len(lines[-1]) + len(text) + 2 > WIDTH and lines[-1].strip():
            lines.append(" " * (indent - 1))
        if len(lines[-1]) + len(text) + 2 > WIDTH:
            text = render(value, names, indent, indent)
        lines[-1] += f" {text},"
    return "".join(f"{line}\n" for line in lines)


def render_series(source: Any, steps: tuple[Step, ...], indent: int, used: int) -> str:
    """The source of a feature from a column of `frame`, within `WIDTH` columns.

    Args:
        source: the column's label.
        steps: from it to the feature.
        indent: of the line on which it starts.
        used: columns before it on that line.
    """
    line = f"frame[{inline(source, {})}]"
    for step in steps:
        line = step.after(line)
    if used + len(line) < WIDTH:
        return line
    inner, end = " " * (indent + 4), " " * indent
    text = f"frame[{render(source, {}, indent + 4, indent + 11)}]"
    lines = [text]
    for step in steps:
        if not step.is_function:
            lines.append(step.after(""))
            continue
        whole = step.after("".join(lines))
        last = [f"{lines[-1]},", *(f"{part}," for part in step.parts)]
        broken = [f"{step.path}(", *(f"    {each}" for each in [*lines[:-1], *last]), ")"]
        lines = [whole] if indent + 4 + len(whole) <= WIDTH else broken
    return "(\n" + "".join(f"{inner}{each}\n" for each in lines) + f"{end})"


def comment(text: str, *, code: bool = False) -> str:
    """A text as lines of comment.

    Args:
        text: any.
        code: whether it is source, which is broken behind commas only.
    """
    words = re.sub("(?<!,) ", "\0", text) if code else " ".join(text.split())
    lines = textwrap.wrap(words, WIDTH - 2, break_on_hyphens=False)
    return "".join(f"# {line}\n" for line in lines).replace("\0", " ")


def shown(text: Any) -> str:
    """A name or a word in a comment: quoted where it would be read wrongly."""
    words = str(text)
    return words if words.isprintable() and words.strip() == words != "" else repr(words)


def variable(key: str, taken: Collection[str]) -> str:
    """A variable's name for a key, other than those that are taken."""
    name = re.sub(r"\W+", "_", key, flags=re.ASCII).strip("_")[:_NAME_LENGTH] or "column"
    if name[0].isdigit() or keyword.iskeyword(name):
        name = f"column_{name}"
    count, found = 1, name
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    return found
