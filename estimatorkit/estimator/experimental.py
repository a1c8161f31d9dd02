"""`tf.estimator.experimental`: hooks that end trainings or evaluate in them, and more."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    **names("estimatorkit.estimator.evaluation.in_memory_evaluator", "InMemoryEvaluatorHook"),
    **names(
        "estimatorkit.estimator.serving.serving_inputs", "build_raw_supervised_input_receiver_fn"
    ),
    "KMeans": "estimatorkit.premade.kmeans:KMeansClustering",
    **names(
        "estimatorkit.premade.logit_fns",
        "call_logit_fn dnn_logit_fn_builder linear_logit_fn_builder",
    ),
    **names("estimatorkit.estimator.serving.saved_model_estimator", "SavedModelEstimator"),
    **names("estimatorkit.premade.rnn", "RNNClassifier RNNEstimator"),
    **names(
        "estimatorkit.estimator.evaluation.stopping_hooks",
        "make_early_stopping_hook make_stop_at_checkpoint_step_hook stop_if_higher_hook",
        "stop_if_lower_hook stop_if_no_decrease_hook stop_if_no_increase_hook",
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
