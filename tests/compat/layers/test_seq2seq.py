"""Sequence-to-sequence models against those of TensorFlow's `contrib`: variables, values,
gradients, errors.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from tests.golden.golden_files import error_of
from tests.golden.snippets_rnn import run
from tests.golden.snippets_seq2seq import SEQ2SEQ, SEQ2SEQ_ERRORS, VALUES_ONLY
from tests.sweep import sweep

FOLDER = Path(__file__).parents[2] / "golden"
GOLDEN = json.loads((FOLDER / "seq2seq.json").read_text("utf-8"))
ARRAYS = dict(np.load(FOLDER / "seq2seq.npz"))

# Messages that begin otherwise than TensorFlow's.
OTHER_WORDS = {
    "beam_state": "reshape",
    "decoder_no_cell": "The argument 'cell' (1) is not an RNNCell",
    "legacy_keys": "keys of dec_cells_dict != keys of deco",
    "legacy_projection": "Shapes (4, 3) and ",
    "luong_units": "Incompatible or unknown inner dimensions between query and keys.  Query (",
    "memory_unknown": "Expected memory Placeholder:0 to have fully defined inner dims, but saw ",
    "wrapper_state": "Expected state to be instance of AttentionWrapperState. Received type ",
}


@sweep("name", sorted(SEQ2SEQ), quick=3)
def test_models(name: str) -> None:
    found, facts = run(tf, SEQ2SEQ[name], name not in VALUES_ONLY), GOLDEN["seq2seq"][name]
    assert found["variables"] == facts["variables"]
    for ours, theirs in zip(found["shapes"], facts["shapes"], strict=True):
        assert theirs is None or all(b in (None, a) for a, b in zip(ours, theirs, strict=True))
    # A loop gives zeros where TensorFlow sees that nothing flows through it.
    assert set(found["none"]) <= set(facts["none"])
    reaching = [at for at in range(1000) if at not in found["none"]]
    for at, value in zip(reaching, found["gradients"], strict=False):
        assert at not in facts["none"] or not value.any()
    found["gradients"] = [
        value
        for at, value in zip(reaching, found["gradients"], strict=False)
        if at not in facts["none"]
    ]
    for what in ("values", "gradients"):
        assert len(found[what]) == sum(key.startswith(f"{name}/{what}/") for key in ARRAYS)
        for at, value in enumerate(found[what]):
            expected = ARRAYS[f"{name}/{what}/{at}"]
            assert value.dtype == expected.dtype
            np.testing.assert_allclose(
                value, expected, rtol=5e-5, atol=2e-5, err_msg=f"{what} {at}"
            )


@pytest.mark.parametrize("name", sorted(SEQ2SEQ_ERRORS))
def test_errors(name: str) -> None:
    got, golden = error_of(lambda: run(tf, SEQ2SEQ_ERRORS[name])), GOLDEN["errors"][name]
    assert got is not None
    assert got["class"] == golden["class"], got
    words = OTHER_WORDS.get(name, golden["first_line"].split(":")[0])
    assert words in got["first_line"]
    assert words in golden["first_line"]
