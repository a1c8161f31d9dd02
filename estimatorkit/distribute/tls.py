"""TLS between tasks: mutual, with one certificate authority for the cluster.

`ESTIMATORKIT_TLS_CERT`, `ESTIMATORKIT_TLS_KEY` and `ESTIMATORKIT_TLS_CA` are paths of PEM files:
the certificate of this host (for the name or address by which `TF_CONFIG` calls it), its key, and
the authority that signed every host's. Beyond loopback, traffic without TLS must be allowed by
`ESTIMATORKIT_INSECURE=1`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from estimatorkit.core.errors import value_error
from estimatorkit.distribute.addresses import is_local, warn_if_public
from estimatorkit.storage.atomic_files import os_errors

INSECURE = "ESTIMATORKIT_INSECURE"
VARIABLES = tuple(f"ESTIMATORKIT_TLS_{each}" for each in ("CERT", "KEY", "CA"))


class Identity(NamedTuple):
    """This host's certificate, its private key and the CA certificate, as PEM data."""

    certificate: bytes
    key: bytes
    authority: bytes


def identity() -> Identity | None:
    """This process's credentials; None without TLS.

    Raises:
        ValueError: some of the variables are missing.
        OpError: a file cannot be read.
    """
    paths = [os.environ.get(each, "") for each in VARIABLES]
    if not any(paths):
        return None
    if not all(paths):
        raise value_error(
            "TLS between tasks is only partly configured",
            expected=" and ".join(VARIABLES),
            received=", ".join(name for name, path in zip(VARIABLES, paths, strict=True) if path),
        )
    found = []
    for path in paths:
        with os_errors("read the TLS file", path):
            found.append(Path(path).read_bytes())
    return Identity(*found)


def check_encrypted(address: str, name: str, is_encrypted: bool) -> None:
    """Checks that traffic at an address is encrypted, stays on this host, or may be unencrypted.

    Args:
        address: `host:port`.
        name: the task's name, for the message.
        is_encrypted: whether TLS is in use.

    Raises:
        ValueError: it is none of these.
    """
    if is_encrypted or is_local(address):
        return
    if os.environ.get(INSECURE, "") in ("", "0"):
        raise value_error(
            f"traffic of {name} at {address} would leave this host without encryption",
            expected=f"TLS: {', '.join(VARIABLES)}",
            hint=f"on a private network: {INSECURE}=1, or launch --insecure",
        )
    warn_if_public(address, name)


__all__ = ["INSECURE", "VARIABLES", "Identity", "check_encrypted", "identity"]
