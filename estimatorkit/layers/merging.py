"""Layers of several inputs: `Add`, `Subtract`, `Multiply`, `Average`, `Maximum`, `Minimum`,
`Concatenate`, `Dot`; and functions that make and call them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.configured import ConfiguredLayer
from estimatorkit.ops.array import array, filling, joining
from estimatorkit.ops.linalg.products import einsum
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.nn import nn


class Merge(ConfiguredLayer):
    """Base class of layers with several inputs: a list of tensors that broadcast, and their masks.

    Inputs of lower rank get dimensions of length 1 after the batch.
    """

    combine: Callable[[Any, Any], Any]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Checks that there are several inputs, with compatible batches and lengths.

        Raises:
            ValueError: they are not a list, or are incompatible.
        """
        shapes = self._shapes(input_shape)
        batches = {shape[0] for shape in shapes if shape.rank} - {None}
        if len(batches) > 1:
            raise self._mismatch("Cannot merge tensors with different batch sizes", shapes)
        longest = max(shape.rank or 0 for shape in shapes)
        for axis in range(1, longest):
            lengths = {
                shape[-axis] for shape in shapes if shape.rank is not None and shape.rank > axis
            } - {1, None}
            if len(lengths) > 1:
                raise self._mismatch("Inputs have incompatible shapes", shapes)
        super().build(input_shape)

    def _shapes(self, input_shape: Any, least: int = 1) -> Sequence[Any]:
        several = isinstance(input_shape, (list, tuple)) and not hasattr(input_shape, "rank")
        if not several or len(input_shape) < least:
            raise value_error(
                "A merge layer should be called on a list of inputs",
                expected=f"at least {least} tensors",
                received=f"input_shape={input_shape} ({type(self).__name__})",
            )
        return [TensorShape(shape) for shape in input_shape]

    def _mismatch(self, problem: str, shapes: Sequence[Any]) -> ValueError:
        received = ", ".join(str(shape) for shape in shapes)
        return value_error(f"{type(self).__name__}: {problem}", received=received)

    def call(self, inputs: Sequence[Tensor]) -> Any:
        """The outputs."""
        return functools.reduce(type(self).combine, _of_one_rank(inputs))

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Returns the conjunction of the inputs' masks."""
        masks = [elementwise.cast(each, "bool") for each in mask or () if each is not None]
        return functools.reduce(elementwise.logical_and, masks) if masks else None


def _of_one_rank(inputs: Sequence[Tensor]) -> list[Tensor]:
    ranks = [tensor.shape.rank or 0 for tensor in inputs]
    return [
        functools.reduce(lambda x, _: array.expand_dims(x, 1), range(max(ranks) - rank), tensor)
        for tensor, rank in zip(inputs, ranks, strict=True)
    ]


class Add(Merge):
    """Adds its inputs elementwise (`tf.keras.layers.Add`)."""

    combine = elementwise.add


class Multiply(Merge):
    """Multiplies its inputs elementwise (`tf.keras.layers.Multiply`)."""

    combine = elementwise.multiply


class Maximum(Merge):
    """The elementwise maximum of its inputs (`tf.keras.layers.Maximum`)."""

    combine = elementwise.maximum


class Minimum(Merge):
    """The elementwise minimum of its inputs (`tf.keras.layers.Minimum`)."""

    combine = elementwise.minimum


class Average(Merge):
    """The elementwise mean of its inputs (`tf.keras.layers.Average`)."""

    combine = elementwise.add

    def call(self, inputs: Sequence[Tensor]) -> Any:
        """The outputs."""
        return super().call(inputs) / len(inputs)


class Subtract(Merge):
    """Subtracts the second input from the first (`tf.keras.layers.Subtract`)."""

    combine = elementwise.subtract

    def build(self, input_shape: Any) -> None:
        """Checks that there are two inputs.

        Raises:
            ValueError: there are more or fewer.
        """
        super().build(input_shape)
        if len(self._shapes(input_shape)) != 2:
            raise ValueError(
                "A `Subtract` layer should be called on exactly 2 inputs. Received: "
                f"input_shape={input_shape}"
            )


class Concatenate(Merge):
    """Concatenates its inputs along an axis (`tf.keras.layers.Concatenate`).

    Args:
        axis: the axis.
        kwargs: as for `Layer`.
    """

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def build(self, input_shape: Any) -> None:
        """Checks that all other dimensions are the same.

        Raises:
            ValueError: they are not.
        """
        shapes = self._shapes(input_shape)
        if all(shape.rank is not None for shape in shapes):
            rank = shapes[0].rank
            rest = [
                [None if at == self.axis % rank else each for at, each in enumerate(shape.dims)]
                for shape in shapes
                if shape.rank == rank
            ]
            differ = (len({*column} - {None}) > 1 for column in zip(*rest, strict=True))
            if len(rest) < len(shapes) or any(differ):
                raise self._mismatch(
                    "A `Concatenate` layer requires inputs with matching shapes except for the "
                    "concatenation axis",
                    shapes,
                )
        super(Merge, self).build(input_shape)

    def call(self, inputs: Sequence[Tensor]) -> Tensor:
        """The outputs."""
        return joining.concat(list(inputs), self.axis)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Concatenates the masks; inputs without one count as unmasked."""
        if mask is None or all(each is None for each in mask):
            return None
        parts = [
            filling.ones_like(tensor, "bool")
            if each is None
            else elementwise.cast(
                array.expand_dims(each, -1)
                if (each.shape.rank or 0) < (tensor.shape.rank or 0)
                else each,
                "bool",
            )
            for tensor, each in zip(inputs, mask, strict=True)
        ]
        return reduce.reduce_all(joining.concat(parts, self.axis), -1)


class Dot(Merge):
    """The dot products of two inputs, example by example (`tf.keras.layers.Dot`).

    Inputs: `(batch, ...)` each. Outputs: `(batch, *other dimensions of the first, *other dimensions
    of the second)`, or `(batch, 1)` if there are no others.

    Args:
        axes: the axis to sum over: an int for both inputs, or one for each.
        normalize: whether to divide the inputs by their norms along these axes first, which gives
            the cosine similarity.
        kwargs: as for `Layer`.

    Raises:
        TypeError: `axes` is neither an int nor two ints.
        ValueError: the axes have different lengths.
    """

    def __init__(self, axes: Any, normalize: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        pair = isinstance(axes, (list, tuple))
        if not isinstance(axes, int) and not (
            pair and len(axes) == 2 and all(isinstance(each, int) for each in axes)
        ):
            raise TypeError(
                f"Invalid type for argument `axes`: it should be an int or 2 ints. Received: {axes}"
            )
        self.axes = axes
        self.normalize = normalize

    def _pair(self, ranks: Sequence[int]) -> list[int]:
        given = [self.axes] * 2 if isinstance(self.axes, int) else list(self.axes)
        return [axis % rank for axis, rank in zip(given, ranks, strict=True)]

    def build(self, input_shape: Any) -> None:
        """Checks that the two axes have the same length."""
        shapes = self._shapes(input_shape, 2)
        if len(shapes) != 2:
            raise self._mismatch("A `Dot` layer should be called on exactly 2 inputs", shapes)
        axes = self._pair([shape.rank for shape in shapes])
        lengths = [shape[axis] for shape, axis in zip(shapes, axes, strict=True)]
        if None not in lengths and lengths[0] != lengths[1]:
            raise self._mismatch(
                f"Incompatible input shapes: axis values {lengths[0]} (at axis {axes[0]}) != "
                f"{lengths[1]} (at axis {axes[1]})",
                shapes,
            )
        super(Merge, self).build(input_shape)

    def call(self, inputs: Sequence[Tensor]) -> Tensor:
        """The outputs."""
        one, other = inputs
        first, second = self._pair([len(one.shape), len(other.shape)])
        if self.normalize:
            one, other = nn.l2_normalize(one, first), nn.l2_normalize(other, second)
        letters = iter("cdefghijklmnopqrstuvwxyz")
        names = [
            "".join(
                "a" if at == 0 else "b" if at == axis else next(letters)
                for at in range(len(tensor.shape))
            )
            for tensor, axis in ((one, first), (other, second))
        ]
        rest = [name[1:].replace("b", "") for name in names]
        result = einsum(f"{names[0]},{names[1]}->a{rest[0]}{rest[1]}", one, other)
        return result if any(rest) else array.expand_dims(result, 1)

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """None."""
        return


def _function(kind: type[Merge], doc: str) -> Callable[..., Any]:
    def merged(inputs: Sequence[Any], **kwargs: Any) -> Any:
        return kind(**kwargs)(inputs)

    merged.__name__ = merged.__qualname__ = kind.__name__.lower()
    merged.__doc__ = (
        f"{doc} (`tf.keras.layers.{kind.__name__.lower()}`).\n\n"
        "Args:\n    inputs: a list of tensors.\n"
        f"    kwargs: the arguments of `{kind.__name__}`."
    )
    return merged


add = _function(Add, "Adds tensors elementwise")
subtract = _function(Subtract, "Subtracts the second of two tensors from the first")
multiply = _function(Multiply, "Multiplies tensors elementwise")
average = _function(Average, "The elementwise mean of tensors")
maximum = _function(Maximum, "The elementwise maximum of tensors")
minimum = _function(Minimum, "The elementwise minimum of tensors")


def concatenate(inputs: Sequence[Any], axis: int = -1, **kwargs: Any) -> Any:
    """Concatenates tensors along an axis (`tf.keras.layers.concatenate`).

    Args:
        inputs: a list of tensors.
        axis, kwargs: the arguments of `Concatenate`.
    """
    return Concatenate(axis=axis, **kwargs)(inputs)


def dot(inputs: Sequence[Any], axes: Any, normalize: bool = False, **kwargs: Any) -> Any:
    """The dot products of two tensors, example by example (`tf.keras.layers.dot`).

    Args:
        inputs: two tensors.
        axes, normalize, kwargs: the arguments of `Dot`.
    """
    return Dot(axes=axes, normalize=normalize, **kwargs)(inputs)


__all__ = [
    "Add",
    "Average",
    "Concatenate",
    "Dot",
    "Maximum",
    "Merge",
    "Minimum",
    "Multiply",
    "Subtract",
    "add",
    "average",
    "concatenate",
    "dot",
    "maximum",
    "minimum",
    "multiply",
    "subtract",
]
