"""What notebooks show: tables of graphs, plans, estimators and datasets, reports, progress bars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

CELLS = {
    "import": "import estimatorkit as tf",
    "graph": "x = tf.placeholder(tf.float32, [None, 2])\ny = tf.reduce_sum(x * 2.0)\n"
    "tf.get_default_graph()",
    "plan": "session = tf.Session()\nsession.plan(y, feeds=[x])",
    "dataset": "(features, labels), _ = tf.datasets.iris.load_data()\n"
    "rows = tf.data.Dataset.from_tensor_slices((dict(features), labels)).batch(30)\nrows",
    "columns": "inferred = tf.feature_columns.infer(features)\ninferred",
    "estimator": "model = tf.estimator.LinearClassifier(inferred, 'model', n_classes=3)\n"
    "model.train(lambda: rows, steps=4)\nmodel",
    "report": "tf.write_report(model, lambda: rows, 'report.html', importance=False)",
    "progress": "net = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nnet.compile('sgd', 'mse')\n"
    "_ = net.fit(features.to_numpy('float32'), labels, epochs=2)",
    "help": "tf.estimator.DNNClassifier?",
    "completion": "[name for name in dir(tf.estimator) if name.startswith('DNNC')]",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """The outputs of each cell, run by Jupyter's kernel of this environment."""
    cells = [nbformat.v4.new_code_cell(code) for code in CELLS.values()]  # type: ignore[no-untyped-call]
    notebook = nbformat.v4.new_notebook(cells=cells)  # type: ignore[no-untyped-call]
    folder = tmp_path_factory.mktemp("notebook")
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    assert (Path(folder) / "report.html").exists()
    return {name: cell.outputs for name, cell in zip(CELLS, cells, strict=True)}


def shown(outputs: list[Any], kind: str) -> str:
    (result,) = (each for each in outputs if each.output_type == "execute_result")
    return str(result.data[kind])


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("graph", "<svg"),
        ("plan", "segment on"),
        ("dataset", "sepal"),
        ("columns", "finding"),
        ("estimator", "LinearClassifier"),
        ("report", "iframe"),
    ],
)
def test_cells_show_tables(name: str, part: str, outputs: dict[str, list[Any]]) -> None:
    assert part.lower() in shown(outputs[name], "text/html").lower()


def test_progress_bar_stays_short(outputs: dict[str, list[Any]]) -> None:
    text = "".join(each.text for each in outputs["progress"] if each.output_type == "stream")
    assert "Epoch 2/2" in text
    assert len([line for line in text.split("\n") if line.split("\r")[-1].strip()]) <= 6


def test_help_and_completion(outputs: dict[str, list[Any]]) -> None:
    assert "DNNClassifier" in shown(outputs["completion"], "text/plain")
    assert outputs["help"] == [] or "hidden_units" in str(outputs["help"])
