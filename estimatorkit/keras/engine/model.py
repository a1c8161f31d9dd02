"""`Model`: layers composed into a model that can be trained and evaluated (`tf.keras.Model`).

A functional model is built from inputs and outputs and has a `Network`. A subclass has layers as
attributes and computes in `call`. Both are layers. The values of variables live in the session of
their graph (`layers.engine.sessions`). This module contains training, evaluation and prediction;
`model_structure` the layers and weights, `model_files` saving.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from estimatorkit.core import builtin_ops
from estimatorkit.core.errors import value_error
from estimatorkit.core.nest import map_structure
from estimatorkit.data.spec import SparseTensorSpec, flatten as flatten_specs
from estimatorkit.keras.engine import training
from estimatorkit.keras.engine.added_terms import AddMetric
from estimatorkit.keras.engine.compiled import map_leaves
from estimatorkit.keras.engine.data_adapter import Batches, batches_of, split_off
from estimatorkit.keras.engine.model_files import ModelFiles
from estimatorkit.keras.engine.model_structure import ModelStructure
from estimatorkit.layers.engine.base import Layer
from estimatorkit.ops.sparse.sparse import sparse_placeholder


class Model(ModelFiles, ModelStructure):
    """Layers composed into a model (`tf.keras.Model`).

    Args:
        args, kwargs: `inputs` and `outputs`, tensors or structures of them, for a functional model;
            nothing for subclasses, which compute in `call`. `name`, `trainable`: as for `Layer`.

    Example:
        ```python
        inputs = keras.Input([784])
        outputs = keras.layers.Dense(10, activation="softmax")(inputs)
        model = keras.Model(inputs, outputs)
        model.compile("adam", "sparse_categorical_crossentropy", ["accuracy"])
        model.fit(images, labels, epochs=3)
        ```
    """

    _untracked = ModelStructure._untracked | {
        "_compiled",
        "_trainable_as_compiled",
        "_steps",
        "history",
        "callbacks",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._compiled: training.Compiled | None = None
        self._trainable_as_compiled: tuple[tuple[Layer, bool], ...] = ()
        self._steps: dict[Any, training.Step] = {}
        self.stop_training = False
        self.history: Any = None

    def _set_network(self, inputs: Any, outputs: Any) -> None:
        super()._set_network(inputs, outputs)
        self._steps = {}

    def _extend_network(self, outputs: Any) -> None:
        super()._extend_network(outputs)
        self._steps = {}

    @property
    def metrics(self) -> list[Any]:
        """The metrics passed to `compile`, available after their first use."""
        return [] if self._compiled is None else list(self._compiled.metric_objects)

    @property
    def metrics_names(self) -> list[str]:
        """The names of the results of `evaluate`.

        Before the model was trained or evaluated, those of `compile` alone; of a model that defines
        `call` in Python the loss alone.
        """
        for (kind, *_), step in self._steps.items():
            if kind in ("train", "test"):
                return list(step.names)
        if self._compiled is None or self._network is None:
            return ["loss"]
        added = [
            each.metric_name or each._metric.name
            for each in self.layers
            if isinstance(each, AddMetric)
        ]
        network = self._network
        outputs = self.output_names_of(network.outputs)
        return [*self._compiled.names_for(outputs, network.output_tensors), *added]

    def reset_metrics(self) -> None:
        """Resets the state of the metrics."""
        for step in self._steps.values():
            step.reset()

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        metrics: Any = None,
        loss_weights: Any = None,
        sample_weight_mode: Any = None,
        weighted_metrics: Any = None,
        target_tensors: Any = None,
        distribute: Any = None,
        run_eagerly: bool | None = None,
        steps_per_execution: Any = None,
        jit_compile: Any = None,
    ) -> None:
        """Configures the model for training, with the layers that are `trainable` now.

        Args:
            optimizer: a Keras optimizer, one of `tf.train`, or a name.
            loss: a name, a function `(y_true, y_pred)`, or a `keras.losses.Loss`; for several
                outputs, a list or a dict.
            metrics: names, functions or `keras.metrics.Metric`s; for several outputs, a list of
                lists or a dict. 'accuracy' is the kind that matches labels and outputs.
            loss_weights: factors of the outputs' losses.
            weighted_metrics: metrics weighted by sample and class weights.
            sample_weight_mode, steps_per_execution, jit_compile, run_eagerly: accepted for
                TensorFlow's signature; steps are always compiled, as many as possible per call.
            target_tensors, distribute: must be None.

        Raises:
            ValueError: an argument is invalid, or there is no loss with a given name.
        """
        from estimatorkit.keras import losses, optimizers
        from estimatorkit.keras.mixed_precision import LossScaleOptimizer

        if target_tensors is not None or distribute is not None:
            raise value_error(
                "compile(): target_tensors and distribute are not supported",
                hint="give (x, y) as a Dataset to fit",
            )
        if run_eagerly:
            raise ValueError("compile(): run_eagerly=True: models run as graphs here")
        map_leaves(losses.get, loss)  # raises if the name is unknown
        with self.graph.as_default():
            chosen = optimizers.get(optimizer)
            if self.compute_dtype == "float16" and not isinstance(chosen, LossScaleOptimizer):
                chosen = LossScaleOptimizer(chosen)  # without it, 16-bit gradients vanish
        self._compiled = training.Compiled(
            self, chosen, loss, metrics, loss_weights, weighted_metrics
        )
        if self._network is not None:  # raises if they do not match the outputs
            self._compiled.names_for(
                self.output_names_of(self._network.outputs), self._network.output_tensors
            )
        layers = (each for each in self.submodules_and_self() if isinstance(each, Layer))
        self._trainable_as_compiled = tuple((each, each._trainable) for each in layers)
        self._steps = {}

    @property
    def compiled(self) -> training.Compiled:
        """The arguments of `compile`.

        Raises:
            RuntimeError: `compile` was not called.
        """
        if self._compiled is None:
            raise RuntimeError(
                "You must compile your model before training/testing. Use `model.compile(optimizer,"
                " loss)`."
            )
        return self._compiled

    @property
    def optimizer(self) -> Any:
        """The optimizer; None before `compile`."""
        return None if self._compiled is None else self._compiled.optimizer

    @property
    def loss(self) -> Any:
        """The loss passed to `compile`."""
        return None if self._compiled is None else self._compiled.loss

    def training_updates(self, loss: Any) -> list[Any]:
        """The operations of a training step; override it for a model with several optimizers."""
        return self._updates_of(self.compiled.optimizer, loss, self.trainable_weights)

    @staticmethod
    def _updates_of(optimizer: Any, loss: Any, variables: Sequence[Any]) -> list[Any]:
        return training.updates_of(optimizer, loss, variables)

    def step(self, kind: str, spec: Any, class_weight: Any = None) -> training.Step:
        """Returns the cached step of a kind for batches of the structure `spec` (see
        `training.Step`)."""
        self._prepare_for(spec)
        shapes = tuple((str(each), str(each.dtype)) for each in flatten_specs(spec))
        weights = None if class_weight is None else tuple(sorted(class_weight.items()))

        def key() -> Any:
            trained = tuple(map(id, self.trainable_weights)) if kind == "train" else ()
            return kind, _structure(spec), shapes, weights, trained

        with self._as_compiled() if kind == "train" else nullcontext():
            step = self._steps.get(key())
            if step is None:
                step = training.Step(self, spec, kind, class_weight)  # may build layers
                self._steps[key()] = step
            return step

    @contextmanager
    def _as_compiled(self) -> Iterator[None]:
        """While it is entered, the layers are trainable that were so at `compile`: a generator's
        model freezes its discriminator, which continues to train on its own.
        """
        changed = [each for each in self._trainable_as_compiled if each[0]._trainable != each[1]]
        for each, was in changed:
            each._trainable = was
        try:
            yield
        finally:
            for each, was in changed:
                each._trainable = not was

    def _prepare_for(self, spec: Any) -> None:
        """Builds the model for batches of a structure before its first step."""
        if not self.built:
            part = spec[0] if isinstance(spec, tuple) else spec
            with self.graph.as_default(), self.graph.name_scope(None):
                self(map_structure(_placeholder, part), training=False)

    def _callbacks(
        self,
        given: Any,
        verbose: Any,
        batches: Batches,
        epochs: int | None = None,
        validates: bool = False,
    ) -> Any:
        """The `CallbackList` for a run: `given`, the progress output for `verbose` and, in
        training, a `History`."""
        from estimatorkit.keras.callback_list import CallbackList

        names = [] if self._compiled is None else self.metrics_names
        return CallbackList(
            given,
            add_history=epochs is not None,
            add_progbar=verbose not in (0, False),
            model=self,
            verbose=1 if verbose == "auto" else verbose,
            epochs=1 if epochs is None else epochs,
            steps=batches.steps,
            samples=batches.samples,
            batch_size=batches.batch_size,
            do_validation=validates,
            metrics=[*names, *(f"val_{name}" for name in names if validates)],
        )

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = 1,
        callbacks: Sequence[Any] | None = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: Any = True,
        class_weight: Mapping[int, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: Any = 1,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        nb_epoch: int | None = None,
    ) -> Any:
        """Trains the model.

        Args:
            x: arrays, lists or DataFrames, `(examples, ...)`, one per input (a list, or a dict by
                the inputs' names); or a `Dataset`, a generator or a `Sequence` of batches `(x, y)`
                or `(x, y, weights)`.
            y: labels `(examples, ...)`, if `x` are arrays.
            batch_size: examples per step; 32 by default.
            epochs: the number of the last epoch.
            verbose: 0 for no output, 1 or 'auto' for a progress bar, 2 for a line per epoch.
            callbacks: `keras.callbacks.Callback`s.
            validation_split: the fraction of the examples, from the end, used for validation.
            validation_data: `(x, y)`, `(x, y, weights)`, or a `Dataset`.
            shuffle: whether to shuffle arrays in every epoch; 'batch' shuffles whole batches.
            class_weight: factors of the losses by class number.
            sample_weight: factors of the losses by example.
            initial_epoch: the number of the first epoch.
            steps_per_epoch: batches per epoch; by default all.
            validation_steps, validation_batch_size: those of the validation.
            validation_freq: the interval of validations in epochs, or a list of epochs.
            max_queue_size, workers, use_multiprocessing: accepted for compatibility only.
            nb_epoch: an older name of `epochs`.

        Returns:
            A `History`: `.history` has the logs of every epoch.

        Raises:
            RuntimeError: `compile` was not called.
            ValueError: the data does not match the model.
        """
        epochs = epochs if nb_epoch is None else nb_epoch
        _ = self.compiled
        if validation_split:
            (x, y, sample_weight), validation_data = split_off(
                x, y, sample_weight, validation_split
            )
        batches = batches_of(x, y, sample_weight, batch_size, steps_per_epoch, shuffle, "fit")
        validation: Batches | None = None
        if validation_data is not None:
            given = validation_data if isinstance(validation_data, tuple) else (validation_data,)
            x_of, y_of, weights_of = (*given, None, None)[:3]
            size = validation_batch_size or batch_size
            validation = batches_of(
                x_of, y_of, weights_of, size, validation_steps, False, "evaluate"
            )
        listed = self._callbacks(callbacks, verbose, batches, epochs, validation is not None)
        self.stop_training = False

        def validate(epoch: int) -> Mapping[str, Any]:
            due = (
                (epoch + 1) % validation_freq == 0
                if isinstance(validation_freq, int)
                else epoch + 1 in validation_freq
            )
            return training.evaluate(self, validation, listed) if validation and due else {}

        try:
            training.fit(
                self,
                batches,
                epochs,
                initial_epoch,
                listed,
                class_weight,
                validate=validate if validation is not None else None,
            )
        finally:
            self.history = listed.history
        return self.history

    def fit_generator(self, generator: Any, *args: Any, **kwargs: Any) -> Any:
        """`fit` under its older name for generators."""
        names = ("steps_per_epoch", "epochs", "verbose", "callbacks", "validation_data")
        return self.fit(generator, **dict(zip(names, args, strict=False)), **kwargs)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = 1,
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Sequence[Any] | None = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        return_dict: bool = False,
    ) -> Any:
        """Computes the loss and the metrics; other arguments as for `fit`.

        Args:
            steps: the number of batches; all by default.
            return_dict: return a dict by name rather than a list in the order of `metrics_names`.

        Returns:
            The loss if there are no metrics; otherwise a list or a dict.
        """
        batches = batches_of(x, y, sample_weight, batch_size, steps, False, "evaluate")
        listed = self._callbacks(callbacks, verbose, batches)
        logs = training.evaluate(self, batches, listed)
        return logs if return_dict else _one_or_all(logs)

    def evaluate_generator(self, generator: Any, *args: Any, **kwargs: Any) -> Any:
        """`evaluate` under its older name for generators."""
        kwargs.setdefault("verbose", 0)
        return self.evaluate(generator, **dict(zip(("steps",), args, strict=False)), **kwargs)

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: Any = 0,
        steps: int | None = None,
        callbacks: Sequence[Any] | None = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
    ) -> Any:
        """Returns the outputs for all examples, as arrays in the structure of the outputs."""
        batches = batches_of(x, None, None, batch_size, steps, False, "predict")
        listed = self._callbacks(callbacks, verbose, batches)
        return training.predict(self, batches, listed)

    def predict_generator(self, generator: Any, *args: Any, **kwargs: Any) -> Any:
        """`predict` under its older name for generators."""
        return self.predict(generator, **dict(zip(("steps",), args, strict=False)), **kwargs)

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Mapping[int, float] | None = None,
        reset_metrics: bool = True,
        return_dict: bool = False,
    ) -> Any:
        """Trains on one batch; returns the loss and metrics as `evaluate` does."""
        return self._on_batch(
            "train", (x, y, sample_weight), class_weight, reset_metrics, return_dict
        )

    def test_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        reset_metrics: bool = True,
        return_dict: bool = False,
    ) -> Any:
        """Returns the loss and metrics of one batch."""
        return self._on_batch("test", (x, y, sample_weight), None, reset_metrics, return_dict)

    def _on_batch(
        self, kind: str, values: Any, class_weight: Any, reset: bool, return_dict: bool
    ) -> Any:
        x, y, sample_weight = values
        batches = batches_of(x, y, sample_weight, 1 << 30, what=f"{kind}_on_batch")
        step = self.step(kind, batches.dataset.element_spec, class_weight)
        if reset:
            step.reset()
        else:
            step.begin_epoch()
        step.start(batches.dataset)
        try:
            result = step.ready().run(1)
        finally:
            step.close()
        logs = step.logs(result.after or [column[-1] for column in result.every])
        return logs if return_dict else _one_or_all(logs)

    def predict_on_batch(self, x: Any) -> Any:
        """Returns the outputs for one batch."""
        return self.predict(x, batch_size=1 << 30)


def _placeholder(spec: Any) -> Any:
    """An input of unknown batch size."""
    make = sparse_placeholder if isinstance(spec, SparseTensorSpec) else builtin_ops.placeholder
    return make(spec.dtype, [None, *spec.shape.as_list()[1:]])


def _one_or_all(logs: Mapping[str, float]) -> Any:
    """The only value, or a list of all."""
    values = list(logs.values())
    return values[0] if len(values) == 1 else values


def _structure(spec: Any) -> str:
    """The nesting of a spec as text."""
    if isinstance(spec, Mapping):
        return "{" + ",".join(f"{key}:{_structure(value)}" for key, value in spec.items()) + "}"
    if isinstance(spec, (list, tuple)):
        return "(" + ",".join(map(_structure, spec)) + ")"
    return "*"


__all__ = ["Model"]
