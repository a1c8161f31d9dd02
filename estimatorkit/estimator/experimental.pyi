from estimatorkit.estimator.evaluation.in_memory_evaluator import (
    InMemoryEvaluatorHook as InMemoryEvaluatorHook,
)
from estimatorkit.estimator.serving.serving_inputs import (
    build_raw_supervised_input_receiver_fn as build_raw_supervised_input_receiver_fn,
)
from estimatorkit.premade.kmeans import KMeansClustering
from estimatorkit.premade.logit_fns import (
    call_logit_fn as call_logit_fn, dnn_logit_fn_builder as dnn_logit_fn_builder,
    linear_logit_fn_builder as linear_logit_fn_builder,
)
from estimatorkit.estimator.serving.saved_model_estimator import (
    SavedModelEstimator as SavedModelEstimator,
)
from estimatorkit.premade.rnn import RNNClassifier as RNNClassifier, RNNEstimator as RNNEstimator
from estimatorkit.estimator.evaluation.stopping_hooks import (
    make_early_stopping_hook as make_early_stopping_hook,
    make_stop_at_checkpoint_step_hook as make_stop_at_checkpoint_step_hook,
    stop_if_higher_hook as stop_if_higher_hook, stop_if_lower_hook as stop_if_lower_hook,
    stop_if_no_decrease_hook as stop_if_no_decrease_hook,
    stop_if_no_increase_hook as stop_if_no_increase_hook,
)

KMeans = KMeansClustering
