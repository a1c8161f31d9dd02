"""Signatures of the public names of TensorFlow 2.15.1 that matter here, and RunConfig's defaults.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_signatures.py

Writes `signatures.json` beside this file (ten seconds): for each name of tf.estimator,
tf.feature_column, tf.data.Dataset and tf.keras.optimizers.legacy (`v2`), and of
tf.compat.v1.estimator, .feature_column and .train (`v1`), the list of its parameters.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json


def signature_of(thing: Any) -> list[list[str | None]]:
    """Returns [name, default, kind] for each parameter but self and cls.

    The default is a repr, or None where the parameter has none.
    """
    function = thing.__init__ if inspect.isclass(thing) else thing
    if inspect.isclass(thing) and issubclass(thing, tuple):
        function = thing.__new__  # EstimatorSpec, TrainSpec, EvalSpec are named tuples
    parameters = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        default = None
        if parameter.default is not inspect.Parameter.empty:
            default = re.sub(r" at 0x[0-9a-f]+", "", repr(parameter.default))
        parameters.append([parameter.name, default, parameter.kind.name])
    return parameters


def signatures() -> dict[str, Any]:
    """Collects the signatures of the public names, in both versions, and RunConfig's defaults."""
    names = [
        f"{kind}{task}"
        for kind in ("DNN", "Linear", "DNNLinearCombined", "Baseline")
        for task in ("Classifier", "Regressor", "Estimator")
    ]
    names += [
        "Estimator",
        "RunConfig",
        "EstimatorSpec",
        "TrainSpec",
        "EvalSpec",
        "WarmStartSettings",
    ]
    names += ["BinaryClassHead", "MultiClassHead", "RegressionHead", "PoissonRegressionHead"]
    names += ["LogisticRegressionHead", "MultiLabelHead", "MultiHead"]
    names += ["train_and_evaluate", "LatestExporter", "BestExporter", "FinalExporter"]
    names += ["classifier_parse_example_spec", "regressor_parse_example_spec", "add_metrics"]
    found: dict[str, Any] = {"v2": {}, "v1": {}}
    for version, module in (("v2", tf.estimator), ("v1", tf.compat.v1.estimator)):
        for name in names:
            if hasattr(module, name):
                found[version][name] = signature_of(getattr(module, name))
        for method in (
            "train", "evaluate", "predict", "export_saved_model", "get_variable_names",
            "get_variable_value", "latest_checkpoint", "eval_dir",
            "experimental_export_all_saved_models",
        ):  # fmt: skip
            found[version][f"Estimator.{method}"] = signature_of(getattr(module.Estimator, method))
        for head in ("BinaryClassHead", "MultiClassHead", "RegressionHead"):
            if not hasattr(module, head):
                continue
            for method in (
                "loss",
                "predictions",
                "metrics",
                "update_metrics",
                "create_estimator_spec",
            ):
                found[version][f"{head}.{method}"] = signature_of(
                    getattr(getattr(module, head), method)
                )
        column = (tf if version == "v2" else tf.compat.v1).feature_column
        for name in sorted(dir(column)):
            if not name.startswith("_") and callable(getattr(column, name)):
                found[version][f"feature_column.{name}"] = signature_of(getattr(column, name))
        config = module.RunConfig()
        found[f"{version}_run_config_defaults"] = {
            name: repr(getattr(config, name))
            for name in sorted(dir(type(config)))
            if not name.startswith("_") and isinstance(getattr(type(config), name), property)
        } | {"replace": signature_of(type(config).replace)}
    inputs = tf.compat.v1.estimator.inputs
    for name in ("numpy_input_fn", "pandas_input_fn"):
        found["v1"][f"inputs.{name}"] = signature_of(getattr(inputs, name))
    train = tf.compat.v1.train
    for name in (
        "GradientDescentOptimizer", "MomentumOptimizer", "AdagradOptimizer", "AdamOptimizer",
        "RMSPropOptimizer", "FtrlOptimizer", "AdadeltaOptimizer", "ProximalAdagradOptimizer",
        "ProximalGradientDescentOptimizer", "AdagradDAOptimizer", "SyncReplicasOptimizer",
        "MonitoredTrainingSession", "MonitoredSession", "SingularMonitoredSession", "Scaffold",
        "Saver",
        "CheckpointSaverHook", "LoggingTensorHook", "StopAtStepHook", "NanTensorHook",
        "StepCounterHook", "SummarySaverHook", "FeedFnHook", "ProfilerHook", "GlobalStepWaiterHook",
        "FinalOpsHook",
    ):  # fmt: skip
        found["v1"][f"train.{name}"] = signature_of(getattr(train, name))
    found["v1"]["train.Optimizer.minimize"] = signature_of(train.Optimizer.minimize)
    found["v1"]["train.Optimizer.compute_gradients"] = signature_of(
        train.Optimizer.compute_gradients
    )
    found["v1"]["train.Optimizer.apply_gradients"] = signature_of(train.Optimizer.apply_gradients)
    legacy = tf.keras.optimizers.legacy
    for name in ("SGD", "Adagrad", "Adam", "RMSprop", "Ftrl"):
        found["v2"][f"keras.optimizers.legacy.{name}"] = signature_of(getattr(legacy, name))
    found["v2"]["data.Dataset"] = {
        name: signature_of(getattr(tf.data.Dataset, name))
        for name in sorted(dir(tf.data.Dataset))
        if not name.startswith("_") and callable(getattr(tf.data.Dataset, name))
    }
    return found


if __name__ == "__main__":
    write_json("signatures.json", {"about": {"tensorflow": tf.__version__}, **signatures()})
