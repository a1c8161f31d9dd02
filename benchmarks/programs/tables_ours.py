"""Our default models on one table: `python -m benchmarks.programs.tables_ours METHOD TABLE SEED`;
prints a JSON line.

METHOD is `run`, the command line as a new user has it (`init`, `run`, `predict`, nothing edited),
or the name of an estimator without its end: `DNN` is `DNNClassifier` or `DNNRegressor`, in
scikit-learn's form. A regressor's labels are standardized around it, as `SKRegressor` advises.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.programs.tables_data import Timer, answer, asked, parts, read, two_cores

ROOT = Path(__file__).parents[2]
COMMAND_LINE = "run"


def command(folder, *words):
    """Runs our command line in a folder; what it wrote ends this process if it fails."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "estimatorkit", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()[-8:]
        said = " / ".join(line.strip() for line in lines)
        sys.exit(f"estimatorkit {words[0]} ended with {done.returncode}: {said}")


def by_command_line(table, seed):
    """Predictions of the test rows, and the time of `init` and `run`."""
    known = pd.concat([table.train, table.valid], ignore_index=True)
    with tempfile.TemporaryDirectory() as folder:
        known.to_csv(Path(folder, "train.csv"), index=False)
        table.test.drop(columns=table.label).to_csv(Path(folder, "test.csv"), index=False)
        with Timer() as timer:
            command(folder, "init", "train.csv", "--label", table.label)
            command(folder, "run", "train.yaml", f"seed={seed}")
        given = ("--input", "test.csv", "--output", "predicted.csv")
        command(folder, "predict", "runs/train", *given)
        found = pd.read_csv(Path(folder, "predicted.csv"), keep_default_na=False)
    classes = np.unique(known[table.label])
    if table.metric == "auc":
        return found[f"probability_{classes[-1]}"], timer
    if table.metric == "accuracy":
        return np.searchsorted(classes, found["prediction"]), timer
    return found["prediction"], timer


def by_wrapper(name, table, seed):
    """Predictions of the test rows, and the time of `fit`."""
    features, labels, tested, _ = parts(table)
    model = wrapped(name, table.task, seed)
    with Timer() as timer:
        model.fit(features, labels)
    if table.metric == "auc":
        return model.predict_proba(tested)[:, 1], timer
    return model.predict(tested), timer


def maker(name, task):
    """The class in scikit-learn's form, or the estimator for the wrapper; None: there is none."""
    import estimatorkit as tf
    from estimatorkit import sklearn

    whole = f"{name}{'Regressor' if task == 'regression' else 'Classifier'}"
    known = getattr(sklearn, f"SK{whole}", None)
    return known or getattr(tf.estimator, whole, None)


def wrapped(name, task, seed):
    """A model in scikit-learn's form."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler

    from estimatorkit.sklearn import SKClassifier, SKRegressor

    made = maker(name, task)
    if made is None:
        sys.exit(f"there is no estimator of this name for {task}: {name}")
    wrapper = SKRegressor if task == "regression" else SKClassifier
    is_wrapper = isinstance(made, type) and issubclass(made, wrapper)
    model = made(random_state=seed) if is_wrapper else wrapper(made, random_state=seed)
    if task == "regression":
        return TransformedTargetRegressor(model, transformer=StandardScaler())
    return model


def main():
    two_cores()
    options = asked()
    table = read(options.table)
    if options.method == COMMAND_LINE:
        found, timer = by_command_line(table, options.seed)
    else:
        found, timer = by_wrapper(options.method, table, options.seed)
    answer(table, parts(table)[3], found, timer, ("jax",))


if __name__ == "__main__":
    main()
