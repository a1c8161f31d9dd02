"""Registry of layer classes by name, used by files and namespaces.

A module is imported when a class of it is first named. Nothing outside the table, the user's
registered classes and those that `add` puts there (models) can be named by a file.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from estimatorkit.layers.serialization import Registry, get_registered_object
from estimatorkit.lazy import names


def _places(module: str, listed: str, **renamed: str) -> dict[str, str]:
    return names(f"estimatorkit.layers.{module}", *listed.split(), **renamed)


# 'module:class' for each name of `tf.keras.layers`.
PLACES: dict[str, str] = {
    **_places("dense_and_embedding", "Dense Embedding"),
    **_places("einsum_dense", "EinsumDense"),
    **_places("convolutional.convolution", "Conv1D Conv2D Conv3D"),
    **_places(
        "convolutional.convolution_by_channel",
        "DepthwiseConv1D DepthwiseConv2D SeparableConv1D SeparableConv2D",
    ),
    **_places(
        "convolutional.convolution_transposed", "Conv1DTranspose Conv2DTranspose Conv3DTranspose"
    ),
    **_places("convolutional.locally_connected", "LocallyConnected1D LocallyConnected2D"),
    **_places(
        "convolutional.pooling",
        "AveragePooling1D AveragePooling2D AveragePooling3D GlobalAveragePooling1D "
        "GlobalAveragePooling2D GlobalAveragePooling3D GlobalMaxPooling1D GlobalMaxPooling2D "
        "GlobalMaxPooling3D MaxPooling1D MaxPooling2D MaxPooling3D",
    ),
    **_places("reshaping", "Flatten Permute RepeatVector Reshape"),
    **_places(
        "convolutional.crop_pad_upsample",
        "Cropping1D Cropping2D Cropping3D UpSampling1D UpSampling2D UpSampling3D ZeroPadding1D "
        "ZeroPadding2D ZeroPadding3D",
    ),
    **_places(
        "noise",
        "ActivityRegularization AlphaDropout Dropout GaussianDropout GaussianNoise "
        "SpatialDropout1D SpatialDropout2D SpatialDropout3D",
    ),
    **_places(
        "normalization",
        "BatchNormalization GroupNormalization LayerNormalization UnitNormalization",
    ),
    **_places(
        "basic",
        "Activation ELU Identity Lambda LeakyReLU Masking PReLU ReLU Softmax ThresholdedReLU",
    ),
    **_places("merging", "Add Average Concatenate Dot Maximum Minimum Multiply Subtract"),
    **_places(
        "preprocessing",
        "CategoryEncoding Discretization HashedCrossing Hashing Normalization Rescaling",
    ),
    **_places("lookup", "IntegerLookup StringLookup TextVectorization"),
    **_places("attention", "AdditiveAttention Attention MultiHeadAttention"),
    **_places("recurrent.recurrent", "RNN"),
    **_places("recurrent.recurrent_base", "AbstractRNNCell StackedRNNCells"),
    **_places("recurrent.recurrent_cells", "GRUCell LSTMCell SimpleRNNCell"),
    **_places("recurrent.recurrent_convolution", "ConvLSTM2D"),
    **_places("recurrent.recurrent_kinds", "CuDNNGRU CuDNNLSTM GRU LSTM SimpleRNN"),
    **_places("wrappers", "Bidirectional TimeDistributed Wrapper"),
    **_places("feature_column", "DenseFeatures SequenceFeatures"),
}

# Other names of the same classes.
ALIASES: dict[str, str] = {
    **{f"Convolution{rank}D": f"Conv{rank}D" for rank in (1, 2, 3)},
    **{f"Convolution{rank}DTranspose": f"Conv{rank}DTranspose" for rank in (1, 2, 3)},
    **{f"SeparableConvolution{rank}D": f"SeparableConv{rank}D" for rank in (1, 2)},
    **{f"MaxPool{rank}D": f"MaxPooling{rank}D" for rank in (1, 2, 3)},
    **{f"AvgPool{rank}D": f"AveragePooling{rank}D" for rank in (1, 2, 3)},
    **{f"GlobalMaxPool{rank}D": f"GlobalMaxPooling{rank}D" for rank in (1, 2, 3)},
    **{f"GlobalAvgPool{rank}D": f"GlobalAveragePooling{rank}D" for rank in (1, 2, 3)},
    "BatchNormalizationV1": "BatchNormalization",
    "BatchNormalizationV2": "BatchNormalization",
}


def load(name: str) -> Any:
    """Imports the class of a name of `PLACES` or `ALIASES`."""
    module, attribute = PLACES[ALIASES.get(name, name)].split(":")
    return getattr(importlib.import_module(module), attribute)


class _Layers(Registry):
    """The classes of the table, each imported when it is first named."""

    def find(self, name: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
        """The class of a name.

        Raises:
            ValueError: there is none.
        """
        if name in PLACES or name in ALIASES:
            self.items.setdefault(name, load(name))
        elif get_registered_object(name, custom_objects, self.items) is None:
            # The error lists all classes there are.
            self.items.update({each: load(each) for each in PLACES})
        return super().find(name, custom_objects)


_registry = _Layers("layer", {})


def add(*kinds: type) -> None:
    """Lets files name classes that are no layers of this folder: models."""
    _registry.items.update({kind.__name__: kind for kind in kinds})


def serialize(layer: Any) -> Any:
    """Returns {'class_name': ..., 'config': ...} of a layer (`tf.keras.layers.serialize`).

    Raises:
        NotImplementedError: its class has arguments of its own, and no `get_config`.
    """
    return _registry.serialize(layer)


def deserialize(
    config: str | Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
) -> Any:
    """Creates a layer, without its weights, from its serialized form.

    Args:
        config: {'class_name': ..., 'config': ...}.
        custom_objects: the user's own classes and functions by name.

    Raises:
        ValueError: the class is unknown, or the config has another form.
    """
    return _registry.deserialize(config, custom_objects)


def get(identifier: Any) -> Any:
    """Resolves a layer or its config to a layer.

    Raises:
        ValueError: it means none.
    """
    return _registry.get(identifier)


__all__ = ["ALIASES", "PLACES", "add", "deserialize", "get", "load", "serialize"]
