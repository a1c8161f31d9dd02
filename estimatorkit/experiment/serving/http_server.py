"""`ModelServer`: TensorFlow Serving's REST interface on Starlette and uvicorn.

The event loop reads requests and writes responses; one worker thread computes, so that XLA has the
processor's cores to itself. Bytes, rows, nesting, pending requests and seconds per request are
limited; a request beyond a limit gets JSON `{"error": ...}`. Besides the models there are
`/healthz`, `/readyz` and `/metrics`.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import logging
import os
import re
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import estimatorkit
from estimatorkit.core.errors import InvalidArgumentError, OpError, explain, value_error
from estimatorkit.estimator.serving import rest_json
from estimatorkit.estimator.serving.predictor import Predictor
from estimatorkit.experiment.serving import rest
from estimatorkit.experiment.serving.batching import Batcher
from estimatorkit.experiment.serving.model_store import ModelStore
from estimatorkit.logger import logger

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

access_logger = logging.getLogger("estimatorkit.access")
"""Logs each request as a line of JSON if `ServerOptions.access_log` is set."""

_Page = Callable[["Request"], Awaitable["Response"]]

PORT = 8501
_BACKLOG = 2048
_IN_LOOP_BYTES = 64 << 10  # larger bodies are parsed on the worker thread
_DRAIN_SECONDS = 20
_INVALID = (ValueError, InvalidArgumentError)
_FAULTS = (RuntimeError, MemoryError, TypeError, LookupError, ArithmeticError, OSError, OpError)


@dataclass(frozen=True)
class ServerOptions:
    """Settings of a server.

    Attributes:
        host: the address; the default is reachable from this machine only.
        port: 0 selects a free one.
        most_request_bytes: the largest body; larger ones get 413.
        most_rows: the most rows of a request; more get 400.
        most_waiting: the most requests that are computed or wait for it, and the most whose bodies
            are being received, a quarter of them from one address; more get 503 and 429.
        most_connections: the most connections; more get 503 and are closed.
        seconds: the timeouts of reading a request (408) and of computing it (504).
        most_batch: the most rows of several requests that are computed together.
        batch_delay: seconds to wait for them.
        hosts: accepted names in the Host header, `*` for all; by default those of this machine if
            `host` is one of its loopback addresses, else all.
        token: the bearer token that requests must have (`Authorization: Bearer TOKEN`), or None;
            visible characters of ASCII, without spaces.
        open_status: whether `/readyz` and `/metrics` need no token; `/healthz` never does.
        certificate, key: files for TLS; None serves plain HTTP.
        access_log: whether `access_logger` logs each request as a line of JSON.

    Raises:
        ValueError: the token has other characters.
    """

    host: str = "127.0.0.1"
    port: int = PORT
    most_request_bytes: int = 10 << 20
    most_rows: int = 10_000
    most_waiting: int = 1000
    most_connections: int = 4000
    seconds: float = 30.0
    most_batch: int = 32
    batch_delay: float = 0.0
    hosts: Sequence[str] = ()
    token: str | None = None
    open_status: bool = False
    certificate: str | None = None
    key: str | None = None
    access_log: bool = False

    def __post_init__(self) -> None:
        if self.token is not None and not re.fullmatch("[!-~]+", self.token):
            raise value_error(
                "no header can hold the server's token",
                expected="letters, digits and signs of ASCII, without spaces",
                hint="openssl rand -hex 32",
            )

    @property
    def accepted_hosts(self) -> list[str]:
        """See `hosts`."""
        if self.hosts:
            return list(self.hosts)
        return ["localhost", "127.0.0.1", "[::1]", self.host] if is_local(self.host) else ["*"]


class ModelServer:
    """Serves models; `serve_forever()` runs it, `close()` stops it from another thread.

    Args:
        stores: the models; they are closed with the server.
        options: the settings.

    Attributes:
        stores: the models by name.
        running: the number of requests that are computed or wait for it.

    Raises:
        ImportError: the extra `serve` is not installed.
        OSError: the port is taken.
    """

    def __init__(self, stores: Sequence[ModelStore], options: ServerOptions | None = None) -> None:
        try:
            import uvicorn

            from estimatorkit.experiment.serving.http_protocol import BoundedServer, network_of
            from estimatorkit.experiment.serving.metrics import Metrics
        except ImportError as error:
            raise ImportError(
                explain("serving needs more packages", hint="pip install 'estimatorkit[serve]'")
            ) from error
        self.options = options or ServerOptions()
        self.stores = {each.name: each for each in stores}
        self._metrics = Metrics()
        self._executor = ThreadPoolExecutor(1, "predictions")
        self._batcher = Batcher(
            _predict_rows,
            self._executor,
            self.options.most_batch,
            self.options.batch_delay,
            _INVALID,
            self._metrics.batch,
        )
        self.running = 0
        self._receiving: Counter[str] = Counter()  # by network of the clients
        self._network_of = network_of
        self._socket = self._bound()
        config = uvicorn.Config(
            self._application(),
            backlog=_BACKLOG,
            limit_concurrency=self.options.most_connections,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=_DRAIN_SECONDS,
            ssl_certfile=self.options.certificate,
            ssl_keyfile=self.options.key,
            access_log=False,
            log_config=None,
            log_level="error",
            lifespan="off",
            ws="none",
            server_header=False,
        )
        self._server = BoundedServer(config, self._started)
        self._on_start: Callable[[], None] = lambda: None

    def _bound(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.options.host else socket.AF_INET
        made = socket.socket(family)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((self.options.host, self.options.port))
        made.listen(_BACKLOG)  # requests may arrive before `serve_forever`
        return made

    @property
    def port(self) -> int:
        """The port."""
        return int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        """The server's URL."""
        host = f"[{self.options.host}]" if ":" in self.options.host else self.options.host
        return f"http{'s' * (self.options.certificate is not None)}://{host}:{self.port}"

    def _started(self) -> None:
        self._on_start()

    def serve_forever(self, on_start: Callable[[], None] = lambda: None) -> None:
        """Serves until `close`, SIGINT or SIGTERM, and completes the requests in progress.

        Args:
            on_start: called once connections are accepted.
        """
        self._on_start = on_start
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()
            self._executor.shutdown()
            for each in self.stores.values():
                each.close()

    def close(self) -> None:
        """Stops accepting requests; `serve_forever` returns when those in progress are complete."""
        self._server.should_exit = True

    # -- the application

    def _application(self) -> Any:
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.middleware.trustedhost import TrustedHostMiddleware
        from starlette.routing import Route

        return Starlette(
            routes=[
                Route("/healthz", self._health),
                Route("/readyz", self._with_token(self._readiness)),
                Route("/metrics", self._with_token(self._metrics_page)),
                Route("/{path:path}", self._model_request, methods=["GET", "POST"]),
            ],
            middleware=[
                Middleware(
                    TrustedHostMiddleware,
                    allowed_hosts=self.options.accepted_hosts,
                    www_redirect=False,
                )
            ],
            exception_handlers={405: _not_allowed},
        )

    def _with_token(self, page: _Page) -> _Page:
        async def answer(request: Request) -> Response:
            try:
                if not self.options.open_status:
                    self._authorize(request)
            except rest.HttpError as error:
                return _response(error.status, {"error": str(error)})
            return await page(request)

        return answer

    async def _health(self, request: Request) -> Response:
        return _response(200, {"status": "ok"})

    async def _readiness(self, request: Request) -> Response:
        if self._server.should_exit:
            return _response(503, {"status": "draining"})
        held = {name: store.versions() for name, store in self.stores.items()}
        return _response(200, {"status": "ready", "models": held})

    async def _metrics_page(self, request: Request) -> Response:
        from starlette.responses import Response

        return Response(self._metrics.text(), media_type=self._metrics.media_type)

    async def _model_request(self, request: Request) -> Response:
        """A request of TensorFlow Serving's interface."""
        began = time.perf_counter()
        endpoint: rest.Endpoint | None = None
        try:
            self._check(request)
            endpoint = rest.endpoint_of(self.stores, request.method, request.url.path)
            status, content = 200, await self._content(request, endpoint)
        except rest.HttpError as error:
            status, content = error.status, {"error": str(error)}
        except _INVALID as error:
            status, content = 400, {"error": self._without_paths(str(error))}
        except TimeoutError:
            status = 504
            content = {"error": f"the request took more than {self.options.seconds:g} seconds"}
        except _FAULTS as error:
            logger.exception("a request failed")
            told = f"{type(error).__name__}: the server's log says what failed"
            status, content = 500, {"error": told}
        seconds = time.perf_counter() - began
        action = (endpoint.action or "status").strip(":/") if endpoint else "unknown"
        model = endpoint.model if endpoint else ""
        self._metrics.request(model, action, status, seconds)
        if self.options.access_log:
            self._log(request, status, seconds, endpoint)
        return _response(status, content)

    def _without_paths(self, message: str) -> str:
        """A message without this machine's folders, which are no client's business."""
        places = {os.path.dirname(estimatorkit.__file__), sys.prefix, os.getcwd()}
        places |= {str(each.directory) for each in self.stores.values()}
        places |= {os.path.expanduser("~"), tempfile.gettempdir()}
        known = "|".join(re.escape(each) for each in places if each.strip("/"))
        return re.sub(rf"(?:{known})[^\s'\",:;)]*", "...", message)

    def _authorize(self, request: Request) -> None:
        if self.options.token is None:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        is_same = hmac.compare_digest(given.strip().encode(), self.options.token.encode())
        if scheme.lower() != "bearer" or not is_same:
            raise rest.HttpError(401, "the request must have the header Authorization: Bearer ...")

    def _check(self, request: Request) -> None:
        options = self.options
        self._authorize(request)
        length = request.headers.get("content-length")
        if request.method == "POST" and length is None:
            raise rest.HttpError(411, "the request must have a Content-Length")
        if length is not None and int(length) > options.most_request_bytes:
            limit = options.most_request_bytes
            raise rest.HttpError(413, f"the request has {length} bytes; at most {limit} are taken")

    async def _content(self, request: Request, endpoint: rest.Endpoint) -> dict[str, Any]:
        if request.method == "GET":
            versions = self.stores[endpoint.model].versions()
            reported = [endpoint.version] if endpoint.is_specific else versions
            return rest.status_or_metadata(endpoint, reported)
        body = await self._body(request)
        if self.running >= (most := self.options.most_waiting):
            raise rest.HttpError(503, f"more than {most} requests at the same time")
        self.running += 1
        try:
            async with asyncio.timeout(self.options.seconds):
                return await self._compute(endpoint, body)
        finally:
            self.running -= 1

    async def _body(self, request: Request) -> bytes:
        """A request's body. One that is sent slowly takes no place of those that are computed."""
        from starlette.requests import ClientDisconnect

        client = self._network_of(request.client.host if request.client else "")
        most = self.options.most_waiting
        if self._receiving[client] >= max(1, most // 4) or self._receiving.total() >= most:
            raise rest.HttpError(429, "too many requests whose bodies have not come")
        self._receiving[client] += 1
        try:
            async with asyncio.timeout(self.options.seconds):
                return await request.body()
        except TimeoutError:
            raise rest.HttpError(408, "the request's body did not come in time") from None
        except ClientDisconnect:
            raise rest.HttpError(408, "the client has gone") from None
        finally:
            self._receiving[client] -= 1
            if not self._receiving[client]:
                del self._receiving[client]

    async def _compute(self, endpoint: rest.Endpoint, body: bytes) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        if len(body) > _IN_LOOP_BYTES:
            content = await loop.run_in_executor(self._executor, rest_json.parse, body)
        else:
            content = rest_json.parse(body)
        rows = content.get("instances")
        if isinstance(rows, list) and len(rows) > self.options.most_rows:
            limit = self.options.most_rows
            raise rest.HttpError(
                400, f"the request has {len(rows)} rows; at most {limit} are taken"
            )
        action, predictor = endpoint.action or "", endpoint.predictor
        alone = "inputs" in content or (action == ":predict" and rest.explains(content))
        if action == ":predict" and isinstance(rows, list) and rows and not alone:
            signature = rest.requested_signature(predictor, content)
            if predictor.has_independent_rows(signature):
                key = (predictor, signature.name, _widths(rows[0]))
                return {"predictions": await self._batcher(key, rows)}
        return await loop.run_in_executor(self._executor, rest.ACTIONS[action], predictor, content)

    def _log(
        self, request: Request, status: int, seconds: float, endpoint: rest.Endpoint | None
    ) -> None:
        line = {
            "client": request.client.host if request.client else None,
            "method": request.method,
            "path": request.url.path[:200],
            "status": status,
            "seconds": round(seconds, 6),
            "bytes": request.headers.get("content-length"),
            "version": endpoint.version if endpoint else None,
        }
        access_logger.info("%s", json.dumps(line))


def _predict_rows(key: Any, rows: list[Any]) -> list[Any]:
    """The predictions of a batch; `key` holds the predictor and the signature's name."""
    predictor: Predictor = key[0]
    return rest.predict_rows(predictor, predictor.signature(key[1]), rows)


def _widths(row: Any) -> tuple[Any, ...]:
    """A row's keys, and the sizes of its lists: rows that differ there cannot be in one array."""
    if isinstance(row, dict):
        return tuple((key, *_widths(row[key])) for key in sorted(row))
    return (len(row),) if isinstance(row, list) else ()


def _response(status: int, content: Mapping[str, Any]) -> Response:
    from starlette.responses import Response

    headers = {"X-Content-Type-Options": "nosniff"}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status in (408, 413, 429):  # the rest of the body is not read
        headers["Connection"] = "close"
    return Response(rest_json.dump(content), status, headers, "application/json")


async def _not_allowed(request: Request, error: Exception) -> Response:
    return _response(405, {"error": f"Method not allowed: {request.method}"})


def is_local(host: str) -> bool:
    """Whether an address is reachable from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


__all__ = ["PORT", "ModelServer", "ServerOptions", "access_logger", "is_local"]
