"""`tf.contrib.estimator.export_all_saved_models` and `export_saved_model_for_mode`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from estimatorkit.estimator.serving.exporting import (
    experimental_export_all_saved_models,
    export_saved_model,
)
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.lazy import listing


def export_all_saved_models(
    estimator: Any,
    export_dir_base: str | os.PathLike[str],
    input_receiver_fn_map: Mapping[str, Callable[[], Any]],
    assets_extra: Mapping[str, Any] | None = None,
    as_text: bool = False,
    checkpoint_path: str | os.PathLike[str] | None = None,
    strip_default_attrs: bool = False,
) -> bytes:
    """Exports an estimator's graphs of several modes, with one set of variables.

    As `estimator.experimental_export_all_saved_models`; `strip_default_attrs` is accepted for
    TensorFlow's signature.
    """
    return experimental_export_all_saved_models(
        estimator, export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path
    )


def export_saved_model_for_mode(
    estimator: Any,
    export_dir_base: str | os.PathLike[str],
    input_receiver_fn: Callable[[], Any],
    assets_extra: Mapping[str, Any] | None = None,
    as_text: bool = False,
    checkpoint_path: str | os.PathLike[str] | None = None,
    strip_default_attrs: bool = False,
    mode: str = ModeKeys.PREDICT,
) -> bytes:
    """Exports an estimator's graph of one mode.

    As `estimator.export_saved_model(experimental_mode=mode)`; `strip_default_attrs` is accepted for
    TensorFlow's signature.
    """
    return export_saved_model(
        estimator, export_dir_base, input_receiver_fn, assets_extra, as_text, checkpoint_path, mode
    )


__dir__ = listing(__name__)
