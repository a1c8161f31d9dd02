"""Layers of field interactions and whole click-through models of DeepCTR, on small random inputs.

Run with DeepCTR 0.9.3 on TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_interactions.py

Writes `interactions.npz` beside this file. Of each layer: `<case>/inputs`, `<case>/weight_<i>` and
`<case>/outputs`; of each model: `<case>/<feature>`, `<case>/<variable>` (the names are those of the
model's variables) and `<case>/logits`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from deepctr import feature_column, models  # type: ignore[import-not-found,unused-ignore]
from deepctr.layers import interaction  # type: ignore[import-not-found,unused-ignore]
from golden_files import write_npz  # type: ignore[import-not-found,unused-ignore]

BATCH, FIELDS, DIM, IDS = 6, 5, 4, 7
LAYERS: dict[str, tuple[str, dict[str, Any]]] = {
    "fm": ("FM", {}),
    "cross_vector": ("CrossNet", {"layer_num": 3, "parameterization": "vector"}),
    "cross_matrix": ("CrossNet", {"layer_num": 3, "parameterization": "matrix"}),
    "cross_mix": ("CrossNetMix", {"low_rank": 3, "num_experts": 2, "layer_num": 2}),
    "cin_split": ("CIN", {"layer_size": (6, 4), "activation": "relu", "split_half": True}),
    "cin_whole": ("CIN", {"layer_size": (6, 4), "activation": "linear", "split_half": False}),
    "attention": ("InteractingLayer", {"att_embedding_size": 3, "head_num": 2}),
    "attention_scaled": ("InteractingLayer", {"head_num": 2, "scaling": True, "use_res": False}),
    "senet": ("SENETLayer", {"reduction_ratio": 2}),
    "bilinear_all": ("BilinearInteraction", {"bilinear_type": "all"}),
    "bilinear_each": ("BilinearInteraction", {"bilinear_type": "each"}),
    "bilinear_interaction": ("BilinearInteraction", {"bilinear_type": "interaction"}),
}
DEEP: dict[str, Any] = {"dnn_hidden_units": (6, 3), "dnn_activation": "relu"}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "DeepFM": ("DeepFM", DEEP),
    "DCN_vector": ("DCN", {"cross_num": 2, "cross_parameterization": "vector", **DEEP}),
    "DCN_matrix": ("DCN", {"cross_num": 2, "cross_parameterization": "matrix", **DEEP}),
    "DCN_mix": ("DCNMix", {"cross_num": 2, "low_rank": 3, "num_experts": 2, **DEEP}),
    "xDeepFM": ("xDeepFM", {"cin_layer_size": (6, 4), "cin_activation": "linear", **DEEP}),
    "AutoInt": ("AutoInt", {"att_layer_num": 2, "att_embedding_size": 3, **DEEP}),
    "FiBiNET": ("FiBiNET", {"bilinear_type": "interaction", "reduction_ratio": 2, **DEEP}),
}


def randomize(weights: Any, random: np.random.RandomState) -> None:
    """Gives every variable numbers far from its initial value, biases too."""
    for each in weights:
        # xDeepFM's paper has no biases here.
        scale = 0.0 if "cin/bias" in each.name else 0.4
        each.assign(random.normal(0.0, scale, each.shape))


def layers(random: np.random.RandomState) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, (kind, arguments) in LAYERS.items():
        layer = getattr(interaction, kind)(**arguments)
        shape = (BATCH, FIELDS * DIM) if "cross" in name else (BATCH, FIELDS, DIM)
        inputs = random.normal(size=shape).astype("float32")
        listed = kind in ("SENETLayer", "BilinearInteraction")
        given = tf.split(inputs, FIELDS, axis=1) if listed else tf.constant(inputs)
        layer(given)
        randomize(layer.weights, random)
        outputs = layer(given)
        outputs = tf.concat(outputs, 1) if isinstance(outputs, list) else outputs
        found[f"{name}/inputs"], found[f"{name}/outputs"] = inputs, outputs.numpy()
        weights = {f"{name}/weight_{at}": each.numpy() for at, each in enumerate(layer.weights)}
        found |= weights
    return found


def whole(random: np.random.RandomState) -> dict[str, Any]:
    found: dict[str, Any] = {}
    columns = [
        *(feature_column.SparseFeat(f"C{at}", IDS, embedding_dim=DIM) for at in range(FIELDS)),
        feature_column.DenseFeat("I0", 2),
    ]
    for name, (kind, arguments) in MODELS.items():
        tf.keras.backend.clear_session()
        model = getattr(models, kind)(columns, columns, **arguments)
        randomize(model.weights, random)
        data: dict[str, Any] = {
            f"C{at}": random.randint(0, IDS, BATCH).astype("int32") for at in range(FIELDS)
        }
        data["I0"] = random.normal(size=(BATCH, 2)).astype("float32")
        *_, prediction = model.layers
        before = tf.keras.Model(model.inputs, prediction.input)(data)
        found[f"{name}/logits"] = (before + prediction.global_bias).numpy()
        found |= {f"{name}/{key}": value for key, value in data.items()}
        found |= {f"{name}/{each.name.split(':')[0]}": each.numpy() for each in model.weights}
    return found


if __name__ == "__main__":
    state = np.random.RandomState(1)
    write_npz("interactions.npz", layers(state) | whole(state))
