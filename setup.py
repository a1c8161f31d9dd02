"""Writes the stubs of `compat.v1` when the package is built; setup.cfg has everything else."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent


class BuildWithStubs(build_py):
    """Builds the package, editable or not, with the stubs in its source tree."""

    def run(self) -> None:
        sys.path.insert(0, str(ROOT))
        compat = ROOT / "estimatorkit" / "compat"
        if compat.is_dir():  # the package also works without it
            from estimatorkit.compat.stubs import write_stubs

            write_stubs(compat / "v1")
        super().run()


setup(cmdclass={"build_py": BuildWithStubs})
