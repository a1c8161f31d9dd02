"""estimatorkit: the Estimator API on XLA.

TensorFlow 1's programming model (graphs, sessions, datasets, feature columns, premade and custom
estimators) on a small graph core that compiles to XLA through JAX. `import estimatorkit as tf` is
the way to start with an old script.

Names are imported when they are first used; `dir(estimatorkit)` lists them.
"""

from __future__ import annotations

from estimatorkit.runtime.xla.interrupts import keep_interrupts

keep_interrupts()  # of the next imports, too

from estimatorkit import wiring as wiring  # noqa: E402
from estimatorkit.lazy import attach  # noqa: E402
from estimatorkit.runtime.xla.flags import compile_without_unrolling  # noqa: E402
from estimatorkit.runtime.xla.jax_import import import_faster  # noqa: E402
from estimatorkit.version import __version__ as __version__  # noqa: E402

compile_without_unrolling()
import_faster()

__getattr__, __dir__, __all__ = attach(__name__, __file__)
