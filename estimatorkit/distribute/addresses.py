"""Addresses `host:port`: parsing, and waiting until they can be bound or reached."""

from __future__ import annotations

import errno
import ipaddress
import socket
import time
from collections.abc import Callable
from typing import TypeVar

from estimatorkit.logger import logger

LISTEN_SECS = 10.0
"""How long to retry an address in use: its process may have been killed just now."""

_POLL_SECS = 0.2
_LOG_SECS = 30.0

_T = TypeVar("_T")


def host_and_port(address: str) -> tuple[str, int]:
    """Splits an address; IPv6 hosts lose their brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def is_local(address: str) -> bool:
    """Whether an address is a loopback address, or a name that cannot be resolved."""
    try:
        found = socket.getaddrinfo(*host_and_port(address), type=socket.SOCK_STREAM)
    except socket.gaierror:
        return True
    return all(ipaddress.ip_address(str(each[4][0])).is_loopback for each in found)


def warn_if_public(address: str, name: str) -> None:
    """Warns if an address is reachable from other hosts.

    Args:
        address: an address of this process.
        name: the process's name, for the message.
    """
    try:
        found = ipaddress.ip_address(host_and_port(address)[0])
    except ValueError:  # a name, which may resolve to any address
        return
    if found.is_global or found.is_unspecified:
        logger.warning(
            "%s listens on the public address %s, and its traffic is not encrypted. Use an "
            "address of a private network.",
            name,
            address,
        )


def check_free(address: str) -> None:
    """Checks that an address can be bound, for an error with the reason.

    Raises:
        OSError: it cannot be bound.
    """
    _listen(address).close()


def claim(address: str) -> socket.socket | None:
    """Reserves an address by listening without accepting.

    Returns:
        The socket; None if the address is not this host's.

    Raises:
        OSError: the address is in use.
    """
    try:
        return _listen(address)
    except socket.gaierror:
        return None
    except OSError as error:
        if error.errno != errno.EADDRNOTAVAIL:
            raise
        return None


def _listen(address: str) -> socket.socket:
    host, port = host_and_port(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=0)


def check_answered(address: str) -> None:
    """Checks that an address accepts connections.

    Raises:
        OSError: it does not.
    """
    socket.create_connection(host_and_port(address), timeout=_LOG_SECS).close()


def keep_trying(
    function: Callable[[], _T], seconds: float, log: Callable[[OSError], None] | None = None
) -> _T:
    """Retries a function until it succeeds.

    Args:
        function: called again while it raises `OSError`.
        seconds: the timeout.
        log: called with the latest error every 30 seconds.

    Returns:
        Its result.

    Raises:
        OSError: the last error, after the timeout.
    """
    started = logged = time.monotonic()
    while True:
        try:
            return function()
        except OSError as error:
            now = time.monotonic()
            if now - started > seconds:
                raise
            if log is not None and now - logged > _LOG_SECS:
                logged = now
                log(error)
        time.sleep(_POLL_SECS)


__all__ = [
    "LISTEN_SECS",
    "check_answered",
    "check_free",
    "claim",
    "host_and_port",
    "is_local",
    "keep_trying",
    "warn_if_public",
]
