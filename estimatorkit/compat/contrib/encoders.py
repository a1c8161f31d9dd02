"""Encoders and small layers of `contrib.layers`: sequence embeddings, one-hot, norms, pooling."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from estimatorkit.compat.arg_scope import add_arg_scope
from estimatorkit.compat.contrib.layer_functions import fully_connected
from estimatorkit.compat.contrib.layer_utils import collect_named_outputs
from estimatorkit.compat.contrib.variables import model_variable
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import int64
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_collection, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array.indexing import one_hot
from estimatorkit.ops.files import summary
from estimatorkit.ops.math.elementwise import cast, less, sqrt, square
from estimatorkit.ops.math.reduce import reduce_mean, reduce_sum
from estimatorkit.ops.nn import nn, pooling
from estimatorkit.ops.nn.embedding import embedding_lookup
from estimatorkit.ops.variables.variable_scope import variable_scope


def _with_activation(function: Callable[[Any], Any] | None) -> Callable[..., Any]:
    """`fully_connected` with another default activation."""

    @functools.wraps(fully_connected)
    def layer(*args: Any, **kwargs: Any) -> Any:
        return fully_connected(*args, **{"activation_fn": function, **kwargs})

    return layer


elu = _with_activation(nn.elu)
linear = _with_activation(None)
relu = _with_activation(nn.relu)
relu6 = _with_activation(nn.relu6)


def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Tensor:
    """Embeds sequences of ids.

    Args:
        ids: `(batch, steps)` ints.
        vocab_size, embed_dim: the table's shape; may be omitted if it is reused.
        unique: accepted for compatibility only.
        initializer, regularizer, trainable: of the table 'embeddings'.
        scope: the variable scope; 'EmbedSequence', made unique, by default.
        reuse: whether to reuse the table of this scope.

    Returns:
        `(batch, steps, embed_dim)` floats.

    Raises:
        ValueError: the shape is not given, and the table is not reused.
    """
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError(
            "Must specify vocab size and embedding dimension when not reusing. Got "
            f"vocab_size={vocab_size} and embed_dim={embed_dim}"
        )
    known = [vocab_size, embed_dim] if vocab_size and embed_dim else None
    with variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        table = model_variable(
            "embeddings",
            known,
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
        )
        return embedding_lookup(table, ids)


def bow_encoder(
    ids: Any,
    vocab_size: int,
    embed_dim: int,
    sparse_lookup: bool = True,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Tensor:
    """The mean embedding of each sequence of ids, `(batch, embed_dim)`.

    Args:
        ids: `(batch, steps)` ints.
        sparse_lookup: accepted for compatibility only.
        vocab_size, embed_dim, initializer, regularizer, trainable, reuse: see `embed_sequence`.
        scope: the variable scope; 'bow_encoder', made unique, by default.
    """
    with variable_scope(scope, "bow_encoder", [ids], reuse=reuse) as inner:
        rows = embed_sequence(
            ids,
            vocab_size,
            embed_dim,
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
            scope=inner,
            reuse=reuse,
        )
        return reduce_mean(rows, axis=1)


@add_arg_scope
def one_hot_encoding(
    labels: Any,
    num_classes: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Tensor:
    """One-hot rows `(batch, num_classes)` of labels `(batch,)`.

    Args:
        labels: ints.
        num_classes: the rows' length.
        on_value, off_value: the values at the label, and elsewhere.
        outputs_collections: collections for the outputs.
        scope: the name scope.
    """
    with get_default_graph().name_scope(scope or "OneHotEncoding") as inner:
        rows = one_hot(cast(labels, int64), num_classes, on_value, off_value)
        collect_named_outputs(outputs_collections, inner, rows)
        return rows


@add_arg_scope
def unit_norm(inputs: Any, dim: int, epsilon: float = 1e-7, scope: str | None = None) -> Tensor:
    """Scales the inputs to unit norm along an axis.

    Args:
        inputs: floats of known rank.
        dim: the axis.
        epsilon: added to the sum of squares.
        scope: the name scope.

    Raises:
        ValueError: there is no such axis.
    """
    with get_default_graph().name_scope(scope or "UnitNorm"):
        x = convert_to_tensor(inputs)
        if x.shape.rank is None or not 0 <= dim < x.shape.rank:
            raise value_error("dim must be positive but smaller than the input rank", received=dim)
        return x / sqrt(epsilon + reduce_sum(square(x), dim, keepdims=True))


@add_arg_scope
def softmax(logits: Any, scope: str | None = None) -> Tensor:
    """Softmax over the last axis."""
    with variable_scope(scope, "softmax", [logits]):
        return nn.softmax(logits)


@add_arg_scope
def pool(
    inputs: Any,
    kernel_size: Any,
    pooling_type: str,
    padding: str = "VALID",
    data_format: str | None = None,
    dilation_rate: Any = 1,
    stride: Any = 1,
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Tensor:
    """Pooling over the dimensions between batch and channels.

    Args:
        inputs, padding, data_format: see `nn.pool`.
        kernel_size, dilation_rate, stride: a number, or one per dimension.
        pooling_type: 'MAX' or 'AVG'.
        outputs_collections: collections for the outputs.
        scope: the operation's name; 'max_pool' or 'avg_pool' by default.

    Raises:
        ValueError: the rank is unknown or below 3, or `nn.pool` rejects an argument.
    """
    with get_default_graph().name_scope(scope or f"{pooling_type.lower()}_pool") as name:
        values = convert_to_tensor(inputs, name="inputs")
        count = (values.shape.rank or 0) - 2
        if count < 1:
            raise ValueError("Rank of input must be known, and at least 3")
        window, dilations, strides = (
            [each] * count if isinstance(each, int) else list(each)
            for each in (kernel_size, dilation_rate, stride)
        )
        found = pooling.pool(
            values, window, pooling_type, padding, dilations, strides, name, data_format
        )
        collect_named_outputs(outputs_collections, name, found)
        return found


# -- summaries


def summarize_tensor(tensor: Any, tag: str | None = None) -> Any:
    """A scalar or histogram summary; None for strings and bools."""
    if tensor.dtype.on_host or tensor.dtype.is_bool:
        return None
    kind = summary.scalar if tensor.shape.rank == 0 else summary.histogram
    return kind(tag or tensor.op.name, tensor)


def summarize_activation(op: Any) -> Any:
    """A histogram of an activation, and for a ReLU also the fraction of zeros."""
    if op.op.type in ("Relu", "Softplus", "Relu6"):
        share = reduce_mean(cast(less(op.op.inputs[0], cast(0, op.op.inputs[0].dtype)), op.dtype))
        summary.scalar(f"{op.op.name}/zeros", share)
    return summary.histogram(f"{op.op.name}/activation", op)


def summarize_tensors(
    tensors: Any, summarizer: Callable[[Any], Any] = summarize_tensor
) -> list[Any]:
    """Summarizes each tensor."""
    return [summarizer(each) for each in tensors]


def summarize_collection(
    collection: str, name_filter: str | None = None, summarizer: Any = summarize_tensor
) -> list[Any]:
    """Summaries of the tensors of a collection whose names match a pattern."""
    return summarize_tensors(get_collection(collection, name_filter), summarizer)


def _summarizer_of(collection: str, default: Any = summarize_tensor) -> Callable[..., list[Any]]:
    def summarize(name_filter: str | None = None, summarizer: Any = default) -> list[Any]:
        return summarize_collection(collection, name_filter, summarizer)

    summarize.__doc__ = f"`summarize_collection` of the collection '{collection}'."
    return summarize


summarize_activations = _summarizer_of(GraphKeys.ACTIVATIONS, summarize_activation)
summarize_biases = _summarizer_of(GraphKeys.BIASES)
summarize_variables = _summarizer_of(GraphKeys.GLOBAL_VARIABLES)
summarize_weights = _summarizer_of(GraphKeys.WEIGHTS)

__all__ = [
    "bow_encoder",
    "elu",
    "embed_sequence",
    "linear",
    "one_hot_encoding",
    "pool",
    "relu",
    "relu6",
    "softmax",
    "summarize_activation",
    "summarize_activations",
    "summarize_biases",
    "summarize_collection",
    "summarize_tensor",
    "summarize_tensors",
    "summarize_variables",
    "summarize_weights",
    "unit_norm",
]
