"""Addresses `host:port`: taken apart, and tried until somebody can listen or answers there."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import TypeVar

LISTEN_SECS = 10.0
"""How long a taken address is tried: a process that was killed has not always gone yet."""

_LOOK_SECS = 0.2
_TELL_SECS = 30.0

_T = TypeVar("_T")


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts; an IPv6 host without its brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def check_free(address: str) -> None:
    """Listens for an instant, since what listens in earnest would not say why it cannot.

    Raises:
        OSError: it cannot be listened at.
    """
    place = host_and_port(address)
    family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
    socket.create_server(place, family=family).close()


def check_answered(address: str) -> None:
    """Connects, and hangs up.

    Raises:
        OSError: nobody listens there.
    """
    socket.create_connection(host_and_port(address), timeout=_TELL_SECS).close()


def keep_trying(
    act: Callable[[], _T], seconds: float, tell: Callable[[OSError], None] | None = None
) -> _T:
    """What `act` returns, once it does not fail.

    Args:
        act: called again where it raises an `OSError`.
        seconds: for how long.
        tell: called with the newest error every 30 seconds.

    Raises:
        OSError: the last one, where the time is over.
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


__all__ = ["LISTEN_SECS", "check_answered", "check_free", "host_and_port", "keep_trying"]
