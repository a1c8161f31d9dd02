"""`SavedModelEstimator`: an estimator of an exported SavedModel."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from estimatorkit.core.conversion import constant
from estimatorkit.core.errors import explain, value_error
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.model_input import ModelInput
from estimatorkit.estimator.serving.export_outputs import EvalOutput, TrainOutput
from estimatorkit.estimator.serving.exporting import TAGS
from estimatorkit.estimator.serving.serving_inputs import FEATURE, LABEL, checked_tensors
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.logger import logger
from estimatorkit.storage.checkpoint import checkpoint_exists
from estimatorkit.storage.gfile import local_path
from estimatorkit.storage.tensor_proto import dtype_of, shape_value
from estimatorkit.train.global_steps import get_global_step
from estimatorkit.train.saving import saved_model_constants as constants
from estimatorkit.train.saving.meta_graph import load_meta_graph
from estimatorkit.train.saving.saved_model_files import assets_of
from estimatorkit.train.saving.saved_model_loader import init_op_name, meta_graph_with_tags
from estimatorkit.train.saving.saver import saver_of
from estimatorkit.train.sessions.scaffold import Scaffold

_SIGNATURES = {
    ModeKeys.TRAIN: constants.DEFAULT_TRAIN_SIGNATURE_DEF_KEY,
    ModeKeys.EVAL: constants.DEFAULT_EVAL_SIGNATURE_DEF_KEY,
    ModeKeys.PREDICT: constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY,
}
_METHODS = {ModeKeys.TRAIN: TrainOutput._method, ModeKeys.EVAL: EvalOutput._method}
_OF_THE_MODEL = (
    constants.ASSETS_KEY,
    constants.LEGACY_INIT_OP_KEY,
    constants.MAIN_OP_KEY,
    constants.TRAIN_OP_KEY,
    GraphKeys.ASSET_FILEPATHS,
)
"""Collections that a builder refills."""


class SavedModelEstimator(Estimator):
    """Trains, evaluates and predicts with the graphs and variables of a SavedModel.

    The model was written by `experimental_export_all_saved_models` or `export_saved_model`, which
    determine the available modes. The keys of `input_fn` are the input names of the model's
    signatures; a single feature tensor is named 'feature', a single label tensor 'label'.

    Args:
        saved_model_dir: the folder of the export.
        model_dir: the folder of checkpoints. Without one, variables have the exported values.

    Raises:
        ValueError: the folder holds no variables.
        OSError, DataLossError: it holds no model, or a damaged one.

    Source: `tf.contrib.estimator.SavedModelEstimator` of TensorFlow 1.15. Training needs the
    optimizer's operations; those of this package's exports are supported, those of TensorFlow's
    only as far as their node types are known.
    """

    def __init__(
        self,
        saved_model_dir: str | bytes | os.PathLike[str],
        model_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        self.saved_model_dir = local_path(os.fsdecode(saved_model_dir))
        self._exported_values = os.path.join(
            self.saved_model_dir, constants.VARIABLES_DIRECTORY, constants.VARIABLES_FILENAME
        )
        if not checkpoint_exists(self._exported_values):
            raise value_error(
                f"Could not find variables in SavedModel directory: {self.saved_model_dir}",
                expected="the folder of one export, whose name is a number",
                hint="experimental_export_all_saved_models returns it",
            )
        self._meta_graphs = {}
        for mode in TAGS:
            try:
                found = meta_graph_with_tags(self.saved_model_dir, TAGS[mode])
            except RuntimeError:
                logger.warning("%s mode not found in SavedModel.", mode)
                continue
            if _SIGNATURES[mode] in found.signature_def:
                self._meta_graphs[mode] = found
        logger.info("Available modes for Estimator: %s", sorted(self._meta_graphs))
        super().__init__(self._model_fn_from_saved_model, model_dir)

    # -- methods of an estimator

    def _newest_checkpoint(self) -> str | None:
        return self.latest_checkpoint() or self._exported_values

    def _create_and_assert_global_step(self, graph: Graph) -> None:
        """Does nothing: the model has a global step."""

    def _input(self, input_fn: Any, mode: str, checkpoint: str | None = "") -> ModelInput:
        self._check_mode(mode)
        given = super()._input(input_fn, mode, checkpoint)
        if get_global_step(given.graph) is not None:
            raise RuntimeError(
                "Graph must not contain a global step tensor before the SavedModel is loaded. "
                "Please make sure that the input function does not create a global step."
            )
        return given

    def _check_mode(self, mode: str) -> None:
        if mode not in self._meta_graphs:
            raise RuntimeError(
                explain(
                    f"{mode} mode is not available in the SavedModel",
                    expected=f"one of {sorted(self._meta_graphs)}",
                    hint="export the model for it by experimental_export_all_saved_models",
                )
            )

    # -- the model

    def _model_fn_from_saved_model(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        self._check_mode(mode)
        meta_graph = self._meta_graphs[mode]
        signature = meta_graph.signature_def[_SIGNATURES[mode]]
        if mode in _METHODS and signature.method_name != _METHODS[mode]:
            raise RuntimeError(
                explain(
                    f"Invalid SignatureDef method name for mode {mode}",
                    expected=_METHODS[mode],
                    received=signature.method_name,
                    hint="export the model by experimental_export_all_saved_models",
                )
            )
        graph = get_default_graph()
        given = _input_map(signature, features, labels)
        files = []
        for name, path in assets_of(meta_graph, self.saved_model_dir):
            with graph.name_scope("saved_model_asset"):
                files.append(constant(path))
            given[name] = files[-1]
        outputs = {key: _tensor_names(info) for key, info in sorted(signature.outputs.items())}
        init_op = init_op_name(meta_graph)
        names = [name for each in outputs.values() for name in each]
        steps = list(meta_graph.collection_def[constants.TRAIN_OP_KEY].node_list.value)
        if len(steps) > 1:
            raise RuntimeError("Multiple ops found in the train_op collection.")
        names += [*([init_op] if init_op else []), *steps]
        loaded = load_meta_graph(meta_graph, input_map=given, return_elements=names)
        elements: dict[str, Any] = dict(zip(names, loaded.elements, strict=True))
        for key in _OF_THE_MODEL:
            del graph.get_collection_ref(key)[:]
        for file in files:
            graph.add_to_collection(GraphKeys.ASSET_FILEPATHS, file)
        found = {
            key: SparseTensor(*map(elements.get, each)) if len(each) == 3 else elements[each[0]]
            for key, each in outputs.items()
        }
        return EstimatorSpec(
            mode,
            scaffold=Scaffold(local_init_op=elements.get(init_op or ""), saver=saver_of(loaded)),
            train_op=elements[steps[0]] if steps else None,
            **_parts(found, mode),
        )


def _input_map(signature: Any, features: Any, labels: Any) -> dict[str, Any]:
    """The tensors that replace a signature's inputs, by the names of tensors and control inputs.

    Raises:
        ValueError: an input is missing, or has another dtype or shape.
    """
    given = checked_tensors("feature", features, FEATURE, allow_ints=True)
    if labels is not None:
        given = {**checked_tensors("label", labels, LABEL, allow_ints=True), **given}
    found: dict[str, Any] = {}
    for key, info in signature.inputs.items():
        if key not in given:
            raise ValueError(
                f'Key "{key}" not found in features or labels passed in to the model function. '
                f"All required keys: {sorted(signature.inputs)}"
            )
        _check_fits(key, info, given[key])
        value = given[key]
        parts = value._components() if isinstance(value, SparseTensor) else [value]
        for name, part in zip(_tensor_names(info), parts, strict=True):
            found[name] = part
            found[f"^{name.partition(':')[0]}"] = part.op
    return found


def _check_fits(key: str, info: Any, value: Tensor | SparseTensor) -> None:
    problems = []
    dtype, shape = dtype_of(info.dtype), shape_value(info.tensor_shape)
    if value.dtype is not dtype:
        problems.append(f"Expected dtype: {dtype}, Got: {value.dtype}")
    if not value.shape.is_compatible_with(shape):
        problems.append(f"Expected shape: {shape}, Got: {value.shape}")
    if isinstance(value, SparseTensor) != (info.WhichOneof("encoding") == "coo_sparse"):
        problems.append(f"Expected {info.WhichOneof('encoding')}, Got: {value}")
    if problems:
        raise ValueError(
            "\n  ".join(
                [f"Tensor shape and/or dtype validation failed for input {key}:", *problems]
            )
        )


def _tensor_names(info: Any) -> list[str]:
    """The name of a `TensorInfo`'s tensor, or the three names of a sparse one."""
    if info.WhichOneof("encoding") == "name":
        return [info.name]
    parts = info.coo_sparse
    return [parts.indices_tensor_name, parts.values_tensor_name, parts.dense_shape_tensor_name]


def _parts(outputs: Mapping[str, Any], mode: str) -> dict[str, Any]:
    """Loss, predictions and metrics among a signature's outputs."""
    if mode == ModeKeys.PREDICT:
        return {"predictions": dict(outputs)}
    metrics = {}
    for key, value in outputs.items():
        name = key.removesuffix("/value")
        if key.startswith("metrics") and name != key and f"{name}/update_op" in outputs:
            metrics[name] = (value, outputs[f"{name}/update_op"])
    predictions = {
        key: value for key, value in outputs.items() if key.partition("/")[0] == "predictions"
    }
    return {"loss": outputs["loss"], "predictions": predictions, "eval_metric_ops": metrics}


__all__ = ["SavedModelEstimator"]
