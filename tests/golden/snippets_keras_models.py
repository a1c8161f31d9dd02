"""Programs with Keras-style models, as functions of `keras` and the `tf` it belongs to.

Each gives a dict of numbers: histories of `fit`, results of `evaluate`, outputs of `predict`.
Weights are set by a formula, nothing is shuffled, so that both packages compute the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Snippet = Callable[[Any, Any], dict[str, Any]]


def rows(seed: int, *shape: int) -> Any:
    """Normally distributed float32 numbers."""
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


def classes(seed: int, count: int, most: int) -> Any:
    """Class numbers."""
    return np.random.RandomState(seed).randint(0, most, count)


def set_weights(model: Any) -> Any:
    """Gives a model weights without a pattern, in the order of `get_weights`."""
    values = []
    for number, value in enumerate(model.get_weights()):
        flat = np.sin(np.arange(value.size) * 1.3 + number).astype(np.float32) * 0.5
        values.append(
            np.abs(flat.reshape(value.shape))
            if value.ndim == 1 and number % 6 == 5
            else flat.reshape(value.shape)
        )
    model.set_weights(values)
    return model


def classifier(keras: Any, **compiled: Any) -> Any:
    """A small network of two layers for three classes."""
    model = keras.Sequential(
        [
            keras.layers.Dense(8, activation="relu", input_shape=(5,)),
            keras.layers.Dense(3, activation="softmax"),
        ]
    )
    set_weights(model)
    arguments = {"optimizer": "sgd", "loss": "sparse_categorical_crossentropy", **compiled}
    model.compile(**arguments)
    return model


def history(fitted: Any) -> dict[str, list[float]]:
    """The logs of `fit`, but for the learning rate."""
    return {key: [float(each) for each in values] for key, values in fitted.history.items()}


def fit_of_arrays(tf: Any, keras: Any) -> dict[str, Any]:
    """Arrays whose last batch is smaller, with validation."""
    model = classifier(keras, metrics=["accuracy"])
    x, y = rows(1, 50, 5), classes(2, 50, 3)
    fitted = model.fit(
        x,
        y,
        batch_size=16,
        epochs=3,
        shuffle=False,
        verbose=0,
        validation_data=(rows(3, 20, 5), classes(4, 20, 3)),
    )
    return {
        "history": history(fitted),
        "evaluate": model.evaluate(x, y, batch_size=16, verbose=0),
        "predict": model.predict(x[:7], verbose=0),
        "weights": model.get_weights(),
    }


def fit_with_split(tf: Any, keras: Any) -> dict[str, Any]:
    """The last examples validate."""
    model = classifier(keras, metrics=["sparse_categorical_crossentropy", "acc"])
    fitted = model.fit(
        rows(1, 30, 5),
        classes(2, 30, 3),
        batch_size=8,
        epochs=2,
        shuffle=False,
        verbose=0,
        validation_split=0.3,
    )
    return {"history": history(fitted)}


def sample_weights(tf: Any, keras: Any) -> dict[str, Any]:
    """Weights count in the loss and the weighted metrics."""
    model = classifier(keras, metrics=["accuracy"], weighted_metrics=["accuracy"])
    x, y = rows(1, 40, 5), classes(2, 40, 3)
    weights = np.abs(rows(5, 40))
    fitted = model.fit(
        x, y, sample_weight=weights, batch_size=16, epochs=2, shuffle=False, verbose=0
    )
    return {
        "history": history(fitted),
        "evaluate": model.evaluate(x, y, sample_weight=weights, verbose=0),
    }


def class_weights(tf: Any, keras: Any) -> dict[str, Any]:
    """Weights of classes count in training."""
    model = classifier(keras, metrics=["accuracy"])
    fitted = model.fit(
        rows(1, 40, 5),
        classes(2, 40, 3),
        class_weight={0: 1.0, 1: 2.5, 2: 0.3},
        batch_size=16,
        epochs=2,
        shuffle=False,
        verbose=0,
    )
    return {"history": history(fitted)}


def one_hot_labels(tf: Any, keras: Any) -> dict[str, Any]:
    """What 'accuracy' means for one-hot labels; a loss from logits."""
    model = keras.Sequential(
        [keras.layers.Dense(8, activation="tanh", input_shape=(5,)), keras.layers.Dense(3)]
    )
    set_weights(model)
    model.compile("adam", keras.losses.CategoricalCrossentropy(from_logits=True), ["accuracy"])
    y = np.eye(3, dtype=np.float32)[classes(2, 40, 3)]
    fitted = model.fit(rows(1, 40, 5), y, batch_size=10, epochs=3, shuffle=False, verbose=0)
    return {"history": history(fitted)}


def binary(tf: Any, keras: Any) -> dict[str, Any]:
    """One output: what 'accuracy' means then; labels of shape (n,)."""
    model = keras.Sequential(
        [
            keras.layers.Dense(6, activation="relu", input_shape=(5,)),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    set_weights(model)
    model.compile(
        keras.optimizers.legacy.Adam(0.01),
        "binary_crossentropy",
        ["accuracy", keras.metrics.AUC(name="auc"), keras.metrics.Precision(name="p")],
    )
    fitted = model.fit(
        rows(1, 64, 5), classes(2, 64, 2), batch_size=16, epochs=3, shuffle=False, verbose=0
    )
    return {"history": history(fitted), "predict": model.predict(rows(9, 4, 5), verbose=0)}


def regression(tf: Any, keras: Any) -> dict[str, Any]:
    """Regularizers count in the loss; functions as metrics."""
    model = keras.Sequential(
        [
            keras.layers.Dense(
                6,
                activation="relu",
                input_shape=(5,),
                kernel_regularizer="l2",
                activity_regularizer=keras.regularizers.l1(0.01),
            ),
            keras.layers.Dense(2, bias_regularizer=keras.regularizers.l1_l2(0.01, 0.02)),
        ]
    )
    set_weights(model)
    model.compile(keras.optimizers.legacy.SGD(0.05, momentum=0.9), "mse", ["mae", "mape"])
    x, y = rows(1, 40, 5), rows(2, 40, 2)
    fitted = model.fit(x, y, batch_size=16, epochs=3, shuffle=False, verbose=0)
    return {"history": history(fitted), "evaluate": model.evaluate(x, y, verbose=0)}


def two_inputs_two_outputs(tf: Any, keras: Any) -> dict[str, Any]:
    """A functional model: names of logs, weights of losses, metrics by output."""
    one, two = keras.Input((4,), name="one"), keras.Input((3,), name="two")
    shared = keras.layers.Dense(5, activation="relu", name="shared")
    left = keras.layers.Dense(5, activation="tanh", name="left")(two)
    merged = keras.layers.Concatenate(name="merged")([shared(one), left])
    number = keras.layers.Dense(1, name="number")(merged)
    kind = keras.layers.Dense(3, activation="softmax", name="kind")(merged)
    model = keras.Model(inputs=[one, two], outputs=[number, kind])
    set_weights(model)
    model.compile(
        "sgd",
        {"number": "mse", "kind": "sparse_categorical_crossentropy"},
        metrics={"number": "mae", "kind": ["accuracy"]},
        loss_weights={"number": 0.5, "kind": 2.0},
    )
    x = {"one": rows(1, 30, 4), "two": rows(2, 30, 3)}
    y = {"number": rows(3, 30, 1), "kind": classes(4, 30, 3)}
    fitted = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    predicted = model.predict([x["one"][:3], x["two"][:3]], verbose=0)
    return {
        "history": history(fitted),
        "evaluate": model.evaluate(x, y, batch_size=8, verbose=0, return_dict=True),
        "predict": predicted,
        "layers": [layer.name for layer in model.layers],
        "outputs": list(model.output_names),
        "weights": [list(each.shape) for each in model.get_weights()],
    }


def batches_of_a_dataset(tf: Any, keras: Any) -> dict[str, Any]:
    """A Dataset, gone through whole in each epoch."""
    model = classifier(keras, metrics=["accuracy"])
    dataset = tf.data.Dataset.from_tensor_slices((rows(1, 50, 5), classes(2, 50, 3))).batch(16)
    fitted = model.fit(dataset, epochs=3, verbose=0, validation_data=dataset.take(2))
    return {
        "history": history(fitted),
        "evaluate": model.evaluate(dataset, verbose=0),
        "predict": model.predict(dataset.take(1), verbose=0),
    }


def steps_of_an_endless_dataset(tf: Any, keras: Any) -> dict[str, Any]:
    """`steps_per_epoch` of a Dataset that goes on from epoch to epoch."""
    model = classifier(keras, metrics=["accuracy"])
    dataset = tf.data.Dataset.from_tensor_slices((rows(1, 50, 5), classes(2, 50, 3)))
    fitted = model.fit(dataset.repeat().batch(16), epochs=3, steps_per_epoch=2, verbose=0)
    return {"history": history(fitted)}


def batch_normalization(tf: Any, keras: Any) -> dict[str, Any]:
    """Moving averages move in training and are used in evaluation."""
    model = keras.Sequential(
        [
            keras.layers.Dense(6, input_shape=(5,)),
            keras.layers.BatchNormalization(momentum=0.8),
            keras.layers.Activation("relu"),
            keras.layers.Dense(3, activation="softmax"),
        ]
    )
    set_weights(model)
    model.compile("sgd", "sparse_categorical_crossentropy", ["accuracy"])
    x, y = rows(1, 48, 5), classes(2, 48, 3)
    fitted = model.fit(x, y, batch_size=16, epochs=3, shuffle=False, verbose=0)
    return {
        "history": history(fitted),
        "evaluate": model.evaluate(x, y, verbose=0),
        "weights": model.get_weights(),
    }


def convolution(tf: Any, keras: Any) -> dict[str, Any]:
    """Convolution, pooling, flattening."""
    model = keras.Sequential(
        [
            keras.layers.Conv2D(4, kernel_size=(3, 3), activation="relu", input_shape=(8, 8, 1)),
            keras.layers.MaxPooling2D(pool_size=(2, 2)),
            keras.layers.Flatten(),
            keras.layers.Dense(3, activation="softmax"),
        ]
    )
    set_weights(model)
    model.compile("adam", "sparse_categorical_crossentropy", ["accuracy"])
    fitted = model.fit(
        rows(1, 24, 8, 8, 1), classes(2, 24, 3), batch_size=8, epochs=2, shuffle=False, verbose=0
    )
    return {"history": history(fitted)}


def masked_steps(tf: Any, keras: Any) -> dict[str, Any]:
    """Padding is left out of recurrent states, losses and metrics."""
    model = keras.Sequential(
        [
            keras.layers.Embedding(12, 4, mask_zero=True, input_length=6),
            keras.layers.LSTM(5, return_sequences=True),
            keras.layers.Dense(3, activation="softmax"),
        ]
    )
    set_weights(model)
    model.compile("sgd", "sparse_categorical_crossentropy", ["accuracy"])
    x = np.random.RandomState(1).randint(1, 12, (20, 6))
    x[::3, 4:] = 0
    x[::4, 2:] = 0
    y = np.random.RandomState(2).randint(0, 3, (20, 6))
    fitted = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return {"history": history(fitted), "predict": model.predict(x[:2], verbose=0)}


def nested_and_shared(tf: Any, keras: Any) -> dict[str, Any]:
    """A model within a model, called twice."""
    inner = keras.Sequential([keras.layers.Dense(4, activation="relu", input_shape=(3,))])
    one, two = keras.Input((3,)), keras.Input((3,))
    joined = keras.layers.Subtract()([inner(one), inner(two)])
    model = keras.Model([one, two], keras.layers.Dense(1)(joined))
    set_weights(model)
    model.compile("sgd", "mse")
    x = [rows(1, 20, 3), rows(2, 20, 3)]
    fitted = model.fit(x, rows(3, 20, 1), batch_size=8, epochs=2, shuffle=False, verbose=0)
    return {"history": history(fitted), "predict": model.predict(x, verbose=0)[:3]}


def subclass(tf: Any, keras: Any) -> dict[str, Any]:
    """A model whose `call` is Python, with a loss added in a layer."""

    class Loss(keras.layers.Layer):  # type: ignore[misc,name-defined]
        def call(self, inputs: Any) -> Any:
            self.add_loss(0.1 * tf.reduce_mean(tf.square(inputs)))
            return inputs

    class Net(keras.Model):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.hidden = keras.layers.Dense(4, activation="relu")
            self.penalty = Loss()
            self.final = keras.layers.Dense(1)

        def call(self, inputs: Any) -> Any:
            return self.final(self.penalty(self.hidden(inputs)))

    model = Net()
    model.compile("sgd", "mse", ["mae"])
    x, y = rows(1, 20, 3), rows(2, 20, 1)
    model.predict(x[:4], verbose=0)
    set_weights(model)
    fitted = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return {"history": history(fitted), "evaluate": model.evaluate(x, y, verbose=0)}


def on_batches(tf: Any, keras: Any) -> dict[str, Any]:
    """`train_on_batch`, `test_on_batch`, `predict_on_batch`."""
    model = classifier(keras, metrics=["accuracy"])
    x, y = rows(1, 16, 5), classes(2, 16, 3)
    trained = [model.train_on_batch(x[start : start + 8], y[start : start + 8]) for start in (0, 8)]
    return {
        "train": trained,
        "test": model.test_on_batch(x, y),
        "predict": model.predict_on_batch(x[:3]),
    }


def frozen(tf: Any, keras: Any) -> dict[str, Any]:
    """A layer that is not trained."""
    model = classifier(keras)
    model.layers[0].trainable = False
    model.compile("sgd", "sparse_categorical_crossentropy")
    fitted = model.fit(
        rows(1, 20, 5), classes(2, 20, 3), batch_size=8, epochs=2, shuffle=False, verbose=0
    )
    return {
        "history": history(fitted),
        "weights": model.get_weights(),
        "trainable": len(model.trainable_weights),
    }


def watched(keras: Any, optimizer: Any = "sgd", loss: Any = "mse") -> Any:
    """A functional model with losses and metrics of tensors inside of it."""
    inputs = keras.layers.Input((3,))
    code = keras.layers.Dense(2)(inputs)
    model = keras.Model(inputs, keras.layers.Dense(3)(code))
    model.add_loss(keras.layers.Lambda(lambda x: keras.backend.mean(x * x) * 0.7)(code))
    model.add_metric(keras.layers.Lambda(keras.backend.sum)(code), name="sum_of_code")
    set_weights(model).compile(optimizer, loss)
    return model


def losses_of_tensors_in_a_functional_model(tf: Any, keras: Any) -> dict[str, Any]:
    """`add_loss` and `add_metric` of tensors; the second part has no other loss."""
    x, model = rows(3, 10, 3), watched(keras)
    found = history(model.fit(x, x, 4, epochs=2, verbose=0, shuffle=False))
    found["evaluated"] = model.evaluate(x, x, 4, verbose=0)
    copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    copy.compile("sgd", None)
    found["copy"] = [copy.train_on_batch(x), copy.test_on_batch(x)]
    inputs = keras.layers.Input((3,))
    outer = keras.Model(inputs, keras.layers.Dense(1)(model(inputs)))
    set_weights(outer).compile("sgd", "mse")
    return {**found, "outer": outer.train_on_batch(x, x[:, :1])}


def losses_per_example_of_a_functional_model(tf: Any, keras: Any) -> dict[str, Any]:
    """`add_loss` of a vector, the model's only loss: the gradient is that of the sum."""
    inputs = keras.layers.Input((3,))
    outputs = keras.layers.Dense(3)(inputs)
    model = keras.Model(inputs, outputs)
    model.add_loss(keras.backend.mean(keras.backend.square(outputs - inputs), axis=-1))
    set_weights(model).compile("sgd", None)
    x = rows(3, 10, 3)
    found = history(model.fit(x, None, 4, epochs=2, verbose=0, shuffle=False))
    return {**found, "evaluated": model.evaluate(x, verbose=0)}


def metrics_of_layers(tf: Any, keras: Any) -> dict[str, Any]:
    """`add_metric` of a metric's result and of a tensor, in a layer that is called twice."""

    class Watching(keras.layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.mean = keras.metrics.Mean(name="mean_of_inputs")

        def call(self, inputs: Any) -> Any:
            self.add_metric(self.mean(inputs))
            self.add_metric(keras.backend.max(inputs), name="largest")
            return inputs

    layer, inputs = Watching(), keras.layers.Input((3,))
    model = keras.Model(inputs, layer(keras.layers.Dense(3)(layer(inputs))))
    set_weights(model).compile("sgd", "mse")
    x = rows(3, 10, 3)
    fitted = model.fit(x, x, 4, epochs=2, verbose=0, shuffle=False, validation_data=(x, x))
    return history(fitted)


def variables_assigned_in_calls(tf: Any, keras: Any) -> dict[str, Any]:
    """A layer and a model that assign variables in `call`: in order, in every kind of step."""

    class Counting(keras.layers.Layer):  # type: ignore[misc]
        def build(self, input_shape: Any) -> None:
            self.count = self.add_weight("count", (), initializer="zeros", trainable=False)

        def call(self, inputs: Any) -> Any:
            self.count.assign_add(1.0)
            return inputs * self.count

    class Averaging(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(2, kernel_initializer="ones")
            self.counting = Counting()
            self.average = tf.Variable([1.0, 2.0, 3.0], trainable=False)

        def call(self, inputs: Any, training: Any = None) -> Any:
            mean = keras.backend.mean(inputs, axis=0)
            self.average.assign(self.average * 0.9 + 0.1 * mean)
            return self.counting(self.dense(inputs * self.average))

    model = Averaging()
    model.compile(keras.optimizers.legacy.SGD(0.001), "mse")
    x, y = rows(3, 10, 3), rows(4, 10, 2)
    found: dict[str, Any] = history(model.fit(x, y, 4, epochs=2, verbose=0, shuffle=False))
    found["trained"] = [each.tolist() for each in model.get_weights()]
    found["evaluated"] = model.evaluate(x, y, 4, verbose=0)
    found["predicted"] = model.predict(x, 5, verbose=0)
    found["count"] = model.counting.get_weights()
    return found


def one_batch_normalization_called_several_times(tf: Any, keras: Any) -> dict[str, Any]:
    """The moving averages move once in each call, one after the other."""
    layer, inputs = keras.layers.BatchNormalization(momentum=0.9), keras.layers.Input((3,))
    outputs = inputs
    for shift in range(12):
        outputs = layer(outputs) + float(shift)
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.legacy.SGD(0.01), "mse")
    x = rows(3, 10, 3)
    fitted = model.fit(x, x, 4, epochs=2, verbose=0, shuffle=False, validation_data=(x, x))
    return {**history(fitted), "weights": [each.tolist() for each in model.get_weights()]}


def shared_model_in_order(tf: Any, keras: Any) -> dict[str, Any]:
    """A model that two branches share updates its averages for the first branch first."""
    normalized = keras.layers.BatchNormalization(momentum=0.5)
    inner = keras.Sequential([keras.layers.Dense(4, "tanh", input_shape=(3,)), normalized])
    one, other = keras.layers.Input((3,)), keras.layers.Input((3,))
    joined = keras.layers.Concatenate()([inner(one), inner(other)])
    model = set_weights(keras.Model([one, other], keras.layers.Dense(2)(joined)))
    model.compile("sgd", "mse")
    x = rows(3, 10, 3)
    found = history(model.fit([x, x * 2.0], rows(4, 10, 2), 4, verbose=0, shuffle=False))
    return {**found, "weights": [each.tolist() for each in model.get_weights()]}


def losses_of_a_batch_with_weights(tf: Any, keras: Any) -> dict[str, Any]:
    """A loss and a metric that give one number for a batch, with weights of examples or classes."""

    def of_batch(y_true: Any, y_pred: Any) -> Any:
        return keras.backend.mean(keras.backend.abs(y_true - y_pred))

    model = set_weights(keras.Sequential([keras.layers.Dense(1, input_shape=(3,))]))
    model.compile("sgd", of_batch, weighted_metrics=[of_batch])
    x, y, weights = rows(3, 10, 3), classes(4, 10, 2)[:, None] * 1.0, np.arange(10.0)
    fitted = model.fit(x, y, 4, verbose=0, shuffle=False, sample_weight=weights)
    found = history(fitted)
    found["evaluated"] = model.evaluate(x, y, verbose=0, sample_weight=weights)
    fitted = model.fit(x, y, 4, verbose=0, shuffle=False, class_weight={0: 1.0, 1: 3.0})
    return {**found, "classes": fitted.history["loss"]}


def weights_before_the_first_call(tf: Any, keras: Any) -> dict[str, Any]:
    """The layers of a `Sequential` model that begins with an `Embedding` have their weights."""
    layers = keras.layers
    model = keras.Sequential([layers.Embedding(5, 2), layers.GRU(3), layers.Dense(1)])
    shapes = [each.shape for each in model.get_weights()]
    model.layers[0].set_weights([np.arange(10.0).reshape(5, 2) / 10])
    rest = [np.full_like(each, 0.3) for each in model.get_weights()[1:]]
    model.set_weights([model.get_weights()[0], *rest])
    return {"shapes": shapes, "predicted": model.predict(np.array([[1, 2], [3, 4]]), verbose=0)}


def masks_of_numbers(tf: Any, keras: Any) -> dict[str, Any]:
    """Layers that merge and connect masks which are floats."""

    class Marking(keras.layers.Layer):  # type: ignore[misc]
        def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
            return keras.backend.cast(keras.backend.not_equal(inputs[:, :, 0], 0.0), "float32")

        def call(self, inputs: Any) -> Any:
            return inputs * 1.0

    one, other = keras.layers.Input((3, 2)), keras.layers.Input((3, 2))
    merged = keras.layers.Add()([Marking()(one), Marking()(other)])
    outputs = keras.layers.LSTM(2)(merged)
    model = set_weights(keras.Model([one, other], outputs))
    x = rows(3, 4, 3, 2)
    x[1, 1] = x[2, 0] = 0.0
    return {"predicted": model.predict([x, x], verbose=0)}


def sparse_inputs(tf: Any, keras: Any) -> dict[str, Any]:
    """`Input(sparse=True)`: matrices of scipy, data sets, copies, layers that take them."""
    from scipy import sparse

    inputs, dense = keras.layers.Input((4,), sparse=True), keras.layers.Input((2,))
    outputs = keras.layers.Dense(2)(inputs)
    model = keras.Model(
        [inputs, dense], keras.layers.Dense(1)(keras.layers.Add()([outputs, dense]))
    )
    model = keras.models.clone_model(model)
    set_weights(model).compile(keras.optimizers.legacy.SGD(0.1, momentum=0.5), "mse")
    ones = sparse.csr_matrix(np.eye(4, dtype=np.float32)[[0, 2, 1, 3, 3]])
    x, y = [ones, rows(3, 5, 2)], rows(4, 5, 1)
    found: dict[str, Any] = {"predicted": model.predict(x, verbose=0)}
    found |= history(model.fit(x, y, 2, epochs=2, verbose=0, shuffle=False))
    found["weights"] = [each.tolist() for each in model.get_weights()]
    return {**found, "evaluated": model.evaluate(x, y, verbose=0)}


SNIPPETS: dict[str, Snippet] = {
    each.__name__: each
    for each in (
        *(fit_of_arrays, fit_with_split, sample_weights, class_weights, one_hot_labels, binary),
        *(regression, two_inputs_two_outputs, batches_of_a_dataset, steps_of_an_endless_dataset),
        *(batch_normalization, convolution, masked_steps, nested_and_shared, subclass),
        *(on_batches, frozen, losses_of_tensors_in_a_functional_model),
        *(losses_per_example_of_a_functional_model, metrics_of_layers, variables_assigned_in_calls),
        *(one_batch_normalization_called_several_times, losses_of_a_batch_with_weights),
        *(shared_model_in_order, weights_before_the_first_call, masks_of_numbers, sparse_inputs),
    )
}
