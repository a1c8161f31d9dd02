"""The table, sizes, models and scores that `recommend.py` and `recommend_deepctr.py` share; NumPy
only."""

import csv
import os
import zlib
from pathlib import Path

import numpy as np

BUCKETS, DIMENSION, HIDDEN, BATCH = 1000, 8, (64, 32), 128

# By row: our estimator and its arguments, DeepCTR's function and its arguments.
MODELS = {
    "DeepFM": ("DeepFM", {}, "DeepFM", {}),
    "DCN, vectors": ("DCN", {"version": 1}, "DCN", {}),
    "DCN, matrices": ("DCN", {}, "DCN", {"cross_parameterization": "matrix", "l2_reg_cross": 0}),
    "DCN, 4 experts of rank 32": (
        "DCN",
        {"rank": 32, "experts": 4},
        "DCNMix",
        {"low_rank": 32, "num_experts": 4, "l2_reg_cross": 0},
    ),
    "xDeepFM": (
        "xDeepFM",
        {"cin_layers": (32, 32), "cin_split_half": True},
        "xDeepFM",
        {"cin_layer_size": (32, 32), "cin_activation": "linear"},
    ),
    "AutoInt": ("AutoInt", {"attention_layers": 2}, "AutoInt", {"att_layer_num": 2}),
    "FiBiNET": ("FiBiNET", {"bilinear_type": "all"}, "FiBiNET", {"bilinear_type": "all"}),
}


def load():
    """Features and labels to learn from and to test with, a fifth: counts as log1p (from 0), hashed
    categories."""
    folder = Path(os.environ["ESTIMATORKIT_DATA_DIR"])
    with open(folder / "criteo" / "train.tiny.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    labels = np.array([int(row["Label"]) for row in rows])
    features = {}
    for key in rows[0]:
        if key.startswith("I") and key != "Id":
            counts = np.array([float(row[key] or 0) for row in rows])
            features[key] = np.log1p(np.maximum(counts, 0)).astype("float32")
        elif key.startswith("C"):
            hashed = [zlib.crc32(f"{key}={row[key]}".encode()) % BUCKETS for row in rows]
            features[key] = np.array(hashed, "int64")
    order = np.random.RandomState(0).permutation(len(rows))
    parts = order[len(rows) // 5 :], order[: len(rows) // 5]
    return [({key: each[part] for key, each in features.items()}, labels[part]) for part in parts]


def scores(truth, probabilities):
    """The area under the ROC curve, and the log loss over the entropy of the rate of clicks."""
    given = np.clip(np.asarray(probabilities, "float64"), 1e-7, 1 - 1e-7)
    _, inverse, counts = np.unique(given, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    ones = truth.sum()
    area = (ranks[truth == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(truth) - ones))
    loss = -np.mean(truth * np.log(given) + (1 - truth) * np.log(1 - given))
    rate = truth.mean()
    return float(area), float(loss / -(rate * np.log(rate) + (1 - rate) * np.log(1 - rate)))
