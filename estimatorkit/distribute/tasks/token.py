"""The shared secret of a cluster's processes.

It is read from `ESTIMATORKIT_TOKEN`, which must be the same on every host, or else from a file in
the home folder, which is created on first use and readable by its owner only.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from estimatorkit.core.errors import value_error

VARIABLE = "ESTIMATORKIT_TOKEN"


def token_file() -> Path:
    """The file with the token, if the environment has none."""
    return Path.home() / ".estimatorkit" / "token"


def cluster_token() -> str:
    """The token.

    Raises:
        OSError: the file can be neither read nor created.
        ValueError: it cannot be sent in a request header.
    """
    given = os.environ.get(VARIABLE, "").strip()
    if given:
        if not (given.isascii() and given.isprintable()):
            raise value_error(
                f"{VARIABLE} is not a valid token",
                expected="printable ASCII characters",
                received=f"{len(given)} characters, some of them not printable ASCII",
                hint='python -c "import secrets; print(secrets.token_hex(32))" makes one',
            )
        return given
    path = token_file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = path.with_name(f"{path.name}.{os.getpid()}")
    if not path.exists():
        # Another process may do the same: the first link wins, and all read that one.
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(32))
        try:
            os.link(made, path)
        except FileExistsError:
            pass
        finally:
            made.unlink()
    return path.read_text().strip()
