"""Arguments that TensorFlow refuses at run time, as their shapes are not known before.

`UNKNOWN_SHAPES`: functions of the module `tf` (`tf.compat.v1`), each giving what must fail when it
is fetched. NumPy and JAX would broadcast, clip or cut most of these values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_Refusal = Callable[[Any], Any]


def _fed(tf: Any, values: Any) -> Any:
    array = np.asarray(values)
    if array.dtype == np.float64:
        array = array.astype(np.float32)
    return tf.placeholder_with_default(array, [None] * array.ndim)


def _call(name: str, *values: Any, known: tuple[Any, ...] = (), **others: Any) -> _Refusal:
    def refusal(tf: Any) -> Any:
        function = tf
        for part in name.split("."):
            function = getattr(function, part)
        return function(*(_fed(tf, each) for each in values), *known, **others)

    return refusal


def _change(name: str, *values: Any, is_resource: bool = False) -> _Refusal:
    def refusal(tf: Any) -> Any:
        variable = tf.get_variable("v", initializer=np.ones((4, 2), "f"), use_resource=is_resource)
        return getattr(tf, name)(variable, *(_fed(tf, each) for each in values))

    return refusal


_ONES = np.ones((2, 4))
UNKNOWN_SHAPES: dict[str, _Refusal] = {
    "index past the end": lambda tf: _fed(tf, _ONES)[2],
    "negative index past the end": lambda tf: _fed(tf, _ONES)[0, ..., -5],
    "index of an empty vector": lambda tf: _fed(tf, np.zeros(0))[0],
    "index of strings": lambda tf: _fed(tf, np.array(["a"], object))[1],
    "split into lengths that are too short": _call("split", _ONES, known=([1, 2], 1)),
    "split into lengths that are too long": _call("split", _ONES, known=([3, -1], 0)),
    "split into uneven parts": _call("split", _ONES, known=(3, 1)),
    "stack of other shapes": lambda tf: tf.stack([_fed(tf, [1.0]), _fed(tf, [1.0, 2.0])]),
    "tile of more dimensions": _call("tile", _ONES, [1, 2, 3]),
    "tile of a negative number": _call("tile", _ONES, [1, -2]),
    "pad of a negative number": _call("pad", _ONES, [[-1, 0], [0, 0]]),
    "band below the matrix": _call("matrix_band_part", np.ones((3, 3)), known=(5, 0)),
    "band above the matrix": _call("matrix_band_part", np.ones((3, 3)), known=(0, 9)),
    "long diagonal": _call("matrix_set_diag", np.ones((2, 2)), np.ones(3)),
    "short diagonal": _call("matrix_set_diag", np.ones((2, 2)), np.ones(1)),
    "diagonal of no square": _call("diag_part", np.ones((2, 3))),
    "one length of two sequences": _call("reverse_sequence", _ONES, [1], seq_axis=1),
    "weights of one of two counts": lambda tf: tf.bincount([1, 2], [1.0]),
    "one update of two points": _call("scatter_nd", [[0], [1]], [1.0], known=([3],)),
    "a scalar for two points": _call("scatter_nd", [[0], [1]], 1.0, known=([3],)),
    "points of more dimensions": _call("scatter_nd", [[0, 0, 0]], [1.0], known=([3],)),
    "one change of two points": _call("tensor_scatter_update", [1.0, 2.0], [[0], [1]], [1.0]),
    "one addition of two points": _call("tensor_scatter_add", [1.0, 2.0], [[0], [1]], [1.0]),
    "gather_nd of more dimensions": _call("gather_nd", [1.0], [[0, 0]]),
    "bias for one of two channels": _call("nn.bias_add", [[1.0, 2.0]], [1.0]),
    "targets of one of two rows": _call("nn.in_top_k", np.ones((2, 2)), [0], known=(1,)),
    "cross of one with two": _call("cross", np.ones((1, 3)), np.ones((2, 3))),
    "tensordot of 2 and 1": _call("tensordot", [[1.0, 2.0]], [[1.0, 2.0]], known=(1,)),
    "einsum of 2 and 1": lambda tf: tf.einsum("i,i->", _fed(tf, [1.0, 2.0]), _fed(tf, [1.0])),
}
for _is_resource in (False, True):
    for _name, _values in (
        ("scatter_update", ([0, 1], [[1.0, 2.0]])),
        ("scatter_add", ([0, 1], [[1.0, 2.0]])),
        ("scatter_max", ([0, 1], [1.0, 2.0])),
        ("scatter_nd_update", ([[0], [1]], [[1.0, 2.0]])),
        ("scatter_nd_update", ([[0, 0], [1, 1]], [1.0])),
        ("scatter_nd_add", ([[0], [1]], [1.0, 2.0])),
        ("assign", ([[1.0, 2.0]],)),
        ("assign_add", ([[1.0, 2.0]],)),
        ("assign_sub", ([[1.0, 2.0]],)),
    ):
        _what = f"{_name} of {_values}, {'a resource' if _is_resource else 'a reference'}"
        UNKNOWN_SHAPES[_what] = _change(_name, *_values, is_resource=_is_resource)


def _trained(name: str, gradient: Any, *, in_rows: bool) -> _Refusal:
    def refusal(tf: Any) -> Any:
        arguments = (0.1, 0.9) if name == "Momentum" else (0.1,)
        variable = tf.get_variable("v", initializer=np.ones((4, 2), "f"), use_resource=True)
        given = tf.placeholder_with_default(np.asarray(gradient, "f"), None)
        if in_rows:
            given = tf.IndexedSlices(given, _fed(tf, [0, 1]))
        optimizer = getattr(tf.train, f"{name}Optimizer")(*arguments)
        return optimizer.apply_gradients([(given, variable)])

    return refusal


for _optimizer in ("GradientDescent", "Momentum", "Adagrad", "Adam", "RMSProp", "Ftrl", "Adadelta"):
    for _name, _gradient in (("a scalar", 1.0), ("one row", [[1.0, 2.0]])):
        _what = f"{_name} as the gradient of {_optimizer}"
        UNKNOWN_SHAPES[_what] = _trained(_optimizer, _gradient, in_rows=False)
    if _optimizer != "Adam":  # which does not look
        _what = f"one row for two in {_optimizer}"
        UNKNOWN_SHAPES[_what] = _trained(_optimizer, [[1.0, 2.0]], in_rows=True)
