"""Estimators (`tf.estimator`): `Estimator`, the premade ones, `EstimatorSpec` and `RunConfig`."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    "export": "estimatorkit.estimator.export",
    "inputs": "estimatorkit.data.inputs",
    **names("estimatorkit.estimator.estimator", "Estimator"),
    **names("estimatorkit.estimator.spec", "EstimatorSpec ModeKeys"),
    **names("estimatorkit.estimator.run_config", "RunConfig"),
    **names("estimatorkit.estimator.warm_starting", "WarmStartSettings"),
    **names("estimatorkit.train.saving.vocabulary_change", "VocabInfo"),
    **names("estimatorkit.estimator.keras_estimator", "model_to_estimator"),
    **names("estimatorkit.estimator.serving.predictor", "load_predictor"),
    **names("estimatorkit.estimator.serving.onnx_export", "export_onnx"),
    # Training with evaluations
    "experimental": "estimatorkit.estimator.experimental",
    **names("estimatorkit.estimator.train_spec", "EvalSpec TrainSpec"),
    **names("estimatorkit.estimator.training_and_evaluation", "train_and_evaluate"),
    **names(
        "estimatorkit.estimator.serving.exporters",
        "BestExporter Exporter FinalExporter LatestExporter",
    ),
    **names("estimatorkit.estimator.evaluation.early_stopping", "EarlyStopping"),
    **names("estimatorkit.estimator.evaluation.experiment_trackers", "MLflowHook WandbHook"),
    **names("estimatorkit.estimator.extenders", "add_metrics"),
    # What TensorFlow has here as well as in `train`
    **names(
        "estimatorkit.train",
        "CheckpointSaverHook CheckpointSaverListener FeedFnHook FinalOpsHook GlobalStepWaiterHook",
        "LoggingTensorHook NanLossDuringTrainingError NanTensorHook ProfilerHook SecondOrStepTimer",
        "SessionRunArgs SessionRunContext SessionRunHook SessionRunValues StepCounterHook",
        "StopAtStepHook SummarySaverHook",
    ),
    **{
        f"{family}{kind}": f"estimatorkit.premade.{module}:{family}{kind}"
        for family, module in (
            ("DNN", "dnn"),
            ("Linear", "linear"),
            ("DNNLinearCombined", "dnn_linear_combined"),
            ("Baseline", "baseline"),
        )
        for kind in ("Classifier", "Regressor", "Estimator")
    },
    **names("estimatorkit.premade.head", "Head"),
    **names("estimatorkit.premade.classification_heads", "BinaryClassHead MultiClassHead"),
    **names("estimatorkit.premade.multi_label_head", "MultiLabelHead"),
    **names("estimatorkit.premade.multi_head", "MultiHead"),
    **names(
        "estimatorkit.premade.regression_head",
        "LogisticRegressionHead PoissonRegressionHead RegressionHead",
    ),
    **names(
        "estimatorkit.layers.feature_column",
        "classifier_parse_example_spec regressor_parse_example_spec",
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
