"""Layers that give the same numbers another shape: `Flatten`, `Reshape`, `Permute`,
`RepeatVector`.
"""

from __future__ import annotations

import math
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.configured import ConfiguredLayer, as_data_format
from estimatorkit.layers.engine.input_spec import InputSpec
from estimatorkit.ops.array import array, filling, joining


def flattened(inputs: Tensor) -> Tensor:
    """Flattens all but the first dimension; `(batch,)` becomes `(batch, 1)`."""
    dims = inputs.shape.dims
    if dims is None or None in dims[1:]:
        return array.reshape(inputs, joining.stack([array.shape(inputs)[0], -1]))
    count = math.prod(dim for dim in dims[1:] if dim is not None)
    if dims[0] is None and count:
        return array.reshape(inputs, [-1, count])
    batch = array.shape(inputs)[0] if dims[0] is None else dims[0]
    return array.reshape(inputs, joining.stack([batch, count]))


class Flatten(ConfiguredLayer):
    """Reshapes inputs to `(batch, n)` (`tf.keras.layers.Flatten`).

    Args:
        data_format: with 'channels_first', channels are first moved to the end, so that the order
            of the values is that of 'channels_last'.
        kwargs: as for `Layer`.
    """

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = as_data_format(data_format)
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        rank = inputs.shape.rank
        if self.data_format == "channels_first" and rank is not None and rank > 2:
            inputs = array.transpose(inputs, [0, *range(2, rank), 1])
        return flattened(inputs)


class Reshape(ConfiguredLayer):
    """Reshapes each example (`tf.keras.layers.Reshape`).

    Args:
        target_shape: the new shape without the batch; one length may be -1, to be inferred.
        kwargs: as for `Layer`.

    Raises:
        ValueError: the number of elements does not match the inputs.
    """

    def __init__(self, target_shape: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target_shape = tuple(int(each) for each in target_shape)
        if self.target_shape.count(-1) > 1:
            raise value_error(
                "There must be at most one unknown dimension (-1) in target_shape",
                received=str(self.target_shape),
            )

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        given = inputs.shape.dims
        target: list[int] = list(self.target_shape)
        if given is not None and None not in given[1:]:
            total = math.prod(int(each or 0) for each in given[1:])
            known = math.prod(each for each in target if each != -1)
            if -1 in target and known and total % known == 0:
                target[target.index(-1)] = total // known
            elif -1 in target or known != total:
                raise value_error(
                    f"Layer {self.name}: total size of new array must be unchanged",
                    expected=f"{total} elements in target_shape",
                    received=f"input_shape = {tuple(given[1:])}, "
                    f"target_shape = {self.target_shape}",
                    made_at=inputs.op.source,
                )
        if -1 not in target and 0 not in target:
            batch = None if given is None else given[0]
            return array.reshape(inputs, [-1 if batch is None else batch, *target])
        return array.reshape(inputs, joining.stack([array.shape(inputs)[0], *target]))


class Permute(ConfiguredLayer):
    """Permutes the dimensions other than the batch (`tf.keras.layers.Permute`).

    Args:
        dims: the new order of the dimensions, counted from 1.
        kwargs: as for `Layer`.

    Raises:
        ValueError: `dims` is not a permutation of 1, 2, ...
    """

    def __init__(self, dims: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dims = tuple(int(each) for each in dims)
        if sorted(self.dims) != list(range(1, len(self.dims) + 1)):
            raise ValueError(
                "Invalid permutation argument `dims` for Permute Layer. The set of indices in "
                f"`dims` must be consecutive and start from 1. Received dims={dims}"
            )
        self.input_spec = InputSpec(ndim=len(self.dims) + 1)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        return array.transpose(inputs, [0, *self.dims])


class RepeatVector(ConfiguredLayer):
    """Repeats each vector n times: `(batch, features)` becomes `(batch, n, features)`
    (`tf.keras.layers.RepeatVector`).

    Args:
        n: the number of repetitions.
        kwargs: as for `Layer`.

    Raises:
        TypeError: `n` is not an int.
    """

    def __init__(self, n: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(n, int):
            raise TypeError(f"Expected an integer value for `n`, got {type(n)}.")
        self.n = n
        self.input_spec = InputSpec(ndim=2)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        return filling.tile(array.expand_dims(inputs, 1), [1, self.n, 1])


__all__ = ["Flatten", "Permute", "RepeatVector", "Reshape", "flattened"]
