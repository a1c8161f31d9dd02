"""Programs with `train_and_evaluate`, as functions of the module that they use as `tf`.

Each gives what happened, in order ('train', ['evaluate', name, step], ['save', step],
['export', name, step, final]), and what the call returned.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from typing import Any

SCORES = [9.0, 5.0, 3.0, 4.0, 6.0, 6.5, 7.0, 8.0, 9.0]
"""The loss that evaluations find after 0, 10, 20, ... steps."""


class Story:
    """An estimator whose evaluations are known beforehand, and what is asked of it."""

    def __init__(self, tf: Any, folder: str, **config: Any) -> None:
        self.tf = tf
        self.events: list[Any] = []
        story = self

        settings = {
            "tf_random_seed": 1,
            "save_checkpoints_steps": 10,
            "save_summary_steps": None,
            "log_step_count_steps": None,
            **config,
        }
        self.estimator = tf.estimator.Estimator(
            self._model_fn, folder, tf.estimator.RunConfig(**settings)
        )
        evaluate, train = self.estimator.evaluate, self.estimator.train

        def recorded_evaluate(*args: Any, **kwargs: Any) -> Any:
            result = evaluate(*args, **kwargs)
            story.events.append(["evaluate", kwargs.get("name"), int(result["global_step"])])
            return result

        def recorded_train(*args: Any, **kwargs: Any) -> Any:
            story.events.append("train")
            return train(*args, **kwargs)

        self.estimator.evaluate = recorded_evaluate
        self.estimator.train = recorded_train

    def _model_fn(self, features: Any, labels: Any, mode: str) -> Any:
        tf = self.tf
        step = tf.train.get_or_create_global_step()
        at = tf.minimum(tf.cast(step, tf.int32) // 10, len(SCORES) - 1)
        score = tf.gather(tf.constant(SCORES, tf.float32), at)
        loss = score + 0.0 * tf.reduce_mean(features)
        metrics = {"score": tf.metrics.mean(score)} if mode == "eval" else None
        with tf.control_dependencies([loss]):
            train_op = tf.assign_add(step, 1) if mode == "train" else None
        return tf.estimator.EstimatorSpec(
            mode, {"features": features}, loss, train_op, eval_metric_ops=metrics
        )

    def exporter(self, name: str, kind: str, **arguments: Any) -> Any:
        """One of TensorFlow's exporters; what it would export is noted, not exported."""
        exporter = getattr(self.tf.estimator, kind)(
            name=name, serving_input_receiver_fn=lambda: None, **arguments
        )
        story = self

        class Noted(self.tf.estimator.Exporter):  # type: ignore[misc,name-defined]
            @property
            def name(self) -> str:
                return name

            def export(
                self,
                estimator: Any,
                export_path: Any,
                checkpoint_path: Any,
                eval_result: Any,
                is_the_final_export: bool,
            ) -> Any:
                fake = _Exporting(estimator.model_dir)
                made = exporter.export(
                    fake, export_path, checkpoint_path, eval_result, is_the_final_export
                )
                if fake.exported:
                    step = int(eval_result["global_step"])
                    story.events.append(["export", name, step, bool(is_the_final_export)])
                return made

        return Noted()

    def train_and_evaluate(self, train: dict[str, Any], evaluate: dict[str, Any]) -> Any:
        """Calls it; gives the events and the keys and values of the result."""
        estimator = self.tf.estimator
        result, exports = estimator.train_and_evaluate(
            self.estimator,
            estimator.TrainSpec(**{"input_fn": self.batches(), **train}),
            estimator.EvalSpec(**{"input_fn": self.batches(2), **evaluate}),
        )
        metrics = None if result is None else {key: float(result[key]) for key in sorted(result)}
        names = None if exports is None else [_name(each) for each in exports]
        return {"events": self.events, "metrics": metrics, "exports": names}

    def batches(self, count: int | None = None) -> Callable[[], Any]:
        """An input function of so many batches; without end by default."""
        return lambda: self.tf.data.Dataset.from_tensor_slices([1.0, 2.0]).batch(2).repeat(count)


class _Exporting:
    """Stands for the estimator in the eyes of an exporter."""

    def __init__(self, model_dir: str) -> None:
        self.model_dir = model_dir
        self.exported = 0

    def export_saved_model(self, export_path: Any, *args: Any, **kwargs: Any) -> bytes:
        """Makes a folder with a file."""
        self.exported += 1
        number = 1_500_000_000
        while os.path.exists(os.path.join(export_path, str(number))):
            number += 1
        os.makedirs(os.path.join(export_path, str(number)))
        with open(os.path.join(export_path, str(number), "saved_model.pb"), "w"):
            pass
        return os.fsencode(os.path.join(export_path, str(number)))


def _name(path: Any) -> str | None:
    return None if path is None else os.path.basename(os.path.dirname(os.fsdecode(path)))


def _three_exporters(story: Story) -> list[Any]:
    return [
        story.exporter("latest", "LatestExporter", exports_to_keep=2),
        story.exporter("final", "FinalExporter"),
        story.exporter("best", "BestExporter"),
    ]


def every_checkpoint(tf: Any, folder: str) -> Any:
    """Not throttled: each checkpoint but the first is evaluated and exported."""
    story = Story(tf, folder)
    evaluate = {"throttle_secs": 0, "exporters": _three_exporters(story)}
    result = story.train_and_evaluate({"max_steps": 50}, evaluate)
    kept = {name: len(os.listdir(f"{folder}/export/{name}")) for name in ("latest", "final")}
    return {**result, "kept": kept}


def throttled(tf: Any, folder: str) -> Any:
    """Throttled: the first checkpoint after the start, and the last."""
    story = Story(tf, folder)
    evaluate = {"throttle_secs": 600, "exporters": _three_exporters(story)}
    return story.train_and_evaluate({"max_steps": 50}, evaluate)


def last_step_between_checkpoints(tf: Any, folder: str) -> Any:
    """The last checkpoint is one more."""
    story = Story(tf, folder)
    return story.train_and_evaluate({"max_steps": 25}, {"throttle_secs": 0, "name": "test"})


def one_checkpoint(tf: Any, folder: str) -> Any:
    """A training that ends before its first checkpoint is evaluated once."""
    story = Story(tf, folder)
    evaluate = {"exporters": _three_exporters(story)}
    return story.train_and_evaluate({"max_steps": 7}, evaluate)


def steps_of_an_endless_input(tf: Any, folder: str) -> Any:
    """An evaluation of three batches."""
    story = Story(tf, folder)
    evaluate = {"input_fn": story.batches(), "steps": 3, "throttle_secs": 0}
    return story.train_and_evaluate({"max_steps": 20}, evaluate)


def input_ends(tf: Any, folder: str) -> Any:
    """The input ends the training, at a checkpoint of its own."""
    story = Story(tf, folder)
    evaluate = {"throttle_secs": 0, "exporters": _three_exporters(story)[:2]}
    train = {"input_fn": story.batches(25), "max_steps": 50}
    return story.train_and_evaluate(train, evaluate)


def no_max_steps(tf: Any, folder: str) -> Any:
    """The input ends a training that has no other end."""
    story = Story(tf, folder)
    evaluate = {"throttle_secs": 0, "exporters": _three_exporters(story)[:2]}
    return story.train_and_evaluate({"input_fn": story.batches(20)}, evaluate)


def resumed(tf: Any, folder: str) -> Any:
    """A second call with more steps."""
    Story(tf, folder).train_and_evaluate({"max_steps": 20}, {"throttle_secs": 0})
    story = Story(tf, folder)
    return story.train_and_evaluate({"max_steps": 50}, {"throttle_secs": 0})


def a_listener_ends_it(tf: Any, folder: str) -> Any:
    """A listener of checkpoints that wants the training to end is asked before the evaluation."""
    story = Story(tf, folder)

    class Ends(tf.train.CheckpointSaverListener):  # type: ignore[misc]
        def after_save(self, session: Any, global_step_value: int) -> bool:
            story.events.append(["save", int(global_step_value)])
            return bool(global_step_value >= 30)

    train = {"max_steps": 80, "saving_listeners": [Ends()]}
    return story.train_and_evaluate(train, {"throttle_secs": 0})


def _stopped(tf: Any, folder: str, name: str, *arguments: Any, **keywords: Any) -> Any:
    story = Story(tf, folder)
    make = getattr(tf.estimator.experimental, name)
    hook = make(story.estimator, *arguments, run_every_secs=None, run_every_steps=1, **keywords)
    train = {"max_steps": 80, "hooks": [hook]}
    return story.train_and_evaluate(train, {"throttle_secs": 0})


def stop_if_no_decrease(tf: Any, folder: str) -> Any:
    """The loss is lowest at step 20, and 20 steps later that is long enough."""
    return _stopped(tf, folder, "stop_if_no_decrease_hook", "loss", 20)


def stop_if_no_decrease_from(tf: Any, folder: str) -> Any:
    """Evaluations before step 30 do not count."""
    return _stopped(tf, folder, "stop_if_no_decrease_hook", "loss", 20, min_steps=30)


def stop_if_no_increase(tf: Any, folder: str) -> Any:
    """The score falls at once."""
    return _stopped(tf, folder, "stop_if_no_increase_hook", "score", 20)


def stop_if_lower(tf: Any, folder: str) -> Any:
    """The loss is 3 at step 20."""
    return _stopped(tf, folder, "stop_if_lower_hook", "loss", 3.5)


def stop_if_higher(tf: Any, folder: str) -> Any:
    """The score is 7 at step 60; at the threshold, 6.5, it is not above it."""
    return _stopped(tf, folder, "stop_if_higher_hook", "score", 6.5)


def evaluations_in_memory(tf: Any, folder: str) -> Any:
    """The losses that an `InMemoryEvaluatorHook` writes, by step, as event files have them."""
    story = Story(tf, folder)
    hook = tf.estimator.experimental.InMemoryEvaluatorHook(
        story.estimator, story.batches(2), name="live", every_n_iter=20
    )
    story.estimator.train(story.batches(), hooks=[hook], max_steps=50)
    found = {}
    for file in glob.glob(f"{folder}/eval_live/*.tfevents.*"):
        for event in tf.train.summary_iterator(file):
            for value in event.summary.value:
                if value.tag == "loss":
                    found[str(event.step)] = value.simple_value
    return {key: found[key] for key in sorted(found, key=int)}


SNIPPETS: Sequence[Callable[[Any, str], Any]] = (
    *(every_checkpoint, throttled, last_step_between_checkpoints, one_checkpoint),
    *(steps_of_an_endless_input, input_ends, no_max_steps, resumed, a_listener_ends_it),
    *(stop_if_no_decrease, stop_if_no_decrease_from, stop_if_no_increase, stop_if_lower),
    *(stop_if_higher, evaluations_in_memory),
)


def _input() -> None:
    return None


class _Named:
    """Exporters with names."""

    @staticmethod
    def of(tf: Any, *names: Any) -> list[Any]:
        """One for each name."""
        return [tf.estimator.FinalExporter(name, _input) for name in names]


ERRORS: dict[str, Callable[[Any], Any]] = {
    "train: input_fn": lambda tf: tf.estimator.TrainSpec("input_fn"),
    "train: max_steps": lambda tf: tf.estimator.TrainSpec(_input, max_steps=0),
    "train: hooks": lambda tf: tf.estimator.TrainSpec(_input, hooks=["hook"]),
    "train: saving_listeners": lambda tf: tf.estimator.TrainSpec(
        _input, saving_listeners=["listener"]
    ),
    "eval: input_fn": lambda tf: tf.estimator.EvalSpec("input_fn"),
    "eval: steps": lambda tf: tf.estimator.EvalSpec(_input, steps=-1),
    "eval: name": lambda tf: tf.estimator.EvalSpec(_input, name=7),
    "eval: hooks": lambda tf: tf.estimator.EvalSpec(_input, hooks=["hook"]),
    "eval: start_delay_secs": lambda tf: tf.estimator.EvalSpec(_input, start_delay_secs=-1),
    "eval: throttle_secs": lambda tf: tf.estimator.EvalSpec(_input, throttle_secs=-1),
    "eval: no exporter": lambda tf: tf.estimator.EvalSpec(_input, exporters="exporter"),
    "eval: exporter of another type": lambda tf: tf.estimator.EvalSpec(_input, exporters=[None]),
    "eval: exporter without name": lambda tf: tf.estimator.EvalSpec(
        _input, exporters=_Named.of(tf, "")
    ),
    "eval: exporter with a number": lambda tf: tf.estimator.EvalSpec(
        _input, exporters=_Named.of(tf, 7)
    ),
    "eval: two exporters of a name": lambda tf: tf.estimator.EvalSpec(
        _input, exporters=_Named.of(tf, "a", "b", "a")
    ),
    "train_and_evaluate: eval_spec": lambda tf: tf.estimator.train_and_evaluate(
        None, tf.estimator.TrainSpec(_input), "eval_spec"
    ),
    "train_and_evaluate: estimator": lambda tf: tf.estimator.train_and_evaluate(
        "estimator", tf.estimator.TrainSpec(_input), tf.estimator.EvalSpec(_input)
    ),
    "latest: exports_to_keep": lambda tf: tf.estimator.LatestExporter(
        "latest", _input, exports_to_keep=0
    ),
    "best: exports_to_keep": lambda tf: tf.estimator.BestExporter(
        serving_input_receiver_fn=_input, exports_to_keep=0
    ),
    "best: no compare_fn": lambda tf: tf.estimator.BestExporter(compare_fn=None),
    "best: compare_fn without best": lambda tf: tf.estimator.BestExporter(
        compare_fn=lambda current_eval_result: True
    ),
    "best: compare_fn without current": lambda tf: tf.estimator.BestExporter(
        compare_fn=lambda best_eval_result: True
    ),
    "best: compare_fn of three": lambda tf: tf.estimator.BestExporter(
        compare_fn=lambda best_eval_result, current_eval_result, more: True
    ),
    "early stopping: estimator": lambda tf: tf.estimator.experimental.make_early_stopping_hook(
        "estimator", lambda: True
    ),
    "early stopping: both": lambda tf: tf.estimator.experimental.make_early_stopping_hook(
        _estimator(tf), lambda: True, run_every_secs=60, run_every_steps=100
    ),
    "early stopping: neither": lambda tf: tf.estimator.experimental.make_early_stopping_hook(
        _estimator(tf), lambda: True, run_every_secs=None
    ),
    "early stopping: no function": lambda tf: tf.estimator.experimental.make_early_stopping_hook(
        _estimator(tf), True
    ),
    "add_metrics: arguments": lambda tf: tf.estimator.add_metrics(
        _estimator(tf), lambda labels, weights: {}
    ),
    "in memory: every_n_iter": lambda tf: tf.estimator.experimental.InMemoryEvaluatorHook(
        _estimator(tf), _input, every_n_iter=0
    ),
}


def _estimator(tf: Any) -> Any:
    return tf.estimator.Estimator(lambda features: None, "model_dir")
