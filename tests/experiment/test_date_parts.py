"""Parts of dates: the graph's are pandas', and `infer` makes numbers of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import estimatorkit as ek
from estimatorkit.experiment import date_features, date_parts


def in_graph(kind: str, texts: list[str]) -> Any:
    with ek.Graph().as_default(), ek.Session() as session:
        fed = ek.placeholder(ek.string, [None])
        column = np.array([each.encode() for each in texts], object)
        return session.run(date_parts.PARTS[kind](fed), {fed: column})


TIMES = pd.Series(pd.date_range("1895-02-27", "2105-03-02", periods=997).floor("min"))
TEXTS = TIMES.dt.strftime("%Y-%m-%dT%H:%M:%S").tolist()


@pytest.mark.parametrize("kind", ["year", "month", "day", "weekday", "hour"])
def test_parts_are_those_of_pandas(kind: str) -> None:
    expected = getattr(TIMES.dt, {"weekday": "day_of_week"}.get(kind, kind))
    np.testing.assert_array_equal(in_graph(kind, TEXTS), expected)
    missing = in_graph(kind, ["", "yesterday"])
    assert (np.isnan(missing) if kind == "year" else missing == -1).all()


def test_numbers_are_those_that_infer_saw() -> None:
    expected = date_features.numbers_of(TIMES)
    assert expected.keys() == date_parts.NUMBERS.keys() - {"year"}
    for kind, numbers in expected.items():
        np.testing.assert_allclose(in_graph(kind, TEXTS), numbers, atol=1e-5, err_msg=kind)
        assert np.isnan(in_graph(kind, ["", "yesterday"])).all()
    assert in_graph("hour", ["2024-01-31"]) == [0]
    assert in_graph("clock_cos", ["2024-01-31"]) == [1.0]


def test_infer_makes_what_varies() -> None:
    days = np.array([f"2024-01-{day:02}" for day in range(1, 6)] + [None, "no date"], object)
    derive, features = date_features.settings("sold", days)
    assert derive == {"sold_days": {"days": "sold"}}
    scaled = {"type": "standardize", "mean": 19725.0, "deviation": 1.41421}
    assert features == [{"numeric": {"key": "sold_days", "default": 19725.0, "normalizer": scaled}}]
    assert date_features.settings("sold", days[-2:]) == ({}, [])


def test_mirrored_times_are_equal_and_others_are_apart() -> None:
    """Trees split neither between equal times nor between what programs round differently."""
    for kind, unit, count in (("clock", "m", 1440), ("season", "D", 366)):
        first = np.datetime64("2024-01-01", unit)
        texts = [f"{first + step}"[:16] for step in range(count)]
        for wave in ("sin", "cos"):
            values = np.unique(in_graph(f"{kind}_{wave}", texts))
            assert np.diff(values).min() > 9e-7
            assert kind == "season" or len(values) == 721
