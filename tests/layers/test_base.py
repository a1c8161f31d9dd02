"""`Layer`: variables, calls, masks, losses, the learning phase, rebuilding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.layers.dense_and_embedding import Dense, Embedding
from estimatorkit.layers.engine.base import Layer, mask_of, snake_case, unbuilt
from estimatorkit.layers.engine.call_record import call_scope, set_learning_phase
from estimatorkit.layers.engine.scoped import scoped
from estimatorkit.layers.engine.sessions import session_of


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


class Scale(Layer):
    """Multiplies by a variable; knows whether it trains."""

    def __init__(self, start: float = 2.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start = start
        self.trained: list[Any] = []

    def build(self, input_shape: Any) -> None:
        self.scale = self.add_weight("scale", [], initializer=tf.constant_initializer(self.start))
        super().build(input_shape)

    def call(self, inputs: Any, training: Any = None) -> Any:
        self.trained.append(training)
        return inputs * self.scale


class Twice(Layer):
    """Two layers in a list, and a variable that is an attribute."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.inner = [Scale(2.0), {"second": Scale(3.0)}]

    def call(self, inputs: Any) -> Any:
        second: Any = self.inner[1]
        return second["second"](self.inner[0](inputs))  # type: ignore[operator]


def value(tensor: Any, feed: Any = None) -> Any:
    return session_of().run(tensor, feed)


def x(*shape: int) -> Any:
    return tf.ones(list(shape))


class TestVariables:
    def test_are_created_on_first_call_under_layer_name(self) -> None:
        layer = Dense(4, name="first")
        assert layer.weights == []
        assert not layer.built
        layer(x(2, 3))
        assert [each.op.name for each in layer.weights] == ["first/kernel", "first/bias"]
        assert layer.built
        assert layer.count_params() == 16

    def test_default_names_are_unique_per_graph(self) -> None:
        assert [Dense(1).name for _ in range(3)] == ["dense", "dense_1", "dense_2"]
        with tf.Graph().as_default():
            assert Dense(1).name == "dense"

    @pytest.mark.parametrize(
        ("name", "expected"),
        [("MaxPooling2D", "max_pooling2d"), ("LSTM", "lstm"), ("_Own", "private__own")],
    )
    def test_snake_case(self, name: str, expected: str) -> None:
        assert snake_case(name) == expected

    def test_layers_of_same_name_do_not_share(self) -> None:
        one, two = Dense(1, name="same"), Dense(1, name="same")
        one(x(2, 3)), two(x(2, 3))
        assert one.kernel is not two.kernel
        assert {each.kernel.op.name for each in (one, two)} == {"same/kernel", "same_1/kernel"}

    def test_layer_called_twice_shares_variables(self) -> None:
        layer = Dense(1)
        layer(x(2, 3)), layer(x(5, 3))
        assert len(layer.weights) == 2

    def test_set_and_get_weights(self) -> None:
        layer = Dense(2)
        outputs = layer(x(1, 3))
        layer.set_weights([np.full((3, 2), 2.0), [1.0, -1.0]])
        np.testing.assert_array_equal(value(outputs), [[7, 5]])
        np.testing.assert_array_equal(layer.get_weights()[1], [1, -1])

    @pytest.mark.parametrize(
        ("weights", "problem"),
        [([np.zeros((3, 2))], "expecting 2"), ([np.zeros((2, 3)), np.zeros(2)], "not compatible")],
    )
    def test_wrong_weights_raise(self, weights: Any, problem: str) -> None:
        layer = Dense(2)
        layer(x(1, 3))
        with pytest.raises(ValueError, match=problem):
            layer.set_weights(weights)

    def test_weights_argument(self) -> None:
        layer = Dense(1, weights=[np.full((3, 1), 2.0), np.zeros(1)])
        np.testing.assert_array_equal(value(layer(x(1, 3))), [[6]])

    def test_sublayers_in_lists_and_dicts(self) -> None:
        layer = Twice()
        outputs = layer(x(2))
        assert [each.op.name for each in layer.weights] == [
            "twice/scale/scale",
            "twice/scale_1/scale",
        ]
        np.testing.assert_array_equal(value(outputs), [6, 6])

    def test_variable_attributes_are_tracked(self) -> None:
        layer = Layer()
        layer.own = tf.Variable(1.0, trainable=False)
        assert layer.weights == [layer.own]
        assert layer.trainable_weights == []

    def test_trainable(self) -> None:
        layer = Twice()
        layer(x(2))
        assert len(layer.trainable_weights) == 2
        layer.trainable = False
        assert layer.trainable_weights == []
        assert len(layer.non_trainable_weights) == 2
        layer.inner[0].trainable = True
        assert layer.trainable_weights == []
        layer.trainable = True
        assert len(layer.trainable_weights) == 2

    def test_non_trainable_weight(self) -> None:
        layer = Layer(name="own")
        layer.add_weight("fixed", [2], trainable=False)
        layer.add_weight("moving", [2])
        assert [each.op.name for each in layer.weights] == ["moving", "fixed"]
        assert len(tf.trainable_variables()) == 1

    def test_unknown_dimensions(self) -> None:
        with pytest.raises(ValueError, match="must be fully defined"):
            Layer().add_weight("w", [None, 2])
        with pytest.raises(ValueError, match="should be defined"):
            Dense(2)(tf.placeholder(tf.float32, [None, None]))

    def test_build_by_hand(self) -> None:
        layer = Dense(2, name="by_hand")
        layer.build((None, 3))
        assert layer.kernel.op.name == "by_hand/kernel"
        layer(x(1, 3))
        assert len(layer.weights) == 2

    @pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
    def test_dtype_comes_from_inputs_or_argument(self, dtype: str) -> None:
        layer = Dense(2)
        assert layer(tf.zeros([1, 3], dtype)).dtype.name == dtype
        assert layer.kernel.dtype.name == dtype
        given = Dense(2, dtype=dtype)
        assert given(x(1, 3)).dtype.name == dtype


class TestCalls:
    def test_arrays_are_converted(self) -> None:
        layer = Scale()
        np.testing.assert_array_equal(value(layer(np.ones(3, np.float32))), [2, 2, 2])
        np.testing.assert_array_equal(value(layer([1.0, 3.0])), [2, 6])

    def test_mismatched_inputs_raise(self) -> None:
        with pytest.raises(ValueError, match=r'layer "dense" is incompatible.*min_ndim=2'):
            Dense(2)(x(3))
        layer = Dense(2)
        layer(x(1, 3))
        with pytest.raises(ValueError, match=r"expected axis -1 of input shape to have value 3"):
            layer(x(1, 4))

    def test_input_and_output(self) -> None:
        layer = Dense(2)
        with pytest.raises(AttributeError, match="has never been called"):
            _ = layer.output
        given = tf.placeholder(tf.float32, [None, 3])
        outputs = layer(given)
        assert layer.input is given
        assert layer.output is outputs
        assert layer.input_shape == (None, 3)
        assert layer.output_shape == (None, 2)

    def test_outputs_are_not_inputs(self) -> None:
        class Same(Layer):
            def call(self, inputs: Any) -> Any:
                return inputs

        given = x(2)
        assert Same()(given) is not given

    def test_compute_output_shape(self) -> None:
        layer = Dense(4)
        assert layer.compute_output_shape((None, 7, 3)).as_list() == [None, 7, 4]
        assert layer.weights == []

    def test_unknown_arguments_raise(self) -> None:
        with pytest.raises(TypeError, match="not understood: nonsense"):
            Dense(2, nonsense=1)

    def test_config(self) -> None:
        layer = Dense(3, "relu", name="a", kernel_regularizer="l2", input_shape=(4,))
        again = Dense.from_config(layer.get_config())
        assert again.get_config() == layer.get_config()

    def test_arguments_require_get_config(self) -> None:
        with pytest.raises(NotImplementedError, match=r"arguments \['start'\]"):
            Scale().get_config()


class TestTraining:
    def test_placeholder_is_fed(self) -> None:
        from estimatorkit.layers.engine.call_record import learning_phase

        layer = Scale()
        layer(x(1))
        phase = layer.trained[0]
        assert phase is learning_phase()
        assert value(phase) == np.False_
        assert value(phase, {phase: True}) == np.True_

    @pytest.mark.parametrize("phase", [0, 1])
    def test_set_learning_phase(self, phase: int) -> None:
        set_learning_phase(phase)
        layer = Scale()
        layer(x(1))
        assert layer.trained == [bool(phase)]

    def test_is_passed_to_sublayers(self) -> None:
        layer = Twice()
        with call_scope(True):
            layer(x(1))
        assert layer.inner[0].trained == [True]

    def test_argument_takes_precedence(self) -> None:
        layer = Scale()
        with call_scope(True):
            layer(x(1), training=False)
        assert layer.trained == [False]

    def test_calls_collect_losses_and_updates(self) -> None:
        class Adds(Layer):
            def call(self, inputs: Any) -> Any:
                self.add_loss(tf.reduce_sum(inputs))
                self.add_update(tf.no_op())
                return inputs

        layer = Adds()
        layer(x(1))
        with call_scope(True) as scope:
            layer(x(2)), layer(x(3))
        assert len(scope.losses) == 2
        assert len(scope.updates) == 2
        assert len(layer.losses) == 3
        assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 3

    def test_regularizers(self) -> None:
        layer = Dense(2, kernel_regularizer=lambda w: 3.0 * tf.reduce_sum(w), use_bias=False)
        layer(x(1, 2))
        layer.set_weights([np.ones((2, 2))])
        (loss,) = layer.losses
        assert value(loss) == 12
        assert layer.losses == [loss]
        layer.trainable = False
        assert layer.losses == [loss]  # as in Keras

    def test_regularizers_of_layer_inspected_before_build(self) -> None:
        layer = Dense(2, kernel_regularizer="l2")
        assert layer.losses == []
        layer(x(1, 2))
        assert len(layer.losses) == 1


class TestMasks:
    def test_are_propagated_and_end(self) -> None:
        ids = tf.constant([[1, 2, 0]])
        rows = Embedding(5, 4, mask_zero=True)(ids)
        mask = mask_of(rows)
        np.testing.assert_array_equal(value(mask), [[True, True, False]])
        assert mask_of(Dense(3)(rows)) is mask
        assert mask_of(Scale()(rows)) is None

    def test_call_with_mask_argument_gets_mask(self) -> None:
        class Takes(Layer):
            def call(self, inputs: Any, mask: Any = None) -> Any:
                return tf.cast(mask, tf.float32)

        rows = Embedding(5, 4, mask_zero=True)(tf.constant([[1, 0]]))
        np.testing.assert_array_equal(value(Takes()(rows)), [[1, 0]])
        np.testing.assert_array_equal(
            value(Takes()(rows, mask=tf.constant([[False, True]]))), [[0, 1]]
        )


class TestBuildingAnew:
    def test_rebuild_in_another_graph_and_back(self) -> None:
        layer = Twice(name="whole")
        layer(x(2))
        before = list(layer.weights)
        with tf.Graph().as_default() as other, unbuilt(layer):
            assert not layer.inner[0].built
            outputs = layer(x(2))
            assert outputs.graph is other
            names = [each.op.name for each in layer.weights]
            assert all(each.graph is other for each in layer.weights)
        assert layer.weights == before
        assert names == [each.op.name for each in before]
        assert layer.input.graph is not other

    def test_lists_created_in_build(self) -> None:
        class Many(Layer):
            def __init__(self) -> None:
                super().__init__()
                self.made: list[Any] = []

            def build(self, input_shape: Any) -> None:
                self.made.append(self.add_weight("a", []))
                super().build(input_shape)

            def call(self, inputs: Any) -> Any:
                return inputs * self.made[0]

        layer = Many()
        layer(x(1))
        with tf.Graph().as_default(), unbuilt(layer):
            layer(x(1))
            assert len(layer.made) == 1
        assert len(layer.made) == 1
        assert layer.made == layer.weights


class TestScoped:
    def test_names_reuse_and_collections(self) -> None:
        kind = scoped(Dense)
        with tf.variable_scope("outer"):
            one = kind(2, _scope="fc", kernel_regularizer=tf.nn.l2_loss)
            one(x(1, 3))
            two = kind(2, _scope="fc", _reuse=True)
            two(x(1, 3))
            three = kind(2)
            three(x(1, 3))
        assert one.kernel.op.name == "outer/fc/kernel"
        assert two.kernel is one.kernel
        assert three.kernel.op.name == "outer/dense/kernel"
        assert one.scope_name == "outer/fc"
        assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 1
        with pytest.raises(ValueError, match="already exists"):
            kind(2, _scope="outer/fc")(x(1, 3))

    def test_scope_initializer(self) -> None:
        with tf.variable_scope("s", initializer=tf.ones_initializer()):
            layer = scoped(Dense)(1, kernel_initializer=None)
            outputs = layer(x(1, 3))
        np.testing.assert_array_equal(value(outputs), [[3]])

    def test_is_instance_of_keras_layer(self) -> None:
        layer = scoped(Dense)(2)
        assert isinstance(layer, Dense)
        layer(x(1, 3)), layer(x(1, 3))
        assert len(tf.global_variables()) == 2
