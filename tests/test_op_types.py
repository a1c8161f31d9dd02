"""`op_types`: an op is found by its type alone, whichever module registers it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

_EACH_FROM_ITS_MODULE = """
    import importlib, os
    from estimatorkit import op_types
    from estimatorkit.core.registry import table
    from estimatorkit.ops import all_ops

    op_types.load()
    for module in sorted(set(table._MODULES.values())):
        if os.fork() == 0:  # into which no other module has been imported
            importlib.import_module(module)
            types = {each for each, its in table._MODULES.items() if its == module}
            print(*(types - set(table._REGISTRY)), end="", flush=True)
            os._exit(0)
        assert os.wait()[1] == 0, module
    """
_ALL = """
    import importlib, pkgutil
    import estimatorkit
    from estimatorkit.core import registry

    known = set(registry.registered_types())
    for each in pkgutil.walk_packages(estimatorkit.__path__, "estimatorkit."):
        importlib.import_module(each.name)
    print(*(set(registry.registered_types()) - known), end="")
    """
_BY_GRAPH_DEF = """
    import sys
    import estimatorkit as tf
    from estimatorkit.interop import graphdef

    assert not any("optimizers" in each for each in sys.modules)
    node = tf.GraphDef().node.add(name="rows", op="SumRepeatedRows")
    graph_def = tf.GraphDef(node=[node], versions={"producer": graphdef.FORMAT})
    try:
        tf.import_graph_def(graph_def)
    except ValueError as error:
        print(error if "inputs do not match" not in str(error) else "", end="")
    assert "estimatorkit.train.optimizers.deduplicate_slices" in sys.modules
    assert not any("keras" in each for each in sys.modules)
    """


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(_BY_GRAPH_DEF, id="imported with a GraphDef"),
        pytest.param(_EACH_FROM_ITS_MODULE, id="each by its module", marks=pytest.mark.slow),
        pytest.param(_ALL, id="all modules", marks=pytest.mark.slow),
    ],
)
def test_no_type_is_missing(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
