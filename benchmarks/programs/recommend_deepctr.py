"""DeepCTR's side of `recommend.py`: trains each model, and prints the scores as JSON."""

import contextlib
import json
import sys

import deepctr.models
import tensorflow as tf
from deepctr.feature_column import DenseFeat, SparseFeat

from benchmarks.programs.recommend_data import (
    BATCH,
    BUCKETS,
    DIMENSION,
    HIDDEN,
    MODELS,
    load,
    scores,
)


def train(name, epochs, seed):
    (features, labels), (test, truth) = load()
    _, _, kind, arguments = MODELS[name]
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(seed)
    columns = [
        SparseFeat(key, BUCKETS, embedding_dim=DIMENSION) if key[0] == "C" else DenseFeat(key, 1)
        for key in features
    ]
    without = {"l2_reg_linear": 0, "l2_reg_embedding": 0, "dnn_hidden_units": HIDDEN}
    more = {"l2_reg_cross": 0} if kind == "DCN" else {}
    make = getattr(deepctr.models, kind)
    model = make(columns, columns, seed=seed, **{**without, **more, **arguments})
    model.compile(tf.keras.optimizers.Adam(0.001), "binary_crossentropy")
    model.fit(features, labels, BATCH, epochs, verbose=0)
    return scores(truth, model.predict(test, BATCH, verbose=0)[:, 0])


if __name__ == "__main__":
    epochs, seeds = map(int, sys.argv[1:])
    with contextlib.redirect_stdout(sys.stderr):
        found = {
            name: [train(name, epochs, seed) for seed in range(1, seeds + 1)] for name in MODELS
        }
    print(json.dumps(found))
