"""From a CSV file to a server by commands: `init`, `run`, `tune`, `report`, `predict`, `serve`.

Six tables: what is a house in California worth, does somebody earn more than 50,000 dollars, how
old is a shell, what does a car cost, will an advertisement be clicked, how does diabetes go on? A
fifth of the rows is kept out of all of it to test with. New on this page:

* `estimatorkit init` looks at a file and writes an experiment that learns one of its columns, with
  its choices as comments;
* `run` trains it, and says what the mean or the majority would have scored;
* `tune` tries other settings, ends bad trials early, and trains the best;
* `report` is a page to look at; `predict` needs the trained folder or the export and nothing else;
* `serve` answers over HTTP what `predict` writes into a file.

    python examples/tables_by_command.py housing [--trials 20] [--folder FOLDER] [--epochs 30]

At the end comes a row for each table, beside gradient boosting and a linear model of scikit-learn
with their defaults: R2 of numbers, accuracy of classes (of clicks the area under the ROC curve).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import estimatorkit as tf

LABELS = {
    "housing": "median_house_value",
    "census": "income_bracket",
    "abalone": "rings",
    "automobile": "price",
    "criteo": "Label",
    "diabetes": "target",
}
CLASSES = ("census", "criteo")


def load(name):
    """A table, its label among the columns, without rows that have none."""
    if name == "diabetes":
        table = load_diabetes(as_frame=True).frame
    elif name == "criteo":
        folder = Path(os.environ.get("ESTIMATORKIT_DATA_DIR", "../shared/data"))
        table = pd.read_csv(folder / "criteo/train.tiny.csv").drop(columns="Id")
    elif name == "census":
        table = tf.datasets.census.load_data()[0]
    elif name == "housing":
        table = tf.datasets.california_housing.load_data()
    else:
        table = getattr(tf.datasets, name).load_data()
    return table[table[LABELS[name]].notna()]


def split(table):
    """Four fifths to learn from, and the rest to test with."""
    order = np.random.default_rng(0).permutation(len(table))
    test = order[: len(table) // 5]
    return table.drop(index=table.index[test]), table.iloc[test]


def command(*words):
    """Runs `estimatorkit WORDS`, and shows the line."""
    print("$ estimatorkit", *words, flush=True)
    subprocess.run([sys.executable, "-m", "estimatorkit", *words], check=True)  # noqa: S603


def served(folder, rows):
    """What a server of an export answers for some rows."""
    words = [sys.executable, "-m", "estimatorkit", "serve", folder, "--port", "0"]
    print("$ estimatorkit", *words[3:], flush=True)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
        try:
            url = next(line for line in server.stdout if "curl" in line).split()[-1]
            # Pandas writes missing numbers as null, which JSON has, unlike NaN.
            body = {"instances": json.loads(rows.to_json(orient="records"))}
            request = urllib.request.Request(url, json.dumps(body).encode())  # noqa: S310
            with urllib.request.urlopen(request) as response:  # noqa: S310
                return json.load(response)["predictions"]
        finally:
            server.terminate()


def score(name, truth, predictions):
    """The figure of predictions of the test rows; a model of clicks gives probabilities."""
    if name == "criteo":
        return roc_auc_score(truth, predictions)
    return (accuracy_score if name in CLASSES else r2_score)(truth, predictions)


def of_scikit_learn(name, train, test):
    """The figures of gradient boosting and of a linear model."""
    label = LABELS[name]
    classes = name in CLASSES
    words = make_column_selector(dtype_exclude="number")
    numbers = make_column_selector(dtype_include="number")
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore", min_frequency=5), words),
    )
    linear = LogisticRegression(max_iter=2000) if classes else Ridge()
    boosting = (HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor)(
        random_state=0
    )
    dense = make_column_transformer(
        ("passthrough", numbers),
        (OneHotEncoder(handle_unknown="ignore", min_frequency=5, sparse_output=False), words),
    )
    figures = []
    for model in (make_pipeline(dense, boosting), make_pipeline(columns, linear)):
        model.fit(train.drop(columns=label), train[label])
        features = test.drop(columns=label)
        clicks = name == "criteo"
        found = model.predict_proba(features)[:, 1] if clicks else model.predict(features)
        figures.append(score(name, test[label], found))
    return figures


def by_command(name, train, test, trials, epochs):
    """The figure of this package's best model; the working directory gets all files."""
    label = LABELS[name]
    train.to_csv(f"{name}.csv", index=False)
    test.drop(columns=label).to_csv(f"{name}-test.csv", index=False)
    command("init", f"{name}.csv", "--label", label, "--force")
    length = [f"train.epochs={epochs}"]
    if name == "census":
        length += ["train.early_stopping.metric=accuracy"]
    command("run", f"{name}.yaml", *length)
    figures = [predicted(name, f"runs/{name}", test)]
    best = f"runs/{name}"
    if trials:
        best += "/tune/best"
        command("tune", f"{name}.yaml", *length, "--trials", str(trials))
        figures.append(predicted(name, best, test))
    command("report", best)
    some = test.drop(columns=label)[:3]
    answers = served(f"{best}/export/best", some)
    for answer, told in zip(answers, predictions_of(name, best)[:3], strict=True):
        if name in CLASSES:
            np.testing.assert_allclose(answer["probabilities"][1], told, rtol=1e-4)
        else:
            # An answer of a single output is its value, as TensorFlow Serving's.
            found = answer["predictions"] if isinstance(answer, dict) else answer
            np.testing.assert_allclose(found, [told], rtol=1e-4)
    return figures


def predictions_of(name, folder):
    """The predictions that a command wrote: probabilities of the second class, or numbers."""
    frame = pd.read_csv(Path(folder) / "predictions.csv")
    column = (
        [each for each in frame if each.startswith("probability_")][1] if name in CLASSES else 0
    )
    return (frame[column] if name in CLASSES else frame.iloc[:, 0]).to_numpy()


def predicted(name, folder, test):
    """Predicts the test rows, and returns the figure."""
    output = f"{folder}/predictions.csv"
    command("predict", folder, "--input", f"{name}-test.csv", "--output", output)
    found = predictions_of(name, folder)
    if name == "census":
        found = np.where(found > 0.5, ">50K", "<=50K")
    return score(name, test[LABELS[name]], found)


def main():
    """Runs the tables that are named, and prints a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", choices=[*LABELS, "all"])
    parser.add_argument("--trials", type=int, default=20, help="of the search; 0: no search")
    parser.add_argument("--epochs", type=int, default=30, help="at most, as training stops early")
    parser.add_argument("--folder", help="where files are kept; by default in a temporary one")
    arguments = parser.parse_args()
    names = list(LABELS) if "all" in arguments.names else arguments.names
    tables = {name: split(load(name)) for name in names}
    folder = arguments.folder or tempfile.mkdtemp(prefix="estimatorkit-")
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    rows = []
    for name, (train, test) in tables.items():
        ours = by_command(name, train, test, arguments.trials, arguments.epochs)
        cells = [f"{figure:.3f}" for figure in [*ours, *of_scikit_learn(name, train, test)]]
        if not arguments.trials:
            cells.insert(1, "")
        rows.append(f"| {name} | {len(train):,} | {' | '.join(cells)} |")
    print(f"\nThe files are in {folder}.\n")
    print("| table | rows | init, run | tune | gradient boosting | linear |")
    print("| --- | --- | --- | --- | --- | --- |")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
