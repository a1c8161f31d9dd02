"""`tf.estimator.export`: what exported models give, and what servers feed them."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    **names(
        "estimatorkit.estimator.serving.export_outputs",
        "ClassificationOutput EvalOutput ExportOutput PredictOutput RegressionOutput",
    ),
    **names(
        "estimatorkit.estimator.serving.serving_inputs",
        "ServingInputReceiver TensorServingInputReceiver build_parsing_serving_input_receiver_fn",
        "build_raw_serving_input_receiver_fn serving_input_receiver_fn_from_columns",
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
