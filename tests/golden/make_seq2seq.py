"""Sequence-to-sequence models and cells of TensorFlow 1.15's `tf.contrib`, in graph mode.

TensorFlow 2.15.1 has no `contrib`. Its Python files of TensorFlow 1.15 are run on 2.15.1, with
their imports rewritten to where 2.15.1 has these modules; `gather_tree`, whose kernel 2.15.1 lacks,
is written out in NumPy here. The files are those of the wheel `tensorflow==1.15.5`, unpacked.

Run in the repository's root, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python -m tests.golden.make_seq2seq path/to/tensorflow_core/contrib

Writes `seq2seq.npz` (what the programs of `snippets_seq2seq.py` give, and its gradients) and
`seq2seq.json` (variables, static shapes, which gradients there are, errors) beside this file.
"""

from __future__ import annotations

import importlib
import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import tensorflow.compat.v1 as v1  # type: ignore[import-not-found,import-untyped,unused-ignore]

from tests.golden.golden_files import error_of, write_json, write_npz
from tests.golden.snippets_rnn import run
from tests.golden.snippets_seq2seq import SEQ2SEQ, SEQ2SEQ_ERRORS, VALUES_ONLY

FILES = {
    "legacy_seq2seq": "seq2seq",
    "seq2seq": "attention_wrapper basic_decoder beam_search_decoder decoder helper loss sampler",
    "rnn": "core_rnn_cell rnn rnn_cell fused_rnn_cell lstm_ops gru_ops",
}
_LEGACY = "tensorflow.python.keras.layers.legacy_rnn"
_LAYERS = "tensorflow.python.keras.legacy_tf_layers"
IMPORTS = [
    (r"from tensorflow\.contrib\.(\w+)\.python\.ops import", r"from contrib_1_15.\1 import"),
    (r"from tensorflow\.contrib\.framework\.python\.framework", "from tensorflow.python.framework"),
    (r"from tensorflow\.contrib\.layers\.python\.layers import", "from contrib_1_15 import"),
    (r"from tensorflow\.contrib\.compiler import jit", "jit = None"),
    (r"from tensorflow\.python\.layers import", f"from {_LAYERS} import"),
    (r"from tensorflow\.python\.ops import rnn_cell_impl", f"from {_LEGACY} import rnn_cell_impl"),
    (r"from tensorflow\.python\.ops import rnn\n", "from contrib_1_15 import rnn_ops as rnn\n"),
    (
        r"from tensorflow\.python\.ops import control_flow_ops",
        "from contrib_1_15 import v1\ncontrol_flow_ops = v1",
    ),
    (r"from tensorflow\.python\.ops import init_ops", "from contrib_1_15 import v1\ninit_ops = v1"),
    (r"nest\.is_sequence", "nest.is_nested"),
    (r"math_ops\.to_int64\(", "math_ops.cast(dtype=dtypes.int64, x="),
    (r"\barray_ops\.(stack|unstack)\(", r"__import__('tensorflow').compat.v1.\1("),
    (r"\bops\.Tensor\b", "__import__('tensorflow').Tensor"),
    (r"tensor_util\.with_same_shape\(old, new\)", "new"),
    (r"np\.Inf", "np.inf"),
]


def gather_tree(step_ids: Any, parent_ids: Any, max_sequence_lengths: Any, end_token: Any) -> Any:
    """The sequences of beams, as the kernel of TensorFlow 1.15 has them."""

    def kernel(ids: Any, parents: Any, lengths: Any, end: Any) -> Any:
        result = np.full_like(ids, end)
        for batch in range(ids.shape[1]):
            for beam in range(ids.shape[2]):
                at = beam
                for step in reversed(range(min(len(ids), lengths[batch]))):
                    result[step, batch, beam] = ids[step, batch, at]
                    at = parents[step, batch, at]
                ends = np.flatnonzero(result[:, batch, beam] == end)
                if len(ends):
                    result[ends[0] :, batch, beam] = end
        return result

    given = [step_ids, parent_ids, max_sequence_lengths, end_token]
    tensors = [v1.convert_to_tensor(each, v1.int32) for each in given]
    result = v1.numpy_function(kernel, tensors, v1.int32)
    result.set_shape(tensors[0].shape)
    return result


def layer_norm(values: Any, reuse: bool, scope: str) -> Any:
    """`contrib.layers.layer_norm` of matrices, whose variables are there."""
    with v1.variable_scope(scope, reuse=reuse):
        gamma, beta = (v1.get_variable(name, [values.shape[-1]]) for name in ("gamma", "beta"))
    mean, variance = v1.nn.moments(values, [-1], keep_dims=True)
    return v1.nn.batch_normalization(values, mean, variance, beta, gamma, 1e-12)


def module(name: str, **names: Any) -> ModuleType:
    """A module of these names, which can be imported."""
    made = ModuleType(name)
    made.__dict__.update(names)
    sys.modules[name] = made
    return made


def contrib(folder: Path, target: Path) -> SimpleNamespace:
    """`tf.contrib`: the files of TensorFlow 1.15, rewritten into `target`."""
    from tensorflow.python.ops import rnn as rnn_ops  # type: ignore[import-not-found]

    names = {each: getattr(v1.nn, each) for each in dir(v1.nn) if "rnn" in each}
    private = {each: getattr(rnn_ops, each) for each in dir(rnn_ops) if each.startswith("_")}
    package = module("contrib_1_15", v1=v1, __path__=[str(target)])
    package.layers = module("contrib_1_15.layers", layer_norm=layer_norm)
    package.rnn_ops = module("contrib_1_15.rnn_ops", **{**private, **names})
    module("contrib_1_15.seq2seq", __path__=[str(target / "seq2seq")])
    module("contrib_1_15.seq2seq.beam_search_ops", gather_tree=gather_tree)
    found: dict[str, dict[str, Any]] = {}
    for area, files in FILES.items():
        (target / area).mkdir()
        for file in files.split():
            text = (folder / area / "python" / "ops" / f"{file}.py").read_text("utf-8")
            for pattern, replacement in IMPORTS:
                text = re.sub(pattern, replacement, text)
            (target / area / f"{file}.py").write_text(text, "utf-8")
    for area, files in FILES.items():
        found[area] = {}
        for file in files.split():
            found[area].update(vars(importlib.import_module(f"contrib_1_15.{area}.{file}")))
    found["seq2seq"]["gather_tree"] = gather_tree
    return SimpleNamespace(**{area: SimpleNamespace(**each) for area, each in found.items()})


def tensorflow(folder: Path, target: Path) -> Any:
    """`tf` as the programs use it."""
    cells = importlib.import_module(f"{_LEGACY}.rnn_cell_impl")
    layers = importlib.import_module(f"{_LAYERS}.core")
    names = {each: getattr(v1, each) for each in dir(v1) if not each.startswith("__")}
    nn = SimpleNamespace(**{each: getattr(v1.nn, each) for each in dir(v1.nn)})
    nn.rnn_cell = cells
    return SimpleNamespace(
        **{**names, "nn": nn, "layers": layers, "contrib": contrib(folder, target)}
    )


def main() -> None:
    """Runs all snippets and writes the files."""
    v1.disable_v2_behavior()
    v1.logging.set_verbosity(v1.logging.ERROR)
    with tempfile.TemporaryDirectory() as target:
        tf = tensorflow(Path(sys.argv[1]), Path(target))
        arrays, facts = {}, {}
        for name, snippet in SEQ2SEQ.items():
            result = run(tf, snippet, name not in VALUES_ONLY)
            for what in ("values", "gradients"):
                arrays.update({f"{name}/{what}/{at}": v for at, v in enumerate(result.pop(what))})
            facts[name] = result
        errors = {
            name: error_of(lambda snippet=snippet: run(tf, snippet))
            for name, snippet in SEQ2SEQ_ERRORS.items()
        }
    write_npz("seq2seq.npz", arrays)
    about = {"tensorflow": v1.__version__, "contrib": "1.15.5"}
    write_json("seq2seq.json", {"about": about, "seq2seq": facts, "errors": errors})


if __name__ == "__main__":
    main()
