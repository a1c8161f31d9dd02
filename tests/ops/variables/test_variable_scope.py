"""Custom getters, partitioned variables, local variables; and the initializers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.ops.variables.variable_scope import partitioned_variables


@pytest.fixture(autouse=True)
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def value_of(session: tf.Session, tensor: Any) -> Any:
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    return session.run(tensor)


# -- custom getters


def test_custom_getter() -> None:
    asked: list[tuple[str, Any, Any]] = []

    def getter(inner: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        asked.append((name, kwargs["shape"], kwargs["dtype"]))
        return tf.identity(inner(name, *args, **kwargs), name="given")

    with tf.variable_scope("s", custom_getter=getter):
        made = tf.get_variable("v", [2])
    assert made.name == "given:0"
    assert asked == [("s/v", [2], tf.float32)]
    assert [variable.name for variable in tf.global_variables()] == ["s/v:0"]
    with tf.variable_scope("s", reuse=True):
        assert tf.get_variable("v").name == "s/v:0"


def test_custom_getters_nest() -> None:
    order = []

    def named(label: str) -> Callable[..., Any]:
        def getter(inner: Any, name: str, **kwargs: Any) -> Any:
            order.append(label)
            return inner(name, **kwargs)

        return getter

    with (
        tf.variable_scope("a", custom_getter=named("outer")),
        tf.variable_scope("b", custom_getter=named("inner")),
    ):
        assert tf.get_variable("v", [2]).name == "a/b/v:0"
        tf.get_variable("w", [2], custom_getter=named("own"))
    assert order == ["inner", "outer", "own"]


def test_getter_with_other_storage_dtype(session: tf.Session) -> None:
    """As in mixed-precision programs: parameters by position, and not the newest ones."""

    def stored(
        getter: Any,
        name: str,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
        trainable: bool = True,
        collections: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        validate_shape: bool = True,
        use_resource: Any = None,
    ) -> Any:
        variable = getter(name, shape, dtype=tf.float32, initializer=initializer)
        return tf.cast(variable, dtype)

    with tf.variable_scope("s", custom_getter=stored, dtype=tf.float16):
        made = tf.get_variable("v", [2], initializer=tf.ones_initializer())
    assert made.dtype is tf.float16
    assert tf.global_variables()[0].dtype is tf.float32
    assert value_of(session, made).tolist() == [1.0, 1.0]


# -- what scopes hand on


def test_scope_defaults() -> None:
    with tf.variable_scope("s") as scope:
        scope.set_initializer(tf.zeros_initializer())
        scope.set_regularizer(tf.reduce_sum)
        scope.set_dtype(tf.float64)
        scope.set_partitioner(None)
        scope.set_caching_device(None)
        scope.set_use_resource(True)
        scope.set_custom_getter(None)
        made = tf.get_variable("v", [2])
        tf.get_variable("w", [2], regularizer=tf.no_regularizer)
        tf.get_local_variable("n", [2], regularizer=tf.no_regularizer)
        assert [each.name for each in scope.local_variables()] == ["s/n:0"]
        assert len(scope.get_collection("variables")) == 2
    assert made.dtype is tf.float64
    assert len(tf.get_collection("regularization_losses")) == 1
    assert [each.name for each in tf.local_variables()] == ["s/n:0"]
    assert len(tf.trainable_variables()) == 2
    with tf.variable_op_scope([made], None, "default"):
        assert tf.get_variable_scope().name == "default"


# -- partitioned variables


@pytest.mark.slow
def test_partitioned_variable(session: tf.Session) -> None:
    with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(3)):
        whole = tf.get_variable("v", [7, 2], initializer=tf.ones_initializer())
        scalar = tf.get_variable("scalar", [])
    assert isinstance(whole, tf.PartitionedVariable)
    assert isinstance(scalar, tf.Variable)
    assert (whole.name, whole.shape.as_list(), len(whole)) == ("s/v", [7, 2], 3)
    assert [part.name for part in whole] == [f"s/v/part_{number}:0" for number in range(3)]
    assert [part.shape.as_list() for part in whole] == [[3, 2], [2, 2], [2, 2]]
    assert tf.trainable_variables()[:3] == list(whole)
    assert partitioned_variables() == [whole]
    assert partitioned_variables(tf.Graph()) == []
    assert value_of(session, whole + 1.0).tolist() == [[2.0, 2.0]] * 7
    new = np.arange(14.0, dtype=np.float32).reshape(7, 2)
    session.run(whole.assign(new))
    session.run(whole.assign_add(tf.constant(new)))
    session.run(whole.assign_sub([np.ones([n, 2], np.float32) for n in (3, 2, 2)]))
    np.testing.assert_array_equal(session.run(whole.as_tensor()), 2 * new - 1)
    gradients = tf.gradients(tf.reduce_sum(tf.square(whole)), list(whole))
    np.testing.assert_array_equal(np.concatenate(session.run(gradients)), 2 * (2 * new - 1))
    with tf.variable_scope("s", reuse=True):
        assert tf.get_variable("v", [7, 2]) is whole
        with pytest.raises(ValueError, match="found shape"):
            tf.get_variable("v", [8, 2])
    with tf.variable_scope("s"), pytest.raises(ValueError, match="No partitioner was provided"):
        tf.get_variable("v", [7, 2])


def test_slices_of_value(session: tf.Session) -> None:
    value = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    whole = tf.get_variable(
        "v", initializer=value, partitioner=tf.fixed_size_partitioner(2, axis=1)
    )
    parts = value_of(session, list(whole))
    assert [part.tolist() for part in parts] == [[[1.0, 2.0], [4.0, 5.0]], [[3.0], [6.0]]]
    eye = tf.get_variable(
        "eye", [3, 3], initializer=tf.initializers.identity(), partitioner=lambda **_: [3, 1]
    )
    assert value_of(session, eye.as_tensor()).tolist() == np.eye(3).tolist()


@pytest.mark.slow
def test_partition_sizes(session: tf.Session) -> None:
    """The scale of a part follows from the shape of the whole variable."""
    whole = tf.get_variable(
        "v",
        [4000, 2],
        initializer=tf.variance_scaling_initializer(1.0, "fan_in", "uniform", seed=1),
        partitioner=tf.fixed_size_partitioner(10),
    )
    assert np.abs(value_of(session, whole.as_tensor())).max() <= np.sqrt(3 / 4000)


@pytest.mark.parametrize(
    ("partitioner", "shape", "expected"),
    [
        (tf.fixed_size_partitioner(4), [3, 5], [3, 1]),
        (tf.fixed_size_partitioner(4, axis=1), [3, 5], [1, 4]),
        (tf.variable_axis_size_partitioner(40), [10, 2], [2, 1]),
        (tf.variable_axis_size_partitioner(1), [10, 2], [10, 1]),
        (tf.variable_axis_size_partitioner(40, max_shards=1), [100, 2], [1, 1]),
        (tf.min_max_variable_partitioner(16), [1024, 1024], [16, 1]),
        (tf.min_max_variable_partitioner(99), [1024, 1024], [16, 1]),
        (tf.min_max_variable_partitioner(16), [10, 10], [1, 1]),
    ],
)
def test_partitioners(partitioner: Any, shape: list[int], expected: list[int]) -> None:
    assert partitioner(shape=tf.TensorShape(shape), dtype=tf.float32) == expected


def test_invalid_partitions_raise() -> None:
    for answer, words in (
        ([2], "does not match the Variable's rank"),
        ([2, 2], "Can only slice a variable along one dimension"),
        ([9, 1], "cannot be partitioned into 9 slices"),
    ):
        with pytest.raises(ValueError, match=words):
            tf.get_variable("v", [4, 4], partitioner=lambda answer=answer, **_: answer)
    with pytest.raises(ValueError, match="must be positive"):
        tf.variable_axis_size_partitioner(0)
    with pytest.raises(ValueError, match="along axis 2"):
        tf.get_variable("v", [4, 4], partitioner=tf.fixed_size_partitioner(2, axis=2))


# -- initializers


@pytest.mark.parametrize(
    ("initializer", "limit"),
    [
        (tf.initializers.he_uniform(1), np.sqrt(6 / 200)),
        (tf.initializers.lecun_uniform(1), np.sqrt(3 / 200)),
        (tf.uniform_unit_scaling_initializer(1.43, seed=1), 1.43 * np.sqrt(3 / 200)),
        (tf.initializers.he_normal(1), 2 * np.sqrt(2 / 200) / 0.87962566),
        (tf.initializers.lecun_normal(1), 2 * np.sqrt(1 / 200) / 0.87962566),
    ],
)
def test_initializer_scale(session: tf.Session, initializer: Any, limit: float) -> None:
    largest = np.abs(session.run(initializer([200, 300]))).max()
    assert 0.97 * limit < largest <= limit * (1 + 1e-6)


@pytest.mark.slow
def test_orthogonal(session: tf.Session) -> None:
    tall, wide, kernel = session.run(
        [tf.orthogonal_initializer(seed=1)(shape) for shape in ([6, 3], [3, 6], [2, 2, 2, 5])]
    )
    np.testing.assert_allclose(tall.T @ tall, np.eye(3), atol=1e-5)
    np.testing.assert_allclose(wide @ wide.T, np.eye(3), atol=1e-5)
    flat = kernel.reshape(8, 5)
    np.testing.assert_allclose(flat.T @ flat, np.eye(5), atol=1e-5)
    doubled = tf.orthogonal_initializer(gain=2.0, seed=1)([6, 3], tf.float64)
    assert doubled.dtype is tf.float64
    with pytest.raises(ValueError, match="at least two-dimensional"):
        tf.orthogonal_initializer()([3])


def test_identity(session: tf.Session) -> None:
    assert session.run(tf.initializers.identity(3.0)([2, 3])).tolist() == [[3, 0, 0], [0, 3, 0]]
    with pytest.raises(ValueError, match="must be a matrix"):
        tf.initializers.identity()([2])
