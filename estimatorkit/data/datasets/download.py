"""Downloads over https, verified by size and checksum.

A file is downloaded under a temporary name next to its destination, verified, and renamed, so
readers only see complete files. A lock admits one downloading process at a time. The next attempt
resumes an interrupted download; then the next address is tried.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import logging
import os
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from estimatorkit.core.errors import DataLossError, NotFoundError, UnavailableError, explain
from estimatorkit.storage.atomic_files import os_errors, temporary_beside

_PIECE = 1 << 18
_PATIENCE = 5.0  # seconds of waiting for another process before logging it


@dataclass(frozen=True)
class DataFile:
    """A downloadable file.

    Attributes:
        name: its name in the folder of its data set.
        size: bytes; None if only the server knows.
        sha256: hexadecimal; None if unknown.
        urls: addresses, in the order in which they are tried.
        md5: used for files without a published SHA-256.
    """

    name: str
    size: int | None
    sha256: str | None
    urls: tuple[str, ...] = ()
    md5: str | None = None

    def checksums(self) -> dict[str, str]:
        """The known checksums by algorithm."""
        known = {"sha256": self.sha256, "md5": self.md5}
        return {algorithm: each for algorithm, each in known.items() if each is not None}

    def described(self) -> str:
        """Size and checksums, for messages."""
        size = [] if self.size is None else [f"{self.size} bytes"]
        return ", ".join([*size, *(f"{name} {each}" for name, each in self.checksums().items())])


class _Unusable(Exception):
    """An address cannot provide the file; another may."""


class _Cut(Exception):
    """The connection closed early; the received part is valid."""


@dataclass(frozen=True)
class Downloader:
    """Downloads files.

    Attributes:
        schemes: the allowed schemes of addresses and redirects.
        attempts: connection attempts per address.
        timeout: seconds without data after which a connection counts as lost.
        pause: seconds before the second attempt; doubled for each further one.
    """

    schemes: tuple[str, ...] = ("https",)
    attempts: int = 4
    timeout: float = 30.0
    pause: float = 1.0

    def fetch(self, file: DataFile, path: Path) -> None:
        """Downloads a file to a path that does not exist yet.

        Raises:
            NotFoundError: it has no address.
            UnavailableError: no address provides it.
            DataLossError: the addresses provide a different file.
            OpError: it cannot be written; the subclass depends on the reason.
        """
        if not file.urls:
            raise NotFoundError.explained(
                f"the file {file.name} is not there", hint=_by_hand(file, path)
            )
        with os_errors("write", path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
            with _alone(path):
                if not path.exists():
                    self._fetch(file, path)

    def _fetch(self, file: DataFile, path: Path) -> None:
        reasons = []
        other = False
        with temporary_beside(path) as temporary:
            for url in file.urls:
                try:
                    with open(temporary, "w+b") as target, _progress(file) as progress:
                        self._fetch_from(url, file, target, progress)
                        target.flush()
                        os.fsync(target.fileno())
                except _Unusable as error:
                    reasons.append(f"{url}: {error}")
                except DataLossError as error:
                    other = True
                    reasons.append(f"{url}: {error}")
                else:
                    os.replace(temporary, path)
                    return
        kind = DataLossError if other else UnavailableError
        raise kind(
            None,
            None,
            explain(
                f"could not fetch the file {file.name}",
                expected=file.described() or None,
                received="\n            ".join(reasons),
                hint=_by_hand(file, path),
            ),
        )

    def _fetch_from(
        self, url: str, file: DataFile, target: io.BufferedRandom, progress: Any
    ) -> None:
        """Downloads the file from one address, with retries.

        Raises:
            DataLossError: the address provides a different file.
            _Unusable: it provides no file.
        """
        self._check_scheme(url)
        for attempt in range(self.attempts):
            if attempt:
                time.sleep(self.pause * 2 ** (attempt - 1))
            try:
                self._continue(url, file, target, progress)
            except _Cut as error:
                if attempt + 1 == self.attempts:
                    raise _Unusable(f"{error}, {self.attempts} times") from error
            else:
                break
        for algorithm, expected in file.checksums().items():
            target.seek(0)
            found = hashlib.file_digest(target, algorithm).hexdigest()
            if found != expected:
                raise DataLossError(None, None, f"its {algorithm} is {found}")

    def _continue(self, url: str, file: DataFile, target: io.BufferedRandom, progress: Any) -> None:
        """Appends the missing part of the file.

        Raises:
            _Cut: the connection closed early.
        """
        headers = {"User-Agent": "estimatorkit", "Accept-Encoding": "identity"}
        there = target.tell()
        if there:
            headers["Range"] = f"bytes={there}-"
        try:
            request = urllib.request.Request(url, headers=headers)  # noqa: S310 (scheme checked)
            with self._open(request) as response:
                if there and response.status != http.client.PARTIAL_CONTENT:
                    there = 0  # the server does not support ranges
                    target.seek(0)
                    target.truncate()
                    progress.reset()
                size = file.size
                if size is None and (length := response.headers.get("Content-Length")):
                    size = there + int(length)
                while piece := response.read(_PIECE):
                    there += len(piece)
                    if size is not None and there > size:
                        raise DataLossError(None, None, f"it has more than {size} bytes")
                    target.write(piece)
                    progress.update(len(piece))
        except (http.client.HTTPException, TimeoutError, ConnectionError, ssl.SSLError) as error:
            raise _Cut(f"the connection closed after {there} bytes ({error})") from error
        if size is not None and there < size:
            raise _Cut(f"the connection closed after {there} bytes")

    def _open(self, request: urllib.request.Request) -> Any:
        opener = urllib.request.build_opener(_Redirects(self))
        try:
            return opener.open(request, timeout=self.timeout)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code >= 500 or error.code in (408, 429):
                raise _Cut(f"the server answered {error.code} {error.reason}") from error
            raise _Unusable(f"the server answered {error.code} {error.reason}") from error
        except urllib.error.URLError as error:
            if isinstance(error.reason, (TimeoutError, ConnectionResetError)):
                raise _Cut(str(error.reason)) from error
            unknown = isinstance(error.reason, socket.gaierror)
            words = "the name of the server is not known here: is this machine offline?"
            raise _Unusable(words if unknown else str(error.reason)) from error

    def _check_scheme(self, url: str) -> None:
        if urllib.parse.urlsplit(url).scheme not in self.schemes:
            raise _Unusable(f"{url} is not {' or '.join(self.schemes)}")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to allowed schemes only."""

    def __init__(self, downloader: Downloader) -> None:
        self._downloader = downloader

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        self._downloader._check_scheme(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _by_hand(file: DataFile, path: Path) -> str:
    where = Path(path.parent.name) / path.name
    return (
        f"put it at {path} by hand, or at {where} in a folder that ESTIMATORKIT_DATA_DIR names "
        f"({file.described() or 'of unknown checksum'})"
    )


def _progress(file: DataFile) -> Any:
    """A progress bar, if on a terminal."""
    from tqdm import tqdm

    return tqdm(total=file.size, desc=file.name, unit="B", unit_scale=True, disable=None)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Locks the file against downloads by other processes; the lock ends with its process."""
    lock = filelock.FileLock(f"{path}.lock")
    try:
        lock.acquire(timeout=_PATIENCE)
    except filelock.Timeout:
        logging.getLogger("estimatorkit").info(
            "waiting for another process that fetches %s (its lock is %s)", path, lock.lock_file
        )
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
