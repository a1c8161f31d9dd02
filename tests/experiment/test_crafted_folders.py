"""Links and pipes in a model folder: no run writes through them, or waits for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HOUSES = """\
name: houses
seed: 1
data: {train: {csv: houses.csv}, holdout: 0.25, label: price}
infer: true
estimator: {type: DNNRegressor, hidden_units: [4]}
train: {epochs: 2, batch_size: 32}
evaluate: {every: 1 epochs}
export: [best]
"""

PROGRAM = """
import json, os, shutil, sys
from pathlib import Path
from tests.experiment.commands import invoke

def files():
    found = [path for path in Path("runs").rglob("*") if path.is_file()]
    inner = [path for path in found if any(each.is_dir() and each.name.startswith("model.ckpt")
                                           or each.name.isdigit() for each in path.parents)]
    return [str(path) for path in found if path not in inner and "tfevents" not in path.name]

assert invoke("run", "houses.yaml").exit_code == 0
names = [*files(), "runs/houses/writer.lock.json", "runs/houses/model.ckpt-20"]
told = {}
for name in names:
    shutil.rmtree("runs")
    Path(name).parent.mkdir(parents=True)
    if sys.argv[1] == "link":
        os.symlink(os.path.abspath("victim"), name)
    else:
        os.mkfifo(name)
    print(name, file=sys.stderr)
    result = invoke("run", "houses.yaml")
    shown = invoke("show", "houses.yaml")
    told[name] = [result.exit_code, result.output[-2000:], shown.exit_code, repr(shown.exception)]
    assert Path("victim").read_text() == "precious", name
print(json.dumps(told))
"""

AMONG_OTHERS = (
    "checkpoint",
    "config.yaml",
    "env.json",
    "inferred.yaml",
    "metrics.jsonl",
    "samples.csv",
    "writer.lock",
    "writer.lock.json",
)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="makes pipes")
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_files_of_a_run_as_links_and_pipes(kind: str, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "houses.yaml").write_text(HOUSES)
    lines = [f"{row % 5},{row % 7},{row % 3 * 100}" for row in range(400)]
    (tmp_path / "houses.csv").write_text("\n".join(["rooms,area,price", *lines, ""]))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert {f"runs/houses/{name}" for name in AMONG_OTHERS} <= set(told)
    for name, (code, output, shown_code, exception) in told.items():
        assert code == 0 or os.path.basename(name) in output, (name, output)
        assert shown_code == 0 or "SystemExit" in exception, (name, exception)
