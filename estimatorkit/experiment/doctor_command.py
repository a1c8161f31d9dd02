"""`estimatorkit doctor`: what is installed, and whether it trains."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import click

from estimatorkit.version import __version__

_NOT_SHOWN = ("dev", "docs", "fuzz", "test")


@click.command()
def doctor() -> None:
    """Check the installation: versions, devices, cache, and a training of a few steps.

    Paste the output into an issue. Paths in the home folder are shown as ~.

    \b
    Example:
      estimatorkit doctor
    """
    lines = [("estimatorkit", __version__), *_system(), *_packages()]
    for name, value in lines:
        _show(name, value)
    for name, value in _devices():
        _show(name, value)
    _show("training", _training())


def _show(name: str, value: str) -> None:
    click.echo(f"{name + ':':<20} {value.replace(str(Path.home()), '~')}")


def _system() -> Iterator[tuple[str, str]]:
    yield "python", f"{platform.python_version()} ({sys.executable})"
    yield "system", f"{platform.platform()}, {os.cpu_count()} cores"
    for name in sorted(os.environ):
        if name == "TF_CONFIG" or name.startswith(("ESTIMATORKIT_", "JAX_", "XLA_")):
            hidden = "TOKEN" in name
            yield name, "(set)" if hidden else os.environ[name]


def _packages() -> Iterator[tuple[str, str]]:
    """Versions of the requirements, and the extras that are complete."""
    wanted: dict[str, list[str]] = {}
    for requirement in metadata.requires("estimatorkit") or ():
        name, _, marker = requirement.partition(";")
        extra = re.search(r"extra == ['\"](\w+)", marker)
        package = re.split(r"[^\w.-]", name.strip(), maxsplit=1)[0]
        wanted.setdefault(extra[1] if extra else "", []).append(package)
    versions = {each: _version(each) for each in (*wanted.pop(""), "jaxlib")}
    yield "packages", ", ".join(f"{name} {found}" for name, found in versions.items())
    whole = [
        extra
        for extra, packages in wanted.items()
        if extra not in _NOT_SHOWN and all(_version(each) != "missing" for each in packages)
    ]
    yield "extras", ", ".join(whole) or "none"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def _devices() -> Iterator[tuple[str, str]]:
    import jax

    from estimatorkit.data.datasets import cache_folder
    from estimatorkit.runtime.xla.compilation_cache import use_compilation_cache

    yield "devices", ", ".join(f"{each.platform} {each.device_kind}" for each in jax.devices())
    folder = use_compilation_cache()
    if folder is None:
        yield "compilation cache", "off"
    else:
        files = [each.stat().st_size for each in folder.iterdir() if each.is_file()]
        yield "compilation cache", f"{folder} ({len(files)} files, {sum(files) / 1e6:.1f} MB)"
    yield "data sets", str(cache_folder())


def _training() -> str:
    """Trains for 100 steps on Iris, and returns a verdict with accuracy and time."""
    import estimatorkit as tf

    started = time.perf_counter()
    (features, labels), _ = tf.datasets.iris.load_data()
    rows = (
        tf.data.Dataset.from_tensor_slices(
            ({str(key): values for key, values in features.items()}, labels)
        )
        .repeat()
        .batch(120)
    )
    columns = [tf.feature_column.numeric_column(str(key)) for key in features]
    with tempfile.TemporaryDirectory() as folder:
        model = tf.estimator.LinearClassifier(columns, model_dir=folder, n_classes=3)
        model.train(lambda: rows, steps=100)
        accuracy = model.evaluate(lambda: rows, steps=1)["accuracy"]
    seconds = time.perf_counter() - started
    verdict = "ok" if accuracy > 0.8 else "wrong: an accuracy above 0.8 was expected"
    return f"{verdict} (100 steps on Iris, accuracy {accuracy:.2f}, {seconds:.1f} s)"
