"""Image resizing: nearest neighbor, bilinear, bicubic, area, and antialiased kernels.

Every method is, for each axis, a list of taps: `indices` and `weights` `(out, taps)`, computed in
NumPy from the two lengths alone; an output is the weighted sum of input rows, then of columns. The
taps are TensorFlow's to the rounding (bicubic weights come from a table of 1024 steps).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor
from estimatorkit.core.dtypes import DType, as_dtype, float32, float64, int32
from estimatorkit.core.errors import InvalidArgumentError, did_you_mean, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, apply, constant_value, output, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array.array import expand_dims, shape, squeeze
from estimatorkit.ops.image.shapes import checked_image, pad_to_bounding_box, pair
from estimatorkit.ops.math.elementwise import cast

Array = NDArray[Any]


class ResizeMethod:
    """Resize methods: TensorFlow 1's numbers; TensorFlow 2's strings are accepted too."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


class Taps(NamedTuple):
    """Source `indices` (int32) and `weights` (float32) per output element, `(out, taps)`."""

    indices: Array
    weights: Array


def _scale(source: int, target: int, align_corners: bool) -> np.float32:
    if align_corners and target > 1:
        return np.float32(source - 1) / np.float32(target - 1)
    return np.float32(source) / np.float32(target)


def _positions(source: int, target: int, align_corners: bool, half_pixel_centers: bool) -> Array:
    scale = _scale(source, target, align_corners)
    at = np.arange(target, dtype=np.float32)
    if half_pixel_centers:
        return (at + np.float32(0.5)) * scale - np.float32(0.5)
    return at * scale


def nearest_taps(source: int, target: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    """One tap: the nearest element if `align_corners`, else the one at the floor."""
    scale = _scale(source, target, align_corners)
    at = np.arange(target, dtype=np.float32)
    at = (at + np.float32(0.5) if half_pixel_centers else at) * scale
    nearest = np.floor(at + np.float32(0.5)) if align_corners else np.floor(at)
    indices = np.clip(nearest, 0, source - 1).astype(np.int32)
    return Taps(indices[:, None], np.ones([target, 1], np.float32))


def bilinear_taps(source: int, target: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    """The two neighbors with linear weights."""
    at = _positions(source, target, align_corners, half_pixel_centers)
    below = np.floor(at)
    indices = np.stack([np.maximum(below, 0), np.minimum(np.ceil(at), source - 1)], 1)
    after = at - below
    return Taps(indices.astype(np.int32), np.stack([1 - after, after], 1))


_TABLE = 1024


def bicubic_taps(source: int, target: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    """Four neighbours by Keys' cubic: a = -0.75, or -0.5 with half pixel centers."""
    at = _positions(source, target, align_corners, half_pixel_centers)
    below = np.floor(at)
    step = np.round((at - below) * np.float32(_TABLE)) / np.float32(_TABLE)
    a = np.float32(-0.5 if half_pixel_centers else -0.75)

    def near(x: Array) -> Array:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Array) -> Array:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    weights = np.stack([far(step + 1), near(step), near(1 - step), far(2 - step)], 1)
    places = below[:, None] + np.arange(-1, 3, dtype=np.float32)
    bounded = np.clip(places, 0, source - 1)
    if half_pixel_centers:  # outside pixels have no weight, instead of counting the edge twice
        weights = np.where(bounded == places, weights, np.float32(0))
        weights = weights / weights.sum(axis=1, keepdims=True)
    return Taps(bounded.astype(np.int32), weights.astype(np.float32))


def area_taps(source: int, target: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    """All elements that the output element covers, weighted by overlap."""
    scale = _scale(source, target, align_corners)
    start = np.arange(target, dtype=np.float32) * scale
    end = np.arange(1, target + 1, dtype=np.float32) * scale
    first = np.floor(start)
    count = int((np.ceil(end) - first).max())
    places = first[:, None] + np.arange(count, dtype=np.float32)
    covered = np.minimum(places + 1, end[:, None]) - np.maximum(places, start[:, None])
    weights = np.maximum(covered, 0) / scale
    indices = np.clip(places, 0, source - 1).astype(np.int32)
    return Taps(indices, weights.astype(np.float32))


# -- kernels that grow with the step, so that what lies between is not left out (antialias)


def _lanczos(radius: float) -> Callable[[Array], Array]:
    return lambda x: np.where(np.abs(x) < radius, np.sinc(x) * np.sinc(x / radius), 0)


def _cubic(x: Array, b: float, c: float) -> Array:
    """The cubic kernels of Mitchell and Netravali (1988)."""
    x = np.abs(x)
    near = (12 - 9 * b - 6 * c) * x**3 + (-18 + 12 * b + 6 * c) * x**2 + (6 - 2 * b)
    far = (-b - 6 * c) * x**3 + (6 * b + 30 * c) * x**2 + (-12 * b - 48 * c) * x + (8 * b + 24 * c)
    return np.where(x < 1, near, np.where(x < 2, far, 0)) / 6


_KERNELS: dict[str, tuple[float, Callable[[Array], Array]]] = {
    "bilinear": (1.0, lambda x: np.maximum(1 - np.abs(x), 0)),
    "bicubic": (2.0, lambda x: _cubic(x, 0, 0.5)),
    "mitchellcubic": (2.0, lambda x: _cubic(x, 1 / 3, 1 / 3)),
    "lanczos3": (3.0, _lanczos(3)),
    "lanczos5": (5.0, _lanczos(5)),
    "gaussian": (1.5, lambda x: np.where(np.abs(x) < 1.5, np.exp(-(x**2) / (2 * 0.5**2)), 0)),
}


def kernel_taps(source: int, target: int, method: str, antialias: bool) -> Taps:
    """The elements under a kernel, which `antialias` widens by the scale."""
    radius, kernel = _KERNELS[method]
    step = source / target
    width = max(step, 1.0) if antialias else 1.0
    at = (np.arange(target) + 0.5) * step
    first = np.maximum(np.ceil(at - radius * width - 0.5), 0)
    last = np.minimum(np.floor(at + radius * width - 0.5), source - 1)
    count = int((last - first).max()) + 1
    places = first[:, None] + np.arange(count)
    weights = kernel((places + 0.5 - at[:, None]) / width)
    weights = np.where(places <= last[:, None], weights, 0)
    weights /= weights.sum(axis=1, keepdims=True)
    indices = np.minimum(places, source - 1).astype(np.int32)
    return Taps(indices, weights.astype(np.float32))


# -- ops


_MOST_TAPS = 8
"""Above it one axis is a product with a matrix: each tap would be a gather of its own."""


def _resized(image: Any, axis: int, taps: Taps, module: Any) -> Any:
    """Resizes one axis."""
    count, each = taps.weights.shape
    if each > _MOST_TAPS:
        matrix = np.zeros([count, image.shape[axis]], np.float32)
        np.add.at(matrix, (np.arange(count)[:, None], taps.indices), taps.weights)
        exact = {"precision": "highest"} if module is jnp else {}
        moved = module.tensordot(matrix.astype(image.dtype), image, (1, axis), **exact)
        return module.moveaxis(moved, 0, axis)
    across = [1] * image.ndim
    across[axis] = -1
    total = None
    for indices, weights in zip(taps.indices.T, taps.weights.T, strict=True):
        factors = weights.reshape(across).astype(image.dtype)
        part = module.take(image, indices, axis=axis, mode="clip") * factors
        total = part if total is None else total + part
    return total


def _target(size: Any, height: int, width: int, preserve_aspect_ratio: bool) -> tuple[int, int]:
    """The output height and width."""
    wanted = int(size[0]), int(size[1])
    if min(wanted) <= 0:
        raise ValueError(f"output dimensions must be positive, got {wanted}")
    if not preserve_aspect_ratio:
        return wanted
    scale = min(wanted[0] / height, wanted[1] / width)
    return int(np.round(scale * height)), int(np.round(scale * width))


def _floating(images: Any, module: Any) -> Any:
    return module.asarray(images).astype(_result(as_dtype(images.dtype)).numpy_dtype)


def _result(dtype: DType) -> DType:
    """float32, as TensorFlow; but a float64 is kept, and cut by the functions below."""
    return float64 if dtype is float64 else float32


def _linear_kernel(taps_of: Callable[..., Taps], module: Any) -> Callable[..., Any]:
    def kernel(
        images: Any, size: Any, align_corners: bool, half_pixel_centers: bool, preserve: bool
    ) -> Any:
        height, width = _target(size, images.shape[1], images.shape[2], preserve)
        rows = taps_of(images.shape[1], height, align_corners, half_pixel_centers)
        columns = taps_of(images.shape[2], width, align_corners, half_pixel_centers)
        narrow = _resized(_floating(images, module), 1, rows, module)
        return _resized(narrow, 2, columns, module)

    return kernel


def _nearest_kernel(
    images: Any,
    size: Any,
    align_corners: bool,
    half_pixel_centers: bool,
    preserve: bool,
    module: Any = jnp,
) -> Any:
    height, width = _target(size, images.shape[1], images.shape[2], preserve)
    rows = nearest_taps(images.shape[1], height, align_corners, half_pixel_centers)
    columns = nearest_taps(images.shape[2], width, align_corners, half_pixel_centers)
    return module.asarray(images)[:, rows.indices[:, 0]][:, :, columns.indices[:, 0]]


def _scaled_kernel(images: Any, size: Any, method: str, antialias: bool, preserve: bool) -> Any:
    height, width = _target(size, images.shape[1], images.shape[2], preserve)
    rows = kernel_taps(images.shape[1], height, method, antialias)
    columns = kernel_taps(images.shape[2], width, method, antialias)
    return _resized(_resized(_floating(images, jnp), 1, rows, jnp), 2, columns, jnp)


def _infer(keeps_dtype: bool) -> Callable[..., list[Spec]]:
    def infer(inputs: Any, attrs: Any) -> list[Spec]:
        images, size = inputs
        if attrs.get("align_corners") and attrs["half_pixel_centers"]:
            raise InvalidArgumentError(
                None, None, "If half_pixel_centers is True, align_corners must be False."
            )
        kind = images.dtype if keeps_dtype else _result(images.dtype)
        if images.shape.rank is None:
            return [Spec(kind, TensorShape([None] * 4))]
        batch, height, width, channels = images.shape
        given = constant_value(size)
        target: Sequence[int | None] = (None, None)
        if given is not None and not attrs["preserve"]:
            target = _target(given, 0, 0, False)
        elif given is not None and height and width:
            target = _target(given, height, width, True)
        return [Spec(kind, TensorShape([batch, *target, channels]))]

    return infer


_IMAGES = (np.arange(24, dtype=np.float32).reshape(1, 4, 3, 2) * np.float32(7) % 11) - 3


def _case(expected: Array, **attrs: Any) -> list[Case]:
    return [Case((_IMAGES, np.array([2, 3], np.int32)), {**attrs, "preserve": False}, expected)]


_PLAIN = {"align_corners": False, "half_pixel_centers": False}
_OTHER_ROWS = _IMAGES[:, ::2]
_MEANS = (_IMAGES[:, ::2] + _IMAGES[:, 1::2]) / 2

register(
    "ResizeNearestNeighbor",
    _nearest_kernel,
    infer=_infer(True),
    numpy_kernel=partial(_nearest_kernel, module=np),
    static=(1,),
    accepts=("fn uint8 uint16", "int32"),
    cases=lambda: _case(_OTHER_ROWS, **_PLAIN),
)
for _type, _taps_of, _expected in (
    ("ResizeBilinear", bilinear_taps, _OTHER_ROWS),
    ("ResizeBicubic", bicubic_taps, _OTHER_ROWS),
    ("ResizeArea", area_taps, _MEANS),
):
    register(
        _type,
        _linear_kernel(_taps_of, jnp),
        infer=_infer(False),
        numpy_kernel=_linear_kernel(_taps_of, np),
        static=(1,),
        accepts=("fn uint8 uint16", "int32"),
        cases=lambda expected=_expected: _case(expected, **_PLAIN),
    )
register(
    "ScaleAndTranslate",
    _scaled_kernel,
    infer=_infer(False),
    static=(1,),
    accepts=("fn uint8 uint16", "int32", "float32", "float32"),
    cases=lambda: _case(_MEANS, method="bilinear", antialias=False),
)

_BY_NUMBER = {0: "bilinear", 1: "nearest", 2: "bicubic", 3: "area"}
_BY_NAME = {
    "bilinear": "ResizeBilinear",
    "nearest": "ResizeNearestNeighbor",
    "bicubic": "ResizeBicubic",
    "area": "ResizeArea",
    **{name: "ScaleAndTranslate" for name in _KERNELS if name not in ("bilinear", "bicubic")},
}


def _size_of(size: Any) -> Tensor:
    tensor = as_index_tensor(size, "size")
    if not tensor.shape.is_compatible_with([2]):
        raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
    return tensor


def _as_float32(resized: Tensor, op_type: str) -> Tensor:
    return resized if op_type == "ResizeNearestNeighbor" else cast(resized, float32)


def resize_images(
    images: Any,
    size: Any,
    method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
    antialias: bool = False,
) -> Tensor:
    """Resizes images.

    Args:
        images: `(batch, height, width, channels)` or `(height, width, channels)`.
        size: `(2,)`: the new height and width, ints or a tensor.
        method: of `ResizeMethod`, or 'bilinear', 'nearest', 'bicubic', 'area', 'lanczos3',
            'lanczos5', 'gaussian', 'mitchellcubic'.
        align_corners: whether the centers of the corner pixels stay in the corners.
        preserve_aspect_ratio: whether to make the largest image of the same form that fits.
        name: the operations' name.
        half_pixel_centers: whether pixels are squares with their center in the middle (as in
            TensorFlow 2) rather than points (as in TensorFlow 1, the default).
        antialias: whether to widen the kernel when an image is made smaller (with half pixel
            centers; as `antialias` in TensorFlow 2).

    Returns:
        float32, but of the dtype of the images for 'nearest', and where the size stays.

    Raises:
        ValueError: the images have another rank, or the method is none.
    """
    chosen = _BY_NUMBER.get(method, method) if not isinstance(method, bool) else method
    if chosen not in _BY_NAME:
        raise value_error(
            "Resize method is not implemented: " + repr(method),
            expected=", ".join(_BY_NAME),
            hint=did_you_mean(str(method), _BY_NAME),
        )
    with get_default_graph().name_scope(name or "resize") as scope:
        image = checked_image(convert_to_tensor(images, name="images"), (3, 4))
        target = _size_of(size)
        given = constant_value(target)
        dims = image.shape.dims
        if given is not None and dims is not None and list(dims[-3:-1]) == given.tolist():
            return image
        attrs: dict[str, Any] = {
            "align_corners": bool(align_corners),
            "half_pixel_centers": bool(half_pixel_centers),
        }
        op_type = _BY_NAME[chosen]
        if op_type == "ScaleAndTranslate" or (antialias and chosen in _KERNELS):
            op_type, attrs = "ScaleAndTranslate", {"method": chosen, "antialias": bool(antialias)}
        attrs["preserve"] = bool(preserve_aspect_ratio)
        single = image.shape.rank == 3
        batch = expand_dims(image, 0) if single else image
        resized = output(op_type, [batch, target], attrs, op_type if single else scope)
        resized = squeeze(resized, [0]) if single else resized
        return _as_float32(resized, op_type)


def _resize_one(op_type: str, what: str) -> Callable[..., Tensor]:
    def function(
        images: Any,
        size: Any,
        align_corners: bool = False,
        name: str | None = None,
        half_pixel_centers: bool = False,
    ) -> Tensor:
        with get_default_graph().name_scope(name or op_type) as scope:
            image = convert_to_tensor(images, name="images")
            if image.shape.rank not in (None, 4):
                raise value_error(
                    f"Shape must be rank 4 but is rank {image.shape.rank} for {op_type}",
                    expected="(batch, height, width, channels)",
                    received=image,
                    made_at=image.op.source,
                    hint="use expand_dims(image, 0), or image.resize",
                )
            attrs = {
                "align_corners": bool(align_corners),
                "half_pixel_centers": bool(half_pixel_centers),
                "preserve": False,
            }
            return _as_float32(output(op_type, [image, _size_of(size)], attrs, scope), op_type)

    function.__doc__ = (
        f"Images in another size, by {what}.\n\nArgs:\n"
        "    images: `(batch, height, width, channels)`.\n"
        "    size: `(2,)`: the new height and width.\n"
        "    align_corners: whether the centers of the corner pixels stay in the corners.\n"
        "    name: the operation's name.\n"
        "    half_pixel_centers: whether the center of a pixel is in its middle."
    )
    return function


resize_bilinear = _resize_one("ResizeBilinear", "bilinear interpolation; float32")
resize_nearest_neighbor = _resize_one("ResizeNearestNeighbor", "the nearest pixel")
resize_bicubic = _resize_one("ResizeBicubic", "bicubic interpolation; float32")


def resize_area(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None
) -> Tensor:
    """Resizes images by area averaging; float32.

    Args:
        images: `(batch, height, width, channels)`.
        size: `(2,)`: the new height and width.
        align_corners: whether the centers of the corner pixels stay in the corners.
    """
    resized: Tensor = _resize_one("ResizeArea", "area")(images, size, align_corners, name)
    return resized


def resize_image_with_pad(
    image: Any,
    target_height: Any,
    target_width: Any,
    method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    antialias: bool = False,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Resizes an image (or a batch) to fit the target at its aspect ratio, padded with zeros.

    Args:
        image: `(batch, height, width, channels)` or `(height, width, channels)`.
        target_height, target_width: ints, or scalar tensors.
        method, align_corners, antialias, half_pixel_centers: as for `resize_images`.

    Raises:
        ValueError: the target is not positive.
    """
    with get_default_graph().name_scope("resize_image_with_pad"):
        given = checked_image(convert_to_tensor(image, name="image"), (3, 4))
        target = pair(target_height, target_width, "target")
        known = constant_value(target)
        if known is not None and min(known) <= 0:
            raise ValueError(f"target_{'height' if known[0] <= 0 else 'width'} must be > 0")
        size, offset = apply("FittingSize", [shape(given), target]).outputs
        resized = resize_images(
            given,
            size,
            method,
            align_corners,
            antialias=antialias,
            half_pixel_centers=half_pixel_centers,
        )
        return pad_to_bounding_box(
            resized, offset[0], offset[1], target_height, target_width, "pad_to_bounding_box"
        )


def _fitting(dims: Array, target: Array) -> tuple[Array, Array]:
    """The largest size of the image's aspect ratio that fits the target, and its offset."""
    sides = dims[-3:-1].astype(np.float32)
    whole = target.astype(np.float32)
    scaled = sides / (sides / whole).max()
    offset = np.maximum(np.floor((whole - scaled) / np.float32(2)), 0)
    return np.floor(scaled).astype(np.int32), offset.astype(np.int32)


register(
    "FittingSize",
    _fitting,
    infer=lambda inputs, attrs: [Spec(int32, TensorShape([2]))] * 2,
    numpy_kernel=_fitting,
    static=(0, 1),
    gradient=None,
    cases=lambda: [Case((np.array([6, 3, 1], np.int32), np.array([4, 4], np.int32)))],
)
