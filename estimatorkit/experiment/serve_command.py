"""`estimatorkit serve`: exported models over HTTP."""

from __future__ import annotations

import gc
import logging
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from estimatorkit.experiment.command import Failure

if TYPE_CHECKING:
    from estimatorkit.experiment.serving.model_store import ModelStore

_TOKEN = "ESTIMATORKIT_SERVE_TOKEN"  # noqa: S105


@click.command()
@click.argument(
    "directory", metavar="[DIR]", required=False, type=click.Path(exists=True, path_type=Path)
)
@click.option(
    "--models", metavar="FILE", type=click.Path(path_type=Path), help="Several models, as YAML."
)
@click.option("--name", help="The model's name in requests; by default the name of the folder.")
@click.option(
    "--label",
    "labels",
    metavar="LABEL=VERSION",
    multiple=True,
    help="A version to hold beside the newest, at .../labels/LABEL. May be repeated.",
)
@click.option("--port", default=8501, show_default=True, type=click.IntRange(0, 65535))
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--allow-host", "hosts", multiple=True, help="A name accepted in the header Host; * for all."
)
@click.option(
    "--max-request-mb", default=10.0, show_default=True, type=click.FloatRange(min=0, min_open=True)
)
@click.option("--max-rows", "most_rows", default=10_000, show_default=True, type=click.IntRange(1))
@click.option(
    "--timeout", "seconds", default=30.0, show_default=True, help="Seconds for a request."
)
@click.option(
    "--max-batch",
    "most_batch",
    default=32,
    show_default=True,
    type=click.IntRange(1, 1024),
    help="Rows of several requests to compute together.",
)
@click.option(
    "--batch-timeout-ms", default=0.0, show_default=True, help="How long to wait for such rows."
)
@click.option(
    "--tls-cert",
    "certificate",
    type=click.Path(exists=True),
    help="A certificate file; serves HTTPS.",
)
@click.option("--tls-key", "key", type=click.Path(exists=True), help="Its key.")
@click.option("--open-status", is_flag=True, help="/readyz and /metrics need no token.")
@click.option("--access-log", is_flag=True, help="Print a line of JSON for each request.")
def serve(
    directory: Path | None,
    models: Path | None,
    name: str | None,
    labels: tuple[str, ...],
    max_request_mb: float,
    batch_timeout_ms: float,
    **given: Any,
) -> None:
    """Serve exported models over HTTP, as TensorFlow Serving does.

    DIR is a folder of exports, of which the newest is served, or a single export. If the variable
    ESTIMATORKIT_SERVE_TOKEN is set, requests must bear its value: Authorization: Bearer TOKEN.
    Beside the models there are /healthz, which needs no token, /readyz and /metrics.

    \b
    Example:
      estimatorkit serve runs/people/export/best --port 8501
    """
    from estimatorkit.experiment.serving import models_file
    from estimatorkit.experiment.serving.http_server import (
        ModelServer,
        ServerOptions,
        access_logger,
        is_local,
    )
    from estimatorkit.experiment.serving.model_store import ModelStore

    if (directory is None) == (models is None):
        raise click.UsageError("give either DIR or --models FILE")
    if (given["certificate"] is None) != (given["key"] is None):
        raise click.UsageError("--tls-cert and --tls-key go together")
    options = ServerOptions(
        most_request_bytes=int(max_request_mb * (1 << 20)),
        batch_delay=batch_timeout_ms / 1000,
        token=os.environ.get(_TOKEN) or None,
        **given,
    )
    if directory is not None:
        stores = [ModelStore(directory, name, _labels(labels), given["most_batch"])]
    else:
        if name or labels:
            raise click.UsageError("names and labels of several models are in their file")
        stores = models_file.open_models(str(models), given["most_batch"])
    try:
        server = ModelServer(stores, options)
    except (ImportError, OSError) as error:  # a missing extra, or a port in use
        raise Failure(str(error), 1) from error
    if not is_local(options.host) and options.token is None:
        told = f"note: whoever reaches {options.host} can use the models; {_TOKEN} sets a token"
        click.echo(told, err=True)
    for store in stores:
        store.watch()
    if options.access_log:
        lines = logging.StreamHandler(sys.stdout)
        lines.setFormatter(logging.Formatter("%(message)s"))
        access_logger.addHandler(lines)
        access_logger.setLevel(logging.INFO)
        access_logger.propagate = False
    gc.collect()
    gc.freeze()  # garbage collection of everything loaded would stop every request for 80 ms
    server.serve_forever(lambda: _tell(server.url, stores))


def _tell(url: str, stores: Sequence[ModelStore]) -> None:
    """Prints what is served, and how to ask it."""
    for store in stores:
        version, predictor = store.get()
        click.echo(f"Serving version {version} of {store.name}. Ask it:")
        example = shlex.quote(f"@{predictor.directory / 'example_request.json'}")
        click.echo(f"  curl -d {example} {url}/v1/models/{store.name}:predict")


def _labels(given: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for each in given:
        label, _, version = each.partition("=")
        if not label or not (version.isascii() and version.isdecimal()):
            raise click.UsageError(f"--label {each}: expected LABEL=VERSION, such as canary=4")
        found[label] = int(version)
    return found
