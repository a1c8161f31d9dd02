"""What all participants of `benchmarks/tables.py` share: tables, features, the measure, the timer.

Needs pandas and NumPy only: it runs in the environments of the peers, too.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import sys
import time
from importlib import metadata
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd

CORES = 2
MOST = 20_000
"""Training rows at most; validation rows come in addition."""


def loader() -> ModuleType:
    """The module that reads and splits the tables: `tables/load_tables.py` of the data folder."""
    path = Path(os.environ["ESTIMATORKIT_DATA_DIR"], "tables", "load_tables.py")
    spec = importlib.util.spec_from_file_location("load_tables", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["load_tables"] = module
    spec.loader.exec_module(module)
    return module


def read(name):
    """A table, split, with at most `MOST` training rows."""
    (table,) = loader().tables([name], most=MOST)
    return table


def parts(table):
    """Features and labels to fit with, features and labels of the test rows.

    Dates become numbers, as do truth values. Labels of classes are their places in sorted order.
    """
    known = pd.concat([table.train, table.valid], ignore_index=True)
    labels = [part[table.label].to_numpy() for part in (known, table.test)]
    if table.task != "regression":
        classes = np.unique(labels[0])
        labels = [np.searchsorted(classes, each) for each in labels]
    features = [plain(part.drop(columns=table.label), table.dates) for part in (known, table.test)]
    return features[0], labels[0], features[1], labels[1]


def plain(frame, dates):
    """The features with dates as five numbers each, and truth values as 0 and 1."""
    frame = frame.copy()
    for name in dates:
        moments = pd.to_datetime(frame.pop(name))
        for part in ("year", "month", "day", "day_of_week", "hour"):
            frame[f"{name}_{part}"] = getattr(moments.dt, part)
    truths = frame.select_dtypes("bool").columns
    return frame.astype(dict.fromkeys(truths, "int64"))


def words_of(frame):
    """The names of the columns of words."""
    return list(frame.select_dtypes(exclude="number").columns)


def score(metric, truth, found):
    """R2, accuracy, or the area under the ROC curve.

    Args:
        metric: 'r2', 'accuracy' or 'auc'.
        truth: labels; of classes their numbers.
        found: predictions; of classes the most probable one's number, for the area its probability.
    """
    truth, found = np.asarray(truth, float), np.asarray(found, float)
    if not np.isfinite(found).all():
        raise ValueError("a prediction is not a finite number")
    if metric == "accuracy":
        return float((truth == found).mean())
    if metric == "r2":
        return float(1 - ((truth - found) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())
    _, inverse, counts = np.unique(found, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    ones = truth.sum()
    pairs = ones * (len(truth) - ones)
    return float((ranks[truth == 1].sum() - ones * (ones + 1) / 2) / pairs)


def asked():
    """The arguments of a participant: METHOD TABLE SEED."""
    parser = argparse.ArgumentParser(description="Fits one method to one table.")
    parser.add_argument("method")
    parser.add_argument("table")
    parser.add_argument("seed", type=int)
    return parser.parse_args()


class Timer:
    """Wall and processor seconds (of all threads, and of the processes that have ended)."""

    def __enter__(self):
        self._wall, self._used = time.perf_counter(), used()
        return self

    def __exit__(self, *error):
        self.seconds = time.perf_counter() - self._wall
        self.cpu_seconds = used() - self._used


def used():
    """The processor seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def two_cores():
    """Keeps this process and its children on two cores, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


def answer(table, truth, found, timer, packages):
    """Prints the JSON line of one fit."""
    versions = {each: metadata.version(each) for each in packages}
    figures = {
        "metric": table.metric,
        "score": score(table.metric, truth, found),
        "seconds": round(timer.seconds, 3),
        "cpu_seconds": round(timer.cpu_seconds, 3),
        "versions": {"python": platform.python_version()} | versions,
    }
    print(json.dumps(figures))
