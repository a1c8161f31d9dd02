"""The token of a cluster: of the environment, or of a file that is made once."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from estimatorkit.distribute.tasks.token import VARIABLE, cluster_token, token_file


def test_the_file_is_made_once_and_is_its_owners_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    made = cluster_token()
    assert len(made) == 64
    assert cluster_token() == made
    assert stat.S_IMODE(token_file().stat().st_mode) == 0o600
    assert [each.name for each in token_file().parent.iterdir()] == ["token"]


def test_the_environment_counts_without_the_ends_of_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, " c2VjcmV0\n")
    assert cluster_token() == "c2VjcmV0"


@pytest.mark.parametrize("given", ["schlüssel", "two\nlines", "a\x00b"])
def test_what_no_header_can_hold_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {VARIABLE: given})
    with pytest.raises(ValueError, match=f"{VARIABLE} is not a valid token") as caught:
        cluster_token()
    assert given not in str(caught.value)  # it may be a secret nearly right
