"""Writes api_names.json: the TensorFlow 1 names and keywords that public programs use.

    python tests/golden/make_api_names.py api.md api_kwargs.md

The two lists were made by parsing 2,629 public files with `ast`: names by area in three tiers (S:
taught in introductions; A: used by three or more projects; B: the rest), and for the callables of
tiers S and A the keywords they are called with.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROW = re.compile(r"^\| (?P<symbol>[A-Za-z_][\w.]*)(?P<mark>[†²]*) \|")
KEYWORDS = re.compile(r"^- (?P<symbol>[\w.]+): (?P<rest>.+)$")


def read_names(text: str) -> dict[str, dict[str, list[str]]]:
    """Names by area and tier; those that TensorFlow 2.15's compat.v1 no longer has are marked."""
    areas: dict[str, dict[str, list[str]]] = {}
    area, tier = "", ""
    for line in text.splitlines():
        if line.startswith("## "):
            area, tier = line[3:], ""
        if found := re.match(r"^\*\*([SAB])\*\* \(\d+\)(: (?P<names>.*))?$", line):
            tier = found.group(1)
            if found.group("names"):
                names = [name.strip().rstrip(".") for name in found.group("names").split(",")]
                areas.setdefault(area, {})[tier] = names
        elif tier and (row := ROW.match(line)) and row.group("symbol") != "symbol":
            name = row.group("symbol") + row.group("mark")
            areas.setdefault(area, {}).setdefault(tier, []).append(name)
    return areas


def read_keywords(text: str) -> dict[str, list[str]]:
    """For each callable its keywords, most used first."""
    keywords: dict[str, list[str]] = {}
    for line in text.splitlines():
        if found := KEYWORDS.match(line):
            words = [part.split(" ")[0] for part in found.group("rest").split(", ")]
            keywords[found.group("symbol")] = [word for word in words if word.isidentifier()]
    return keywords


def main() -> None:
    """Reads both lists and writes the file beside this one."""
    names, keywords = (Path(argument).read_text("utf-8") for argument in sys.argv[1:3])
    result = {"names": read_names(names), "keywords": read_keywords(keywords)}
    text = json.dumps(result, indent=1, ensure_ascii=False)
    Path(__file__).with_name("api_names.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
