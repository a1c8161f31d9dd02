"""`tf.saved_model`: models as folders, written and loaded, and their signatures."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_BUILDER = "estimatorkit.train.saving.saved_model_builder"
_CONSTANTS = "estimatorkit.train.saving.saved_model_constants"
_LOADER = "estimatorkit.train.saving.saved_model_loader"
_SIGNATURES = "estimatorkit.train.saving.signatures"
_PLACES = {
    "builder": _BUILDER,
    "constants": _CONSTANTS,
    "loader": _LOADER,
    "signature_constants": _CONSTANTS,
    "signature_def_utils": _SIGNATURES,
    "tag_constants": _CONSTANTS,
    "utils": _SIGNATURES,
    **names(_BUILDER, "simple_save Builder=SavedModelBuilder"),
    **names(_LOADER, "contains_saved_model load maybe_saved_model_directory"),
    **names(
        _SIGNATURES,
        "build_signature_def build_tensor_info classification_signature_def",
        "get_tensor_from_tensor_info is_valid_signature predict_signature_def",
        "regression_signature_def",
    ),
    **names(
        _CONSTANTS,
        "ASSETS_DIRECTORY ASSETS_KEY CLASSIFY_INPUTS CLASSIFY_METHOD_NAME CLASSIFY_OUTPUT_CLASSES",
        "CLASSIFY_OUTPUT_SCORES DEFAULT_SERVING_SIGNATURE_DEF_KEY GPU LEGACY_INIT_OP_KEY",
        "MAIN_OP_KEY PREDICT_INPUTS PREDICT_METHOD_NAME PREDICT_OUTPUTS REGRESS_INPUTS",
        "REGRESS_METHOD_NAME REGRESS_OUTPUTS SAVED_MODEL_FILENAME_PB SAVED_MODEL_FILENAME_PBTXT",
        "SAVED_MODEL_SCHEMA_VERSION SERVING TPU TRAINING VARIABLES_DIRECTORY VARIABLES_FILENAME",
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
