"""The cluster token: from the environment, or from a file created once."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from estimatorkit.distribute.tasks.token import VARIABLE, cluster_token, token_file


def test_file_is_created_once_with_owner_permissions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    made = cluster_token()
    assert len(made) == 64
    assert cluster_token() == made
    assert stat.S_IMODE(token_file().stat().st_mode) == 0o600
    assert [each.name for each in token_file().parent.iterdir()] == ["token"]


def test_environment_token_is_stripped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, " c2VjcmV0\n")
    assert cluster_token() == "c2VjcmV0"


@pytest.mark.parametrize("given", ["schlüssel", "two\nlines", "a\x00b"])
def test_token_invalid_in_headers_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {VARIABLE: given})
    with pytest.raises(ValueError, match=f"{VARIABLE} is not a valid token") as caught:
        cluster_token()
    assert given not in str(caught.value)  # it may be a secret nearly right
