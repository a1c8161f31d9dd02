"""A server of exported models with TensorFlow Serving's REST interface: `estimatorkit serve`.

`ModelStore` holds the versions of one model and loads newer ones as they appear; `ModelServer`
serves JSON over HTTP. Names and numbers in a request's path are compared with existing ones, and
never become part of a file path. Errors are returned as `{"error": ...}`.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from estimatorkit.core.errors import InvalidArgumentError, NotFoundError, OpError, explain
from estimatorkit.estimator.serving import rest_json
from estimatorkit.estimator.serving.exported_files import REQUEST, SIGNATURE
from estimatorkit.estimator.serving.predictor import (
    Predictor,
    Signature,
    load_predictor,
    versions_of,
)
from estimatorkit.logger import logger
from estimatorkit.train.saving import saved_model_constants as constants

PORT = 8501
MAX_REQUEST_BYTES = 10 << 20
_POLL_SECONDS = 2.0
_IDLE_SECONDS = 60.0  # idle connections are closed
_MOST_REQUESTS = 64  # concurrently; more are answered 503

_PATH = re.compile(
    r"/v1/models/(?P<name>[^/:]{1,200})(?:/versions/(?P<version>0|[1-9][0-9]{0,17}))?"
    r"(?P<what>:predict|:classify|:regress|/metadata)?"
)


class _Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


# -- versions


class ModelStore:
    """The versions of a model: serves the newest, and loads newer ones as they appear.

    Args:
        directory: the folder of the versions, or one version.
        name: the model's name in requests; by default the folder's.

    Raises:
        NotFoundError: there is no exported model.
        OpError: it cannot be loaded.
    """

    def __init__(self, directory: Path, name: str | None = None) -> None:
        directory = directory.resolve()
        self._single = (directory / SIGNATURE).is_file()
        self.directory = directory
        self.name = name or (directory.parent if self._single else directory).name
        self._held: dict[int, Predictor] = {}
        self._failed: set[int] = set()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        if not self.refresh():
            raise NotFoundError.explained(
                f"there is no exported model in {str(directory)!r}",
                expected=f"{SIGNATURE}, or folders whose names are numbers",
                hint="estimator.export_saved_model(directory, serving_input_receiver_fn)",
            )

    def refresh(self) -> bool:
        """Loads the newest version if not yet loaded; returns whether a version is served."""
        if self._single:
            number = self.directory.name
            versions = [int(number) if number.isdecimal() else 1]
        else:
            versions = versions_of(self.directory)
        wanted = [each for each in versions if each not in self._failed]
        if wanted and wanted[-1] not in self._held:
            self._load(wanted[-1])
        return bool(self._held)

    def _load(self, version: int) -> None:
        folder = self.directory if self._single else self.directory / str(version)
        try:
            loaded = load_predictor(folder)
            _warm_up(loaded)
        except (OpError, ValueError) as error:  # ValueError: a malformed example request
            if not self._held:
                raise
            self._failed.add(version)  # the older version stays
            logger.error("version %d of %s is not served: %s", version, self.name, error)
            return
        with self._lock:
            # The previous version is freed after the last request that uses it.
            self._held = {version: loaded}
        logger.info("serving version %d of %s", version, self.name)

    def watch(self) -> None:
        """Checks for newer versions on a thread until `close`."""

        def look() -> None:
            while not self._closed.wait(_POLL_SECONDS):
                self.refresh()

        threading.Thread(target=look, name="model versions", daemon=True).start()

    def get(self, version: int | None = None) -> tuple[int, Predictor]:
        """A version, the newest by default.

        Raises:
            KeyError: it is not served.
        """
        with self._lock:
            held = self._held
        number = max(held) if version is None else version
        return number, held[number]

    def close(self) -> None:
        """Stops watching and frees the models."""
        self._closed.set()
        with self._lock:
            for each in self._held.values():
                each.close()


def _warm_up(predictor: Predictor) -> None:
    """Runs the example request, and its first row alone, so no client waits for compilation."""
    if not (predictor.directory / REQUEST).is_file():
        return
    content = rest_json.parse((predictor.directory / REQUEST).read_bytes())
    signature = predictor.signature(content.get("signature_name"))
    inputs, rows = rest_json.predict_inputs(content, signature)
    predictor(inputs, signature.name)
    if rows:
        predictor({key: each[:1] for key, each in inputs.items()}, signature.name)


# -- responses


def answer(store: ModelStore, method: str, path: str, body: bytes) -> dict[str, Any]:
    """The response to a request.

    Args:
        method: 'GET' or 'POST'.

    Raises:
        _Refused: the request is invalid.
    """
    asked = _PATH.fullmatch(path)
    if asked is None:
        raise _Refused(404, f"Malformed request: {method} {path[:200]}")
    if asked["name"] != store.name:
        raise _Refused(404, f"Servable not found for request: Latest({asked['name']})")
    try:
        number, predictor = store.get(int(asked["version"]) if asked["version"] else None)
    except KeyError:
        specific = f"Specific({store.name}, {asked['version']})"
        raise _Refused(404, f"Servable not found for request: {specific}") from None
    what = asked["what"]
    if method == "GET" and what in (None, "/metadata"):
        return _status(number) if what is None else _metadata(store.name, number, predictor)
    if method != "POST" or what in (None, "/metadata"):
        raise _Refused(405, f"Method not allowed: {method} {path[:200]}")
    try:
        return _ANSWERS[what](predictor, rest_json.parse(body))
    except (ValueError, InvalidArgumentError) as error:
        raise _Refused(400, str(error)) from error


def _chosen(predictor: Predictor, content: Mapping[str, Any], method: str | None) -> Signature:
    name = content.get("signature_name") or None
    if name is not None and not isinstance(name, str):
        raise rest_json.RequestError("'signature_name' must be a string")
    signature = predictor.signature(name)
    if method is not None and signature.method != method:
        raise rest_json.RequestError(
            explain(
                f"Expected signature method_name to be {method}. Was: {signature.method}",
                hint="other signatures: "
                + ", ".join(f"{key} ({each.method})" for key, each in predictor.signatures.items()),
            )
        )
    return signature


def _predict(predictor: Predictor, content: Mapping[str, Any]) -> dict[str, Any]:
    signature = _chosen(predictor, content, None)
    inputs, rows = rest_json.predict_inputs(content, signature)
    return rest_json.reply(predictor(inputs, signature.name), rows)


def _on_examples(
    method: str, make: Callable[[Any], dict[str, Any]]
) -> Callable[[Predictor, Mapping[str, Any]], dict[str, Any]]:
    def reply(predictor: Predictor, content: Mapping[str, Any]) -> dict[str, Any]:
        signature = _chosen(predictor, content, method)
        inputs = rest_json.example_inputs(content, signature)
        return make(predictor(inputs, signature.name))

    return reply


_ANSWERS = {
    ":predict": _predict,
    ":classify": _on_examples(constants.CLASSIFY_METHOD_NAME, rest_json.classification_reply),
    ":regress": _on_examples(constants.REGRESS_METHOD_NAME, rest_json.regression_reply),
}


def _status(number: int) -> dict[str, Any]:
    fine = {"error_code": "OK", "error_message": ""}
    state = {"version": str(number), "state": "AVAILABLE", "status": fine}
    return {"model_version_status": [state]}


def _metadata(name: str, number: int, predictor: Predictor) -> dict[str, Any]:
    signatures = {
        key: {
            "inputs": _infos(each.inputs, each.feeds),
            "outputs": _infos(each.outputs, each.fetches),
            "method_name": each.method,
        }
        for key, each in predictor.signatures.items()
    }
    return {
        "model_spec": {"name": name, "signature_name": "", "version": str(number)},
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


def _infos(tensors: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    from tensorboard.compat.proto.types_pb2 import DataType

    found = {}
    for key, (dtype, shape) in tensors.items():
        dims = [{"size": str(-1 if dim is None else dim), "name": ""} for dim in shape.dims or ()]
        found[key] = {
            "dtype": DataType.Name(dtype.as_datatype_enum),
            "tensor_shape": {"dim": dims, "unknown_rank": shape.dims is None},
            "name": names[key],
        }
    return found


# -- HTTP


class _Handler(BaseHTTPRequestHandler):
    """The HTTP request handler."""

    protocol_version = "HTTP/1.1"
    server_version = "estimatorkit"
    sys_version = ""
    timeout = _IDLE_SECONDS
    wbufsize = -1  # one packet per response, without delays
    server: ModelServer

    def do_GET(self) -> None:
        """Serves the model's status and metadata."""
        self._reply(b"")

    def do_POST(self) -> None:
        """Serves predictions."""
        length = self.headers.get("Content-Length", "")
        limit = self.server.max_request_bytes
        if not (length.isascii() and length.isdecimal() and len(length) < 19):
            self.close_connection = True
            self._send(411, {"error": "the request must have a Content-Length"})
        elif int(length) > limit:
            self.close_connection = True  # unread bytes must not be parsed as the next request
            problem = f"the request has {length} bytes; at most {limit} are taken"
            self._send(413, {"error": problem})
        else:
            self._reply(self.rfile.read(int(length)))

    def _reply(self, body: bytes) -> None:
        if not self.server.running.acquire(blocking=False):
            self._send(503, {"error": f"more than {_MOST_REQUESTS} requests at the same time"})
            return
        try:
            path = self.path.partition("?")[0]
            content = answer(self.server.store, self.command, path, body)
            status = 200
        except _Refused as error:
            status, content = error.status, {"error": str(error)}
        except (OpError, RuntimeError, MemoryError, TypeError, LookupError) as error:
            logger.exception("a request failed")
            status, content = 500, {"error": f"{type(error).__name__}: {error}"}
        finally:
            self.server.running.release()
        self._send(status, content)

    def _send(self, status: int, content: Mapping[str, Any]) -> None:
        data = rest_json.dump(content)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Content-Type-Options", "nosniff")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Sends protocol errors as JSON, too."""
        self.close_connection = True
        self._send(code, {"error": message or self.responses.get(code, ("", ""))[0]})

    def log_message(self, format: str, *args: Any) -> None:
        """Logs requests at debug level."""
        logger.debug("%s " + format, self.address_string(), *args)


class ModelServer(ThreadingHTTPServer):
    """Serves a model; `serve_forever()` runs it, `close()` stops it.

    Args:
        host: the address; the default is reachable from this machine only.
        port: the port; 0 selects a free one (`server_port`).
        max_request_bytes: the maximum size of a request's body; larger ones are answered 413.
    """

    daemon_threads = True

    def __init__(
        self,
        store: ModelStore,
        host: str = "127.0.0.1",
        port: int = PORT,
        max_request_bytes: int = MAX_REQUEST_BYTES,
    ) -> None:
        self.store = store
        self.max_request_bytes = max_request_bytes
        self.running = threading.BoundedSemaphore(_MOST_REQUESTS)
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """The model's URL."""
        host = str(self.server_address[0])
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.server_port}/v1/models/{self.store.name}"

    def server_bind(self) -> None:
        """Binds without a DNS lookup of the host name, which the base class does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def close(self) -> None:
        """Stops `serve_forever`, and closes the model."""
        self.shutdown()
        self.server_close()
        self.store.close()


def is_local(host: str) -> bool:
    """Whether an address is reachable from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


__all__ = ["MAX_REQUEST_BYTES", "PORT", "ModelServer", "ModelStore", "answer", "is_local"]
