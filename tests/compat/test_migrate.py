"""`estimatorkit migrate`: findings with lines, changed imports, and every other byte unchanged."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings, strategies as st

from estimatorkit.__main__ import cli
from estimatorkit.compat.behaviours import DIFFERENT, REFUSED
from estimatorkit.compat.migrate import examine, look_up
from estimatorkit.compat.numpy_removals import INSTEAD, problem

ROOT = Path(__file__).parent.parent.parent


def migrate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["migrate", *map(str, arguments)])


def found(source: str, kind: str) -> list[tuple[int, str]]:
    return [
        (each.line, each.name) for each in examine(source.encode()).findings if each.kind == kind
    ]


IMPORTS = {
    "import tensorflow as tf": "import estimatorkit.compat.v1 as tf",
    "import tensorflow": "import estimatorkit.compat.v1 as tensorflow",
    "import tensorflow.compat.v1 as tf": "import estimatorkit.compat.v1 as tf",
    "import tensorflow.contrib.slim as slim": "import estimatorkit.compat.v1.contrib.slim as slim",
    "import tensorflow.compat.v1.keras as K": "import estimatorkit.compat.v1.keras as K",
    "import tensorflow.contrib.layers": "import estimatorkit.compat.v1 as tensorflow",
    "import os, tensorflow as tf, sys": "import os, estimatorkit.compat.v1 as tf, sys",
    "import os;  import tensorflow as tf # why": (
        "import os;  import estimatorkit.compat.v1 as tf # why"
    ),
    "from tensorflow import keras, layers": "from estimatorkit.compat.v1 import keras, layers",
    "from tensorflow.contrib import rnn": "from estimatorkit.compat.v1.contrib import rnn",
    "from  tensorflow.python.framework  import ops": (
        "from  estimatorkit.compat.v1.python.framework  import ops"
    ),
    "from tensorflow.compat import v1 as tf": "from estimatorkit.compat import v1 as tf",
    "from tensorflow.compat.v1 import nn": "from estimatorkit.compat.v1 import nn",
    "from tensorflow.examples.tutorials.mnist import input_data": (
        "from estimatorkit.compat.v1.examples.tutorials.mnist import input_data"
    ),
    "from tensorflow_estimator.python.estimator import estimator as lib": (
        "from estimatorkit.compat.v1.python.estimator import estimator as lib"
    ),
    "import tensorflow_estimator as tfe": "import estimatorkit.compat.v1 as tfe",
    "try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n    tf = None": (
        "try:\n    import estimatorkit.compat.v1 as tf\nexcept ImportError:\n    tf = None"
    ),
    "from tensorflow.contrib.rnn import (  # cells\n    LSTMCell,\n    GRUCell,\n)": (
        "from estimatorkit.compat.v1.contrib.rnn import (  # cells\n    LSTMCell,\n    GRUCell,\n)"
    ),
    "x = 'import tensorflow as tf'  # import tensorflow": None,
    "import tensorflow_hub": None,
    "import numpy as tensorflow": None,
    "from .tensorflow import layers": None,
    "import estimatorkit as tf": None,
}


@pytest.mark.parametrize("source", IMPORTS)
def test_only_imports_change(source: str) -> None:
    expected = IMPORTS[source] or source
    for end in ("\n", "\r\n"):
        before = (f'"""Ä."""\n{source}\nprint( 1 )  \n').replace("\n", end).encode()
        after = (f'"""Ä."""\n{expected}\nprint( 1 )  \n').replace("\n", end).encode()
        examined = examine(before)
        assert examined.migrated == after
        assert examine(after).migrated == after
        compile(after, "after.py", "exec")


def test_encodings_are_kept() -> None:
    text = "# -*- coding: latin-1 -*-\nname = 'Ä'; import tensorflow as tf; other = 'é'\n"
    expected = text.replace("tensorflow", "estimatorkit.compat.v1")
    assert examine(text.encode("latin-1")).migrated == expected.encode("latin-1")
    marked = "import tensorflow as tf\n".encode("utf-8-sig")
    assert examine(marked).migrated == "import estimatorkit.compat.v1 as tf\n".encode("utf-8-sig")


SCRIPT = """\
import tensorflow as tf
import tensorflow_hub as hub
from tensorflow.contrib import gan, rnn
from tensorflow import gather as pick

slim = tf.contrib.slim
keras = tf.keras


def model_fn(features, labels, mode, params):
    net = tf.feature_column.input_layer(features, params["columns"])
    net = slim.fully_connected(net, 10)
    rows = (
        tf
        .gather_nd(net, [[0]])
    )
    keras = net
    keras.anything  # a tensor of this function
    return tf.contrib.timeseries.ARModel(rows)


def read(gan):
    return gan.anything  # an argument


tf.enable_eager_execution()
pick([1], 0)
tf.compat.v1.gather([1], 0)
tf.estimator.experimental.LinearSDCA("id")
tf.Session().anything  # not a module
trained = tf.estimator.train_and_evaluate
"""


def test_missing_names_are_reported_by_line() -> None:
    assert found(SCRIPT, "unsupported") == [
        (2, "tensorflow_hub"),
        (3, "tf.contrib.gan"),
        (19, "tf.contrib.timeseries.ARModel"),
        (26, "tf.enable_eager_execution"),
        (29, "tf.estimator.experimental.LinearSDCA"),
    ]
    assert found(SCRIPT, "different") == [
        (4, "tf.gather"),
        (15, "tf.gather_nd"),
        (27, "tf.gather"),
        (28, "tf.gather"),
        (31, "tf.estimator.train_and_evaluate"),
    ]


def test_migrated_script_is_still_checked() -> None:
    again = examine(SCRIPT.encode()).migrated
    assert examine(again).migrated == again
    for kind in ("unsupported", "different"):
        assert found(again.decode(), kind) == found(SCRIPT, kind)
    assert not found(again.decode(), "import")


def test_names_suggest_replacements() -> None:
    sentences = {
        each.name: each.text for each in examine(SCRIPT.encode()).findings if each.kind != "import"
    }
    assert "Ftrl" in sentences["tf.estimator.experimental.LinearSDCA"]
    assert "window" in sentences["tf.contrib.timeseries.ARModel"]
    misspelt = examine(b"import tensorflow as tf\ntf.placehodler\n").findings[-1]
    assert "did you mean 'placeholder'" in misspelt.text


OLD_NUMPY = """\
import numpy as np
import numpy, six
from numpy import float_, pi
from six.moves import range, xrange
import tensorflow as tf

a = np.zeros([2, 3], np.float)
b = np.reshape(a, newshape=[3, 2]) + np.NaN
c = numpy.random.random_integers(0, 3)
d = np.array(a, copy=False)
e = np.array(a, copy=True)[np.newaxis].astype(np.bool)
f = np.lib.stride_tricks.as_strided(a)

def g(np):
    return np.float
"""


def test_removed_numpy_names_and_separate_packages_are_reported() -> None:
    assert found(OLD_NUMPY, "unsupported") == [
        (3, "np.float_"),
        (7, "np.float"),
        (8, "np.NaN"),
        (8, "np.reshape"),
        (10, "np.array"),
    ]
    assert found(OLD_NUMPY, "different") == [
        (2, "six"),
        (4, "six"),
        (9, "np.random.random_integers"),
    ]
    texts = {each.name: each.text for each in examine(OLD_NUMPY.encode()).findings}
    assert "write np.nan" in texts["np.NaN"]
    assert "float, Python's own" in texts["np.float"]
    assert "newshape= is shape=" in texts["np.reshape"]
    assert "pip install six" in texts["six"]


@pytest.mark.parametrize("name", INSTEAD)
def test_suggested_numpy_names_exist(name: str) -> None:
    assert problem(name) is not None
    for word in re.findall(r"np\.([a-z0-9_.]+)", INSTEAD[name]):
        assert problem(word) is None


BROKEN = {
    "print 'loss', loss": "2to3",
    "%matplotlib inline": "need a # before them",
    "!pip install x": "need a # before them",
    "x = (1,": "was never closed",
    "if x:\n        y = 1\n  z = 2": "unindent does not match",
}


@pytest.mark.parametrize("line", BROKEN)
def test_syntax_errors_have_line(line: str) -> None:
    source = f"import tensorflow as tf\n{line}\n".encode()
    examined = examine(source)
    (finding,) = examined.findings
    assert (finding.kind, finding.line) == ("syntax", 4 if "\n" in line else 2)
    assert BROKEN[line] in finding.text
    assert examined.migrated == source
    assert not examined.is_supported


@pytest.mark.parametrize("source", [b"\0", b"\xff\xfe", b"# coding: nonsense\n"])
def test_non_source_is_syntax_error(source: bytes) -> None:
    (finding,) = examine(source).findings
    assert finding.kind == "syntax"


def test_tables_name_existing_objects() -> None:
    missing = {name: look_up(name)[1] for name in (*DIFFERENT, *REFUSED) if look_up(name)[1]}
    assert not missing


OLD_SCRIPTS = [
    *sorted((ROOT / "tests" / "golden").glob("snippets_*.py")),
    *sorted((ROOT / "tests" / "golden").glob("make_[dio]*.py")),
]


@pytest.mark.parametrize("path", OLD_SCRIPTS, ids=lambda path: path.stem)
def test_real_tensorflow_scripts(path: Path) -> None:
    """Those that record TensorFlow's numbers are TensorFlow 1 scripts: all but imports stays."""
    source = path.read_bytes()
    examined = examine(source)
    before, after = source.splitlines(), examined.migrated.splitlines()
    changed = [
        number
        for number, pair in enumerate(zip(before, after, strict=True), 1)
        if pair[0] != pair[1]
    ]
    assert changed == sorted({each.line for each in examined.findings if each.kind == "import"})
    assert not [each for each in examined.findings if each.kind == "syntax"]
    assert b"tensorflow" not in b"".join(
        line
        for line in after
        if line.lstrip().startswith((b"import tensorflow", b"from tensorflow."))
    )


statements = st.sampled_from([each for each in IMPORTS if "try" not in each])


@settings(deadline=None, max_examples=40)
@given(st.lists(statements, max_size=4), st.sampled_from(["\n", "\r\n"]))
def test_migration_is_idempotent(lines: list[str], end: str) -> None:
    source = "".join(f"{line}\n" for line in lines).replace("\n", end).encode()
    once = examine(source).migrated
    assert examine(once).migrated == once
    assert len(once.splitlines()) == len(source.splitlines())


def test_command_lists_and_writes(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("#!/usr/bin/env python\nimport tensorflow as tf\ntf.gather([1], 0)\n")
    script.chmod(0o755)
    before = script.read_bytes()
    listed = migrate(script)
    assert listed.exit_code == 0
    assert listed.stdout.splitlines() == [
        f"{script}:2: import tensorflow as tf  ->  import estimatorkit.compat.v1 as tf",
        f"{script}:3: differs: tf.gather: {DIFFERENT['gather']}",
        "1 file: 1 ready once the imports are changed.",
        "--write changes the imports as shown (->).",
    ]
    assert script.read_bytes() == before
    written = migrate(script, "--write")
    assert written.exit_code == 0
    assert written.stdout.splitlines()[-2:] == [
        f"{script}: imports changed",
        "1 file: 1 ready.",
    ]
    assert script.read_bytes() == before.replace(b"tensorflow", b"estimatorkit.compat.v1")
    assert os.access(script, os.X_OK)
    assert [each.name for each in tmp_path.iterdir()] == ["train.py"]
    time = script.stat().st_mtime_ns
    migrate(script, "--write")
    assert script.stat().st_mtime_ns == time


def test_exit_codes(tmp_path: Path) -> None:
    fine, lacking, broken = (tmp_path / f"{name}.py" for name in ("fine", "lacking", "broken"))
    fine.write_text("print(1)\n")
    lacking.write_text("import tensorflow as tf\ntf.raw_ops.Add\ntf.raw_ops.Add\n")
    broken.write_text("x = (\n")
    assert migrate(fine).stdout == f"{fine}: nothing to do\n1 file: 1 ready.\n"
    assert migrate(fine).exit_code == 0
    result = migrate(lacking)
    assert result.exit_code == 1
    assert f"{lacking}:2: not supported: tf.raw_ops.Add" in result.stdout
    assert result.stdout.count("raw_ops.Add") == 1
    assert "(also on 3)" in result.stdout
    folder = migrate(tmp_path)
    assert folder.exit_code == 1
    assert "\n3 files: 1 ready, 2 with something that is not supported.\n" in folder.stdout
    assert f"{broken}:1: cannot be read: " in migrate(broken).stdout
    assert migrate(tmp_path / "none.py").exit_code == 2
    assert migrate().exit_code == 2


EAGER = """\
import tensorflow as tf
from tensorflow.python.framework import function

@tf.function(jit_compile=True)
def double(x):
    return 2 * x

@function.Defun(tf.float32)
def triple(x):
    return 3 * x

with tf.GradientTape() as tape:
    y = double(tf.constant(1.0))
print(y.numpy(), frame.to_numpy(), batch.numpy(force=True))
"""


def test_eager_execution_is_reported(tmp_path: Path) -> None:
    assert found(EAGER, "unsupported") == [(4, "tf.function"), (14, "numpy()")]
    assert found(EAGER, "different") == [(12, "tf.GradientTape")]
    for other in ("import torch\n", "from torch.nn import Linear\n"):
        assert (15, "numpy()") not in found(other + EAGER, "unsupported")
    assert found("print(x.numpy())", "unsupported") == []
    script = tmp_path / "eager.py"
    script.write_text(EAGER)
    assert "\n1 uses TensorFlow 2's eager execution: " in migrate(script).stdout


@pytest.mark.slow
def test_migrated_program_runs(tmp_path: Path) -> None:
    script = tmp_path / "add.py"
    script.write_text(
        "import tensorflow as tf\nwith tf.Session() as s:\n    print(s.run(tf.add(1, 2)))\n"
    )
    assert migrate(script, "--write").exit_code == 0
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout == "3\n", done.stderr
