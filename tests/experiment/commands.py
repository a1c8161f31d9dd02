"""The command line in the tests' own process."""

from __future__ import annotations

from click.testing import CliRunner, Result

from estimatorkit.experiment import command


def invoke(*arguments: str) -> Result:
    """Runs a command."""
    return CliRunner().invoke(command.cli, arguments)


def succeed(*arguments: str) -> str:
    """What a command printed, which must not fail."""
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout
