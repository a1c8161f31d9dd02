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
"""How long a taken address is tried: a process that was killed has not always gone yet."""

_LOOK_SECS = 0.2
_TELL_SECS = 30.0

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


def warn_if_public(address: str, who: str) -> None:
    """Warns if an address is reachable from other hosts.

    Args:
        address: an address of this process.
        who: its name, for the message.
    """
    try:
        found = ipaddress.ip_address(host_and_port(address)[0])
    except ValueError:  # a name: nobody knows who else may reach it
        return
    if found.is_global or found.is_unspecified:
        logger.warning(
            "%s listens on the public address %s, and its traffic is not encrypted. Use an "
            "address of a private network.",
            who,
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
    place = host_and_port(address)
    family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
    return socket.create_server(place, family=family, backlog=0)


def check_answered(address: str) -> None:
    """Checks that an address accepts connections.

    Raises:
        OSError: it does not.
    """
    socket.create_connection(host_and_port(address), timeout=_TELL_SECS).close()


def keep_trying(
    act: Callable[[], _T], seconds: float, tell: Callable[[OSError], None] | None = None
) -> _T:
    """Retries a function until it succeeds.

    Args:
        act: called again while it raises `OSError`.
        seconds: the timeout.
        tell: called with the latest error every 30 seconds.

    Returns:
        Its result.

    Raises:
        OSError: the last error, after the timeout.
    """
    started = told = time.monotonic()
    while True:
        try:
            return act()
        except OSError as error:
            now = time.monotonic()
            if now - started > seconds:
                raise
            if tell is not None and now - told > _TELL_SECS:
                told = now
                tell(error)
        time.sleep(_LOOK_SECS)


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
