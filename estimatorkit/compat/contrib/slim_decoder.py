"""`slim.tfexample_decoder`: decodes serialized Examples to items such as an image and its label."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from estimatorkit.core.dtypes import int64, uint8
from estimatorkit.core.sparse_tensor import SparseTensor as _SparseTensor
from estimatorkit.ops.array import array
from estimatorkit.ops.array.joining import concat, stack
from estimatorkit.ops.control.control_flow import cond
from estimatorkit.ops.control.higher_order import map_fn
from estimatorkit.ops.image.files import decode_image
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.parsing.parsing import FixedLenFeature, parse_single_example
from estimatorkit.ops.sparse.shapes import sparse_reshape
from estimatorkit.ops.sparse.sparse import sparse_tensor_to_dense
from estimatorkit.ops.text.decoding import decode_raw

Parsed = Mapping[str, Any]


class DataDecoder:
    """Decodes a record into items (`tf.contrib.slim.data_decoder.DataDecoder`)."""

    def decode(self, data: Any, items: Sequence[str] | None = None) -> list[Any]:
        """The tensors of the items."""
        raise NotImplementedError

    def list_items(self) -> list[str]:
        """The names of all items."""
        raise NotImplementedError


class ItemHandler:
    """Makes an item of parsed features; subclasses override `tensors_to_item`.

    Args:
        keys: the name or names of the features.
    """

    def __init__(self, keys: str | Iterable[str]) -> None:
        self._keys = [keys] if isinstance(keys, str) else list(keys)

    @property
    def keys(self) -> list[str]:
        """The names of the features."""
        return self._keys

    def tensors_to_item(self, keys_to_tensors: Parsed) -> Any:
        """The item, given the parsed features by name."""
        raise NotImplementedError


class ItemHandlerCallback(ItemHandler):
    """An item that a function computes from the features `keys`."""

    def __init__(self, keys: str | Iterable[str], func: Callable[[Parsed], Any]) -> None:
        super().__init__(keys)
        self._func = func

    def tensors_to_item(self, keys_to_tensors: Parsed) -> Any:
        return self._func(keys_to_tensors)


def _dense(tensor: Any, default_value: Any = 0) -> Any:
    is_sparse = isinstance(tensor, _SparseTensor)
    return sparse_tensor_to_dense(tensor, default_value) if is_sparse else tensor


class BoundingBox(ItemHandler):
    """Boxes, float32 `(boxes, 4)`: ymin, xmin, ymax, xmax.

    Args:
        keys: the names of the four features without the prefix, in this order.
        prefix: the prefix of their names.
    """

    def __init__(self, keys: Sequence[str] | None = None, prefix: str = "") -> None:
        sides = list(keys or ("ymin", "xmin", "ymax", "xmax"))
        if len(sides) != 4:
            raise ValueError(f"BoundingBox expects 4 keys but got {len(sides)}")
        super().__init__(prefix + side for side in sides)

    def tensors_to_item(self, keys_to_tensors: Parsed) -> Any:
        sides = [keys_to_tensors[key] for key in self.keys]
        return stack(
            [side.values if isinstance(side, _SparseTensor) else side for side in sides], 1
        )


class Tensor(ItemHandler):
    """A feature, optionally reshaped.

    Args:
        tensor_key: the feature.
        shape_keys: the feature that holds the shape, or one feature per dimension.
        shape: the shape; excludes `shape_keys`.
        default_value: fills missing elements of a sparse feature.
    """

    def __init__(
        self,
        tensor_key: str,
        shape_keys: str | Sequence[str] | None = None,
        shape: Any = None,
        default_value: Any = 0,
    ) -> None:
        if shape_keys and shape is not None:
            raise ValueError("Cannot specify both shape_keys and shape parameters.")
        self._shape_keys = [shape_keys] if isinstance(shape_keys, str) else list(shape_keys or ())
        self._shape = shape
        self._default_value = default_value
        super().__init__([tensor_key, *self._shape_keys])

    def tensors_to_item(self, keys_to_tensors: Parsed) -> Any:
        tensor, shape = keys_to_tensors[self.keys[0]], self._shape
        if self._shape_keys:
            dims = [_dense(keys_to_tensors[key]) for key in self._shape_keys]
            shape = array.reshape(stack(dims), [-1])
        is_sparse = isinstance(tensor, _SparseTensor)
        if shape is not None:
            tensor = (sparse_reshape if is_sparse else array.reshape)(tensor, shape)
        return _dense(tensor, self._default_value)


class LookupTensor(Tensor):
    """A feature mapped by a lookup table; see `Tensor`."""

    def __init__(
        self,
        tensor_key: str,
        table: Any,
        shape_keys: str | Sequence[str] | None = None,
        shape: Any = None,
        default_value: Any = "",
    ) -> None:
        super().__init__(tensor_key, shape_keys, shape, default_value)
        self._table = table

    def tensors_to_item(self, keys_to_tensors: Parsed) -> Any:
        return self._table.lookup(super().tensors_to_item(keys_to_tensors))


class BackupHandler(ItemHandler):
    """The item of `handler`, or of `backup` if it has no elements."""

    def __init__(self, handler: ItemHandler, backup: ItemHandler) -> None:
        for each, what in ((handler, "Primary"), (backup, "Backup")):
            if not isinstance(each, ItemHandler):
                raise ValueError(f"{what} handler is of type {type(each)} instead of ItemHandler")
        super().__init__([*handler.keys, *backup.keys])
        self._handler, self._backup = handler, backup

    def tensors_to_item(self, keys_to_tensors: Parsed) -> Any:
        item = self._handler.tensors_to_item(keys_to_tensors)
        return cond(
            elementwise.equal(reduce.reduce_prod(array.shape(item)), 0),
            lambda: self._backup.tensors_to_item(keys_to_tensors),
            lambda: item,
        )


class SparseTensor(ItemHandler):
    """A sparse tensor whose indices in the last dimension, values and shape are features.

    Args:
        indices_key, values_key: the features; 'indices' and 'values' by default.
        shape_key: the feature that holds the shape.
        shape: the shape if there is no such feature; by default that of the indices.
        densify: whether to return a dense item.
        default_value: fills missing elements of a dense item.
    """

    def __init__(
        self,
        indices_key: str | None = None,
        values_key: str | None = None,
        shape_key: str | None = None,
        shape: Any = None,
        densify: bool = False,
        default_value: Any = 0,
    ) -> None:
        keys = [
            indices_key or "indices",
            values_key or "values",
            *([shape_key] if shape_key else []),
        ]
        super().__init__(keys)
        self._shape = shape
        self._densify = densify
        self._default_value = default_value

    def tensors_to_item(self, keys_to_tensors: Parsed) -> Any:
        indices, values, *shapes = [keys_to_tensors[key] for key in self.keys]
        shape = _dense(shapes[0]) if shapes else self._shape or indices.dense_shape
        ids = array.reshape(elementwise.cast(indices.values, int64), [-1, 1])
        places = concat([indices.indices[:, :-1], ids], 1)
        tensor = _SparseTensor(places, values.values, shape)
        return _dense(tensor, self._default_value) if self._densify else tensor


class Image(ItemHandler):
    """A decoded image `(height, width, channels)`.

    Args:
        image_key: the feature with the bytes; 'image/encoded' by default.
        format_key: the feature with the format; 'image/format' by default. Bytes in the format
            'raw' are numbers of `dtype`, others an encoded file.
        shape: the common shape of all images; required for raw ones.
        channels: 1, 3 or 4.
        dtype: uint8 by default.
        repeated: whether the feature holds several images of the same shape.
        dct_method: accepted for compatibility only.
    """

    def __init__(
        self,
        image_key: str | None = None,
        format_key: str | None = None,
        shape: Any = None,
        channels: int = 3,
        dtype: Any = uint8,
        repeated: bool = False,
        dct_method: str = "",
    ) -> None:
        super().__init__([image_key or "image/encoded", format_key or "image/format"])
        self._shape = shape
        self._channels = channels
        self._dtype = dtype
        self._repeated = repeated

    def tensors_to_item(self, keys_to_tensors: Parsed) -> Any:
        contents, form = (keys_to_tensors[key] for key in self.keys)
        if self._repeated:
            return map_fn(lambda each: self._decode(each, form), contents, dtype=self._dtype)
        return self._decode(contents, form)

    def _decode(self, contents: Any, form: Any) -> Any:
        def raw() -> Any:
            numbers = decode_raw(contents, self._dtype)
            shape = [-1, 1, self._channels] if self._shape is None else self._shape
            return array.reshape(numbers, shape)

        def encoded() -> Any:
            image = decode_image(contents, channels=self._channels, expand_animations=False)
            image = elementwise.cast(image, self._dtype)
            return image if self._shape is None else array.reshape(image, self._shape)

        is_raw = elementwise.logical_or(
            elementwise.equal(form, "raw"), elementwise.equal(form, "RAW")
        )
        image = cond(is_raw, raw, encoded)
        if self._shape is None:
            image.set_shape([None, None, self._channels])
        return image


class TFExampleDecoder(DataDecoder):
    """Decodes serialized Examples (`tf.contrib.slim.tfexample_decoder.TFExampleDecoder`).

    Args:
        keys_to_features: `FixedLenFeature`s and `VarLenFeature`s by feature name.
        items_to_handlers: `ItemHandler`s by item name.
    """

    def __init__(
        self, keys_to_features: Mapping[str, Any], items_to_handlers: Mapping[str, ItemHandler]
    ) -> None:
        self._features = keys_to_features
        self._handlers = items_to_handlers

    def list_items(self) -> list[str]:
        return list(self._handlers)

    def decode(self, serialized_example: Any, items: Sequence[str] | None = None) -> list[Any]:
        """The tensors of the items (by default all) of a serialized Example, a scalar string."""
        example = parse_single_example(serialized_example, self._features)
        for key, feature in sorted(self._features.items()):
            if isinstance(feature, FixedLenFeature):
                example[key] = array.reshape(example[key], feature.shape)
        return [
            self._handlers[item].tensors_to_item({k: example[k] for k in self._handlers[item].keys})
            for item in items or self._handlers
        ]
