"""Layers that prepare features: `Rescaling`, `Normalization`, `Discretization`, `CategoryEncoding`,
`Hashing`, `HashedCrossing`.

What they learn from data is in their arguments (`Discretization.adapt` sets them before the
first call), or (`Normalization`) in their variables.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.errors import explain, value_error
from estimatorkit.core.registry import output
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.configured import ConfiguredLayer, known_dimension
from estimatorkit.ops.array import array, filling, indexing
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.math.checked import checked
from estimatorkit.ops.sparse.counts import sparse_cross_hashed
from estimatorkit.ops.text import string_numbers

_EPSILON = 1e-7


class Rescaling(ConfiguredLayer):
    """inputs * scale + offset (`tf.keras.layers.Rescaling`).

    Args:
        scale, offset: numbers, or arrays that broadcast with the inputs.
        kwargs: as for `Layer`.
    """

    def __init__(self, scale: Any, offset: Any = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scale = scale
        self.offset = offset

    def call(self, inputs: Tensor) -> Any:
        """The outputs."""
        x = elementwise.cast(inputs, self.compute_dtype)
        scale, offset = (
            np.asarray(each, x.dtype.numpy_dtype) for each in (self.scale, self.offset)
        )
        return x * scale + offset


class Normalization(ConfiguredLayer):
    """Shifts and scales features to mean 0 and variance 1 (`tf.keras.layers.Normalization`).

    If no mean is given, `adapt` computes it. The variables are then `mean` and `variance`, whose
    shapes are the lengths of the axes, and `count`.

    Args:
        axis: the axes with a separate mean for each index; None for a single mean.
        mean, variance: numbers or arrays; both or neither.
        invert: whether to undo the normalization instead.
        kwargs: as for `Layer`.

    Raises:
        ValueError: only one of `mean` and `variance` is given, or the length of an axis is unknown.
    """

    def __init__(
        self,
        axis: Any = -1,
        mean: Any = None,
        variance: Any = None,
        invert: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if (mean is None) != (variance is None):
            raise ValueError(
                "When setting values directly, both `mean` and `variance` must be set. Got mean: "
                f"{mean} and variance: {variance}"
            )
        several = isinstance(axis, (list, tuple))
        self.axis = () if axis is None else tuple(axis) if several else (axis,)
        self._given = None if mean is None else (np.asarray(mean), np.asarray(variance))
        self.invert = invert

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        mean, variance = (None, None) if self._given is None else self._given
        config = super().get_config()
        for name, value in (("mean", mean), ("variance", variance)):
            config[name] = None if value is None else value.tolist()
        return config

    def build(self, input_shape: Any) -> None:
        """Makes the variables, where nothing is given."""
        rank = input_shape.rank
        self._axes = sorted(each % rank for each in self.axis)
        lengths = [known_dimension(input_shape, each, self) for each in self._axes]
        self._shape = [1] * rank
        for axis, length in zip(self._axes, lengths, strict=True):
            self._shape[axis] = length
        if self._given is None:
            self.mean: Any = self.add_weight("mean", lengths, initializer="zeros", trainable=False)
            self.variance: Any = self.add_weight(
                "variance", lengths, initializer="ones", trainable=False
            )
            self.count = self.add_weight("count", (), "int64", initializer="zeros", trainable=False)
        else:
            wide = (np.broadcast_to(each, lengths) for each in self._given)
            self.mean, self.variance = (
                each.astype(as_dtype(self.compute_dtype).numpy_dtype) for each in wide
            )
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Any:
        """The outputs."""
        x = elementwise.cast(inputs, self.compute_dtype)
        mean, variance = (
            array.reshape(elementwise.cast(each, x.dtype), self._shape)
            for each in (self.mean, self.variance)
        )
        spread = elementwise.maximum(elementwise.sqrt(variance), _EPSILON)
        return mean + x * spread if self.invert else (x - mean) / spread

    def adapt(self, data: Any, batch_size: int | None = None, steps: int | None = None) -> None:
        """Sets the mean and the variance to those of data.

        Args:
            data: an array, or an iterable of batches.
            batch_size: accepted for compatibility only.
            steps: how many batches to read; all by default.

        Raises:
            ValueError: the layer was given a mean.
        """
        if self._given is not None:
            raise ValueError(
                f"Cannot `adapt` a Normalization layer ({self.name}) that was given a mean"
            )
        count, mean, spread = 0.0, np.float64(0.0), np.float64(0.0)
        for number, each in enumerate(batches(data)):
            if steps is not None and number >= steps:
                break
            batch = np.asarray(each, np.float64)
            if not self.built:
                self.build((None, *batch.shape[1:]))
            axes = tuple(at for at in range(batch.ndim) if at not in self._axes)
            own = float(np.prod([batch.shape[at] for at in axes]))
            # Combines the moments of parts as Chan, Golub and LeVeque do.
            step = batch.mean(axes) - mean
            spread = spread + batch.var(axes) * own + step**2 * count * own / (count + own)
            count += own
            mean = mean + step * own / count
        self.set_weights([mean, spread / count, np.int64(count)])


def batches(data: Any) -> Iterable[Any]:
    """The batches of an array, a list, a dataset or an iterable of them."""
    found: Iterable[Any] = data
    if hasattr(data, "as_numpy_iterator"):
        found = data.as_numpy_iterator()
    elif hasattr(data, "shape") or isinstance(data, (list, tuple)):
        found = [data]
    return found


class Encoding(ConfiguredLayer):
    """Base class of layers that return integers, plain or encoded.

    Args:
        output_mode: 'int', 'one_hot' (a vector per integer), 'multi_hot' (a vector per example, 1
            for the integers in it) or 'count' (their numbers of occurrences).
        sparse: must be False.
    """

    modes: tuple[str, ...] = ("int", "one_hot", "multi_hot", "count")

    def __init__(self, output_mode: str = "int", sparse: bool = False, **kwargs: Any) -> None:
        mode = "multi_hot" if output_mode == "binary" else output_mode
        if mode not in self.modes:
            raise value_error(
                f"Unknown value for `output_mode` argument of layer {type(self).__name__}",
                expected=", ".join(repr(each) for each in self.modes),
                received=repr(output_mode),
            )
        if sparse:
            raise ValueError(f"{type(self).__name__}: sparse=True is not there; outputs are dense")
        kwargs.setdefault("dtype", "int64" if mode == "int" else "float32")
        super().__init__(**kwargs)
        self._auto_cast = False
        self.output_mode = mode
        self.sparse = sparse

    def encoded(self, ids: Tensor, depth: int, weights: Any = None) -> Any:
        """The integers in the mode of the layer."""
        if self.output_mode == "int":
            return elementwise.cast(ids, self.compute_dtype)
        if len(ids.shape) == 0:
            ids = array.expand_dims(ids, -1)
        if self.output_mode == "one_hot" and ids.shape[-1] != 1:
            ids = array.expand_dims(ids, -1)
        if len(ids.shape) > 2:
            raise value_error(
                "When output_mode is not `'int'`, maximum supported output rank is 2",
                received=f"output_mode {self.output_mode}, inputs of shape {ids.shape}",
                made_at=ids.op.source,
            )
        spread = indexing.one_hot(ids, depth, dtype=as_dtype(self.compute_dtype))
        if self.output_mode not in ("count", "tf_idf"):
            return reduce.reduce_max(spread, -2)
        if weights is not None:
            weights = elementwise.cast(weights, spread.dtype)
            spread = spread * array.expand_dims(weights, -1)
        return reduce.reduce_sum(spread, -2)


class CategoryEncoding(Encoding):
    """Encodes integers as vectors (`tf.keras.layers.CategoryEncoding`).

    Inputs: integers in [0, num_tokens), `(batch,)` or `(batch, n)`. Outputs:
    `(batch, num_tokens)`.

    Args:
        num_tokens: the length of the vectors.
        output_mode: 'multi_hot', 'one_hot' or 'count' (the number of occurrences of each integer).
        sparse: must be False.
        kwargs: as for `Layer`.

    Raises:
        ValueError: an argument is invalid.
    """

    modes = ("one_hot", "multi_hot", "count")

    def __init__(
        self,
        num_tokens: int | None = None,
        output_mode: str = "multi_hot",
        sparse: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(output_mode, sparse, **kwargs)
        if num_tokens is None or num_tokens < 1:
            raise ValueError(f"num_tokens must be set to use this layer. Received: {num_tokens}")
        self.num_tokens = num_tokens

    def call(self, inputs: Tensor, count_weights: Any = None) -> Any:
        """The outputs.

        Args:
            inputs: integers.
            count_weights: of the shape of the inputs: how much each counts; for 'count' only.
        """
        if count_weights is not None and self.output_mode != "count":
            raise ValueError(
                "`count_weights` is not used when `output_mode` is not `'count'`. Received "
                f"`count_weights={count_weights}`."
            )
        ids = checked(elementwise.cast(inputs, "int64"), "tokens", self.num_tokens)
        return self.encoded(ids, self.num_tokens, count_weights)


class Discretization(Encoding):
    """Maps numbers to the indices of the ranges that contain them
    (`tf.keras.layers.Discretization`).

    Args:
        bin_boundaries: the boundaries between ranges, in ascending order; None to call `adapt`. A
            boundary belongs to the range above it.
        num_bins: the number of ranges for `adapt`, which takes quantiles as boundaries.
        epsilon: accepted for compatibility only: `adapt` computes exact quantiles.
        output_mode: 'int', 'one_hot', 'multi_hot' or 'count'.
        sparse: must be False.
        kwargs: as for `Layer`.

    Raises:
        ValueError: not exactly one of `bin_boundaries` and `num_bins` is given.
    """

    def __init__(
        self,
        bin_boundaries: Any = None,
        num_bins: int | None = None,
        epsilon: float = 0.01,
        output_mode: str = "int",
        sparse: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(output_mode, sparse, **kwargs)
        if (bin_boundaries is None) == (num_bins is None):
            raise value_error(
                "Discretization takes either bin_boundaries or num_bins",
                received=f"bin_boundaries={bin_boundaries}, num_bins={num_bins}",
                hint="num_bins=4 and adapt(data), or bin_boundaries=[0.5, 1.5]",
            )
        self.bin_boundaries: list[float] | None = None
        if bin_boundaries is not None:
            self.bin_boundaries = [float(each) for each in bin_boundaries]
        self.num_bins = num_bins
        self.epsilon = epsilon

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments; once adapted, the boundaries."""
        known = self.bin_boundaries is not None
        return super().get_config() | ({"num_bins": None} if known else {})

    def adapt(self, data: Any, batch_size: int | None = None, steps: int | None = None) -> None:
        """Sets the boundaries to quantiles of data.

        Args:
            data: an array, a list, a dataset, or an iterable of batches.
            batch_size: accepted for compatibility only.
            steps: how many batches to read; all by default.

        Raises:
            ValueError: the layer was given boundaries, or has been called.
        """
        if self.num_bins is None or self.built:
            raise value_error(
                f"{self.name} was given boundaries, or has been called",
                expected="Discretization(num_bins=...), and adapt before the first call",
            )
        parts = [np.ravel(each) for each in itertools.islice(batches(data), steps)]
        shares = np.linspace(0, 1, self.num_bins + 1)[1:-1]
        self.bin_boundaries = np.unique(np.quantile(np.concatenate(parts), shares)).tolist()

    def call(self, inputs: Tensor) -> Any:
        """The outputs."""
        if self.bin_boundaries is None:
            raise RuntimeError(explain(f"{self.name} has no boundaries", hint="call adapt(data)"))
        x = inputs if inputs.dtype.is_floating else elementwise.cast(inputs, "float32")
        limits = {"boundaries": tuple(self.bin_boundaries)}
        ids = output("Bucketize", [x], limits, "bucketize")
        return self.encoded(ids, len(self.bin_boundaries) + 1)


class Hashing(Encoding):
    """Hashes words or integers to bins (`tf.keras.layers.Hashing`).

    Integers are hashed as decimal text.

    Args:
        num_bins: the number of bins.
        mask_value: a value that goes to bin 0, which is then reserved for it.
        salt: an int or two, the key of a strong hash (SipHash); FarmHash by default.
        output_mode: 'int', 'one_hot', 'multi_hot' or 'count'.
        sparse: must be False.
        kwargs: as for `Layer`.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        num_bins: int,
        mask_value: Any = None,
        salt: Any = None,
        output_mode: str = "int",
        sparse: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(output_mode, sparse, **kwargs)
        if num_bins is None or num_bins <= 0:
            raise ValueError(
                "The `num_bins` for `Hashing` cannot be `None` or non-positive values. Received: "
                f"num_bins={num_bins}."
            )
        self.num_bins = num_bins
        self.mask_value = mask_value
        self.salt = [salt, salt] if isinstance(salt, int) else salt

    def call(self, inputs: Tensor) -> Any:
        """The outputs."""
        masked = self.mask_value is not None and self.num_bins > 1
        bins = self.num_bins - masked
        words = string_numbers.as_string(inputs) if inputs.dtype.is_integer else inputs
        ids = (
            string_numbers.string_to_hash_bucket_fast(words, bins)
            if self.salt is None
            else string_numbers.string_to_hash_bucket_strong(words, bins, list(self.salt))
        )
        if masked:
            zero = elementwise.equal(inputs, self.mask_value)
            ids = indexing.where(zero, filling.zeros_like(ids), ids + 1)
        return self.encoded(ids, self.num_bins)


class HashedCrossing(Encoding):
    """Hashes combinations of features to bins (`tf.keras.layers.HashedCrossing`).

    Inputs: a list of strings or integers, each `(batch,)` or `(batch, 1)`. Outputs: the same shape,
    or `(batch, num_bins)` if one-hot.

    Args:
        num_bins: the number of bins.
        output_mode: 'int' or 'one_hot'.
        sparse: must be False.
        kwargs: as for `Layer`.

    Raises:
        ValueError: an argument is invalid.
    """

    modes = ("int", "one_hot")

    def __init__(
        self, num_bins: int, output_mode: str = "int", sparse: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(output_mode, sparse, **kwargs)
        if num_bins is None or num_bins <= 0:
            raise value_error(
                "HashedCrossing: num_bins must be positive", received=f"num_bins={num_bins}"
            )
        self.num_bins = num_bins

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        columns = [array.expand_dims(each, -1) if each.shape.rank == 1 else each for each in inputs]
        crossed = sparse_cross_hashed(columns, self.num_bins)
        ids = array.reshape(crossed.values, array.shape(inputs[0]))
        ids.set_shape(inputs[0].shape)
        return self.encoded(ids, self.num_bins)


__all__ = [
    "CategoryEncoding",
    "Discretization",
    "HashedCrossing",
    "Hashing",
    "Normalization",
    "Rescaling",
]
