"""`infer`: numbers made of dates, beside year, month, day of the week and hour."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LEAST_DAYS = 60
"""Dates that span fewer days have no season."""


def numbers_of(times: Any) -> dict[str, NDArray[np.float64]]:
    """What `derive` makes of dates that vary enough, by its kind.

    Args:
        times: a Series of them without missing ones.
    """
    days = np.asarray(times.dt.normalize().astype("datetime64[s]").astype("int64"), float) // 86400
    found = {}
    if days.max() > days.min():
        found["days"] = days
    if days.max() - days.min() >= _LEAST_DAYS:
        angle = (np.asarray(times.dt.day_of_year, float) - 1) * (2 * np.pi / 365.25)
        found |= {"season_sin": np.sin(angle), "season_cos": np.cos(angle)}
    minutes = np.asarray(60 * times.dt.hour + times.dt.minute, float)
    if minutes.max() > minutes.min():
        angle = minutes * (2 * np.pi / 1440)
        found |= {"clock_sin": np.sin(angle), "clock_cos": np.cos(angle)}
    weekend = np.asarray(times.dt.day_of_week > 4, float)
    if weekend.max() > weekend.min():
        found["weekend"] = weekend
    return found


def settings(name: str, column: NDArray[Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Entries of `derive`, and feature columns of them.

    Args:
        name: the column's name.
        column: ISO dates, text; None or '' is a missing one.
    """
    import pandas as pd

    texts = pd.Series(column).astype("string").str.slice(0, 19)
    times = pd.to_datetime(texts, format="ISO8601", errors="coerce").dropna()
    made = numbers_of(times) if len(times) else {}
    derive = {f"{name}_{kind}": {kind: name} for kind in made}
    features: list[dict[str, Any]] = []
    for kind, values in made.items():
        given: dict[str, Any] = {
            "key": f"{name}_{kind}",
            "default": float(f"{np.median(values):.6g}"),
        }
        if kind == "days":
            mean, deviation = float(values.mean()), float(values.std())
            scaled = {"mean": float(f"{mean:.6g}"), "deviation": float(f"{deviation:.6g}")}
            given["normalizer"] = {"type": "standardize", **scaled}
        features.append({"numeric": given})
    return derive, features
