"""The README's script and the examples run, and learn what they say."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


def load_example(name: str) -> ModuleType:
    """Imports an example by its file."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_iris_learns_with_each_seed(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = load_example("iris").main(train_steps=1000, seed=seed, model_dir=str(tmp_path))
    assert result["accuracy"] >= 0.93
    assert result["global_step"] == 1000
    printed = capsys.readouterr().out
    for species in ("Setosa", "Versicolor", "Virginica"):
        assert re.search(rf'Prediction is "{species}" \(\d+\.\d%\), expected "{species}"', printed)


def run_script_of_readme(position: int) -> str:
    """What the README's script at a position prints."""
    scripts = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", scripts[position]],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_readme_script_of_an_estimator_runs() -> None:
    printed = run_script_of_readme(0)
    accuracy = re.search(r"'accuracy': (?:np\.float32\()?([\d.]+)", printed)
    assert accuracy is not None
    assert float(accuracy[1]) >= 0.9
    assert printed.splitlines()[-1].count("np.int64") == 30


def test_readme_script_of_data_runs() -> None:
    rows = sorted(re.findall(r"\[+([\d. ]+)\]", run_script_of_readme(1)))
    assert [[float(each) for each in row.split()] for row in rows] == [
        [0, 0, 1, 0, 0, 1],
        [0, 1, 0, 0, 0, 0],
        [0, 1, 0, 1, 1, 0],
        [1, 0, 0, 1, 0, 0],
    ]


def test_readme_script_of_a_graph_runs() -> None:
    """The loop ends after the first step that passes the limit; the slope is its closed form."""
    printed = run_script_of_readme(2)
    values = re.search(
        r"\(?(\d+)\)?, (?:np\.float32\()?([\d.]+)\)?, array\(\[\[(.*?)\]\]", printed, re.DOTALL
    )
    assert values is not None, printed
    steps, total = int(values[1]), float(values[2])
    slope = [float(each) for each in re.findall(r"-?[\d.]+", values[3])]
    projection_square = total / steps - 1.0  # of x @ weights
    assert total >= 10.0
    assert total - total / steps < 10.0
    for row, value in zip((1, 2, 3), slope, strict=True):
        assert abs(value) == pytest.approx(2 * steps * row * projection_square**0.5, rel=1e-4)
