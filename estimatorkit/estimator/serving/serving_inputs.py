"""Inputs of an exported model: receivers, and functions that build them.

A `serving_input_receiver_fn` makes placeholders and the features computed from them. The functions
here make the usual ones: from raw features, from serialized `Example`s, and from feature columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import string
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import Graph
from estimatorkit.core.shapes import TensorShape, as_shape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.parsing.parsing import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    SparseFeature,
    VarLenFeature,
    parse_example,
)

FEATURE, RECEIVER, LABEL = "feature", "input", "label"
"""The default names of single tensors."""


class _Receiver(NamedTuple):
    features: Any
    receiver_tensors: dict[str, Any]
    receiver_tensors_alternatives: dict[str, dict[str, Any]] | None


class ServingInputReceiver(_Receiver):
    """The features of a model, and the tensors that a server feeds.

    Args:
        features: tensors or sparse tensors by key; a single one is named 'feature'.
        receiver_tensors: the fed tensors by the names that clients use; a single one is named
            'input'.
        receiver_tensors_alternatives: by name, other tensors that may be fed instead; each yields
            additional signatures, 'name:signature'.

    Raises:
        ValueError: a key is not a string (or int, for features), or a value is not a tensor.
    """

    __slots__ = ()

    def __new__(
        cls,
        features: Any,
        receiver_tensors: Any,
        receiver_tensors_alternatives: Mapping[str, Any] | None = None,
    ) -> ServingInputReceiver:
        checked = checked_tensors("feature", features, FEATURE, allow_ints=True)
        return super().__new__(cls, checked, *_fed(receiver_tensors, receiver_tensors_alternatives))


UnsupervisedInputReceiver = ServingInputReceiver
"""The receiver of unsupervised models: the same class."""


class TensorServingInputReceiver(_Receiver):
    """A `ServingInputReceiver` for a model whose features are one tensor instead of a dict."""

    __slots__ = ()

    def __new__(
        cls,
        features: Any,
        receiver_tensors: Any,
        receiver_tensors_alternatives: Mapping[str, Any] | None = None,
    ) -> TensorServingInputReceiver:
        if features is None:
            raise ValueError("features must be defined.")
        _check_tensor("feature", "", features)
        return super().__new__(
            cls, features, *_fed(receiver_tensors, receiver_tensors_alternatives)
        )


class _Supervised(NamedTuple):
    features: Any
    labels: Any
    receiver_tensors: dict[str, Any]


class SupervisedInputReceiver(_Supervised):
    """Features and labels of a model exported for training or evaluation, and the fed tensors.

    Args:
        features: a tensor, or tensors by key.
        labels: the same.
        receiver_tensors: the fed tensors by name.

    Raises:
        ValueError: a key is not a string (or int, for features and labels), or a value is not a
            tensor.
    """

    __slots__ = ()

    def __new__(cls, features: Any, labels: Any, receiver_tensors: Any) -> SupervisedInputReceiver:
        checked_tensors("feature", features, FEATURE, allow_ints=True)
        checked_tensors("label", labels, LABEL, allow_ints=True)
        fed = checked_tensors("receiver_tensor", receiver_tensors, RECEIVER)
        return super().__new__(cls, features, labels, fed)


def _fed(
    tensors: Any, alternatives: Mapping[str, Any] | None
) -> tuple[dict[str, Any], dict[str, dict[str, Any]] | None]:
    fed = checked_tensors("receiver_tensor", tensors, RECEIVER)
    if alternatives is None:
        return fed, None
    if not isinstance(alternatives, Mapping):
        raise ValueError(f"receiver_tensors_alternatives must be a dict: {alternatives}.")
    what = "receiver_tensors_alternative"
    return fed, {name: checked_tensors(what, each, RECEIVER) for name, each in alternatives.items()}


def checked_tensors(
    what: str, tensors: Any, default_name: str, allow_ints: bool = False
) -> dict[Any, Any]:
    """Tensors by name, given a dict or a single one.

    Args:
        what: describes them in errors.
        default_name: the name of a single one.
        allow_ints: whether names may be ints.

    Raises:
        ValueError: there are none, a name has the wrong type, or a value is not a tensor.
    """
    if tensors is None:
        raise ValueError(f"{what}s must be defined.")
    given = dict(tensors) if isinstance(tensors, Mapping) else {default_name: tensors}
    for name, tensor in given.items():
        if not isinstance(name, (str, int) if allow_ints else str):
            allowed = "strings or ints" if allow_ints else "strings"
            raise ValueError(f"{what} keys must be {allowed}: {name}.")
        _check_tensor(what, f" {name}", tensor)
    return given


def _check_tensor(what: str, name: str, value: Any) -> None:
    if not isinstance(value, (Tensor, SparseTensor)) and not _wraps_tensor(value):
        raise value_error(
            f"{what}{name} must be a Tensor, SparseTensor, or RaggedTensor.",
            received=f"{value!r:.100} ({type(value).__name__})",
            hint="receivers are made of placeholders: tf.placeholder(dtype, [None, ...])",
        )


def _wraps_tensor(value: Any) -> bool:
    """Whether the value is convertible to a tensor (`register_tensor_conversion_function`)."""
    try:
        return hasattr(value, "tensor") and isinstance(convert_to_tensor(value), Tensor)
    except TypeError:
        return False


# -- functions that make receivers


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """Returns a function that makes a receiver of raw features.

    Args:
        features: tensors (or `TensorSpec`s) by key, `(batch, ...)`, for the dtypes and shapes to
            feed.
        default_batch_size: the number of examples in a request; None (default) for any.
    """

    def serving_input_receiver_fn() -> ServingInputReceiver:
        fed = {key: _like(value, default_batch_size, key) for key, value in features.items()}
        return ServingInputReceiver(fed, fed)

    return serving_input_receiver_fn


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """Returns a function that makes a receiver of serialized `Example`s, the input 'examples'.

    Args:
        feature_spec: `FixedLenFeature`, `VarLenFeature`, ... by key, as for `parse_example`.
        default_batch_size: the number of examples in a request; None (default) for any.
    """

    def serving_input_receiver_fn() -> ServingInputReceiver:
        examples = placeholder(string, [default_batch_size], "input_example_tensor")
        return ServingInputReceiver(parse_example(examples, feature_spec), {"examples": examples})

    return serving_input_receiver_fn


def build_raw_supervised_input_receiver_fn(
    features: Any, labels: Any, default_batch_size: int | None = None
) -> Callable[[], SupervisedInputReceiver]:
    """Returns a function that makes a receiver of raw features and labels.

    Args:
        features: a tensor, or tensors by key, for the dtypes and shapes to feed.
        labels: the same; keys must differ from those of the features.
        default_batch_size: the number of examples per feed; None (default) for any.

    Raises:
        ValueError: features and labels share a key.
    """
    given = _by_name(features, RECEIVER), _by_name(labels, LABEL)
    both = set(given[0]) & set(given[1])
    if both:
        raise ValueError(
            f"Features and labels must have distinct keys. Found overlapping keys: {both}"
        )

    def supervised_input_receiver_fn() -> SupervisedInputReceiver:
        fed = [
            {key: _like(value, default_batch_size, key) for key, value in each.items()}
            for each in given
        ]
        one, other = (
            made if isinstance(each, Mapping) else next(iter(made.values()))
            for made, each in zip(fed, (features, labels), strict=True)
        )
        return SupervisedInputReceiver(one, other, {**fed[0], **fed[1]})

    return supervised_input_receiver_fn


def build_supervised_input_receiver_fn_from_input_fn(
    input_fn: Callable[..., Any], **input_fn_args: Any
) -> Callable[[], SupervisedInputReceiver]:
    """Returns a function that makes a receiver of the features and labels of an `input_fn`.

    Args:
        input_fn: returns (features, labels), or a `Dataset` of them; it is called immediately.
        **input_fn_args: its arguments.

    Raises:
        ValueError: it returns something else, or see `build_raw_supervised_input_receiver_fn`.
    """
    from estimatorkit.data.dataset import Dataset
    from estimatorkit.data.iterator_ops import make_one_shot_iterator
    from estimatorkit.estimator.model_input import features_and_labels

    with Graph().as_default():
        result = input_fn(**input_fn_args)
        if isinstance(result, Dataset):
            result = make_one_shot_iterator(result).get_next()
        return build_raw_supervised_input_receiver_fn(*features_and_labels(result, "train"))


def _by_name(tensors: Any, default_name: str) -> dict[str, Any]:
    return dict(tensors) if isinstance(tensors, Mapping) else {default_name: tensors}


def _like(value: Any, batch_size: int | None, key: str) -> Any:
    """A placeholder of a tensor's dtype and shape, named after the tensor or the key."""
    shape = as_shape(value.shape)
    batch = TensorShape([batch_size])
    shape = TensorShape(None) if shape.dims is None else batch.concatenate(shape[1:])
    name = value.op.name if isinstance(value, Tensor) else key
    return placeholder(value.dtype, shape, name)


# -- from feature columns


def serving_input_receiver_fn_from_columns(
    feature_columns: Iterable[Any],
    weight_column: Any = None,
    default_batch_size: int | None = None,
    forward_features: Mapping[str, Any] | None = None,
) -> Callable[[], ServingInputReceiver]:
    """Returns a function that makes a receiver of the features of feature columns, one input each.

    This guarantees that all features are present with the dtypes of training, and does not request
    example weights, which a trained model does not need. Dense features are fed as `(batch,
    *shape)`, others as `(batch, values)`, padded by -1 or the empty string. Default values of
    columns are not used: a request must have every feature.

    Args:
        feature_columns: the model's columns.
        weight_column: a key or numeric column to exclude.
        default_batch_size: the number of examples in a request; None (default) for any.
        forward_features: tensor specs by key of further inputs (such as an example's key) that the
            model function copies to its predictions.

    Raises:
        ValueError: the inputs of a column's kind are unknown.
    """
    from estimatorkit.layers.feature_column import make_parse_example_spec

    spec = make_parse_example_spec(list(feature_columns))
    spec.pop(getattr(weight_column, "key", weight_column), None)
    wanted = {key: _fed_spec(key, feature) for key, feature in spec.items()}
    wanted.update({key: (each.dtype, each.shape) for key, each in (forward_features or {}).items()})

    def serving_input_receiver_fn() -> ServingInputReceiver:
        fed = {}
        for key, (dtype, shape) in wanted.items():
            full = TensorShape([default_batch_size]).concatenate(as_shape(shape)[1:])
            fed[key] = placeholder(dtype, full, _as_op_name(key))
        return ServingInputReceiver(dict(fed), fed)

    return serving_input_receiver_fn


def _fed_spec(key: str, feature: Any) -> tuple[Any, list[int | None]]:
    """The dtype, and the shape including the batch, of a fed feature."""
    if isinstance(feature, FixedLenFeature):
        return feature.dtype, [None, *feature.shape]
    if isinstance(feature, FixedLenSequenceFeature):
        return feature.dtype, [None, None, *feature.shape]
    if isinstance(feature, VarLenFeature):
        return feature.dtype, [None, None]
    kind = "sparse" if isinstance(feature, SparseFeature) else type(feature).__name__
    raise value_error(
        f"feature {key!r} is {kind}: it cannot be fed as one tensor",
        hint="use build_parsing_serving_input_receiver_fn(make_parse_example_spec(columns))",
    )


def _as_op_name(key: str) -> str:
    """A key as an operation name; invalid characters become '_'."""
    kept = "".join(each if each.isascii() and each.isalnum() else "_" for each in key)
    return kept if kept[:1].isalnum() else f"feature{kept}"


__all__ = [
    "ServingInputReceiver",
    "SupervisedInputReceiver",
    "TensorServingInputReceiver",
    "UnsupervisedInputReceiver",
    "build_supervised_input_receiver_fn_from_input_fn",
    "build_parsing_serving_input_receiver_fn",
    "build_raw_serving_input_receiver_fn",
    "build_raw_supervised_input_receiver_fn",
    "serving_input_receiver_fn_from_columns",
]
