"""`tf.contrib.estimator.export_all_saved_models` and `export_saved_model_for_mode`."""

from __future__ import annotations

from estimatorkit.compat.arguments import with_arguments
from estimatorkit.estimator.serving.exporting import (
    experimental_export_all_saved_models,
    export_saved_model,
)
from estimatorkit.lazy import listing

export_all_saved_models = with_arguments(
    __name__,
    "export_all_saved_models",
    experimental_export_all_saved_models,
    "estimator export_dir_base input_receiver_fn_map assets_extra as_text checkpoint_path "
    "strip_default_attrs=",
    {"strip_default_attrs": False},
)
export_saved_model_for_mode = with_arguments(
    __name__,
    "export_saved_model_for_mode",
    export_saved_model,
    "estimator export_dir_base input_receiver_fn=serving_input_receiver_fn assets_extra as_text "
    "checkpoint_path strip_default_attrs= mode=experimental_mode",
    {"strip_default_attrs": False},
)

__dir__ = listing(__name__)
