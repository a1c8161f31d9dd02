"""The code blocks of README and docs run, and print what the pages show; links resolve."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documentation import ROOT, blocks, matches, run_page

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


RUN = [
    page
    for page in PAGES
    if any(block.kind in ("python", "console") for block in blocks(page.read_text("utf-8")))
]


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=relative)
def test_page_code_runs(page: Path, tmp_path: Path) -> None:
    wrong = run_page(page, tmp_path)
    assert not wrong, "\n".join(wrong)


def test_page_runner(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    code = "```python\nx = 1.25\nprint(x)\n```\n\n```text\n{}\n```\n\n```console\n$ echo {}\n```\n"
    page.write_text(code.format("1.2...", "yes"))
    assert not run_page(page, tmp_path)
    page.write_text(code.format("2.5", "yes"))
    (wrong,) = run_page(page, tmp_path)
    assert wrong.startswith("page.md:2 printed\n1.25\ninstead of\n2.5")
    page.write_text("```python\n1 / 0\n```\n")
    (wrong,) = run_page(page, tmp_path)
    assert "ZeroDivisionError" in wrong
    page.write_text("```console\n$ false\n```\n")
    (wrong,) = run_page(page, tmp_path)
    assert "exit code 1" in wrong
    assert matches(None, "anything")


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_file_links_resolve(page: Path) -> None:
    for target in LINK.findall(re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)):
        if "://" not in target and not target.startswith(("#", "mailto:")):
            assert (page.parent / target.partition("#")[0]).exists(), f"{relative(page)}: {target}"
