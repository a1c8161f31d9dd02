"""A load generator for HTTP servers: clients that each keep one connection and one request open.

    python benchmarks/serving_load.py URL BODY_FILE CLIENTS SECONDS

Prints a line of JSON: requests a second, median and 99th percentile in ms, and errors.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit


async def client(
    host: str, port: int, request: bytes, end: float, times: list[float], errors: list[str]
) -> None:
    """Asks until the end; a failure is noted, and the next request uses a new connection."""
    reader = writer = None
    while time.perf_counter() < end:
        began = time.perf_counter()
        try:
            if writer is None or reader is None:
                reader, writer = await asyncio.open_connection(host, port)
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(size)
            if not head.startswith(b"HTTP/1.1 200"):
                errors.append(head.split(b"\r\n")[0].decode())
            if b"connection: close" in head.lower():
                writer.close()
                writer = None
        except (OSError, asyncio.IncompleteReadError) as error:
            errors.append(repr(error))
            writer = None
        times.append(time.perf_counter() - began)
    if writer is not None:
        writer.close()


async def load(url: str, body: bytes, clients: int, seconds: float) -> dict[str, float]:
    """The figures of so many clients."""
    parts = urlsplit(url)
    head = (
        f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    times: list[float] = []
    errors: list[str] = []
    end = time.perf_counter() + seconds
    asked = [
        client(parts.hostname or "", parts.port or 80, head.encode() + body, end, times, errors)
        for _ in range(clients)
    ]
    began = time.perf_counter()
    await asyncio.gather(*asked)
    spent = time.perf_counter() - began
    times.sort()
    return {
        "requests_per_second": round(len(times) / spent, 1),
        "p50_ms": round(1000 * times[len(times) // 2], 2),
        "p99_ms": round(1000 * times[int(len(times) * 0.99)], 2),
        "errors": len(errors),
    }


if __name__ == "__main__":
    try:
        import uvloop

        uvloop.install()
    except ImportError:
        pass  # slower, and so are the figures
    url, path, clients, seconds = sys.argv[1:]
    found = asyncio.run(load(url, Path(path).read_bytes(), int(clients), float(seconds)))
    print(json.dumps(found))
