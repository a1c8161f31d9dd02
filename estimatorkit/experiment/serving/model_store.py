"""`ModelStore`: the versions of an exported model; newer ones are loaded as they appear."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from estimatorkit.core.errors import NotFoundError, OpError
from estimatorkit.estimator.serving import rest_json
from estimatorkit.estimator.serving.exported_files import REQUEST, SIGNATURE
from estimatorkit.estimator.serving.predictor import (
    Predictor,
    load_predictor,
    no_export,
    versions_of,
)
from estimatorkit.logger import logger
from estimatorkit.runtime.xla.at_exit import counted, idle

_POLL_SECONDS = 2.0

_Fingerprint = tuple[tuple[str, int, int], ...]


class ModelStore:
    """The versions of a model: the newest, and those that have labels.

    A version that cannot be loaded leaves the older one in place, and is tried again when its files
    change: it may still be being copied.

    Args:
        directory: the folder of the versions, or one version.
        name: the model's name in requests; by default the folder's.
        labels: versions by label, such as `{"stable": 3, "canary": 4}`; they are held as long as
            the store is open.
        warm_up: the largest batch that is compiled when a version is loaded; 0 compiles the
            example request's size only.

    Raises:
        NotFoundError: there is no exported model, or not the version of a label.
        OpError: no version can be loaded.
    """

    def __init__(
        self,
        directory: Path,
        name: str | None = None,
        labels: Mapping[str, int] | None = None,
        warm_up: int = 0,
    ) -> None:
        directory = directory.resolve()
        self._single = (directory / SIGNATURE).is_file()
        self.directory = directory
        self.name = name or (directory.parent if self._single else directory).name
        self.labels = dict(labels or {})
        self._largest = warm_up
        self._held: dict[int, Predictor] = {}
        self._failed: dict[int, _Fingerprint] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._load_first()

    def _load_first(self) -> None:
        versions = self._versions()
        problem: Exception | None = None
        for version in reversed(versions):
            try:
                self._hold(version)
                break
            except (OpError, ValueError) as error:  # ValueError: a malformed example request
                problem = problem or error
                self._give_up(version, error)
        if not self._held:
            raise problem or no_export(self.directory)
        for label, version in self.labels.items():
            if version not in versions:
                raise NotFoundError.explained(
                    f"label {label!r} of {self.name} has no version {version}",
                    expected=", ".join(map(str, versions)),
                )
            if version not in self._held:
                self._hold(version)

    def _versions(self) -> list[int]:
        if not self._single:
            return versions_of(self.directory)
        number = self.directory.name
        return [int(number) if number.isdecimal() else 1]

    def _folder(self, version: int) -> Path:
        return self.directory if self._single else self.directory / str(version)

    def refresh(self) -> None:
        """Loads the newest version that can be, if it is newer than those held."""
        for version in reversed(self._versions()):
            if version <= max(self._held):
                return
            if self._failed.get(version) == _fingerprint(self._folder(version)):
                continue
            try:
                self._hold(version)
                return
            except Exception as error:  # a candidate must not end the watch, whatever it raises
                self._give_up(version, error)

    def _hold(self, version: int) -> None:
        loaded = load_predictor(self._folder(version))
        try:
            _warm_up(loaded, self._largest)
        except BaseException:
            loaded.close()
            raise
        with self._lock:
            # A dropped version is freed after the last request that uses it.
            kept = {each: self._held[each] for each in self._held if each in self.labels.values()}
            self._held = {**kept, version: loaded}
        logger.info("serving version %d of %s", version, self.name)

    def _give_up(self, version: int, error: Exception) -> None:
        self._failed[version] = _fingerprint(self._folder(version))
        logger.error(
            "version %d of %s is not served until its files change: %s: %s",
            version,
            self.name,
            type(error).__name__,
            error,
        )

    def watch(self) -> None:
        """Checks for newer versions on a thread until `close`."""

        def look() -> None:
            while not is_closed():
                self.refresh()

        def is_closed() -> bool:
            with idle():
                return self._closed.wait(_POLL_SECONDS)

        threading.Thread(target=counted(look), name=f"versions of {self.name}", daemon=True).start()

    def get(self, version: int | None = None, label: str | None = None) -> tuple[int, Predictor]:
        """A version, the newest by default.

        Raises:
            KeyError: it is not served, or there is no such label.
        """
        with self._lock:
            held = self._held
        number = self.labels[label] if label else max(held) if version is None else version
        return number, held[number]

    def versions(self) -> list[int]:
        """The versions that are served, oldest first."""
        with self._lock:
            return sorted(self._held)

    def close(self) -> None:
        """Stops watching and frees the models."""
        self._closed.set()
        with self._lock:
            for each in self._held.values():
                each.close()


def _fingerprint(folder: Path) -> _Fingerprint:
    """Names, sizes and times of a version's files, which change while it is being copied."""
    found = []
    for directory, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(directory, name)
            try:
                status = os.stat(path)
            except OSError:
                continue  # removed meanwhile
            found.append((path, status.st_size, status.st_mtime_ns))
    return tuple(sorted(found))


def _warm_up(predictor: Predictor, largest: int) -> None:
    """Runs the example request in each batch size, so that no client waits for compilation."""
    if not (predictor.directory / REQUEST).is_file():
        return
    content = rest_json.parse((predictor.directory / REQUEST).read_bytes())
    signature = predictor.signature(content.get("signature_name"))
    inputs, is_rows = rest_json.predict_inputs(content, signature)
    predictor(inputs, signature.name)
    size = 1
    while is_rows and size <= max(1, largest):
        rows: dict[str, Any] = {key: (list(each) * size)[:size] for key, each in inputs.items()}
        predictor(rows, signature.name)
        size *= 2


__all__ = ["ModelStore"]
