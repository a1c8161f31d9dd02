"""`Metrics`: a server's counts and times, in Prometheus's text format."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import generate_latest

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_ROWS = tuple(float(1 << power) for power in range(14))


class Metrics:
    """Requests by model, method and status; their seconds; rows of batches."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "estimatorkit_requests_total",
            "Requests that were answered.",
            ["model", "method", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "estimatorkit_request_seconds",
            "Seconds from a request's head to its answer.",
            ["model", "method"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._rows = Histogram(
            "estimatorkit_batch_rows",
            "Rows that were computed together.",
            buckets=_ROWS,
            registry=self._registry,
        )

    def request(self, model: str, method: str, status: int, seconds: float) -> None:
        """Counts an answered request."""
        self._requests.labels(model, method, str(status)).inc()
        self._seconds.labels(model, method).observe(seconds)

    def batch(self, rows: int) -> None:
        """Counts a batch."""
        self._rows.observe(rows)

    def text(self) -> bytes:
        """All of them."""
        return generate_latest(self._registry)


__all__ = ["Metrics"]
