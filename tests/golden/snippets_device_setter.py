"""Models built under `replica_device_setter`, as functions of the module used as `tf`.

Each builds in the default graph. `devices_of` says which operations the package must put where
TensorFlow does: what the tasks of a cluster hold, and what works on it by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CLUSTER = {
    "ps": [f"ps{number}:2222" for number in range(7)],
    "worker": ["worker0:2222", "worker1:2222"],
    "master": ["master0:2222"],
}


def setter(tf: Any, **arguments: Any) -> Any:
    """A block under the setter of this cluster, for worker 1."""
    given = {"cluster": CLUSTER, "worker_device": "/job:worker/task:1", **arguments}
    return tf.device(tf.train.replica_device_setter(**given))


def plain_variables(tf: Any) -> None:
    """Variables of each kind in turn; what is computed stays with the worker."""
    with setter(tf):
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        kernel = tf.Variable(tf.ones([4, 3], name="ones"), name="kernel")
        bias = tf.Variable(lambda: tf.zeros([3]), name="bias")
        number = tf.Variable(0, name="number", trainable=False)
        again = tf.Variable(lambda: tf.zeros([4, 3]), name="again")
        logits = tf.add(tf.matmul(x, kernel, name="product"), bias, name="logits")
        tf.assign_add(number, 1, name="count")
        tf.assign(again, kernel * 2.0, name="set")
        tf.reduce_sum(logits, name="sum")


def get_variable(tf: Any) -> None:
    """Variables with initializers, shared ones, and layers."""
    with setter(tf):
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        for reuse in (False, True):
            with tf.variable_scope("shared", reuse=reuse):
                kernel = tf.get_variable("kernel", [4, 4], initializer=tf.ones_initializer())
                bias = tf.get_variable("bias", [4], initializer=tf.zeros_initializer())
                x = tf.nn.relu(tf.matmul(x, kernel) + bias)
        with tf.variable_scope("deep"):
            tf.get_variable("random", [4, 2], initializer=tf.random_uniform_initializer(seed=1))
            tf.get_variable("own", [2], tf.float64, trainable=False)
        tf.layers.dense(x, 2, name="dense")
        tf.train.get_or_create_global_step()


def local_and_metric_variables(tf: Any) -> None:
    """Variables of other collections go to the servers, too."""
    with setter(tf):
        labels = tf.placeholder(tf.int64, [None], name="labels")
        tf.metrics.accuracy(labels, labels, name="accuracy")
        tf.get_local_variable("seen", [], initializer=tf.zeros_initializer())


def partitioned(tf: Any) -> None:
    """Each part of a variable is dealt out by itself."""
    with setter(tf):
        fixed = tf.fixed_size_partitioner(4)
        with tf.variable_scope("fixed", partitioner=fixed):
            table = tf.get_variable("table", [10, 2], initializer=tf.zeros_initializer())
        by_size = tf.variable_axis_size_partitioner(max_shard_bytes=32)
        wide = tf.get_variable(
            "wide", [6, 4], initializer=tf.zeros_initializer(), partitioner=by_size
        )
        smallest = tf.min_max_variable_partitioner(max_partitions=3, min_slice_size=16)
        tf.get_variable("slices", [9, 4], initializer=tf.zeros_initializer(), partitioner=smallest)
        ids = tf.constant([1, 7, 9])
        rows = tf.nn.embedding_lookup(table, ids, partition_strategy="div", name="rows")
        loss = tf.reduce_sum(rows) + tf.reduce_sum(tf.nn.embedding_lookup(wide, [0]))
        tf.train.AdagradOptimizer(0.1).minimize(loss, tf.train.get_or_create_global_step())


def slots(tf: Any, optimizer: str, **arguments: Any) -> None:
    """Slots are where their variables are, and are not dealt out."""
    with setter(tf):
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        kernel = tf.get_variable("kernel", [4, 3], initializer=tf.ones_initializer())
        bias = tf.get_variable("bias", [3], initializer=tf.zeros_initializer())
        scale = tf.get_variable("scale", [], initializer=tf.ones_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, kernel) + bias) * scale, name="loss")
        step = tf.train.get_or_create_global_step()
        getattr(tf.train, optimizer)(0.1, **arguments).minimize(loss, step)
        after = tf.get_variable("after", [2], initializer=tf.zeros_initializer())
        tf.identity(after, name="copy")


def averages(tf: Any) -> None:
    """Moving averages are where their variables are."""
    with setter(tf):
        first = tf.get_variable("first", [2], initializer=tf.zeros_initializer())
        second = tf.get_variable("second", [2], initializer=tf.zeros_initializer())
        tf.train.ExponentialMovingAverage(0.9).apply([first, second])
        tf.get_variable("third", [2], initializer=tf.zeros_initializer())


def tables(tf: Any) -> None:
    """Tables that change go to the servers, those that do not stay with the worker."""
    lookup = tf.lookup.experimental
    with setter(tf):
        tf.get_variable("first", [2], initializer=tf.zeros_initializer())
        lookup.MutableHashTable(tf.string, tf.int64, -1, name="counts")
        keys = tf.constant(["a", "b"], name="keys")
        values = tf.constant([0, 1], tf.int64, name="values")
        initializer = tf.lookup.KeyValueTensorInitializer(keys, values)
        tf.lookup.StaticHashTable(initializer, -1, name="fixed")
        tf.get_variable("second", [2], initializer=tf.zeros_initializer())


def queues_and_input(tf: Any) -> None:
    """Queues, iterators and random numbers stay with the worker."""
    with setter(tf):
        queue = tf.FIFOQueue(10, tf.int32, [[]], name="queue")
        queue.enqueue(1, name="enter")
        queue.dequeue(name="leave")
        tf.random_uniform([2], seed=1, name="noise")
        tf.get_variable("first", [2], initializer=tf.zeros_initializer())


def inner_devices(tf: Any) -> None:
    """What a block inside asks for counts more; the rest comes from the setter."""
    with setter(tf, ps_device="/job:ps/cpu:0", worker_device="/job:worker/task:1/gpu:0"):
        for number, inner in enumerate(
            ("/cpu:0", "/gpu:1", "/job:ps", "/job:ps/task:2", "/task:5", "/job:master/task:0", "")
        ):
            with tf.device(inner):
                tf.get_variable(f"v{number}", [2], initializer=tf.zeros_initializer())
                tf.constant(1.0, name=f"c{number}")
        with tf.device(None):
            tf.get_variable("free", [2], initializer=tf.zeros_initializer())
            tf.constant(1.0, name="free_constant")
        tf.get_variable("last", [2], initializer=tf.zeros_initializer())


def outer_device(tf: Any) -> None:
    """A block around the setter only fills in what is left."""
    with tf.device("/job:master/task:0/cpu:0"), setter(tf):
        tf.get_variable("v", [2], initializer=tf.zeros_initializer())
        tf.constant(1.0, name="c")


def not_merged(tf: Any) -> None:
    """Without merging an operation that asks for anything is left alone."""
    with setter(tf, merge_devices=False):
        tf.get_variable("v0", [2], initializer=tf.zeros_initializer())
        with tf.device("/cpu:0"):
            tf.get_variable("v1", [2], initializer=tf.zeros_initializer())
            tf.constant(1.0, name="c1")
        tf.get_variable("v2", [2], initializer=tf.zeros_initializer())


def count_of_tasks(tf: Any) -> None:
    """A number of tasks in place of a cluster; the worker without one of its own."""
    with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        for number in range(3):
            tf.get_variable(f"v{number}", [2], initializer=tf.zeros_initializer())
        tf.constant(1.0, name="c")


def no_servers(tf: Any) -> None:
    """Without servers nothing is asked for, and what is asked outside is forgotten."""
    with (
        tf.device("/job:master/task:0"),
        tf.device(tf.train.replica_device_setter(cluster={"worker": ["a:1"]})),
    ):
        tf.get_variable("v", [2], initializer=tf.zeros_initializer())
        tf.constant(1.0, name="c")
    with tf.device(tf.train.replica_device_setter()):
        tf.get_variable("w", [2], initializer=tf.zeros_initializer())


def no_server_device(tf: Any) -> None:
    """An empty device of servers leaves variables with the worker."""
    with tf.device(tf.train.replica_device_setter(ps_tasks=2, ps_device="")):
        tf.get_variable("v", [2], initializer=tf.zeros_initializer())


def own_ops_and_strategy(tf: Any) -> None:
    """Other op types, dealt out by a function."""
    with setter(tf, ps_ops=["Const"], ps_strategy=lambda op: len(op.name) % 7):
        tf.get_variable("v", [2], initializer=tf.zeros_initializer())
        tf.constant(1.0, name="c")
        tf.constant(1.0, name="cc")


def by_size(tf: Any) -> None:
    """A strategy that looks at the operation."""
    loads = [0] * 4

    def least(op: Any) -> int:
        task = loads.index(min(loads))
        loads[task] += int(op.get_attr("shape").num_elements() if _is_ours(op) else _size(op))
        return task

    with setter(tf, ps_strategy=least):
        for number, size in enumerate((100, 10, 5, 7, 3, 90)):
            tf.get_variable(f"v{number}", [size], initializer=tf.zeros_initializer())


def _is_ours(op: Any) -> bool:
    return hasattr(op.get_attr("shape"), "num_elements")


def _size(op: Any) -> int:
    size = 1
    for each in op.get_attr("shape").dim:
        size *= each.size
    return size


SNIPPETS: dict[str, Callable[[Any], None]] = {
    **{
        each.__name__: each
        for each in (
            *(plain_variables, get_variable, local_and_metric_variables, partitioned, averages),
            *(tables, queues_and_input, inner_devices, outer_device, not_merged, count_of_tasks),
            *(no_servers, no_server_device, own_ops_and_strategy, by_size),
        )
    },
    "adam": lambda tf: slots(tf, "AdamOptimizer"),
    "adagrad": lambda tf: slots(tf, "AdagradOptimizer"),
    "momentum": lambda tf: slots(tf, "MomentumOptimizer", momentum=0.9),
    "ftrl": lambda tf: slots(tf, "FtrlOptimizer"),
    "rmsprop": lambda tf: slots(tf, "RMSPropOptimizer"),
}

ERRORS: dict[str, Callable[[Any], Any]] = {
    "cluster": lambda tf: tf.train.replica_device_setter(cluster=3),
    "strategy": lambda tf: tf.train.replica_device_setter(ps_tasks=1, ps_strategy=3),
    "device": lambda tf: tf.train.replica_device_setter(cluster=CLUSTER, ps_device="/jobs:ps"),
}


def devices_of(tf: Any, name: str) -> dict[str, list[str]]:
    """Type and device of each operation of a model, by its name."""
    with tf.Graph().as_default() as graph:
        SNIPPETS[name](tf)
        return {op.name: [op.type, op.device] for op in graph.get_operations()}
