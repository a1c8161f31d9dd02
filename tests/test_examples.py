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


def test_readme_script_runs() -> None:
    (script,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    accuracy = re.search(r"'accuracy': (?:np\.float32\()?([\d.]+)", done.stdout)
    assert accuracy is not None
    assert float(accuracy[1]) >= 0.9
    assert done.stdout.splitlines()[-1].count("np.int64") == 30
