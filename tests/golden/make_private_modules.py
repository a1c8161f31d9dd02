"""Writes `private_modules.json` of `estimatorkit/compat`: the modules below `tensorflow.python`.

    python tests/golden/make_private_modules.py SITE_PACKAGES [SITE_PACKAGES ...]

Each argument is a folder with the packages `tensorflow` (or `tensorflow_core`, TensorFlow 1.15's)
and `tensorflow_estimator`; nothing of them is imported. What both releases have is joined. The
file maps a package to the names of its modules; packages that have no counterpart here
(`SKIPPED`) are left out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

OUTPUT = Path(__file__).parents[2] / "estimatorkit" / "compat" / "private_modules.json"
TREES = (
    ("tensorflow_core/python", "python"),
    ("tensorflow/python", "python"),
    ("tensorflow_estimator/python", "python"),
    ("tensorflow_core/contrib", "contrib"),
)
SKIPPED = {
    "python": "autograph compiler debug dlpack grappler kernel_tests mlir profiler "
    "pywrap_dlpack pywrap_mlir pywrap_sanitizers pywrap_tfe types user_ops",
    "python.ops": "distributions memory_tests numpy_ops risc",
    "python.keras": "applications distribute integration_test premade premade_models protobuf "
    "saving tests tools",
    "contrib.slim": "nets",
    "contrib.slim.python.slim": "nets",
}
# Folders of tests and generated twins, wherever they are.
FOLDERS = {"_v1", "_v2", "api", "benchmarks", "kernel_tests", "memory_tests", "tests"}
CONTRIB = (
    "crf data distribute eager estimator feature_column framework keras layers learn "
    "legacy_seq2seq lookup losses metrics mixed_precision opt predictor rnn seq2seq slim staging "
    "summary tensorboard training util"
)


def modules(site_packages: Path) -> Iterator[str]:
    """The full names of the modules of a folder's packages, without tests."""
    for folder, top in TREES:
        for path in (site_packages / folder).rglob("*.py"):
            parts = path.relative_to(site_packages / folder).with_suffix("").parts
            name = ".".join([top, *parts]).removesuffix(".__init__")
            if not name.endswith("_test") and not _is_skipped(name):
                yield name


def _is_skipped(name: str) -> bool:
    parts = name.split(".")
    if not FOLDERS.isdisjoint(parts):
        return True
    if parts[0] == "contrib" and (len(parts) < 2 or parts[1] not in CONTRIB.split()):
        return True
    return any(
        name.startswith(f"{package}.{each}.") or name == f"{package}.{each}"
        for package, names in SKIPPED.items()
        for each in names.split()
    )


def main() -> None:
    """Reads the folders and writes the file."""
    found: dict[str, set[str]] = {}
    for folder in sys.argv[1:]:
        for name in modules(Path(folder)):
            package, _, last = name.rpartition(".")
            found.setdefault(package, set()).add(last)
    found.pop("", None)
    lines = {package: " ".join(sorted(names)) for package, names in sorted(found.items())}
    OUTPUT.write_text(json.dumps(lines, indent=0) + "\n")


if __name__ == "__main__":
    main()
