"""A convolution's shapes, its lowerings (`Rule`), and XLA's own (`plain`).

Arrays have their channels last, `(batch, *space, channels)`; filters are `(*space, channels of a
group, outputs)`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.ops.nn.sliding_windows import output_length, window_pads, window_reach

Shape = tuple[int, ...]

_LAYOUTS = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}


class Window(NamedTuple):
    """A filter's movement over 1 to 3 spatial dimensions; `pads` are before and after each."""

    strides: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    dilations: tuple[int, ...]
    groups: int = 1

    def along(self, dimensions: Sequence[int]) -> Window:
        """The window along some of its dimensions."""
        return Window(
            tuple(self.strides[at] for at in dimensions),
            tuple(self.pads[at] for at in dimensions),
            tuple(self.dilations[at] for at in dimensions),
        )


def as_window(
    x: Shape,
    filters: Shape,
    strides: Sequence[int],
    padding: Any,
    dilations: Sequence[int],
    groups: int = 1,
) -> Window:
    """The window with numeric padding, for the shapes of a `Problem`."""
    pads = window_pads(x[1:-1], filters[:-2], strides, padding, dilations)
    return Window(tuple(strides), tuple(pads), tuple(dilations), groups)


class Problem(NamedTuple):
    """A convolution's shapes.

    Attributes:
        x: `(batch, *space, channels)`.
        filters: `(*space, channels of a group, outputs)`.
        window: of the filter.
    """

    x: Shape
    filters: Shape
    window: Window

    @property
    def rank(self) -> int:
        """The number of spatial dimensions."""
        return len(self.window.strides)

    @property
    def outputs(self) -> Shape:
        """The spatial shape of the output."""
        geometry = zip(self.x[1:-1], self.filters[:-2], *self.window[:3], strict=True)
        return tuple(
            output_length(length, size, stride, pads, dilation) or 0
            for length, size, stride, pads, dilation in geometry
        )

    @property
    def operations(self) -> int:
        """Floating-point operations of the product; a multiply-add counts as two."""
        return 2 * self.x[0] * math.prod(self.outputs) * math.prod(self.filters)

    @property
    def is_regular(self) -> bool:
        """Whether no padding is negative and no dimension is empty."""
        pads = itertools.chain(*self.window.pads)
        return min(pads, default=0) >= 0 and min(*self.x, *self.filters, *self.outputs) > 0


class Rule(NamedTuple):
    """A lowering; a part that is None falls through to the next rule.

    Attributes:
        applies: predicate of a problem.
        forward: maps `(x, filters, window)` to the output.
        input_gradient: maps `(dy, filters, problem)` to the gradient of `x`.
        filter_gradient: maps `(x, dy, problem)` to the gradient of the filter.
    """

    applies: Callable[[Problem], bool]
    forward: Callable[[Any, Any, Window], Any] | None = None
    input_gradient: Callable[[Any, Any, Problem], Any] | None = None
    filter_gradient: Callable[[Any, Any, Problem], Any] | None = None


def input_gradient_of(forward: Callable[..., Any]) -> Callable[[Any, Any, Problem], Any]:
    """The gradient of a function linear in `x`."""

    def gradient(dy: Any, filters: Any, problem: Problem) -> Any:
        x = jnp.zeros(problem.x, dy.dtype)
        return jax.vjp(lambda x: forward(x, filters, problem.window), x)[1](dy)[0]

    return gradient


def filter_gradient_of(forward: Callable[..., Any]) -> Callable[[Any, Any, Problem], Any]:
    """The gradient of a function linear in the filter."""

    def gradient(x: Any, dy: Any, problem: Problem) -> Any:
        filters = jnp.zeros(problem.filters, dy.dtype)
        return jax.vjp(lambda filters: forward(x, filters, problem.window), filters)[1](dy)[0]

    return gradient


def rewritten(applies: Callable[[Problem], bool], forward: Callable[..., Any]) -> Rule:
    """A rule whose gradients are derived from the forward part."""
    return Rule(applies, forward, input_gradient_of(forward), filter_gradient_of(forward))


def filter_gradient_window(problem: Problem) -> Window:
    """The window of the convolution of `x` with `dy` that is the gradient of the filter.

    Batch and channels are exchanged in it.
    """
    window = problem.window
    geometry = zip(problem.x[1:-1], problem.filters, problem.outputs, *window[:3], strict=False)
    pads = tuple(
        (before, (places - 1) * stride + window_reach(size, step) - length - before)
        for length, size, places, stride, (before, _), step in geometry
    )
    return Window(window.dilations, pads, window.strides)


def input_gradient_window(problem: Problem) -> Window:
    """The window in which `dy` is convolved to give the gradient of the input, without strides.

    The filter is flipped, and its input and output channels are exchanged.
    """
    window = problem.window
    geometry = zip(problem.filters, window.dilations, window.pads, strict=False)
    pads = tuple(
        (window_reach(size, step) - 1 - before, window_reach(size, step) - 1 - after)
        for size, step, (before, after) in geometry
    )
    return window._replace(pads=pads)


# -- XLA's


def plain(x: Any, filters: Any, window: Window) -> Any:
    """The convolution as XLA computes it."""
    return lax.conv_general_dilated(
        x,
        filters,
        window.strides,
        window.pads,
        rhs_dilation=window.dilations,
        dimension_numbers=_LAYOUTS[len(window.strides)],
        feature_group_count=window.groups,
    )


# -- parts of several rules


def padded(x: Any, window: Window) -> Any:
    """`x` with the window's padding, which is not negative."""
    return jnp.pad(x, [(0, 0), *window.pads, (0, 0)]) if any(map(any, window.pads)) else x


def taps_of(x: Any, problem: Problem) -> Iterator[tuple[Shape, Any]]:
    """For each filter offset, the elements of `x` it multiplies: `(batch, *outputs, channels)`."""
    whole, window = padded(x, problem.window), problem.window
    for place in np.ndindex(*problem.filters[:-2]):
        cut = [slice(None)]
        geometry = zip(place, problem.outputs, window.strides, window.dilations, strict=True)
        for at, count, stride, dilation in geometry:
            cut.append(slice(at * dilation, at * dilation + (count - 1) * stride + 1, stride))
        yield place, whole[tuple(cut)]


def problem_of(x: Any, filters: Any, window: Window) -> Problem:
    """The problem of arrays."""
    return Problem(tuple(x.shape), tuple(filters.shape), window)
