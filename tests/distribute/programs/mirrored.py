"""Trainings over two replicas beside trainings of one; needs two devices (JAX_NUM_CPU_DEVICES=2).

Prints in JSON what each of `SCENARIOS` gives, or how it fails.
"""

from __future__ import annotations

import itertools
import json
import logging
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import estimatorkit as tf
from estimatorkit.core.errors import OpError
from estimatorkit.train.hooks.hooks import FinishedSteps, SessionRunHook

RNG = np.random.RandomState(0)
X = RNG.randn(512, 4).astype(np.float32)
Y = (X @ RNG.randn(4, 1) + 0.1 * RNG.randn(512, 1)).astype(np.float32)

SCENARIOS: dict[str, Callable[[], Any]] = {}


def scenario(function: Callable[[], Any]) -> Callable[[], Any]:
    """Lists a function among `SCENARIOS`."""
    SCENARIOS[function.__name__] = function
    return function


class Losses(SessionRunHook):
    """Keeps the loss of each step."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def after_steps(self, steps: FinishedSteps) -> None:
        """Takes them."""
        self.values.extend(map(float, steps.losses))


class Trained:
    """What a training came to."""

    def __init__(self, estimator: Any, losses: Sequence[float]) -> None:
        self.estimator = estimator
        self.losses = np.array(losses)
        self.variables = {
            name: estimator.get_variable_value(name) for name in estimator.get_variable_names()
        }

    def difference(self, other: Trained) -> float:
        """The largest one, of losses and variables."""
        pairs = [(self.losses, other.losses)]
        pairs += [(value, other.variables[name]) for name, value in self.variables.items()]
        return max(float(np.abs(a.astype(float) - b).max()) for a, b in pairs)


def config(strategy: Any, model_dir: str | None = None) -> Any:
    return tf.RunConfig(
        model_dir or tempfile.mkdtemp(),
        tf_random_seed=3,
        train_distribute=strategy,
        eval_distribute=strategy,
        log_step_count_steps=None,
    )


def batches(size: int) -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y)).repeat().batch(size)


def train(
    make: Callable[[Any], Any],
    strategy: Any,
    dataset: Callable[[], Any],
    steps: int | None = 20,
    hooks: Sequence[Any] = (),
    model_dir: str | None = None,
) -> Trained:
    estimator = make(config(strategy, model_dir))
    losses = Losses()
    estimator.train(dataset, max_steps=steps, hooks=[losses, *hooks])
    return Trained(estimator, losses.values)


def model(
    optimizer: Callable[[], Any] = lambda: tf.train.GradientDescentOptimizer(0.1),
    reduction: str | None = tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS,
    before: Callable[[Any, Any], Sequence[Any]] = lambda loss, outputs: (),
    layer: Callable[[Any], Any] = lambda features: features,
) -> Callable[[Any], Any]:
    """Makes an estimator of a linear model.

    Args:
        optimizer: makes its optimizer.
        reduction: of its loss; None for a mean by hand.
        before: operations before an update, from the loss and the outputs.
        layer: what comes before the linear layer.
    """

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        outputs = tf.layers.dense(layer(features), 1, name="linear")
        if reduction is None:
            loss = tf.reduce_mean(tf.square(labels - outputs))
        else:
            loss = tf.losses.mean_squared_error(labels, outputs, reduction=reduction)
        if mode == tf.estimator.ModeKeys.EVAL:
            above, chance = labels > 0, tf.sigmoid(outputs)
            metrics = {
                "mse": tf.metrics.mean_squared_error(labels, outputs),
                "auc": tf.metrics.auc(above, chance),
                "precision": tf.metrics.precision_at_thresholds(above, chance, [0.3, 0.6]),
            }
            groups = tf.cast(tf.math.floormod(features[:, :1] * 100, 7.0), tf.int64)
            names = tf.strings.as_string(groups)
            metrics["group auc"] = tf.metrics.group_auc(above, chance, groups)
            metrics["ndcg"] = tf.metrics.ndcg_at_k(above, chance, 3, groups=names)
            metrics["keras"] = tf.keras.metrics.GroupAUC()
            metrics["keras"].update_state(above, chance, groups=names)
            return tf.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
        with tf.control_dependencies([*before(loss, outputs), *tf.get_collection("update_ops")]):
            update = optimizer().minimize(loss, global_step=tf.train.get_global_step())
        return tf.EstimatorSpec(mode, loss=loss, train_op=update)

    return lambda config: tf.Estimator(model_fn, config=config)


def compared(make: Callable[[Any], Any], **options: Any) -> float:
    """The difference between two replicas with batches of 8 and one with batches of 16."""
    one = train(make, None, lambda: batches(16), **options)
    two = train(make, tf.distribute.MirroredStrategy(), lambda: batches(8), **options)
    return one.difference(two)


# -- updates are those of one process with the doubled batch


@scenario
def optimizers() -> Any:
    made = {
        "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
        "momentum": lambda: tf.train.MomentumOptimizer(0.05, 0.9),
        "adam": lambda: tf.train.AdamOptimizer(0.05),
        "ftrl": lambda: tf.train.FtrlOptimizer(0.1),
        "scaled": lambda: tf.train.experimental.MixedPrecisionLossScaleOptimizer(
            tf.train.GradientDescentOptimizer(0.1), "dynamic"
        ),
    }
    return {name: compared(model(optimizer)) for name, optimizer in made.items()}


@scenario
def reductions() -> Any:
    slow = lambda: tf.train.GradientDescentOptimizer(0.01)  # noqa: E731
    return {
        "sum": compared(model(slow, tf.losses.Reduction.SUM)),
        "mean by hand": compared(model(reduction=None)),
    }


@scenario
def keras_optimizers_leave_the_loss_as_it_is() -> Any:
    def make(config: Any) -> Any:
        def model_fn(features: Any, labels: Any, mode: str) -> Any:
            loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
            optimizer = tf.keras.optimizers.SGD(
                0.05 / tf.distribute.get_strategy().num_replicas_in_sync
            )
            optimizer.iterations = tf.train.get_or_create_global_step()
            return tf.EstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss))

        return tf.Estimator(model_fn, config=config)

    one = train(make, None, lambda: batches(16))
    two = train(make, tf.distribute.MirroredStrategy(), lambda: batches(8))
    return np.abs(one.variables["dense/kernel"] - two.variables["dense/kernel"]).max()


def tables(optimizer: Callable[[], Any], partitioner: Any) -> Callable[[Any], Any]:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        table = tf.get_variable(
            "table", [9, 1], initializer=tf.ones_initializer(), partitioner=partitioner
        )
        ids = tf.gather(tf.constant([1, 2, 4, 5]), tf.cast(tf.abs(features) * 5, tf.int64) % 4)
        ids = tf.where(features > 2.4, tf.zeros_like(ids), ids)  # 0 in some steps
        outputs = tf.reduce_sum(tf.nn.embedding_lookup(table, ids, "div"), 1)
        loss = tf.losses.mean_squared_error(labels, outputs)
        update = optimizer().minimize(loss, global_step=tf.train.get_global_step())
        return tf.EstimatorSpec(mode, loss=loss, train_op=update)

    return lambda config: tf.Estimator(model_fn, config=config)


def parted(optimizer: Callable[[], Any]) -> float:
    """The difference between a table in parts, on two replicas, and a whole one on one."""
    whole, parts = (tables(optimizer, cut) for cut in (None, tf.fixed_size_partitioner(3)))
    one = train(whole, None, lambda: batches(16))
    two = train(parts, tf.distribute.MirroredStrategy(), lambda: batches(8))
    return one.difference(two)


@scenario
def tables_in_parts() -> Any:
    """Tables in parts, on two replicas, beside whole ones on one."""

    made = {
        "momentum": lambda: tf.train.MomentumOptimizer(0.02, 0.9),
        "ftrl": lambda: tf.train.FtrlOptimizer(0.1),
    }
    return {name: parted(optimizer) for name, optimizer in made.items()}


@scenario
def premade() -> Any:
    rng = np.random.RandomState(1)
    words = np.array([b"word%d" % number for number in rng.randint(0, 50, 640)], object)
    features = {"a": rng.randn(640).astype(np.float32), "w": words, "k": rng.randint(0, 99, 640)}
    labels = rng.randint(0, 2, 640)
    column = tf.feature_column
    word = column.categorical_column_with_hash_bucket("w", 30)
    number = column.categorical_column_with_identity("k", 99)
    deep = [column.numeric_column("a"), column.embedding_column(word, 4)]
    deep.append(column.embedding_column(number, 8))
    wide = [word, number, column.crossed_column(["w", "k"], 100)]
    kinds = {
        "wide and deep": lambda config: tf.estimator.DNNLinearCombinedClassifier(
            linear_feature_columns=wide,
            dnn_feature_columns=deep,
            dnn_hidden_units=[16],
            config=config,
        ),
        "keras": lambda config: tf.estimator.DNNClassifier(
            [16], deep, optimizer=tf.keras.optimizers.Adam(0.01), config=config
        ),
        "sum": lambda config: tf.estimator.LinearClassifier(
            wide, loss_reduction="sum", optimizer=tf.train.AdagradOptimizer(0.01), config=config
        ),
    }
    found = {}
    for name, make in kinds.items():
        trained = []
        for strategy, size in ((None, 32), (tf.distribute.MirroredStrategy(), 16)):

            def dataset(size: int = size) -> Any:
                data = tf.data.Dataset.from_tensor_slices((features, labels))
                return data.shuffle(640, seed=4).repeat().batch(size)

            trained.append(train(make, strategy, dataset, 30))
        found[name] = trained[0].difference(trained[1])
    return found


@scenario
def convolutions() -> Any:
    rng = np.random.RandomState(2)
    images, labels = rng.rand(128, 12, 12, 1).astype(np.float32), rng.randint(0, 5, 128)

    def make(config: Any) -> Any:
        def model_fn(features: Any, labels: Any, mode: str) -> Any:
            hidden = tf.layers.conv2d(features, 8, 3, activation=tf.nn.relu)
            flat = tf.layers.flatten(tf.layers.max_pooling2d(hidden, 2, 2))
            loss = tf.losses.sparse_softmax_cross_entropy(labels, tf.layers.dense(flat, 5))
            optimizer = tf.train.AdamOptimizer(0.001)
            update = optimizer.minimize(loss, global_step=tf.train.get_global_step())
            return tf.EstimatorSpec(mode, loss=loss, train_op=update)

        return tf.Estimator(model_fn, config=config)

    def dataset(size: int) -> Any:
        return tf.data.Dataset.from_tensor_slices((images, labels)).repeat().batch(size)

    one = train(make, None, lambda: dataset(16))
    two = train(make, tf.distribute.MirroredStrategy(), lambda: dataset(8))
    return one.difference(two)


@scenario
def mnist() -> Any:
    (images, labels), _ = tf.datasets.mnist.load_data()
    features = {"image": images[:12800].reshape(-1, 784).astype(np.float32) / 255}

    def make(config: Any) -> Any:
        column = tf.feature_column.numeric_column("image", [784])
        return tf.estimator.DNNClassifier([256, 128], [column], n_classes=10, config=config)

    def dataset(size: int) -> Any:
        data = tf.data.Dataset.from_tensor_slices((features, labels[:12800].astype(np.int32)))
        return data.repeat().batch(size)

    one = train(make, None, lambda: dataset(128), 100)
    two = train(make, tf.distribute.MirroredStrategy(), lambda: dataset(64), 100)
    return {"steps": len(two.losses), "loss": np.abs(one.losses - two.losses).max()}


# -- steps that are not like the others


def by_hand(start: Trained, given: Sequence[Sequence[Any]]) -> list[float]:
    """The losses of `model()` over steps, each with the batches of its replicas."""
    weights, bias = (start.variables[f"linear/{name}"].copy() for name in ("kernel", "bias"))
    losses = []
    for step in given:
        errors = [(x, x @ weights + bias - y) for x, y in step]
        losses.append(float(np.mean([(error**2).mean() for _, error in errors])))
        for x, error in errors:  # a replica without a batch adds nothing
            weights = weights - 0.1 * 2 * x.T @ error / len(x) / 2
            bias = bias - 0.1 * 2 * error.mean() / 2
    return losses


def first_values(directory: str) -> Trained:
    """The variables that a training in a folder began with."""
    names = ("linear/kernel", "linear/bias")
    start = object.__new__(Trained)
    start.variables = {
        name: tf.train.load_variable(f"{directory}/model.ckpt-0", name) for name in names
    }
    return start


def cut(count: int, size: int) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    return [
        (X[at : min(at + size, count)], Y[at : min(at + size, count)])
        for at in range(0, count, size)
    ]


@scenario
def batches_of_several_sizes() -> Any:
    trained = train(
        model(),
        tf.distribute.MirroredStrategy(),
        lambda: tf.data.Dataset.from_tensor_slices((X[:100], Y[:100])).batch(8).repeat(),
        40,
    )
    each = itertools.cycle(cut(100, 8))  # 13, the last of 4: they meet others in a step
    expected = by_hand(
        first_values(trained.estimator.model_dir), [[next(each), next(each)] for _ in range(40)]
    )
    return np.abs(trained.losses - expected).max()


@scenario
def the_end_of_the_input() -> Any:
    trained = train(
        model(),
        tf.distribute.MirroredStrategy(),
        lambda: tf.data.Dataset.from_tensor_slices((X[:72], Y[:72])).batch(8),
        None,
    )
    each = cut(72, 8)  # 9
    steps = [each[at : at + 2] for at in range(0, 9, 2)]
    expected = by_hand(first_values(trained.estimator.model_dir), steps)
    return {
        "steps": int(trained.variables["global_step"]),
        "loss": np.abs(trained.losses - expected).max(),
    }


@scenario
def hooks_and_host_work() -> Any:
    def call(loss: Any, outputs: Any) -> Sequence[Any]:
        return [tf.py_func(lambda values: np.float32(values.sum()), [outputs], tf.float32)]

    hook = tf.train.LoggingTensorHook(["linear/kernel"], every_n_iter=3)
    return {"hook": compared(model(), hooks=[hook]), "py_func": compared(model(before=call))}


@scenario
def a_training_goes_on() -> Any:
    def drop(features: Any) -> Any:
        return tf.layers.dropout(features, 0.3, training=True)

    def dataset() -> Any:
        data = tf.data.Dataset.from_tensor_slices((X[:100], Y[:100]))
        return data.shuffle(100, seed=1).repeat().batch(8)

    def losses(*ends: int) -> list[float]:
        strategy, directory = tf.distribute.MirroredStrategy(), tempfile.mkdtemp()
        parts = [
            train(model(layer=drop), strategy, dataset, end, model_dir=directory) for end in ends
        ]
        return [loss for part in parts for loss in part.losses]

    return {"whole": losses(30), "parts": losses(11, 30)}


# -- what differs between replicas


@scenario
def moments_of_batch_normalization() -> Any:
    def normalize(features: Any) -> Any:
        return tf.layers.batch_normalization(features, training=True, momentum=0.9, name="norm")

    trained = train(model(layer=normalize), tf.distribute.MirroredStrategy(), lambda: batches(8), 1)
    return {
        name: trained.variables[f"norm/moving_{name}"].tolist() for name in ("mean", "variance")
    }


@scenario
def random_numbers() -> Any:
    def make(config: Any) -> Any:
        def model_fn(features: Any, labels: Any, mode: str) -> Any:
            weights = tf.get_variable("weights", [3], initializer=tf.zeros_initializer())
            loss = tf.reduce_sum(weights * tf.random_uniform([3], seed=7)) + 0 * features[0, 0]
            optimizer = tf.train.GradientDescentOptimizer(1.0)
            update = optimizer.minimize(loss, global_step=tf.train.get_global_step())
            return tf.EstimatorSpec(mode, loss=loss, train_op=update)

        return tf.Estimator(model_fn, config=config)

    def sums(strategy: Any, **options: Any) -> Any:
        return train(make, strategy, lambda: batches(8), 2, **options).variables["weights"].tolist()

    hook = tf.train.LoggingTensorHook(["weights"], every_n_iter=1)
    strategy = tf.distribute.MirroredStrategy()
    return {"one": sums(None), "two": sums(strategy), "singly": sums(strategy, hooks=[hook])}


def noting(aggregation: Any) -> Callable[[Any, Any], Sequence[Any]]:
    def before(loss: Any, outputs: Any) -> Sequence[Any]:
        zeros = tf.zeros_initializer()
        noted = tf.get_variable(
            "noted", [], trainable=False, initializer=zeros, aggregation=aggregation
        )
        return [noted.assign(loss)]

    return before


@scenario
def variables_that_replicas_assign() -> Any:
    kinds = tf.VariableAggregation
    return {
        "mean": compared(model(before=noting(kinds.MEAN))),
        "none": failure(lambda: compared(model(before=noting(None)))),
    }


# -- evaluation


@scenario
def evaluations() -> Any:
    trained = train(model(), tf.distribute.MirroredStrategy(), lambda: batches(8))
    alone = model()(config(None, trained.estimator.model_dir))

    def difference(count: int, steps: int | None = None) -> float:
        def dataset() -> Any:
            return tf.data.Dataset.from_tensor_slices((X[:count], Y[:count])).batch(8)

        ours = trained.estimator.evaluate(dataset, steps)
        one = alone.evaluate(dataset, None if steps is None else 2 * steps)
        return max(float(np.abs(ours[name] - one[name]).max()) for name in one)

    counts = (100, 96, 97, 8, 3)
    return {**{str(each): difference(each) for each in counts}, "steps": difference(512, 3)}


# -- scopes and refusals


@scenario
def what_a_model_fn_knows() -> Any:
    seen = {}

    def make(config: Any) -> Any:
        def model_fn(features: Any, labels: Any, mode: str) -> Any:
            strategy = tf.distribute.get_strategy()
            seen["replicas"] = strategy.num_replicas_in_sync
            seen["in replica"] = not tf.distribute.in_cross_replica_context()
            seen["batch"] = features.shape.as_list()
            context = tf.distribute.get_replica_context()
            largest = tf.reduce_max(features)
            both = context.all_reduce("SUM", largest) + context.all_reduce(
                tf.distribute.ReduceOp.MEAN, largest
            )
            loss = tf.reduce_mean(tf.layers.dense(features, 1)) + 0 * both
            optimizer = tf.train.GradientDescentOptimizer(0.1)
            update = optimizer.minimize(loss, global_step=tf.train.get_global_step())
            return tf.EstimatorSpec(mode, loss=loss, train_op=update)

        return tf.Estimator(model_fn, config=config)

    def input_fn(input_context: Any) -> Any:
        seen["pipelines"] = input_context.num_input_pipelines
        seen["batch of each"] = input_context.get_per_replica_batch_size(16)
        return batches(seen["batch of each"])

    strategy = tf.distribute.MirroredStrategy()
    trained = make(config(strategy)).train(input_fn, steps=5)
    with strategy.scope():
        seen["scope"] = tf.distribute.get_strategy() is strategy
        seen["cross"] = tf.distribute.in_cross_replica_context()
    seen["after"] = tf.distribute.has_strategy()
    seen["step"] = int(trained.get_variable_value("global_step"))
    return seen


@scenario
def compilations() -> Any:
    counted = []

    class Count(SessionRunHook):
        def end(self, session: Any) -> None:
            counted.append(dict(session.state.compilations))

    train(model(), tf.distribute.MirroredStrategy(), lambda: batches(8), 50, [Count()])
    return counted[0]


def failure(act: Callable[[], Any]) -> str:
    try:
        act()
    except (OpError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


@scenario
def refusals() -> Any:
    strategy = tf.distribute.MirroredStrategy()

    def in_a_branch(loss: Any, outputs: Any) -> Sequence[Any]:
        context = tf.distribute.get_replica_context()
        return [tf.cond(loss > 0, lambda: context.all_reduce("SUM", loss), lambda: loss)]

    nothing = tf.data.Dataset.from_tensor_slices((X[:0], Y[:0]))
    return {
        "tensors": failure(
            lambda: train(model(), strategy, lambda: (tf.constant(X), tf.constant(Y)))
        ),
        "empty": failure(lambda: train(model(), strategy, lambda: nothing.batch(8))),
        "branch": failure(lambda: train(model(before=in_a_branch), strategy, lambda: batches(8))),
        "loop": failure(lambda: strategy.run(None)),
        "device": failure(
            lambda: tf.distribute.MirroredStrategy(["/cpu:0", "/gpu:7"]).num_replicas_in_sync
        ),
        "twice": failure(lambda: tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:0"])),
        "config": failure(lambda: tf.RunConfig(train_distribute="mirrored")),
    }


@scenario
def labels_of_the_second_replica_are_checked() -> Any:
    labels = np.random.RandomState(0).randint(0, 3, 512)
    labels[40] = 7  # in the second batch of 32

    def make(config: Any) -> Any:
        column = tf.feature_column.numeric_column("x", [4])
        return tf.estimator.DNNClassifier([4], [column], n_classes=3, config=config)

    def dataset() -> Any:
        return tf.data.Dataset.from_tensor_slices(({"x": X}, labels)).batch(32)

    return failure(lambda: train(make, tf.distribute.MirroredStrategy(), dataset))


def main(names: Sequence[str]) -> None:
    logging.disable(logging.INFO)
    found = {}
    for name in names or SCENARIOS:
        print(name, flush=True)
        found[name] = SCENARIOS[name]()
    print(json.dumps(found, default=float))


if __name__ == "__main__":
    main(sys.argv[1:])
