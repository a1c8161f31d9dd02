"""The command line: output, exit codes; nothing here trains."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import estimatorkit as ek
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.experiment import command, folds
from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.schema import Experiment
from estimatorkit.version import __version__
from tests.experiment.commands import invoke

ROOT = Path(__file__).parent.parent.parent
CONFIG = str(ROOT / "configs" / "iris_dnn.yaml")


def test_help_lists_every_command() -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    for name in ("run", "train", "evaluate", "predict", "show", "schema"):
        assert f"\n  {name} " in result.stdout
        assert invoke(name, "--help").exit_code == 0


def test_help_cuts_no_sentence() -> None:
    _, commands = invoke("--help").stdout.split("Commands:")
    assert "..." not in commands
    shown = "predicts a column of DATA (CSV, Parquet, JSON lines, Excel, SQLite or DuckDB)."
    assert shown in " ".join(commands.split())


def test_help_imports_nothing_heavy() -> None:
    heavy = ("jax", "numpy", "pandas", "pydantic", "yaml", "tensorboard")
    code = (
        "import sys, atexit\n"
        f"atexit.register(lambda: print([n for n in {heavy!r} if n in sys.modules]))\n"
        "sys.argv = ['estimatorkit', '--help']\n"
        "from estimatorkit.experiment.command import main\n"
        "main()\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert result.stdout.splitlines()[-1] == "[]"


def test_version() -> None:
    assert invoke("--version").stdout == f"estimatorkit {__version__}\n"


@pytest.mark.slow
def test_python_m_shows_errors_without_a_traceback(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "estimatorkit", "run", str(tmp_path / "none.yaml")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"error: {tmp_path}/none.yaml: no such file.\n")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", ["run", "train", "evaluate", "show"])
def test_invalid_override_exits_with_2(name: str) -> None:
    result = invoke(name, CONFIG, "--set", "train.stepz=5")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: --set train.stepz=5: unknown key train.stepz.")
    assert "did you mean 'steps'?" in result.stderr


@pytest.mark.parametrize(
    "arguments", [(), ("runn", CONFIG), ("run",), ("run", CONFIG, "--sett", "a=1")]
)
def test_invalid_command_line_exits_with_2(arguments: tuple[str, ...]) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_show_output_loads_to_same_value(tmp_path: Path) -> None:
    result = invoke("show", CONFIG, "--set", "train.steps=7", "--model-dir", "elsewhere")
    shown = tmp_path / "shown.yaml"
    shown.write_text(result.stdout)
    again = load_experiment(shown)
    assert again == load_experiment(CONFIG, ["train.steps=7", "model_dir=elsewhere"])
    assert again.run.keep_checkpoint_max == 5


def test_schema_describes_completions() -> None:
    schema = json.loads(invoke("schema").stdout)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["name", "data", "estimator", "train"]
    numeric = schema["$defs"]["Feature"]["properties"]["numeric"]["anyOf"]
    assert {"type": "string"} in numeric
    assert "DNNClassifier" in schema["$defs"]
    assert "description" in schema["$defs"]["Train"]["properties"]["steps"]


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (
            InvalidArgumentError(None, None, "shapes differ."),
            1,
            "InvalidArgumentError: shapes diff",
        ),
        (ValueError("bad rank"), 1, "ValueError: bad rank"),
        (TypeError("not a number"), 1, "TypeError: not a number"),
        (PermissionError(13, "Permission denied", "runs"), 1, "PermissionError: [Errno 13]"),
        (DataError("x.csv: no column 'A'."), 1, "error: x.csv: no column 'A'."),
        (KeyboardInterrupt(), 130, "Interrupted."),
    ],
)
def test_library_errors_become_messages(
    error: BaseException, code: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(experiment: Experiment, tell: object) -> None:
        raise error

    monkeypatch.setattr(folds, "train", fail)
    result = invoke("train", CONFIG)
    assert result.exit_code == code
    assert text in result.stderr
    assert "Traceback" not in result.stderr
    result = invoke("train", CONFIG, "--traceback")
    assert result.exit_code != 0
    assert result.exc_info is not None
    if code == 1:
        assert result.exception is error


@pytest.mark.parametrize(
    ("estimator", "more", "told"),
    [
        ("LinearClassifier", (), "The same command goes on from {}/model.ckpt-2."),
        ("LinearClassifier", ("--restart",), "without --restart goes on from {}/model.ckpt-2."),
        ("EnsembleClassifier", (), "The same command begins again."),
    ],
)
def test_interruption_says_what_the_same_command_does(
    estimator: str,
    more: tuple[str, ...],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def interrupted(experiment: Experiment, tell: object) -> None:
        with ek.Graph().as_default(), ek.Session() as session:
            ek.train.get_or_create_global_step()
            session.run(ek.global_variables_initializer())
            ek.train.Saver().save(session, str(tmp_path / "model.ckpt"), 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(folds, "train", interrupted)
    kind = f"estimator={{type: {estimator}, n_classes: 3}}"
    result = invoke("train", CONFIG, kind, "--model-dir", str(tmp_path), *more)
    assert result.exit_code == 130
    assert result.stderr.endswith(told.format(tmp_path) + "\n")
    assert "Interrupted. The same command" in result.stderr


def test_interruption_before_a_checkpoint_begins_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(experiment: Experiment, tell: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(folds, "train", interrupted)
    result = invoke("train", CONFIG, "--model-dir", str(tmp_path))
    assert result.stderr == "Interrupted. The same command begins again.\n"


def test_suggested_commands_repeat_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/estimatorkit/__main__.py"])
    asked = command.Invocation("configs/my iris.yaml", ("train.steps=2",), "runs/x")
    assert asked.again("predict", "--input", "a.csv") == (
        "python -m estimatorkit predict 'configs/my iris.yaml'"
        " train.steps=2 --model-dir runs/x --input a.csv"
    )


def test_program_outside_path_is_named_in_full(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / ".venv/bin/estimatorkit")])
    assert command.Invocation("a.yaml", (), None).again("show") == (
        ".venv/bin/estimatorkit show a.yaml"
    )
    assert command.program("tensorboard") == [".venv/bin/tensorboard"]


def test_tensorboard_is_started_as_this_program_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/estimatorkit/__main__.py"])
    assert command.program("tensorboard") == ["python", "-m", "tensorboard.main"]
    monkeypatch.setattr(sys, "argv", ["pytest"])
    assert command.program("tensorboard") == ["tensorboard"]
