"""Names, strings and errors against TensorFlow 2.15.1's graph mode (tests/golden/graph.json).

The snippets of `tests/golden/snippets_*.py` run here on this package as they ran on `tf.compat.v1`
for the golden file. Op types are not compared: ours are fewer (`Add` for `AddV2`, `Fill` for the
constants that TensorFlow folds `zeros` into). Snippets that need a name of LATER are left out until
that name is there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import estimatorkit as tf
from tests.golden.golden_files import error_of
from tests.golden.snippets_errors import ERRORS
from tests.golden.snippets_graph import SNIPPETS, run_snippet
from tests.golden.snippets_ops import DEFAULT_NAMES, default_name

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "graph.json").read_text("utf-8"))

# Names that later releases bring, each with the snippets that wait for it.
LATER: dict[str, tuple[str, ...]] = {}
WAITING = {snippet for snippets in LATER.values() for snippet in snippets}

# What differs by intent. Expressions and facts by (snippet, fact), each with ours and the reason.
DIFFERENT_NAMES = {
    "nn.dropout(x, 0.5)": ("dropout/mul_1:0", "a product instead of a selection"),
    "nn.softmax_cross_entropy_with_logits": (
        "SoftmaxCrossEntropyWithLogits:0",
        "one op, which takes any rank; TensorFlow reshapes to matrices and back",
    ),
    "nn.softmax_cross_entropy_with_logits_v2": (
        "SoftmaxCrossEntropyWithLogits:0",
        "one op, which takes any rank; TensorFlow reshapes to matrices and back",
    ),
    "nn.sparse_softmax_cross_entropy_with_logits": (
        "SparseSoftmaxCrossEntropyWithLogits:0",
        "one op without a scope of its own",
    ),
}
DIFFERENT_SPECS = {
    "segment_sum(x, ...)": (
        ["float32", "(1, 2)"],
        "the ids are constant: the number of rows is known",
    ),
}
DIFFERENT_FACTS = {
    ("layers", "dropout"): ("dropout/dropout/mul_1:0", "a product instead of a selection"),
    ("add_of_numbers", "op type"): ("Add", "op types are ours"),
    ("add_of_numbers", "repr of op"): ("<tf.Operation 'Add' type=Add>", "op types are ours"),
    ("variables", "op type"): ("VarHandleOp", "op types are ours"),
    ("get_variable_plain", "dtype"): ("tf.float32", "there are no reference dtypes"),
    ("variables", "dtype"): ("tf.float32", "there are no reference dtypes"),
    ("variables", "repr"): (
        "<tf.Variable 'Variable:0' shape=() dtype=float32>",
        "there are no reference dtypes",
    ),
    ("variables", "str"): (
        "<tf.Variable 'Variable:0' shape=() dtype=float32>",
        "there are no reference dtypes",
    ),
    ("fetches", "bool"): ("bool", "NumPy 2's name of the class"),
    ("minimize", "GradientDescent with step"): (
        ["GradientDescent_2", "AssignAddVariableOp"],
        "there are no reference variables",
    ),
    ("minimize", "Adam again"): (
        ["Adam_1", "AssignAddVariableOp"],
        "there are no reference variables",
    ),
}
# Compared elsewhere: `shapes` asks for `Dimension.value`, which compat.v1 adds; test_shapes.py
# compares its facts.
ELSEWHERE = {"shapes"}

# Errors: words that TensorFlow's message and ours share.
WORDS = {
    "feed_of_wrong_shape": "Cannot feed value of shape (2, 4) for Tensor",
    "feed_of_wrong_type": "could not convert string to float: 'a'",
    "feed_of_a_tensor": "The value of a feed cannot be a tf.Tensor object",
    "feed_of_something_else": "Cannot interpret feed_dict key as Tensor: Can not convert a float",
    "feed_that_is_missing": "You must feed a value for placeholder tensor 'x' with dtype float",
    "feed_that_is_missing_scalar": "You must feed a value for placeholder tensor 'x' with dtype",
    "fetch_of_a_number": "has invalid type",
    "fetch_of_none": "has invalid type",
    "fetch_of_an_unknown_name": "cannot be interpreted as a Tensor",
    "fetch_of_a_name_without_output": "cannot be interpreted as a Tensor",
    "fetch_from_another_graph": "is not an element of this graph",
    "tensor_of_another_graph": "must be from the same graph as",
    "run_of_a_closed_session": "Attempted to use a closed Session.",
    "run_of_an_empty_graph": "The Session graph is empty",
    "eval_without_a_session": "Cannot evaluate tensor using `eval()`: No default session",
    "uninitialized_variable": "Attempting to use uninitialized value v",
    "uninitialized_resource_variable": "uninitialized",
    "add_of_float_and_int": "has type int32 that does not match type float32 of",
    "tf_add_of_float_and_int": "has type int32 that does not match type float32 of",
    "add_of_int_and_a_float_number": "has type float32 that does not match type int32 of",
    "constant_of_wrong_type": "Expected float32, but got",
    "constant_of_float_as_int": "Expected int32, but got",
    "constant_of_none": "None values not supported.",
    "constant_that_is_ragged": "array",
    "add_of_incompatible_shapes": "Dimensions must be equal, but are 3 and 4",
    "matmul_of_incompatible_shapes": "Dimensions must be equal, but are 3 and 2",
    "matmul_of_vectors": "Shape must be",
    "matmul_of_incompatible_fed_shapes": "",  # XLA's words
    "reshape_to_another_size": "Cannot reshape a tensor with 6 elements to shape [4]",
    "concat_of_incompatible_shapes": "must be equal",
    "set_shape_that_contradicts": "Shapes",
    "reduce_over_an_axis_that_is_not_there": "Invalid reduction dimension",
    "assign_of_another_shape": "Shapes",
    "get_variable_twice": "Variable v already exists, disallowed.",
    "get_variable_twice_in_scope": "Variable s/v already exists, disallowed.",
    "reuse_of_a_missing_variable": "Variable s/v does not exist, or was not created with",
    "reuse_with_another_shape": "Trying to share variable s/v, but specified shape (2,) and found",
    "reuse_with_another_dtype": "Trying to share variable s/v, but specified dtype int32 and found",
    "get_variable_without_shape": "",  # ours: `Shape of a new variable (v) must be fully defined`
    "get_variable_of_unknown_shape": "fully defined",
    "len_of_a_tensor": "len is not well defined for a symbolic Tensor (Const:0)",
    "float_of_a_tensor": "float() argument must be a string or a real number, not",
    "numpy_of_a_tensor": "Cannot convert a symbolic",
    "numpy_method_of_a_tensor": "object has no attribute 'numpy'",
    "name_with_a_space": "is not a valid node name",
    "get_tensor_without_output": "The name 'a' refers to an Operation, not a Tensor.",
    "get_operation_that_is_not_there": "The name 'a' refers to an Operation not in the graph.",
    "graph_that_is_finalized": "Graph is finalized and cannot be modified.",
    "gradient_of_no_variables": "No variables to optimize.",
    "gradient_of_an_unrelated_loss": "No gradients provided for any variable",
    "gradient_of_an_integer_loss": "",
    "gradient_of_a_string": "",
    "bool_of_a_tensor": "`tf.Tensor` as a Python `bool` is not allowed",
    "if_of_a_comparison": "`tf.Tensor` as a Python `bool` is not allowed",
    "iteration_over_unknown_rank": "",
    "iterator_at_its_end": "End of sequence",
    "iterator_not_initialized": "has not been initialized",
    "restore_of_a_missing_checkpoint": "is not a valid checkpoint",
    "saver_without_variables": "No variables to save",
    "assert_that_fails": "assertion failed: [value:] [3]",
    "gather_out_of_range": "indices[0] = 5 is not in [0, 2)",
    "check_numerics_that_fails": "Tensor had NaN values",
    "cond_with_different_types": "must have the same type",
    "while_loop_that_changes_its_shape": "",
}
DIFFERENT_ERRORS = {
    "bool_of_a_tensor": ("TypeError", "its base class; no class of its own for one error"),
    "if_of_a_comparison": ("TypeError", "its base class; no class of its own for one error"),
    "iteration_over_unknown_rank": ("TypeError", "its base class"),
    "iteration_over_a_vector": (None, "a first dimension that is known can be iterated over"),
    "device_that_is_not_there": (None, "one process has one device; clusters check theirs"),
}


@pytest.mark.parametrize("expression", sorted(set(DEFAULT_NAMES) - WAITING))
def test_default_name(expression: str) -> None:
    name, _, *spec = default_name(tf, expression)
    expected, _, *expected_spec = GOLDEN["default_names"][expression]
    expected, _ = DIFFERENT_NAMES.get(expression, (expected, ""))
    expected_spec, _ = DIFFERENT_SPECS.get(expression, (expected_spec, ""))
    assert [name, *spec] == [expected, *expected_spec]


@pytest.mark.parametrize("snippet", sorted(set(SNIPPETS) - WAITING - ELSEWHERE))
def test_snippet(snippet: str) -> None:
    facts = run_snippet(tf, snippet)["facts"]
    expected = GOLDEN["snippets"][snippet]["facts"]
    for fact, value in expected.items():
        wanted, _ = DIFFERENT_FACTS.get((snippet, fact), (value, ""))
        assert comparable(facts[fact]) == comparable(wanted), fact


def comparable(fact: Any) -> Any:
    """A fact as JSON gives it back, without op types: [name, type, ...] becomes [name, ...]."""
    plain = json.loads(json.dumps(fact))
    if isinstance(plain, list) and len(plain) > 1 and str(plain[0]).endswith(":0"):
        return [each for each in plain if each not in OP_TYPES]
    return plain


OP_TYPES = {
    type_
    for snippet in ("operators", "division_of_integers")
    for _, type_ in GOLDEN["snippets"][snippet]["operations"]
} | {"Add", "LogicalXor"}


@pytest.mark.parametrize("name", sorted(set(ERRORS) - WAITING))
def test_error(name: str) -> None:
    def fail() -> object:
        with tf.Graph().as_default():
            return ERRORS[name](tf)

    got = error_of(fail) or {"class": None, "first_line": ""}
    golden = GOLDEN["errors"][name]
    expected, _ = DIFFERENT_ERRORS.get(name, (golden["class"], ""))
    assert got["class"] == expected, got
    assert WORDS.get(name, "") in golden["first_line"]
    assert WORDS.get(name, "") in str(got["first_line"])


def available(name: str) -> bool:
    place: Any = tf
    for part in name.split("."):
        if not hasattr(place, part):
            return False
        place = getattr(place, part)
    return True


def test_pending_snippets_need_missing_names() -> None:
    come = [name for name in LATER if available(name)]
    assert not come, f"{come} are there: take them and what waits for them out of LATER"
    assert set(DEFAULT_NAMES) | set(SNIPPETS) | set(ERRORS) >= WAITING


def test_listed_differences_are_real() -> None:
    """The lists of differences name only what is there, and what does differ."""
    for expression, (ours, _) in DIFFERENT_NAMES.items():
        assert GOLDEN["default_names"][expression][0] != ours
    for expression, (spec, _) in DIFFERENT_SPECS.items():
        assert GOLDEN["default_names"][expression][2:] != spec
    for (snippet, fact), (ours, _) in DIFFERENT_FACTS.items():
        assert GOLDEN["snippets"][snippet]["facts"][fact] != ours
    for name, (ours, _) in DIFFERENT_ERRORS.items():
        assert GOLDEN["errors"][name]["class"] != ours
    assert set(WORDS) <= set(ERRORS)
    assert set(WORDS) | set(DIFFERENT_ERRORS) | {"device_that_is_not_a_device"} == set(ERRORS)


def test_variables_create_tensorflow_operations() -> None:
    with tf.Graph().as_default() as made_graph, tf.variable_scope("s"):
        tf.get_variable("v", [2, 3])
        names = {operation.name for operation in made_graph.get_operations()}
    assert {"s/v", "s/v/Assign", "s/v/read"} <= names
    assert {"s/v/Initializer/random_uniform", "s/v/Initializer/random_uniform/shape"} <= names
