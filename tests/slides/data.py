"""Where the tests find real data: the folder ESTIMATORKIT_DATA_DIR names, or ../shared/data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def data_dir(name: str) -> Path:
    """The folder of a data set; the test is skipped, with a word, where it is not there."""
    named = os.environ.get("ESTIMATORKIT_DATA_DIR")
    folder = (Path(named) if named else ROOT.parent / "shared" / "data") / name
    if not folder.is_dir():
        pytest.skip(f"the data set {name} is not in {folder}; set ESTIMATORKIT_DATA_DIR")
    return folder
