"""Cropping, padding, flipping and rotation of images.

Each op takes one image `(height, width, channels)` or a batch of them, determines height and width
when compiled, and is pure JAX. Offsets may be computed values; sizes are known when XLA compiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor
from estimatorkit.core.errors import value_error
from estimatorkit.core.faults import Fault, refused
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, constant_value, fixed_value, output, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array.joining import stack

_IMAGE = np.arange(24, dtype=np.float32).reshape(4, 3, 2)


def checked_image(image: Tensor, ranks: Sequence[int]) -> Tensor:
    """Checks that the image's rank is allowed and no dimension is 0.

    Raises:
        ValueError: the rank is not allowed, or height, width or channels are 0.
    """
    rank = image.shape.rank
    if rank is not None and rank not in ranks:
        allowed = " or ".join(map(str, ranks))
        what = f"{'either ' if len(ranks) > 1 else ''}{allowed} dimensions"
        raise value_error(
            f"'image' (shape {image.shape}) must have {what}",
            received=image,
            made_at=image.op.source,
        )
    if rank is not None and 0 in image.shape.as_list()[-3:]:
        raise ValueError(f"inner 3 dims of 'image.shape' must be > 0: {image.shape}")
    return image


def with_size(
    shape: TensorShape, height: int | None, width: int | None, channels: Any = "same"
) -> TensorShape:
    """An image's shape with height and width replaced."""
    if shape.dims is None:
        return shape
    last = shape.dims[-1] if channels == "same" else channels
    return TensorShape([*shape.dims[:-3], height, width, last])


def _size(image: Any) -> tuple[int, int]:
    return image.shape[-3], image.shape[-2]


def _both(value: Any) -> tuple[int | None, int | None]:
    """The two numbers of a constant vector, as far as statically known."""
    given = constant_value(value)
    return (None, None) if given is None else (int(given[0]), int(given[1]))


def pair(first: Any, second: Any, name: str) -> Tensor:
    """Two numbers, or scalar tensors, as a vector."""
    if not isinstance(first, Tensor) and not isinstance(second, Tensor):
        return as_index_tensor([first, second], name)
    return stack([as_index_tensor(first, name), as_index_tensor(second, name)])


# -- crop and pad


def check_box(image: Sequence[int | None], offset: Any, target: Any) -> None:
    """Raises ValueError if a box at a static position exceeds the image."""
    for length, at, wanted, what in zip(image, offset, target, ("height", "width"), strict=True):
        if at < 0:
            raise ValueError(f"offset_{what} must be >= 0.")
        if wanted <= 0:
            raise ValueError(f"target_{what} must be > 0.")
        if length is not None and at + wanted > length:
            raise ValueError(f"{what} must be >= target + offset.")


def _crop(image: Any, offset: Any, target: Any) -> Any:
    height, width = int(target[0]), int(target[1])
    if isinstance(offset, np.ndarray):
        check_box(_size(image), offset, target)
        top, left = int(offset[0]), int(offset[1])
        return image[..., top : top + height, left : left + width, :]
    image = jnp.asarray(image)
    rows = jax.lax.dynamic_slice_in_dim(image, offset[0], height, image.ndim - 3)
    return jax.lax.dynamic_slice_in_dim(rows, offset[1], width, image.ndim - 2)


def _pad(image: Any, offset: Any, target: Any, module: Any = jnp) -> Any:
    (height, width), after = _size(image), []
    for length, at, wanted, what in zip(
        (height, width), offset, target, ("height", "width"), strict=True
    ):
        if at < 0:
            raise ValueError(f"offset_{what} must be >= 0.")
        if wanted - at - length < 0:
            raise ValueError(f"{what} must be <= target - offset.")
        after.append((int(at), int(wanted) - int(at) - length))
    return module.pad(image, [(0, 0)] * (image.ndim - 3) + [*after, (0, 0)])


def _centered(image: Any, target: Any, module: Any = jnp) -> Any:
    """Crops or pads evenly on both sides, with the odd pixel at the end."""
    sizes, wanted = _size(image), (int(target[0]), int(target[1]))
    if min(wanted) <= 0:
        raise ValueError(f"target_height and target_width must be > 0, got {wanted}")
    crop = [max((size - goal) // 2, 0) for size, goal in zip(sizes, wanted, strict=True)]
    kept = [min(size, goal) for size, goal in zip(sizes, wanted, strict=True)]
    cropped = _crop(image, np.array(crop), kept)
    before = [max((goal - size) // 2, 0) for size, goal in zip(sizes, wanted, strict=True)]
    return _pad(cropped, before, wanted, module)


def _infer_target(position: int) -> Any:
    def infer(inputs: Any, attrs: Any) -> list[Spec]:
        return [Spec(inputs[0].dtype, with_size(inputs[0].shape, *_both(inputs[position])))]

    return infer


_ACCEPTED = "ficb"


def _crop_fault(inputs: Sequence[Any], attrs: Any) -> list[Fault]:
    image, offset, target = inputs
    faults = []
    for axis, what in enumerate(("height", "width")):
        end, length = offset[axis] + target[axis], image.shape[axis - 3]
        before = f"assertion failed: [offset_{what} must be >= 0.]"
        behind = f"assertion failed: [{what} must be >= target + offset.]"
        faults += [refused(1, offset[axis] < 0, before), refused(1, end > length, behind)]
    return faults


register(
    "CropToBoundingBox",
    _crop,
    fault=_crop_fault,
    infer=_infer_target(2),
    numpy_kernel=_crop,
    static=(2,),
    accepts=_ACCEPTED,
    cases=lambda: [
        Case((_IMAGE, np.array([1, 0], np.int32), np.array([2, 3], np.int32)), {}, _IMAGE[1:3])
    ],
)
register(
    "PadToBoundingBox",
    _pad,
    infer=_infer_target(2),
    numpy_kernel=partial(_pad, module=np),
    static=(1, 2),
    accepts=_ACCEPTED,
    cases=lambda: [
        Case(
            (_IMAGE, np.array([1, 0], np.int32), np.array([5, 4], np.int32)),
            {},
            np.pad(_IMAGE, [(1, 0), (0, 1), (0, 0)]),
        )
    ],
)
register(
    "ResizeImageWithCropOrPad",
    _centered,
    infer=_infer_target(1),
    numpy_kernel=partial(_centered, module=np),
    static=(1,),
    accepts=_ACCEPTED,
    cases=lambda: [
        Case((_IMAGE, np.array([3, 6], np.int32)), {}, np.pad(_IMAGE[:3], [(0, 0), (1, 2), (0, 0)]))
    ],
)


def crop_to_bounding_box(
    image: Any,
    offset_height: Any,
    offset_width: Any,
    target_height: Any,
    target_width: Any,
    name: str | None = None,
) -> Tensor:
    """Crops an image (or a batch) to the box whose upper left corner is the offset.

    Args:
        image: `(batch, height, width, channels)` or `(height, width, channels)`.
        offset_height, offset_width: ints, or scalar tensors.
        target_height, target_width: ints, or scalar tensors.

    Raises:
        ValueError: the box is statically known to exceed the image.
        InvalidArgumentError: (when run) the box exceeds the image.
    """
    return _boxed(
        "CropToBoundingBox",
        image,
        (offset_height, offset_width),
        (target_height, target_width),
        name or "crop_to_bounding_box",
    )


def pad_to_bounding_box(
    image: Any,
    offset_height: Any,
    offset_width: Any,
    target_height: Any,
    target_width: Any,
    name: str | None = None,
) -> Tensor:
    """Pads an image (or a batch), placed at an offset, with zeros; see `crop_to_bounding_box`."""
    return _boxed(
        "PadToBoundingBox",
        image,
        (offset_height, offset_width),
        (target_height, target_width),
        name or "pad_to_bounding_box",
    )


def _boxed(
    op_type: str, image: Any, offset: tuple[Any, Any], target: tuple[Any, Any], name: str
) -> Tensor:
    with get_default_graph().name_scope(name) as scope:
        checked = checked_image(convert_to_tensor(image, name="image"), (3, 4))
        inputs = [checked, pair(*offset, "offset"), pair(*target, "target")]
        _check_statically(op_type, inputs)
        return output(op_type, inputs, name=scope)


def _check_statically(op_type: str, inputs: Sequence[Tensor]) -> None:
    offset, target = constant_value(inputs[1]), constant_value(inputs[2])
    if offset is None or target is None:
        return
    sizes = (inputs[0].shape.dims or [None] * 3)[-3:-1]
    if op_type == "CropToBoundingBox":
        check_box(sizes, offset, target)
        return
    lengths = [0 if size is None else size for size in sizes]
    image = np.broadcast_to(np.zeros((), np.int8), (*lengths, 1))
    jax.eval_shape(lambda x: _pad(x, offset, target), image)


def resize_image_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """Crops an image (or a batch) or pads it with zeros, evenly on both sides.

    Args:
        image: `(batch, height, width, channels)` or `(height, width, channels)`.
        target_height, target_width: ints, or scalar tensors.

    Raises:
        ValueError: the target is not positive.
    """
    with get_default_graph().name_scope("resize_image_with_crop_or_pad") as scope:
        checked = checked_image(convert_to_tensor(image, name="image"), (3, 4))
        target = pair(target_height, target_width, "target")
        given = constant_value(target)
        if given is not None and min(given) <= 0:
            what = "target_height" if given[0] <= 0 else "target_width"
            raise ValueError(f"{what} must be > 0.")
        return output("ResizeImageWithCropOrPad", [checked, target], name=scope)


def _central(image: Any, fraction: float) -> Any:
    top, left = (int((size - size * fraction) / 2) for size in map(float, _size(image)))
    height, width = _size(image)
    return image[..., top : height - top, left : width - left, :]


def _infer_central(inputs: Any, attrs: Any) -> list[Spec]:
    shape = inputs[0].shape
    if shape.dims is None:
        return [Spec(inputs[0].dtype, shape)]
    sizes = [
        None if dim is None else dim - 2 * int((dim - float(dim) * attrs["fraction"]) / 2)
        for dim in shape.dims[-3:-1]
    ]
    return [Spec(inputs[0].dtype, with_size(shape, *sizes))]


register(
    "CentralCrop",
    _central,
    infer=_infer_central,
    numpy_kernel=_central,
    accepts=_ACCEPTED,
    cases=lambda: [Case((_IMAGE,), {"fraction": 0.5}, _IMAGE[1:3])],
)


def central_crop(image: Any, central_fraction: Any) -> Tensor:
    """Crops an image (or a batch) to the central fraction of its height and width.

    Args:
        image: `(batch, height, width, channels)` or `(height, width, channels)`.
        central_fraction: in (0, 1], a number or a constant.

    Raises:
        ValueError: `central_fraction` is not in (0, 1].
    """
    given = (
        fixed_value(central_fraction) if isinstance(central_fraction, Tensor) else central_fraction
    )
    if given is None:
        raise value_error(
            "central_crop: central_fraction must be known when the graph is built",
            expected="a number or a constant",
            received=central_fraction,
        )
    if not 0.0 < float(given) <= 1.0:
        raise ValueError("central_fraction must be within (0, 1]")
    checked = checked_image(convert_to_tensor(image, name="image"), (3, 4))
    if float(given) == 1.0:
        return checked
    return output("CentralCrop", [checked], {"fraction": float(given)}, "central_crop")


# -- flip and turn


def _flip(image: Any, axis: int) -> Any:
    return jnp.flip(image, axis)


def _flip_some(image: Any, chosen: Any, axis: int) -> Any:
    """Flips the images selected by `chosen`, a bool per image."""
    chosen = jnp.asarray(chosen)
    return jnp.where(chosen[..., None, None, None], jnp.flip(image, axis), image)


def _same(inputs: Any, attrs: Any) -> list[Spec]:
    return [Spec(inputs[0].dtype, inputs[0].shape)]


register(
    "FlipImage",
    _flip,
    infer=_same,
    numpy_kernel=np.flip,
    accepts=_ACCEPTED,
    cases=lambda: [Case((_IMAGE,), {"axis": -2}, _IMAGE[:, ::-1])],
)
register(
    "FlipSomeImages",
    _flip_some,
    infer=_same,
    accepts=_ACCEPTED,
    cases=lambda: [
        Case(
            (np.stack([_IMAGE, _IMAGE]), np.array([False, True])),
            {"axis": -3},
            np.stack([_IMAGE, _IMAGE[::-1]]),
        )
    ],
)


def _rotated(image: Any, quarters: Any, static: bool) -> Any:
    axes = (image.ndim - 3, image.ndim - 2)
    if isinstance(quarters, np.ndarray):
        return jnp.rot90(image, int(quarters) % 4, axes)
    if image.shape[axes[0]] != image.shape[axes[1]]:
        raise ValueError(
            f"rot90 by a computed number of turns needs a square image, got {image.shape}"
        )
    turns = [lambda x, k=k: jnp.rot90(x, k, axes) for k in range(4)]
    return jax.lax.switch(quarters % 4, turns, jnp.asarray(image))


def _infer_rotated(inputs: Any, attrs: Any) -> list[Spec]:
    image, quarters = inputs
    given = constant_value(quarters)
    if image.shape.dims is None:
        return [Spec(image.dtype, image.shape)]
    height, width = image.shape.dims[-3:-1]
    if given is None:
        sides = (height, width) if height == width else (None, None)
    else:
        sides = (width, height) if int(given) % 2 else (height, width)
    return [Spec(image.dtype, with_size(image.shape, *sides))]


register(
    "Rot90",
    _rotated,
    infer=_infer_rotated,
    accepts=_ACCEPTED,
    static=lambda attrs: (1,) if attrs["static"] else (),
    cases=lambda: [
        Case((_IMAGE[:3], np.int32(5)), {"static": True}, np.rot90(_IMAGE[:3])),
        Case((_IMAGE[:2, :2], np.int32(2)), {"static": False}, np.rot90(_IMAGE[:2, :2], 2)),
    ],
)
register(
    "TransposeImage",
    lambda image: jnp.swapaxes(image, -3, -2),
    accepts=_ACCEPTED,
    infer=lambda inputs, attrs: [
        Spec(
            inputs[0].dtype,
            inputs[0].shape
            if inputs[0].shape.dims is None
            else with_size(inputs[0].shape, inputs[0].shape[-2], inputs[0].shape[-3]),
        )
    ],
    cases=lambda: [Case((_IMAGE,), {}, _IMAGE.transpose(1, 0, 2))],
)


def flipped(image: Any, axis: int, name: str, chosen: Tensor | None = None) -> Tensor:
    """Flips an image, or the chosen images of a batch, along an axis."""
    checked = checked_image(convert_to_tensor(image, name="image"), (3, 4))
    if chosen is None:
        return output("FlipImage", [checked], {"axis": axis}, name)
    return output("FlipSomeImages", [checked, chosen], {"axis": axis}, name)


def flip_left_right(image: Any) -> Tensor:
    """Mirrors an image (or a batch) horizontally."""
    return flipped(image, -2, "flip_left_right")


def flip_up_down(image: Any) -> Tensor:
    """Flips an image (or a batch) vertically."""
    return flipped(image, -3, "flip_up_down")


def rot90(image: Any, k: Any = 1, name: str | None = None) -> Tensor:
    """Rotates an image (or a batch) counterclockwise by `k` times 90 degrees.

    Args:
        image: `(batch, height, width, channels)` or `(height, width, channels)`.
        k: an int, or a scalar int32 tensor. If its value is known in a run only, each one is a
            compilation for an image that is not square, whose size must be known.
    """
    with get_default_graph().name_scope(name or "rot90") as scope:
        checked = checked_image(convert_to_tensor(image, name="image"), (3, 4))
        turns = as_index_tensor(k, "k")
        turns.shape.assert_has_rank(0)
        sides = (checked.shape.dims or (None, None))[:-1][-2:]
        # The result's size depends on the number of turns unless the image is square.
        attrs = {"static": None not in sides and sides[0] != sides[1]}
        return output("Rot90", [checked, turns], attrs, scope)


def transpose_image(image: Any, name: str | None = None) -> Tensor:
    """Swaps the height and width of an image (or a batch)."""
    checked = checked_image(convert_to_tensor(image, name="image"), (3, 4))
    return output("TransposeImage", [checked], name=name or "transpose")
