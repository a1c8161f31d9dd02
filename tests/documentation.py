"""Runs the code blocks of a Markdown page, in order, and compares what they print.

`python` blocks share one interpreter, `console` blocks are lines for a shell ('$ command'; with '&'
at its end it runs until the page ends). A `text` block right behind a block is what it prints:
`...` stands for anything, and white space does not count. Other blocks (`yaml`, `sh`, `py`) are not
run. A comment `<!-- file: NAME -->` before a block of any kind writes it to a file.
"""

from __future__ import annotations

import doctest
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from estimatorkit import datasets
from tests.slides.data import data_dir

ROOT = Path(__file__).parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(
    r"^(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<kind>\w+)[^\n]*\n(?P<code>.*?)^```\n"
    r"(?:\n```text\n(?P<output>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
RUNNER = """
import atexit, contextlib, io, json, os, signal, subprocess, sys
space = {"__name__": "__main__"}
def shell(code):
    printed = ""
    for line in code.replace("\\\\\\n", " ").splitlines():
        if not line.startswith("$ "):
            continue
        command = line[2:]
        if command.rstrip().endswith("&"):
            command = command.rstrip()[:-1]
            process = subprocess.Popen(command, shell=True, start_new_session=True,
                                       stdout=subprocess.DEVNULL, stderr=sys.stderr)
            atexit.register(os.killpg, process.pid, signal.SIGTERM)
            continue
        run = subprocess.run(command, shell=True, text=True, stdout=subprocess.PIPE)
        printed += run.stdout
        if run.returncode:
            raise SystemExit(f"{command}: exit code {run.returncode}")
    return printed
for line in sys.stdin:
    kind, code, name = json.loads(line)
    if kind == "console":
        printed = shell(code)
    else:
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream):
            exec(compile(code, name, "exec"), space)
        printed = stream.getvalue()
    print(json.dumps(printed), flush=True)
"""


@dataclass(frozen=True)
class Block:
    """A code block.

    Attributes:
        line: its first line in the page.
        kind: its language.
        code: its text.
        output: what it should print; None: anything.
        file: the file to which it is written; None: none.
    """

    line: int
    kind: str
    code: str
    output: str | None
    file: str | None


def blocks(page: str) -> Iterator[Block]:
    """Yields a page's code blocks."""
    for match in BLOCK.finditer(page):
        line = page.count("\n", 0, match.start("code")) + 1
        yield Block(line, match["kind"], match["code"], match["output"], match["file"])


def downloaded(path: Path) -> set[str]:
    """The folders of the data sets that a page's code would download."""
    names = set(re.findall(r"\bdatasets\.(\w+)", path.read_text("utf-8"))) - {"iris", "digits"}
    known = datasets.catalogue()
    return {known[name].folder for name in names if name in known}


def run_page(path: Path, folder: Path) -> list[str]:
    """Runs a page's blocks in a folder; the test is skipped where a data set is not there.

    Returns:
        what went wrong: a line number, what was printed, and what should have been.
    """
    search = os.pathsep.join([os.fspath(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PYTHONPATH": os.fspath(ROOT), "PATH": search, "COLUMNS": "100"}
    for name in sorted(downloaded(path)):
        environment["ESTIMATORKIT_DATA_DIR"] = os.fspath(data_dir(name).parent)
    errors = folder / ".errors"
    wrong = []
    with errors.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-c", RUNNER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            cwd=folder,
            env=environment,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        for block in blocks(path.read_text("utf-8")):
            if block.file:
                target = folder / block.file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(block.code, "utf-8")
            elif block.kind in ("python", "console"):
                name = f"{path.name}:{block.line}"
                process.stdin.write(json.dumps([block.kind, block.code, name]) + "\n")
                process.stdin.flush()
                answer = process.stdout.readline()
                if not answer:
                    break
                printed = json.loads(answer)
                if not matches(block.output, printed):
                    wrong.append(f"{name} printed\n{printed}instead of\n{block.output}")
        process.stdin.close()
        process.stdout.close()
        if process.wait():
            wrong.append(f"{name} failed:\n{errors.read_text()[-4000:]}")
    return wrong


def matches(expected: str | None, printed: str) -> bool:
    """Whether a block has printed what its page says."""
    if expected is None:
        return True
    return doctest.OutputChecker().check_output(expected, printed, FLAGS)
