"""MkDocs' hooks: pages from the repository's other folders, and the API reference."""

from __future__ import annotations

import logging
import os
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from docs.reference_pages import reference_pages  # noqa: E402

logging.getLogger("estimatorkit").setLevel(logging.CRITICAL)  # examples train, and diverge

# Files outside docs/ that are pages, and what they are called there.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/CONVOLUTIONS.md": "convolutions.md",
    "benchmarks/RESULTS.md": "results.md",
}
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Lists the reference pages in the navigation."""
    (section,) = (entry for entry in config.nav or [] if "Reference" in entry)
    section["Reference"] = [{page.title: page.path} for page in reference_pages()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are not files of docs/."""
    for source, name in PAGES.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / source)))
    for page in reference_pages():
        files.append(File.generated(config, page.path, content=page.text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turns links to files of the repository into links to their pages, or into their names."""
    source = page.file.src_uri
    own = next((path for path, name in PAGES.items() if name == source), f"docs/{source}")

    def link(match: re.Match[str]) -> str:
        text, target = match.groups()
        if "://" in target or target.startswith(("#", "mailto:")):
            return match[0]
        path, hash_, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(own), path))
        if path in PAGES:
            path = PAGES[path]
        elif path.startswith("docs/"):
            path = path.removeprefix("docs/")
        else:
            return text if text.startswith("`") else f"{text} (`{path}`)"
        start = os.path.dirname(source) or "."
        return f"[{text}]({os.path.relpath(path, start)}{hash_}{anchor})"

    return LINK.sub(link, markdown)
