"""Optional import of Arrow and Arrow Flight."""

from __future__ import annotations

from estimatorkit.core.errors import explain

try:
    import pyarrow as pa
    from pyarrow import flight
except ImportError as error:
    raise ImportError(
        explain(
            "clusters need Apache Arrow (pyarrow)",
            received=error,
            hint="pip install estimatorkit[ray]",
        )
    ) from error

__all__ = ["flight", "pa"]
