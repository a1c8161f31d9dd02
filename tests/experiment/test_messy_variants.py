"""Public tables, written in twelve ways that people leave, are read as the clean ones."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.experiment.commands import succeed
from tests.experiment.test_messy_tables import assert_alike, columns_of
from tests.slides.data import data_dir
from tests.sweep import sweep

TABLES = {"titanic": "survived", "telco": "Churn", "taxis": "fare", "bike": "cnt"}
ROWS = 600
ADDED = ("opened", "active", "town")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["estimatorkit"])


@cache
def clean(name: str) -> pd.DataFrame:
    """Rows of a table as text, with a date, a boolean and words that need more than ASCII, which
    not all tables have, and a few gaps in a column of numbers.
    """
    path = data_dir("tables") / f"{name}.csv.gz"
    frame = pd.read_csv(path, dtype=str, keep_default_na=False).sample(ROWS, random_state=1)
    random = np.random.default_rng(1)
    days = np.datetime64("2021-03-01") + random.integers(0, 500, ROWS)
    frame["opened"] = days.astype(str)
    frame["active"] = np.where(random.random(ROWS) < 0.4, "true", "false")
    frame["town"] = random.choice(["K\u00f6ln", "Z\u00fcrich", "Oslo"], ROWS)
    frame.loc[random.random(ROWS) < 0.04, numbers(name, frame)[-1]] = ""
    return frame.reset_index(drop=True)


def numbers(name: str, frame: pd.DataFrame) -> list[str]:
    """The columns of numbers with a fraction, but for the label."""
    found = []
    for key in frame.drop(columns=TABLES[name]):
        values = pd.to_numeric(frame[key].replace("", "nan"), errors="coerce")
        if values.notna().mean() > 0.2 and (values % 1 > 0).any():
            found.append(str(key))
    return found


# -- ways to write a cell


def _money(text: str, row: int) -> str:
    number = float(text)
    shown = f"{abs(number):,.5f}"
    return f"(${shown})" if number < 0 and row % 2 else f"{'-' * (number < 0)}${shown}"


def _date(text: str, row: int) -> str:
    day, _, clock = text.partition(" ")
    year, month, of_month = day.split("-")
    if row % 7 == 0:
        return datetime.fromisoformat(text).strftime(f"%d %b %Y{' %H:%M:%S' * bool(clock)}")
    return f"{of_month}/{month}/{year} {clock}".strip()


def _flag(text: str, row: int) -> str:
    words = {"true": ("true", "Yes", "T", "1"), "false": ("false", "No", "F", "0")}
    return words[text][row % 4]


def _blank(text: str, row: int) -> str:
    return text + " " * (row % 3)


# -- ways to write a table


@dataclass(frozen=True)
class Written:
    """A file, the options that `init` needs for it, and the clean names of renamed columns."""

    data: bytes
    options: tuple[str, ...] = ()
    names: Mapping[str, str] | None = None


def _csv(frame: pd.DataFrame, encoding: str = "utf-8", **options: Any) -> bytes:
    text: str = frame.to_csv(index=False, lineterminator=options.pop("end", "\n"), **options)
    return text.encode(encoding)


def _changed(frame: pd.DataFrame, keys: list[str], change: Callable[[str, int], str]) -> Written:
    made = frame.copy()
    for key in keys:
        cells = frame[key].tolist()
        made[key] = [change(cell, row) if cell else "" for row, cell in enumerate(cells)]
    return Written(_csv(made))


def _dates(name: str, frame: pd.DataFrame) -> Written:
    keys = [str(key) for key in frame if frame[key].str.fullmatch(r"\d{4}-\d\d-\d\d.*").all()]
    return _changed(frame, keys, _date)


def _junk(name: str, frame: pd.DataFrame) -> Written:
    key = numbers(name, frame)[-1]
    made, words = frame.copy(), ("unknown", "-", "n/a")
    made[key] = [cell or words[row % 3] for row, cell in enumerate(frame[key])]
    return Written(_csv(made))


def _european(name: str, frame: pd.DataFrame) -> Written:
    made, decimals = frame.copy(), numbers(name, frame)
    if "." in "".join(frame[TABLES[name]]):
        decimals.append(TABLES[name])
    for key in decimals:
        made[key] = frame[key].str.replace(".", ",")
    return Written(_csv(made, sep=";"))


def _no_header(name: str, frame: pd.DataFrame) -> Written:
    places = {f"column_{place + 1}": str(key) for place, key in enumerate(frame)}
    label = str([*frame].index(TABLES[name]) + 1)
    return Written(_csv(frame, header=False), ("--label", label), places)


def _duplicates(name: str, frame: pd.DataFrame) -> Written:
    one, other = [str(key) for key in frame if key != TABLES[name]][:2]
    body = _csv(frame.rename(columns={other: one}))
    return Written(body, names={f"{one}_2": other})


VARIANTS: dict[str, Callable[[str, pd.DataFrame], Written]] = {
    "money": lambda name, frame: _changed(frame, numbers(name, frame), _money),
    "percent": lambda name, frame: _changed(
        frame, numbers(name, frame), lambda text, row: f"{text}{' ' * (row % 2)}%"
    ),
    "dates": _dates,
    "junk words": _junk,
    "encodings": lambda name, frame: Written(
        _csv(
            frame,
            {"titanic": "latin-1", "taxis": "utf-16", "bike": "utf-16-le"}.get(name, "cp1252"),
        )
    ),
    "decimal commas": _european,
    "no header": _no_header,
    "duplicate names": _duplicates,
    "byte order mark": lambda name, frame: Written(_csv(frame, "utf-8-sig")),
    "CRLF": lambda name, frame: Written(_csv(frame, end="\r\n")),
    "booleans": lambda name, frame: _changed(frame, ["active"], _flag),
    "trailing blanks": lambda name, frame: _changed(frame, [*map(str, frame)], _blank),
}
CASES = [(table, variant) for table in TABLES for variant in VARIANTS]


@cache
def clean_columns(name: str) -> tuple[dict[str, Any], dict[str, Any], Any]:
    return columns_of(_csv(clean(name)), "--label", TABLES[name])


def _renamed(found: Any, names: Mapping[str, str]) -> Any:
    """Settings with the clean names of columns, also in the names of what is derived from them."""
    text = json.dumps(found)
    for made in sorted(names, key=len, reverse=True):
        text = text.replace(f'"{made}', f'"{names[made]}')
    return json.loads(text)


@sweep(("name", "variant"), CASES, quick=3)
def test_variants_have_the_columns_and_values_of_the_clean_table(name: str, variant: str) -> None:
    chosen, features, labels = clean_columns(name)
    written = VARIANTS[variant](name, clean(name))
    assert written.data != _csv(clean(name))
    found, messy, classes = columns_of(
        written.data, *(written.options or ("--label", TABLES[name]))
    )
    if written.names:
        found = _renamed(found, written.names)
        names = _renamed([*messy], written.names)
        messy = dict(zip(names, messy.values(), strict=True))
    assert_alike(found, chosen)
    np.testing.assert_array_equal(classes, labels)
    assert messy.keys() == features.keys()
    for key, column in features.items():
        if column.dtype.kind == "O":
            assert _words(messy[key]) == _words(column), key
        else:
            np.testing.assert_allclose(messy[key], column, rtol=1e-6, err_msg=key)


def _words(column: Any) -> list[str]:
    """Words whose case does not count."""
    return [each.decode().lower() for each in column.reshape(-1).tolist()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "variant"),
    [("titanic", "junk words"), ("telco", "no header"), ("taxis", "decimal commas")],
)
def test_models_of_variants_are_worth_as_much(name: str, variant: str) -> None:
    written = VARIANTS[variant](name, clean(name))
    found = []
    for data, options in ((_csv(clean(name)), ()), (written.data, written.options)):
        Path("table.csv").write_bytes(data)
        options = options or ("--label", TABLES[name])
        succeed("init", "table.csv", *options, "--time", "1", "--force")
        folder = f"model-{len(found)}"
        output = succeed("run", "table.yaml", "train.epochs=6", "--model-dir", folder)
        match = re.search(r"^  (auc|rmse) +([\d.]+)$.*^  the m\w+ of", output, re.M | re.S)
        assert match is not None, output
        found.append((match[1], float(match[2])))
    assert found[0][0] != "auc" or found[0][1] > 0.7
    assert found[1] == (found[0][0], pytest.approx(found[0][1], rel=0.02))
