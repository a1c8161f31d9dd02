"""word2vec by many processes: `word2vec.py` on parameter servers.

The table of a large vocabulary does not fit beside a network in every worker, and each step takes a
few of its rows. So the tables live with parameter servers: a step fetches the rows of its words and
sends changes of these back, all in one message to each server. Workers read the text in an order of
their own, and no two wait for each other.

Nothing here says how many processes there are: `train_and_evaluate` reads it from TF_CONFIG, which
`estimatorkit launch` sets for each of them.

    estimatorkit launch --ps 2 --workers 2 -- python examples/word2vec_cluster.py --model_dir DIR

The chief, when all is done, prints the neighbours of some words; given `--questions`, how many
analogies come out.
"""

from __future__ import annotations

import argparse
import os

import numpy as np
from word2vec import BATCH, WINDOW, analogies, input_fn, load, model_fn, nearest

import estimatorkit as tf


def main(model_dir, steps=10000, words=None, questions=None, seed=None):
    vocabulary, text = load(words=words)
    config = tf.estimator.RunConfig(model_dir, tf_random_seed=seed, log_step_count_steps=1000)
    # Another order of the text in each process.
    batches, _ = input_fn(text, WINDOW, BATCH, (seed or 0) + (config.global_id_in_cluster or 0))
    estimator = tf.estimator.Estimator(
        model_fn,
        config=config,
        params={"share": np.bincount(text) / len(text), "size": 128, "sampled": 64},
    )
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(batches, max_steps=steps),
        tf.estimator.EvalSpec(batches, steps=10),
    )
    if not config.is_chief:
        return {}
    vectors = estimator.get_variable_value("embeddings")
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    number = {word: index for index, word in enumerate(vocabulary)}
    for word in ("three", "england", "war", "music"):
        if word in number:
            near = nearest(vectors, vectors[number[word]][None], 6)[0]
            print(f"{word}: {', '.join(vocabulary[each] for each in near[1:])}")
    if questions is None:
        return {"words": len(vocabulary)}
    right, count = analogies(vocabulary, vectors, questions)
    print(f"{right} of {count} analogies")
    return {"words": len(vocabulary), "right": right}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model_dir", required=True, type=os.path.abspath, help="the same for all")
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--words", type=int, help="how many words of the text to take")
    parser.add_argument("--questions", help="word2vec's file of analogies")
    parser.add_argument("--seed", type=int)
    main(**vars(parser.parse_args()))
