"""Histories of purchases whose best possible model is known: data for models of sequences.

Each user has an interest in each category, which wanders as time passes; an item is bought by its
popularity (Zipf's law: the n-th item 1/n times as often as the first) and by the interest in its
category. Then an item is shown, and clicked with a probability that the generator knows: the area
under the ROC curve of these probabilities is what the best model could reach, and is printed.

    python examples/sequences.py FOLDER [--users 5000] [--formats csv parquet tfrecord]

It writes train.* and test.*, the last click of each user: columns user, item, category,
history_items and history_categories (oldest first; `a|b|c` in CSV, lists in the others), timestamp
and label. The same seed gives the same files. In an experiment:

    data:
      train:
        csv: train.csv
        lists: {history_items: "|", history_categories: {separator: "|", length: 20}}
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import estimatorkit as tf

CATEGORIES = 20
DRIFT = 0.3  # how far an interest wanders between two purchases
STRENGTH = 1.5  # how much a click depends on the interest
LISTS = ("history_items", "history_categories")


def generate(users=5000, items=1000, purchases=30, shown=4, seed=0):
    """A DataFrame of what was shown, with the probability of a click as `chance`.

    The history of a row is a list: all that the user has bought before.
    """
    random = np.random.default_rng(seed)
    category = np.sort(random.integers(0, CATEGORIES, items))
    rank = random.permutation(items) + 1
    # Items of a category are neighbours: a category is a range of the summed popularities.
    ends = np.cumsum(1.0 / rank)
    first = np.searchsorted(category, np.arange(CATEGORIES + 1))
    bounds = np.concatenate([[0.0], ends])[first]
    quality = random.normal(0.0, 0.5, items)
    interest = random.normal(0.0, 1.0, (users, CATEGORIES))
    bought = np.empty((users, purchases), np.int64)
    rows = []
    for step in range(purchases):
        with np.errstate(divide="ignore"):
            wish = interest * STRENGTH + np.log(np.diff(bounds))
        chosen = (wish + random.gumbel(size=wish.shape)).argmax(axis=1)
        place = bounds[chosen] + random.random(users) * (bounds[chosen + 1] - bounds[chosen])
        bought[:, step] = np.minimum(np.searchsorted(ends, place, "right"), first[chosen + 1] - 1)
        interest += random.normal(0.0, DRIFT, interest.shape)
        interest *= 1.0 / np.sqrt(1.0 + DRIFT**2)  # keeps its variance
        if step >= purchases - shown:
            item = np.searchsorted(ends, random.random(users) * ends[-1], "right")
            score = STRENGTH * interest[np.arange(users), category[item]] + quality[item] - 0.5
            rows.append((np.full(users, step), item, 1.0 / (1.0 + np.exp(-score))))
    step, item, chance = map(np.concatenate, zip(*rows, strict=True))
    user = np.tile(np.arange(users), shown)
    starts = random.integers(0, purchases - shown, users)  # some came later than others
    histories = [bought[one, starts[one] : end + 1] for one, end in zip(user, step, strict=True)]
    return pd.DataFrame(
        {
            "user": [f"u{each}" for each in user],
            "item": [f"i{each}" for each in item],
            "category": [f"c{each}" for each in category[item]],
            "history_items": [[f"i{each}" for each in one] for one in histories],
            "history_categories": [[f"c{each}" for each in category[one]] for one in histories],
            "timestamp": 1_600_000_000 + step * 86_400 + user % 86_400,
            "label": (random.random(len(chance)) < chance).astype(np.int64),
            "chance": chance,
        }
    )


def area_under_curve(labels, scores):
    """The chance that a clicked row has a higher score than another (Mann and Whitney)."""
    ranks = pd.Series(np.asarray(scores)).rank().to_numpy()
    clicked = np.asarray(labels) == 1
    positive, negative = clicked.sum(), (~clicked).sum()
    return (ranks[clicked].sum() - positive * (positive + 1) / 2) / (positive * negative)


def write_csv(table, path):
    """Writes lists as `a|b|c`."""
    joined = {name: table[name].str.join("|") for name in LISTS}
    table.assign(**joined).to_csv(path, index=False, lineterminator="\n")


def write_parquet(table, path):
    """Writes lists as lists."""
    table.to_parquet(path, index=False)


def write_tfrecord(table, path):
    """Writes `Example`s with features of variable length."""
    with tf.python_io.TFRecordWriter(str(path)) as writer:
        for row in table.to_dict("records"):
            feature = {}
            for name, value in row.items():
                if isinstance(value, int):
                    numbers = tf.train.Int64List(value=[value])
                    feature[name] = tf.train.Feature(int64_list=numbers)
                else:
                    words = value if isinstance(value, list) else [value]
                    texts = tf.train.BytesList(value=[word.encode() for word in words])
                    feature[name] = tf.train.Feature(bytes_list=texts)
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString(deterministic=True))


WRITERS = {"csv": write_csv, "parquet": write_parquet, "tfrecord": write_tfrecord}


def main(argv=None):
    """Writes the files; returns the areas under the curve that are printed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--users", type=int, default=5000)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--formats", nargs="+", choices=list(WRITERS), default=["csv"])
    flags = parser.parse_args(argv)
    table = generate(flags.users, flags.items, seed=flags.seed)
    train, test = tf.datasets.split_last(table, "user")
    flags.folder.mkdir(parents=True, exist_ok=True)
    for name, part in (("train", train), ("test", test)):
        for kind in flags.formats:
            WRITERS[kind](part.drop(columns="chance"), flags.folder / f"{name}.{kind}")
        print(f"{name}: {len(part):,} rows, {part['label'].mean():.1%} clicked")
    rate = train.groupby("item")["label"].mean()
    found = {
        "clicks of the item": area_under_curve(test["label"], test["item"].map(rate).fillna(0.5)),
        "the best possible": area_under_curve(test["label"], test["chance"]),
    }
    for name, value in found.items():
        print(f"AUC of {name}: {value:.3f}")
    return found


if __name__ == "__main__":
    main()
