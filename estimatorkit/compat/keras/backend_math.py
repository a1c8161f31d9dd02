"""`tf.keras.backend`: arithmetic, reductions, shapes, products, random numbers, losses."""

from __future__ import annotations

import math
import string
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import as_dtype, bool_
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.keras import crossentropy
from estimatorkit.keras.backend_state import floatx
from estimatorkit.layers import activations
from estimatorkit.layers.engine.call_record import record_of
from estimatorkit.ops.array import array, filling, indexing, joining, rearrange
from estimatorkit.ops.array.ranking import in_top_k as _in_top_k
from estimatorkit.ops.debug.debug import print_
from estimatorkit.ops.linalg.products import einsum, tensordot
from estimatorkit.ops.math import elementwise, linalg, random as draws, reduce, special
from estimatorkit.ops.nn import nn
from estimatorkit.ops.nn.normalization import fused_batch_norm
from estimatorkit.ops.sparse.joining import sparse_concat
from estimatorkit.ops.sparse.products import sparse_tensor_dense_matmul
from estimatorkit.ops.sparse.sparse import sparse_tensor_to_dense

# -- what a tensor is


def shape(x: Any) -> Tensor:
    """The shape as a tensor."""
    return array.shape(x)


def int_shape(x: Any) -> tuple[int | None, ...] | None:
    """The static shape; None if the rank is unknown."""
    dims = x.shape.dims
    return None if dims is None else tuple(dims)


def ndim(x: Any) -> int | None:
    """The rank."""
    rank: int | None = x.shape.rank
    return rank


def dtype(x: Any) -> str:
    """The name of the dtype."""
    return str(x.dtype.name)


def count_params(x: Any) -> int:
    """The number of elements."""
    return math.prod(x.shape.as_list())


def is_sparse(tensor: Any) -> bool:
    """Whether it is a `SparseTensor`."""
    return isinstance(tensor, SparseTensor)


def to_dense(tensor: Any) -> Any:
    """Converts a sparse tensor to a dense one; returns others unchanged."""
    return sparse_tensor_to_dense(tensor) if isinstance(tensor, SparseTensor) else tensor


def is_keras_tensor(x: Any) -> bool:
    """Whether a tensor is a layer's output or a model's input.

    Raises:
        ValueError: it is not a tensor.
    """
    if not isinstance(x, (Tensor, Variable, SparseTensor)):
        raise ValueError(
            f"Unexpectedly found an instance of type `{type(x)}`. Expected a symbolic tensor "
            "instance."
        )
    return isinstance(x, (Tensor, SparseTensor)) and x in record_of(x.graph).calls


def cast(x: Any, dtype: Any) -> Tensor:
    """Casts a tensor to a dtype."""
    return elementwise.cast(x, as_dtype(dtype))


def cast_to_floatx(x: Any) -> Any:
    """Casts a tensor or an array to `floatx()`."""
    if isinstance(x, (Tensor, Variable, SparseTensor)):
        return elementwise.cast(x, floatx())
    return np.asarray(x, as_dtype(floatx()).numpy_dtype)


# -- element by element


def _plain(x: Any) -> Any:
    return convert_to_tensor(x) if not isinstance(x, SparseTensor) else x


def sqrt(x: Any) -> Tensor:
    """The square root; 0 for negative numbers."""
    tensor = _plain(x)
    return elementwise.sqrt(elementwise.maximum(tensor, elementwise.cast(0.0, tensor.dtype)))


def clip(x: Any, min_value: Any, max_value: Any) -> Tensor:
    """Clips `x` to two bounds, either of which may be None."""
    if isinstance(min_value, (int, float)) and isinstance(max_value, (int, float)):
        max_value = max(min_value, max_value)
    tensor = _plain(x)
    low = -math.inf if min_value is None else min_value
    high = math.inf if max_value is None else max_value
    return elementwise.clip_by_value(
        tensor, convert_to_tensor(low, tensor.dtype), convert_to_tensor(high, tensor.dtype)
    )


def l2_normalize(x: Any, axis: Any = None) -> Tensor:
    """`x` divided by its Euclidean norm along an axis."""
    return nn.l2_normalize(x, axis)


def softmax(x: Any, axis: int = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis."""
    return nn.softmax(x, axis)


def dropout(x: Any, level: Any, noise_shape: Any = None, seed: int | None = None) -> Tensor:
    """Sets a fraction `level` of the elements to 0 and divides the others by 1 - level."""
    return nn.dropout(x, noise_shape=noise_shape, seed=seed, rate=level)


def print_tensor(x: Any, message: str = "", summarize: int = 3) -> Tensor:
    """Returns `x`; prints it to the standard output when evaluated."""
    tensor = _plain(x)
    shown = print_(message, tensor, output_stream=sys.stdout, summarize=summarize)
    with get_default_graph().control_dependencies([shown]):
        return builtin_ops.identity(tensor)


# -- reductions


def _reduced(function: Any, x: Any, axis: Any, keepdims: bool) -> Tensor:
    tensor: Tensor = function(x, axis, keepdims)
    return tensor


def sum_(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum along axes."""
    return _reduced(reduce.reduce_sum, x, axis, keepdims)


def prod(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The product along axes."""
    return _reduced(reduce.reduce_prod, x, axis, keepdims)


def max_(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The maximum along axes."""
    return _reduced(reduce.reduce_max, x, axis, keepdims)


def min_(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The minimum along axes."""
    return _reduced(reduce.reduce_min, x, axis, keepdims)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean along axes; bools count as 0 and 1."""
    tensor = _plain(x)
    if tensor.dtype == bool_:
        tensor = elementwise.cast(tensor, floatx())
    return _reduced(reduce.reduce_mean, tensor, axis, keepdims)


def var(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The population variance along axes."""
    tensor = _plain(x)
    if tensor.dtype == bool_:
        tensor = elementwise.cast(tensor, floatx())
    center = reduce.reduce_mean(tensor, axis, True)
    return reduce.reduce_mean(elementwise.squared_difference(tensor, center), axis, keepdims)


def std(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The standard deviation along axes."""
    return elementwise.sqrt(var(x, axis, keepdims))


def any_(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether any element is nonzero."""
    return _reduced(reduce.reduce_any, elementwise.cast(x, bool_), axis, keepdims)


def all_(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether all elements are nonzero."""
    return _reduced(reduce.reduce_all, elementwise.cast(x, bool_), axis, keepdims)


def argmax(x: Any, axis: int = -1) -> Tensor:
    """The index of the maximum along an axis."""
    return reduce.argmax(x, axis)


def argmin(x: Any, axis: int = -1) -> Tensor:
    """The index of the minimum along an axis."""
    return reduce.argmin(x, axis)


def cumsum(x: Any, axis: int = 0) -> Tensor:
    """The cumulative sum along an axis."""
    return reduce.cumsum(x, axis)


def cumprod(x: Any, axis: int = 0) -> Tensor:
    """The cumulative product along an axis."""
    return special.cumprod(x, axis)


# -- products


def dot(x: Any, y: Any) -> Tensor:
    """The product over the last axis of x and the second-to-last axis of y."""
    if isinstance(x, SparseTensor):
        return sparse_tensor_dense_matmul(x, y)
    one, two = convert_to_tensor(x), convert_to_tensor(y)
    rank, other = one.shape.rank, two.shape.rank
    if rank is not None and other is not None and max(rank, other) > 2:
        return tensordot(one, two, [[rank - 1], [max(other - 2, 0)]])
    return linalg.matmul(one, two)


def batch_dot(x: Any, y: Any, axes: Any = None) -> Tensor:
    """The product of x and y for each example.

    Args:
        x, y: `(batch, ...)`, of at least two dimensions.
        axes: the axes of x and y to sum over, or one for both; the last of x and the second-to-last
            (of a matrix: the last) of y by default.

    Returns:
        `(batch, ...)`: the remaining axes of x, then of y; `(batch, 1)` if none remain.

    Raises:
        ValueError: a rank is unknown or too small, or the axes have different sizes.
    """
    one, two = convert_to_tensor(x), convert_to_tensor(y)
    ranks = one.shape.rank, two.shape.rank
    if ranks[0] is None or ranks[1] is None or ranks[0] < 2 or ranks[1] < 2:
        raise value_error(
            "Cannot do batch_dot on inputs with rank < 2",
            received=f"shapes {one.shape} and {two.shape}",
        )
    if axes is None:
        axes = (ranks[0] - 1, ranks[1] - (1 if ranks[1] == 2 else 2))
    pair = (axes, axes) if isinstance(axes, int) else tuple(axes)
    first, second = pair[0] % ranks[0], pair[1] % ranks[1]
    if 0 in (first, second):
        raise ValueError("Cannot perform batch_dot over axis 0: it is the batch.")
    sizes = one.shape[first], two.shape[second]
    if None not in sizes and sizes[0] != sizes[1]:
        raise ValueError(
            f"Cannot do batch_dot on inputs with shapes {one.shape} and {two.shape} with axes="
            f"{list(pair)}: {sizes[0]} != {sizes[1]}."
        )
    letters = iter(string.ascii_lowercase[2:])
    of_x = ["b", *(next(letters) for _ in range(ranks[0] - 1))]
    of_y = ["b", *(next(letters) for _ in range(ranks[1] - 1))]
    of_x[first] = of_y[second] = "a"
    left = "".join(each for each in (*of_x, *of_y[1:]) if each != "a")
    result = einsum(f"{''.join(of_x)},{''.join(of_y)}->{left}", one, two)
    known = dict(zip(of_x + of_y, one.shape.as_list() + two.shape.as_list(), strict=True))
    result.set_shape([known[each] for each in left])
    return array.expand_dims(result, 1) if left == "b" else result


# -- shapes


def reshape(x: Any, shape: Any) -> Tensor:
    """Reshapes `x`."""
    return array.reshape(x, shape)


def permute_dimensions(x: Any, pattern: Sequence[int]) -> Tensor:
    """Permutes the axes of `x`."""
    return array.transpose(x, pattern)


def transpose(x: Any) -> Tensor:
    """Reverses the axes of `x`."""
    return array.transpose(x)


def flatten(x: Any) -> Tensor:
    """Flattens `x` to one dimension."""
    return array.reshape(x, [-1])


def batch_flatten(x: Any) -> Tensor:
    """Flattens each example: `(batch, n)`."""
    tensor = _plain(x)
    rest = tensor.shape.as_list()[1:]
    if None not in rest:
        return array.reshape(tensor, [-1, math.prod(rest)])
    return array.reshape(tensor, joining.stack([-1, reduce.reduce_prod(array.shape(tensor)[1:])]))


def expand_dims(x: Any, axis: int = -1) -> Tensor:
    """Inserts an axis of size 1."""
    return array.expand_dims(x, axis)


def squeeze(x: Any, axis: Any) -> Tensor:
    """Removes an axis of size 1."""
    return array.squeeze(x, [axis] if isinstance(axis, int) else axis)


def concatenate(tensors: Sequence[Any], axis: int = -1) -> Any:
    """Concatenates tensors along an axis."""
    if tensors and all(isinstance(each, SparseTensor) for each in tensors):
        rank = tensors[0].shape.rank or 1
        return sparse_concat(axis % rank, list(tensors))
    return joining.concat([to_dense(each) for each in tensors], axis)


def stack(x: Sequence[Any], axis: int = 0) -> Tensor:
    """Stacks tensors on a new axis."""
    return joining.stack(x, axis)


def repeat(x: Any, n: int) -> Tensor:
    """Repeats `(batch, d)` to `(batch, n, d)`."""
    return filling.tile(array.expand_dims(x, 1), [1, n, 1])


def repeat_elements(x: Any, rep: int, axis: int) -> Tensor:
    """Repeats each element `rep` times along an axis."""
    return rearrange.repeat(x, rep, axis)


def tile(x: Any, n: Any) -> Tensor:
    """Tiles `x` along its axes."""
    return filling.tile(x, [n] if isinstance(n, int) else n)


def reverse(x: Any, axes: Any) -> Tensor:
    """Reverses `x` along axes."""
    return rearrange.reverse(x, [axes] if isinstance(axes, int) else axes)


def gather(reference: Any, indices: Any) -> Tensor:
    """Rows of `reference` by index."""
    return indexing.gather(reference, indices)


def one_hot(indices: Any, num_classes: int) -> Tensor:
    """One-hot vectors of class numbers."""
    return indexing.one_hot(indices, num_classes, axis=-1)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = "int32") -> Tensor:
    """The numbers in [start, stop)."""
    if stop is None:
        start, stop = 0, start
    if isinstance(stop, (int, float)) and stop < 0 and start == 0:
        stop = 0
    result = filling.range_(start, stop, step)
    return result if dtype == "int32" else elementwise.cast(result, as_dtype(dtype))


def zeros_like(x: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Zeros in the shape of `x`."""
    return filling.zeros_like(x, dtype, name)


def ones_like(x: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Ones in the shape of `x`."""
    return filling.ones_like(x, dtype, name)


# -- random numbers


def random_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Tensor:
    """Samples of a normal distribution."""
    return draws.random_normal(shape, mean, stddev, as_dtype(dtype or floatx()), seed)


def random_uniform(
    shape: Any,
    minval: float = 0.0,
    maxval: float = 1.0,
    dtype: Any = None,
    seed: int | None = None,
) -> Tensor:
    """Samples from [minval, maxval)."""
    return draws.random_uniform(shape, minval, maxval, as_dtype(dtype or floatx()), seed)


def truncated_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Tensor:
    """Samples of a normal distribution truncated at two standard deviations."""
    return draws.truncated_normal(shape, mean, stddev, as_dtype(dtype or floatx()), seed)


def random_bernoulli(
    shape: Any, p: float = 0.0, dtype: Any = None, seed: int | None = None
) -> Tensor:
    """1 with probability `p`, otherwise 0."""
    wanted = as_dtype(dtype or floatx())
    drawn = draws.random_uniform(shape, 0.0, 1.0, wanted, seed)
    return elementwise.cast(elementwise.less_equal(drawn, elementwise.cast(p, wanted)), wanted)


random_binomial = random_bernoulli

# -- neural networks


def relu(
    x: Any, alpha: float = 0.0, max_value: float | None = None, threshold: float = 0.0
) -> Tensor:
    """`activations.relu`."""
    return activations.relu(x, alpha, max_value, threshold)


def in_top_k(predictions: Any, targets: Any, k: int) -> Tensor:
    """Whether each target is among the k largest predictions."""
    return _in_top_k(predictions, targets, k)


def bias_add(x: Any, bias: Any, data_format: str | None = None) -> Tensor:
    """Adds a bias per channel, or per position and channel.

    Raises:
        ValueError: the rank of the bias is neither 1 nor that of `x` minus 1.
    """
    from estimatorkit.compat.layers.convolutional.locally_connected import spread_bias
    from estimatorkit.layers.engine.configured import as_data_format

    tensor, added = _plain(x), _plain(bias)
    first = as_data_format(data_format) == "channels_first"
    rank, given = tensor.shape.rank, added.shape.rank
    if given not in (1, rank - 1):
        raise ValueError(
            f"Unexpected bias dimensions {given}. Expected it to be 1 or {rank - 1} dimensions"
        )
    if given == 1:
        return nn.bias_add(tensor, added, "NCHW" if first and rank > 2 else None)
    biased: Tensor = tensor + spread_bias(added, first)
    return biased


def batch_normalization(
    x: Any, mean: Any, var: Any, beta: Any, gamma: Any, axis: int = -1, epsilon: float = 1e-3
) -> Tensor:
    """(x - mean) / sqrt(var + epsilon) * gamma + beta, along an axis."""
    tensor = _plain(x)
    rank = tensor.shape.rank or 1
    spread = [-1 if each == axis % rank else 1 for each in range(rank)]

    def along(value: Any) -> Any:
        if value is None or axis % rank == rank - 1:
            return value
        return array.reshape(value, spread)

    return nn.batch_normalization(
        tensor, along(mean), along(var), along(beta), along(gamma), epsilon
    )


def normalize_batch_in_training(
    x: Any, gamma: Any, beta: Any, reduction_axes: Sequence[int], epsilon: float = 1e-3
) -> tuple[Tensor, Tensor, Tensor]:
    """`x` normalized over axes, and its mean and variance.

    For images with channels last, the returned variance is the unbiased one (divided by n - 1),
    like that of TensorFlow's fused operation; otherwise it is divided by n.
    """
    tensor = _plain(x)
    axes = list(reduction_axes)
    if tensor.shape.rank == 4 and axes == [0, 1, 2]:
        channels = array.shape(tensor)[3:]
        scale = filling.ones(channels, tensor.dtype) if gamma is None else gamma
        shift = filling.zeros(channels, tensor.dtype) if beta is None else beta
        return fused_batch_norm(tensor, scale, shift, epsilon=epsilon)
    center, spread = nn.moments(tensor, axes, keep_dims=True)
    wide = [
        1 if axis in axes else -1 if size is None else size
        for axis, size in enumerate(tensor.shape.as_list())
    ]
    offset, factor = (None if each is None else array.reshape(each, wide) for each in (beta, gamma))
    result = nn.batch_normalization(tensor, center, spread, offset, factor, epsilon)
    return result, array.squeeze(center, axes), array.squeeze(spread, axes)


# -- losses, element by element or over the classes


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Tensor:
    """-target * log(output) - (1 - target) * log(1 - output), elementwise."""
    guesses, known = crossentropy.logits_behind(
        _plain(output), from_logits, "Sigmoid", "binary_crossentropy"
    )
    return crossentropy.binary_crossentropy(
        array.expand_dims(_plain(target), -1), array.expand_dims(guesses, -1), known
    )


def categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """-sum(target * log(output)) over the classes."""
    return crossentropy.categorical_crossentropy(target, output, from_logits, axis=axis)


def sparse_categorical_crossentropy(
    target: Any,
    output: Any,
    from_logits: bool = False,
    axis: int = -1,
    ignore_class: int | None = None,
) -> Tensor:
    """`categorical_crossentropy` of class numbers."""
    return crossentropy.sparse_categorical_crossentropy(
        target, output, from_logits, axis, ignore_class
    )


def categorical_focal_crossentropy(
    target: Any,
    output: Any,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    axis: int = -1,
) -> Tensor:
    """The focal cross-entropy over the classes."""
    return crossentropy.categorical_focal_crossentropy(
        target, output, alpha, gamma, from_logits, axis=axis
    )


def binary_focal_crossentropy(
    target: Any,
    output: Any,
    apply_class_balancing: bool = False,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
) -> Tensor:
    """The binary focal cross-entropy, elementwise."""
    truth, guesses = (array.expand_dims(_plain(each), -1) for each in (target, output))
    return crossentropy.binary_focal_crossentropy(
        truth, guesses, apply_class_balancing, alpha, gamma, from_logits
    )
