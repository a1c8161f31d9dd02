"""`estimatorkit doctor`, and the help of every command: an example, and no heavy imports."""

from __future__ import annotations

import json
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from estimatorkit.__main__ import cli

HEAVY = ("jax", "numpy", "pandas", "sklearn", "tensorboard", "pydantic", "ray", "yaml", "scipy")
COMMANDS = sorted(cli.commands)


@pytest.mark.slow
def test_doctor_trains_and_hides_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATORKIT_TOKEN", "a-secret")
    result = CliRunner().invoke(cli, ["doctor"])
    assert result.exit_code == 0
    lines = dict(line.split(":", 1) for line in result.output.splitlines())
    assert lines["training"].strip().startswith("ok (100 steps on Iris")
    assert "numpy 2" in lines["packages"]
    assert "missing" not in lines["packages"]
    assert "serve" in lines["extras"]
    assert lines["ESTIMATORKIT_TOKEN"].strip() == "(set)"
    assert "a-secret" not in result.output


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example(name: str) -> None:
    command = cli.commands[name]
    text = command.get_help(click.Context(command, info_name=name))
    assert f"estimatorkit {name}" in text.split("Example")[1]


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import json, sys, contextlib, io\n"
        "from estimatorkit.__main__ import cli\n"
        "for name in cli.commands:\n"
        "    out = io.StringIO()\n"
        "    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):\n"
        "        cli([name, '--help'])\n"
        "    assert 'Usage' in out.getvalue()\n"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert json.loads(printed) == []
