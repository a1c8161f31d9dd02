"""The functions (`dense`, `conv2d`, ...) and classes of `tf.layers`, from one table.

A class is a `scoped` one: its variables are looked up by name in the variable scopes, so `reuse`
shares them. A function makes one and calls it. Moving averages are updated by operations in the
collection UPDATE_OPS, which a training operation must depend on.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Sequence
from inspect import Parameter, Signature
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import did_you_mean
from estimatorkit.layers import registry
from estimatorkit.layers.engine import base
from estimatorkit.layers.engine.policy import local_policy
from estimatorkit.layers.engine.scoped import ScopedLayer, scoped

# The functions and the classes that they call.
_TABLE = {
    "dense": "Dense",
    "conv1d": "Conv1D",
    "conv2d": "Conv2D",
    "conv3d": "Conv3D",
    "conv2d_transpose": "Conv2DTranspose",
    "conv3d_transpose": "Conv3DTranspose",
    "separable_conv1d": "SeparableConv1D",
    "separable_conv2d": "SeparableConv2D",
    "max_pooling1d": "MaxPooling1D",
    "max_pooling2d": "MaxPooling2D",
    "max_pooling3d": "MaxPooling3D",
    "average_pooling1d": "AveragePooling1D",
    "average_pooling2d": "AveragePooling2D",
    "average_pooling3d": "AveragePooling3D",
    "dropout": "Dropout",
    "batch_normalization": "BatchNormalization",
    "flatten": "Flatten",
}
# TensorFlow 1's defaults where Keras has others. None is the initializer of the variable scope.
_DEFAULTS: dict[str, Any] = {
    "kernel_initializer": None,
    "depthwise_initializer": None,
    "pointwise_initializer": None,
    "data_format": "channels_last",
    "rate": 0.5,
}
_POOLING_DEFAULTS = {"pool_size": Parameter.empty, "strides": Parameter.empty}
# Arguments added in later versions of Keras; they come last and are keyword-only.
_NEWER = ("groups", "output_padding", "synchronized", "axes", "keepdims")
# Arguments that TensorFlow 1 has after `name` and `reuse`.
_LAST = {
    "batch_normalization": (
        "renorm",
        "renorm_clipping",
        "renorm_momentum",
        "fused",
        "virtual_batch_size",
        "adjustment",
    ),
    "flatten": ("data_format",),
}


def _arguments(kind: type[base.Layer]) -> dict[str, Parameter]:
    """A layer class's arguments, with TensorFlow 1's defaults."""
    given = list(inspect.signature(kind.__init__).parameters.values())[1:]
    pools = any(each.name == "pool_size" for each in given)
    defaults = {**_DEFAULTS, **(_POOLING_DEFAULTS if pools else {})}
    return {
        each.name: each.replace(
            default=defaults.get(each.name, each.default), kind=Parameter.POSITIONAL_OR_KEYWORD
        )
        for each in given
        if each.kind is not Parameter.VAR_KEYWORD
    }


def _optional(name: str, default: Any = None) -> Parameter:
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default)


def _signature(parameters: Sequence[Parameter], newer: Sequence[Parameter]) -> Signature:
    by_keyword = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in newer]
    return Signature([*parameters, *by_keyword])


def _has_weights(arguments: Iterable[str]) -> bool:
    return any(each.endswith("_initializer") for each in arguments)


def _make_class(kind: type[base.Layer]) -> type[ScopedLayer]:
    """Makes the `tf.layers` class of a Keras class."""
    made = scoped(kind)
    arguments = _arguments(kind)
    newer = [arguments.pop(name) for name in _NEWER if name in arguments]
    if kind.__name__.endswith("Transpose"):
        newer.append(arguments.pop("dilation_rate"))
    trainable = [_optional("trainable", True)] if _has_weights(arguments) else []
    both = _signature([*arguments.values(), *trainable, _optional("name")], newer)
    rest = Parameter("kwargs", Parameter.VAR_KEYWORD)
    signature = both.replace(parameters=[*both.parameters.values(), rest])
    changed = {name: _DEFAULTS[name] for name in arguments if name in _DEFAULTS}

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(*args, **kwargs).arguments
        more = given.pop("kwargs", {})
        if "pool_size" in given and given["strides"] is None:
            raise ValueError("Argument `strides` must not be None.")
        kind.__init__(self, **{**changed, **given, **more})

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    made.__init__ = __init__  # type: ignore[method-assign]
    made._default_training = False
    made.__signature__ = signature  # type: ignore[attr-defined]
    made.__module__ = __name__
    return made


def _make_function(name: str, kind: type[ScopedLayer]) -> Callable[..., Any]:
    """Makes the function that creates a layer and calls it."""
    parameters = dict(inspect.signature(kind).parameters)
    newer = [each for each in parameters.values() if each.kind is Parameter.KEYWORD_ONLY]
    last = [parameters.pop(each) for each in _LAST.get(name, ())]
    for each in ("trainable", "name", "kwargs", *(each.name for each in newer)):
        parameters.pop(each, None)
    has_weights = _has_weights(parameters)
    trains = "training" in inspect.signature(kind.call).parameters
    signature = _signature(
        [
            Parameter("inputs", Parameter.POSITIONAL_OR_KEYWORD),
            *parameters.values(),
            *([_optional("training", False)] if trains else ()),
            *([_optional("trainable", True)] if has_weights else ()),
            _optional("name"),
            *([_optional("reuse")] if has_weights else ()),
            *last,
        ],
        newer,
    )

    def function(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        tensor = convert_to_tensor(given.pop("inputs"), name="inputs")
        call = {"training": given.pop("training", False)} if trains else {}
        scope = {"_reuse": given.pop("reuse", None), "_scope": given.get("name")}
        dtype = local_policy() or tensor.dtype
        return kind(**given, dtype=dtype, **scope)(tensor, **call)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__doc__ = _document(kind, has_weights, trains)
    return function


def _document(kind: type, has_weights: bool, trains: bool) -> str:
    """Derives a function's docstring from that of its class."""
    text = inspect.cleandoc(kind.__doc__ or "")
    more = ["    inputs: a tensor."]
    if trains:
        more.append("    training: whether this is training: a bool, or a scalar bool tensor.")
    more.append("    name: the variable scope; that of the function, made unique, by default.")
    if has_weights:
        more += [
            "    trainable: whether the variables are listed as trainable.",
            "    reuse: whether to share the variables of a layer of this name.",
        ]
    text = text.replace("`tf.keras.layers.", "`tf.layers.")
    text = text.replace("; that of the backend by default", "")
    lines = [line for line in text.split("\n") if line.strip() != "kwargs: as for `Layer`."]
    at = lines.index("Args:") + 1 if "Args:" in lines else len(lines)
    return "\n".join([*lines[:at], *more, *lines[at:]])


__all__ = sorted({"Layer", *_TABLE, *_TABLE.values()})
_making = threading.RLock()


def __getattr__(name: str) -> Any:
    """Returns a class or function of the table, made when it is first asked for.

    A program uses few of them, and all take 8 ms.
    """
    if name not in __all__:
        hint = did_you_mean(name, __all__)
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}" + (f"; {hint}" if hint else "")
        )
    with _making:
        if name not in globals():
            globals()[name] = _made(name)
        return globals()[name]


def _made(name: str) -> Any:
    if name == "Layer":
        return scoped(base.Layer)
    if name in _TABLE:
        return _make_function(name, __getattr__(_TABLE[name]))
    return _make_class(registry.load(name))


def __dir__() -> list[str]:
    return __all__
