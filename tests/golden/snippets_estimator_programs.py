"""Programs with estimators, as functions of the module used as `tf` (version 1's) and of a folder.

`HOOKS`: what hooks find in each of their methods, by the way the model runs. `SUBCLASSES`: classes
that override or assign private members of `Estimator`, as public programs do; each is a function of
`tf` and a list, to which it adds what was called. `SUMMARIES`: tags and steps in event files.
"""

from __future__ import annotations

import glob
import logging
import os
from collections.abc import Callable
from typing import Any

import numpy as np


def rows(tf: Any, count: int = 6) -> Any:
    """Batches of two examples, each the same: features `(2, 2)`, labels `(2, 1)`."""
    x = np.tile(np.array([[1.0, 2.0]], np.float32), (count * 2, 1))
    y = np.ones((count * 2, 1), np.float32)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(2)


def spec(tf: Any, features: Any, labels: Any, mode: str, rate: float = 0.1, **given: Any) -> Any:
    """A linear model that starts at 0.5."""
    weight = tf.get_variable("w", [2, 1], initializer=tf.constant_initializer(0.5))
    tf.add_to_collection("mine", "found")
    value = tf.matmul(features, weight)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=value, **given)
    loss = tf.reduce_mean((value - labels) ** 2)
    optimizer = tf.train.GradientDescentOptimizer(rate)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(
        mode, predictions=value, loss=loss, train_op=train_op, **given
    )


def model_fn_of(tf: Any, **given: Any) -> Callable[..., Any]:
    """The `model_fn` of `spec`."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        return spec(tf, features, labels, mode, **given)

    return model_fn


# -- what hooks see


def facts(tf: Any, session: Any) -> dict[str, Any]:
    """What the default graph is in a hook's method."""
    graph = tf.get_default_graph()
    variables = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)
    return {
        "variables": sorted(each.op.name for each in variables),
        "collection": len(tf.get_collection("mine")),
        "global step": getattr(tf.train.get_global_step(), "name", None),
        "finalized": graph.finalized,
        "default session": tf.get_default_session() is not None,
        "of the session": None if session is None else session.graph is graph,
    }


def probes(tf: Any, seen: dict[str, Any], name: str) -> tuple[Any, Any]:
    """A hook and a saving listener that note the facts of the first call of each method."""

    def note(method: str, session: Any = None) -> None:
        seen.setdefault(f"{name}.{method}", facts(tf, session))

    class Hook(tf.train.SessionRunHook):  # type: ignore[misc]
        def begin(self) -> None:
            note("begin")

        def after_create_session(self, session: Any, coord: Any) -> None:
            note("after_create_session", session)

        def before_run(self, run_context: Any) -> Any:
            note("before_run", run_context.session)
            return tf.train.SessionRunArgs({"step": tf.train.get_global_step()})

        def after_run(self, run_context: Any, run_values: Any) -> None:
            note("after_run", run_context.session)
            assert set(run_values.results) == {"step"}

        def end(self, session: Any) -> None:
            note("end", session)

    class Listener(tf.train.CheckpointSaverListener):  # type: ignore[misc]
        def begin(self) -> None:
            note("listener.begin")

        def before_save(self, session: Any, global_step_value: int) -> None:
            note("before_save", session)

        def after_save(self, session: Any, global_step_value: int) -> None:
            note("after_save", session)

        def end(self, session: Any, global_step_value: int) -> None:
            note("listener.end", session)

    return Hook(), Listener()


def _with_spec_hooks(tf: Any, seen: dict[str, Any]) -> Callable[..., Any]:
    modes = {"train": "training_hooks", "eval": "evaluation_hooks", "infer": "prediction_hooks"}

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        hook, _ = probes(tf, seen, f"spec {mode}")

        def init_fn(scaffold: Any, session: Any) -> None:
            seen.setdefault("init_fn", facts(tf, session))

        scaffold = tf.train.Scaffold(init_fn=init_fn) if mode == "train" else None
        return spec(tf, features, labels, mode, scaffold=scaffold, **{modes[mode]: [hook]})

    return model_fn


def _hooks_of_methods(tf: Any, folder: str, seen: dict[str, Any]) -> None:
    estimator = tf.estimator.Estimator(_with_spec_hooks(tf, seen), folder)
    hook, listener = probes(tf, seen, "train")
    estimator.train(lambda: rows(tf), hooks=[hook], saving_listeners=[listener])
    estimator.evaluate(lambda: rows(tf), hooks=[probes(tf, seen, "evaluate")[0]])
    list(estimator.predict(lambda: rows(tf), hooks=[probes(tf, seen, "predict")[0]]))


def _hooks_of_queues(tf: Any, folder: str, seen: dict[str, Any]) -> None:
    """The input is tensors, not a dataset."""
    estimator = tf.estimator.Estimator(model_fn_of(tf), folder)

    def input_fn() -> Any:
        return tf.ones([2, 2]), tf.ones([2, 1])

    estimator.train(input_fn, [probes(tf, seen, "train")[0]], 2)
    estimator.evaluate(input_fn, 2, [probes(tf, seen, "evaluate")[0]])
    next(estimator.predict(input_fn, hooks=[probes(tf, seen, "predict")[0]]))


def _hooks_of_train_and_evaluate(tf: Any, folder: str, seen: dict[str, Any]) -> None:
    estimator = tf.estimator.Estimator(_with_spec_hooks(tf, seen), folder)
    hook, listener = probes(tf, seen, "train")
    training = tf.estimator.TrainSpec(
        lambda: rows(tf), max_steps=4, hooks=[hook], saving_listeners=[listener]
    )
    evaluated = probes(tf, seen, "evaluate")[0]
    tf.estimator.train_and_evaluate(
        estimator, training, tf.estimator.EvalSpec(lambda: rows(tf), hooks=[evaluated])
    )


def _hooks_of_a_session(kind: str) -> Callable[[Any, str, dict[str, Any]], None]:
    def run(tf: Any, folder: str, seen: dict[str, Any]) -> None:
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            tf.add_to_collection("mine", "found")
            counted = tf.assign_add(step, 1)
            with getattr(tf.train, kind)(hooks=[probes(tf, seen, "session")[0]]) as session:
                session.run(counted)

    return run


# Rows that need names of TensorFlow 1.
LEGACY = {
    *("BaselineClassifier", "BaselineRegressor", "DNNClassifier", "DNNLinearCombinedClassifier"),
    *("DNNLinearCombinedRegressor", "DNNRegressor", "LinearClassifier", "LinearRegressor"),
    *("MonitoredSession", "MonitoredTrainingSession", "SingularMonitoredSession"),
    *("overrides _train_with_estimator_spec",),
}
HOOKS: dict[str, Callable[[Any, str, dict[str, Any]], None]] = {
    "train, evaluate, predict": _hooks_of_methods,
    "an input of tensors": _hooks_of_queues,
    "train_and_evaluate": _hooks_of_train_and_evaluate,
    "MonitoredTrainingSession": _hooks_of_a_session("MonitoredTrainingSession"),
    "MonitoredSession": _hooks_of_a_session("MonitoredSession"),
    "SingularMonitoredSession": _hooks_of_a_session("SingularMonitoredSession"),
}


# -- how hooks end a run


def _ending_hook(tf: Any, calls: list[str], way: str, method: str, name: str = "hook") -> Any:
    """A hook that ends the second run, before or after it, and notes its calls."""

    def end(run_context: Any, coord: Any) -> None:
        if way == "request_stop":
            run_context.request_stop()
        elif way == "coordinator":
            coord.request_stop()
        elif way == "OutOfRangeError":
            raise tf.errors.OutOfRangeError(None, None, "enough")
        elif way == "StopIteration":
            raise StopIteration

    class Hook(tf.train.SessionRunHook):  # type: ignore[misc]
        runs = 0

        def after_create_session(self, session: Any, coord: Any) -> None:
            self.coord = coord
            calls.append(f"{name} created with a {type(coord).__name__}")

        def before_run(self, run_context: Any) -> None:
            self.runs += 1
            calls.append(f"{name} before")
            if self.runs == 2 and method == "before_run":
                end(run_context, self.coord)

        def after_run(self, run_context: Any, run_values: Any) -> None:
            calls.append(f"{name} after")
            if self.runs == 2 and method == "after_run":
                end(run_context, self.coord)

        def end(self, session: Any) -> None:
            calls.append(f"{name} end")

    return Hook()


def run_ending(tf: Any, folder: str, way: str, method: str) -> dict[str, Any]:
    """What trainings, evaluations and predictions do that a hook ends in one of its methods."""
    calls: list[str] = []

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        kinds = ("training_hooks", "training_chief_hooks") if mode == "train" else ()
        own = {kind: [_ending_hook(tf, calls, "", "", kind)] for kind in kinds}
        return spec(tf, features, labels, mode, 0.01, **own)

    estimator = tf.estimator.Estimator(model_fn, folder)

    def hook() -> Any:
        return _ending_hook(tf, calls, way, method)

    estimator.train(lambda: rows(tf), hooks=[hook()])
    step = int(estimator.get_variable_value("global_step"))
    found = estimator.evaluate(lambda: rows(tf), hooks=[hook()])
    predicted = len(list(estimator.predict(lambda: rows(tf), hooks=[hook()])))
    return {"calls": calls, "step": step, "loss": float(found["loss"]), "predicted": predicted}


ENDINGS = [
    (way, method)
    for way in ("nothing", "request_stop", "coordinator", "OutOfRangeError", "StopIteration")
    for method in ("before_run", "after_run")
]


# -- subclasses


def _open(tf: Any) -> type:
    """The base of subclasses that override what they like."""

    class Open(tf.estimator.Estimator):  # type: ignore[misc]
        def _assert_members_are_not_overridden(self) -> None:
            pass

    return Open


def _of_the_class(tf: Any, called: list[Any]) -> type:
    class Kind(tf.estimator.Estimator):  # type: ignore[misc]
        def train(self, *args: Any, **kwargs: Any) -> Any:
            called.append("train")
            return super().train(*args, **kwargs)

    Kind._assert_members_are_not_overridden = lambda self: None  # type: ignore[attr-defined]
    return Kind


def _of_the_object(tf: Any, called: list[Any]) -> type:
    class Kind(tf.estimator.Estimator):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.__class__._assert_members_are_not_overridden = staticmethod(lambda _: None)
            super().__init__(*args, **kwargs)

        def evaluate(self, *args: Any, **kwargs: Any) -> Any:
            found = super().evaluate(*args, **kwargs)
            called.append(sorted(found))
            return found

    return Kind


def _inherited(tf: Any, called: list[Any]) -> type:
    class Middle(tf.estimator.Estimator):  # type: ignore[misc]
        def evaluate(self, *args: Any, **kwargs: Any) -> Any:
            called.append("evaluate")
            return super().evaluate(*args, **kwargs)

    class Kind(Middle):
        pass

    return Kind


def _of_latest_checkpoint(tf: Any, called: list[Any]) -> type:
    class Kind(tf.estimator.Estimator):  # type: ignore[misc]
        def latest_checkpoint(self) -> Any:
            return super().latest_checkpoint()

    return Kind


def _model_fn_method(tf: Any, called: list[Any]) -> type:
    class Kind(_open(tf)):  # type: ignore[misc]
        def __init__(self, _: Any, folder: str) -> None:
            super().__init__(model_fn=self._model_fn, model_dir=folder)

        def _model_fn(self, features: Any, labels: Any, mode: str, config: Any) -> Any:
            called.append(mode)
            return spec(tf, features, labels, mode, 0.01)

    return Kind


def _call_model_fn(tf: Any, called: list[Any]) -> type:
    class Kind(_open(tf)):  # type: ignore[misc]
        def _call_model_fn(self, features: Any, labels: Any, mode: str, config: Any) -> Any:
            called.append(mode)
            return super()._call_model_fn(features * 2.0, labels, mode, config)

    return Kind


def _call_input_fn(tf: Any, called: list[Any]) -> type:
    class Kind(_open(tf)):  # type: ignore[misc]
        def _call_input_fn(self, input_fn: Any, mode: str, input_context: Any = None) -> Any:
            called.append(mode)
            return super()._call_input_fn(input_fn, mode).take(2)

    return Kind


def _create_global_step(tf: Any, called: list[Any]) -> type:
    class Kind(_open(tf)):  # type: ignore[misc]
        def _create_global_step(self, graph: Any) -> Any:
            called[:] = [graph is tf.get_default_graph()]
            return super()._create_global_step(graph)

    return Kind


def _train_with_estimator_spec(tf: Any, called: list[Any]) -> type:
    """As those of Horovod train: in a session of their own."""

    class Kind(_open(tf)):  # type: ignore[misc]
        def _train_with_estimator_spec(
            self,
            estimator_spec: Any,
            worker_hooks: Any,
            hooks: Any,
            global_step_tensor: Any,
            saving_listeners: Any,
        ) -> Any:
            if self._warm_start_settings:
                tf.train.warm_start(*self._warm_start_settings)
            tf.add_to_collection(tf.GraphKeys.LOSSES, estimator_spec.loss)
            worker_hooks.extend(hooks)
            worker_hooks.append(tf.train.NanTensorHook(estimator_spec.loss))
            worker_hooks.append(
                tf.train.LoggingTensorHook(
                    {"loss": estimator_spec.loss, "step": global_step_tensor}, every_n_iter=100
                )
            )
            worker_hooks.extend(estimator_spec.training_hooks)
            saver = tf.train.CheckpointSaverHook(
                self._model_dir,
                save_secs=self._config.save_checkpoints_secs,
                save_steps=self._config.save_checkpoints_steps,
                scaffold=estimator_spec.scaffold,
            )
            with tf.train.MonitoredTrainingSession(
                master=self._config.master,
                is_chief=self._config.is_chief,
                checkpoint_dir=self._model_dir,
                scaffold=estimator_spec.scaffold,
                hooks=worker_hooks,
                chief_only_hooks=(saver, *estimator_spec.training_chief_hooks),
                save_checkpoint_secs=0,
                save_summaries_steps=self._config.save_summary_steps,
                config=self._session_config,
                log_step_count_steps=self._config.log_step_count_steps,
            ) as session:
                loss = None
                while not session.should_stop():
                    _, loss = session.run([estimator_spec.train_op, estimator_spec.loss])
                    called.append(round(float(loss), 5))
            return loss

    return Kind


def _train_model_default(tf: Any, called: list[Any]) -> type:
    """Builds the graph itself, and leaves the training to the base class."""

    class Kind(_open(tf)):  # type: ignore[misc]
        def _train_model_default(self, input_fn: Any, hooks: Any, saving_listeners: Any) -> Any:
            worker_hooks: list[Any] = []
            with tf.Graph().as_default() as graph, graph.device(self._device_fn):
                tf.set_random_seed(self._config.tf_random_seed)
                step = self._create_and_assert_global_step(graph)
                features, labels, input_hooks = self._get_features_and_labels_from_input_fn(
                    input_fn, tf.estimator.ModeKeys.TRAIN
                )
                worker_hooks.extend(input_hooks)
                mode = tf.estimator.ModeKeys.TRAIN
                made = self._call_model_fn(features, labels, mode, self.config)
                called.append(step is tf.train.get_global_step(graph))
                return self._train_with_estimator_spec(
                    made, worker_hooks, hooks, step, saving_listeners
                )

    return Kind


def _train(tf: Any, called: list[Any]) -> type:
    """Overrides the public method, with the base class's steps."""

    class Kind(_open(tf)):  # type: ignore[misc]
        def train(self, input_fn: Any, hooks: Any = None, steps: Any = None) -> Any:
            hooks = [*(hooks or []), *self._convert_train_steps_to_hooks(steps, None)]
            loss = self._train_model(input_fn, hooks, [])
            called.append(round(float(loss), 5))
            return self

    return Kind


def _train_model(tf: Any, called: list[Any]) -> type:
    class Kind(_open(tf)):  # type: ignore[misc]
        def _train_model(self, input_fn: Any, hooks: Any, saving_listeners: Any) -> Any:
            called.append([type(hook).__name__ for hook in hooks])
            return super()._train_model(input_fn, hooks, saving_listeners)

    return Kind


def _assigned(name: str, value: Callable[[Any, Any], Any]) -> Callable[[Any, list[Any]], type]:
    """A subclass that assigns a private member after its base class has been initialized."""

    def kind(tf: Any, called: list[Any]) -> type:
        class Kind(tf.estimator.Estimator):  # type: ignore[misc]
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                setattr(self, name, value(tf, self))

        return Kind

    return kind


def _rates(tf: Any, called: list[Any]) -> type:
    """Assigns another `model_fn` and other parameters between two trainings."""

    def by_params(features: Any, labels: Any, mode: str, params: Any) -> Any:
        return spec(tf, features, labels, mode, params["rate"])

    class Kind(_open(tf)):  # type: ignore[misc]
        def __init__(self, model_fn: Any, folder: str) -> None:
            super().__init__(by_params, folder, params={"rate": 0.1})

        def train(self, *args: Any, **kwargs: Any) -> Any:
            for rate in (0.05, 0.01):
                self._params["rate"] = rate
                super().train(*args, **kwargs)
            self._model_fn = model_fn_of(tf, rate=0.002)
            return super().train(*args, **kwargs)

    return Kind


def _elsewhere(tf: Any, estimator: Any) -> str:
    return os.path.join(estimator.model_dir, "elsewhere")


def _warm(tf: Any, estimator: Any) -> Any:
    first = os.path.join(estimator.model_dir, "first")
    tf.estimator.Estimator(model_fn_of(tf), first).train(lambda: rows(tf), steps=2)
    return tf.estimator.WarmStartSettings(first)


SUBCLASSES: dict[str, Callable[[Any, list[Any]], type]] = {
    "the class lets it override train": _of_the_class,
    "the object lets it override evaluate": _of_the_object,
    "a class between overrides evaluate": _inherited,
    "overrides latest_checkpoint": _of_latest_checkpoint,
    "_model_fn is a method": _model_fn_method,
    "overrides _call_model_fn": _call_model_fn,
    "overrides _call_input_fn": _call_input_fn,
    "overrides _create_global_step": _create_global_step,
    "overrides _train_with_estimator_spec": _train_with_estimator_spec,
    "overrides _train_model_default": _train_model_default,
    "overrides _train_model": _train_model,
    "overrides train with the steps": _train,
    "assigns _model_fn": _assigned("_model_fn", lambda tf, _: model_fn_of(tf, rate=0.01)),
    "assigns _model_dir": _assigned("_model_dir", _elsewhere),
    "assigns _warm_start_settings": _assigned("_warm_start_settings", _warm),
    "assigns _session_config": _assigned("_session_config", lambda tf, _: tf.ConfigProto()),
    "assigns _config": _assigned("_config", lambda tf, each: each.config.replace(tf_random_seed=3)),
    "assigns _device_fn": _assigned("_device_fn", lambda tf, _: lambda op: "/device:CPU:0"),
    "assigns _params": _assigned("_params", lambda tf, _: {"unused": 1}),
    "assigns _train_distribution": _assigned("_train_distribution", lambda tf, _: None),
    "assigns another model_fn and params between trainings": _rates,
}


def run_subclass(tf: Any, folder: str, name: str) -> dict[str, Any]:
    """Trains, evaluates and predicts with a subclass."""
    called: list[Any] = []
    estimator = SUBCLASSES[name](tf, called)(model_fn_of(tf), folder)
    estimator.train(lambda: rows(tf), steps=3)
    found = estimator.evaluate(lambda: rows(tf))
    predicted = next(estimator.predict(lambda: rows(tf)))
    return {
        "called": called,
        "loss": float(found["loss"]),
        "step": int(found["global_step"]),
        "predicted": np.asarray(predicted, np.float64).tolist(),
        "folder": os.path.relpath(estimator.model_dir, folder),
        "weight": estimator.get_variable_value("w").astype(np.float64).tolist(),
    }


# -- heads of users


def _twice(tf: Any, base: str) -> Any:
    class Kind(getattr(tf.estimator, base)):  # type: ignore[misc]
        def loss(
            self,
            labels: Any,
            logits: Any,
            features: Any = None,
            mode: Any = None,
            regularization_losses: Any = None,
        ) -> Any:
            assert mode in ("train", "eval", None)
            return 2.0 * super().loss(labels, logits, features, mode, regularization_losses)

    return Kind


def _own_metric(tf: Any, base: str) -> Any:
    class Kind(getattr(tf.estimator, base)):  # type: ignore[misc]
        def metrics(self, regularization_losses: Any = None) -> Any:
            made = super().metrics(regularization_losses=regularization_losses)
            made["greatest"] = tf.keras.metrics.Mean(name="greatest")
            return made

        def update_metrics(
            self,
            eval_metrics: Any,
            features: Any,
            logits: Any,
            labels: Any,
            regularization_losses: Any = None,
        ) -> Any:
            eval_metrics["greatest"].update_state(tf.reduce_max(logits))
            return super().update_metrics(
                eval_metrics, features, logits, labels, regularization_losses
            )

    return Kind


def _own_losses(tf: Any, base: str) -> Any:
    class Kind(getattr(tf.estimator, base)):  # type: ignore[misc]
        def _unweighted_loss_and_weights(self, logits: Any, label_ids: Any, features: Any) -> Any:
            losses, weights = super()._unweighted_loss_and_weights(logits, label_ids, features)
            return losses * 3.0, weights

    return Kind


def _own_labels(tf: Any, base: str) -> Any:
    class Kind(getattr(tf.estimator, base)):  # type: ignore[misc]
        def _processed_labels(self, logits: Any, labels: Any) -> Any:
            return super()._processed_labels(logits, 1 - labels)

    return Kind


def _own_predictions(tf: Any, base: str) -> Any:
    class Kind(getattr(tf.estimator, base)):  # type: ignore[misc]
        def predictions(self, logits: Any, *keys: Any) -> Any:
            found = super().predictions(logits, *keys)
            halves = {"predictions", "logistic"}
            return {key: each * 0.5 if key in halves else each for key, each in found.items()}

    return Kind


def _own_arguments(tf: Any, base: str) -> Any:
    class Kind(getattr(tf.estimator, base)):  # type: ignore[misc]
        def create_estimator_spec(
            self,
            features: Any,
            mode: str,
            logits: Any,
            labels: Any = None,
            optimizer: Any = None,
            trainable_variables: Any = None,
            train_op_fn: Any = None,
            update_ops: Any = None,
        ) -> Any:
            return super().create_estimator_spec(
                features,
                mode,
                logits * 2.0,
                labels=labels,
                optimizer=optimizer,
                trainable_variables=trainable_variables,
                train_op_fn=train_op_fn,
                update_ops=update_ops,
            )

    return Kind


HEADS: dict[str, Callable[[Any, str], Any]] = {
    "no override": lambda tf, base: getattr(tf.estimator, base),
    "loss": _twice,
    "metrics": _own_metric,
    "_unweighted_loss_and_weights": _own_losses,
    "_processed_labels": _own_labels,
    "predictions": _own_predictions,
    "create_estimator_spec": _own_arguments,
}
BASES = ("RegressionHead", "BinaryClassHead", "LogisticRegressionHead", "PoissonRegressionHead")


def run_head(tf: Any, version_2: Any, folder: str, name: str, base: str) -> dict[str, float]:
    """The metrics of a linear model of version 2 with a head of a user's, after three steps."""
    columns = [version_2.feature_column.numeric_column("x", (2,))]
    head = HEADS[name](tf, base)()
    optimizer = version_2.keras.optimizers.legacy.SGD(0.01)
    estimator = version_2.estimator.LinearEstimator(head, columns, folder, optimizer)

    def input_fn() -> Any:
        return rows(tf).map(lambda x, y: ({"x": x}, y))

    estimator.train(input_fn, steps=3)
    found = {key: float(value) for key, value in estimator.evaluate(input_fn).items()}
    predicted = next(estimator.predict(input_fn))
    numbers = {key: each for key, each in predicted.items() if np.asarray(each).dtype.kind == "f"}
    return {**found, **{f"predicted {key}": float(np.sum(each)) for key, each in numbers.items()}}


# -- summaries


def _tags(tf: Any, folder: str) -> dict[str, Any]:
    """The steps of each scalar in a folder's event files."""
    steps: dict[str, list[int]] = {}
    for path in sorted(glob.glob(os.path.join(folder, "events*"))):
        for event in tf.train.summary_iterator(path):
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    steps.setdefault(value.tag, []).append(event.step)
    return dict(sorted(steps.items()))


def _every(count: int) -> Callable[[Any, str], dict[str, Any]]:
    def run(tf: Any, folder: str) -> dict[str, Any]:
        config = tf.estimator.RunConfig(save_summary_steps=count)
        estimator = tf.estimator.Estimator(model_fn_of(tf), folder, config)
        for _ in range(2):
            estimator.train(lambda: rows(tf, 20), steps=5)
        return {"loss": _tags(tf, folder)["loss"]}

    return run


def _own_summary(tf: Any, folder: str) -> dict[str, Any]:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        made = spec(tf, features, labels, mode)
        tf.summary.scalar("own", made.loss)
        return made

    config = tf.estimator.RunConfig(save_summary_steps=2)
    tf.estimator.Estimator(model_fn, folder, config).train(lambda: rows(tf, 20), steps=5)
    found = _tags(tf, folder)
    return {"loss": found["loss"], "own": found["own"]}


def _speed(tf: Any, folder: str) -> dict[str, Any]:
    estimator = tf.estimator.Estimator(model_fn_of(tf), folder)
    hook = tf.train.StepCounterHook(every_n_steps=4, output_dir=os.path.join(folder, "speed"))
    estimator.train(lambda: rows(tf, 14), hooks=[hook])
    tf.summary.FileWriterCache.clear()
    return _tags(tf, os.path.join(folder, "speed"))


def _premade(name: str, **given: Any) -> Callable[[Any, str], dict[str, Any]]:
    def run(tf: Any, folder: str) -> dict[str, Any]:
        columns = [tf.feature_column.numeric_column("x", (2,))]
        words = {key: columns if value == "columns" else value for key, value in given.items()}
        estimator = getattr(tf.estimator, name)(model_dir=folder, **words)

        def input_fn() -> Any:
            return rows(tf).map(lambda x, y: ({"x": x}, tf.cast(y, tf.int64)))

        estimator.train(input_fn, steps=2)
        found = estimator.evaluate(input_fn)
        tags = _tags(tf, folder)
        other = ("fraction_of_zero", "/sec")
        shown = {tag: each for tag, each in tags.items() if not any(name in tag for name in other)}
        return {
            "metrics": sorted(found),
            "training": shown,
            "evaluation": sorted(_tags(tf, os.path.join(folder, "eval"))),
        }

    return run


_LINEAR: dict[str, Any] = {"feature_columns": "columns"}
_DEEP: dict[str, Any] = {"feature_columns": "columns", "hidden_units": [2]}
_BOTH: dict[str, Any] = {
    "linear_feature_columns": "columns",
    "dnn_feature_columns": "columns",
    "dnn_hidden_units": [2],
}

SUMMARIES: dict[str, Callable[[Any, str], dict[str, Any]]] = {
    "every step": _every(1),
    "every second step": _every(2),
    "every third step": _every(3),
    "every hundredth step": _every(100),
    "a summary of the model": _own_summary,
    "a counter of steps": _speed,
    "LinearRegressor": _premade("LinearRegressor", **_LINEAR),
    "LinearClassifier": _premade("LinearClassifier", **_LINEAR),
    "DNNRegressor": _premade("DNNRegressor", **_DEEP),
    "DNNClassifier": _premade("DNNClassifier", **_DEEP, n_classes=3),
    "DNNLinearCombinedRegressor": _premade("DNNLinearCombinedRegressor", **_BOTH),
    "DNNLinearCombinedClassifier": _premade("DNNLinearCombinedClassifier", **_BOTH),
    "BaselineRegressor": _premade("BaselineRegressor"),
    "BaselineClassifier": _premade("BaselineClassifier"),
}


# -- log messages


def _repeat(function: Any, level: int, message: str) -> None:
    for number in range(5):
        function(level, message, 2, number)


def log(tf: Any, folder: str) -> dict[str, Any]:
    """Levels, and which messages are shown at which."""
    shown: list[Any] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            shown.append([record.levelname, record.getMessage()])

    logger = tf.get_logger()
    before, handler = logger.level, Handler()
    logger.addHandler(handler)
    try:
        for level in (logging.ERROR, tf.logging.INFO, vars(tf.logging)["WARN"], "DEBUG"):
            tf.logging.set_verbosity(level)
            shown.append(tf.logging.get_verbosity())
            for name in ("debug", "info", "warn", "error", "fatal"):
                getattr(tf.logging, name)("%s at %s", name, level)
        _repeat(tf.logging.log_every_n, tf.logging.INFO, "every second: %d")
        _repeat(tf.logging.log_first_n, tf.logging.INFO, "the first two: %d")
        tf.logging.log(tf.logging.WARN, "logged")
        tf.logging.vlog(tf.logging.INFO, "also logged")
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)
    levels = {name: vars(tf.logging)[name] for name in ("DEBUG", "INFO", "WARN", "ERROR", "FATAL")}
    return {"levels": levels, "shown": shown}
