"""Random Keras models, as a function of `tf` and a seed: what each step of training them gives.

A seed chooses inputs, layers and their arguments, how they are connected (one after the other, with
branches, shared layers, masks, several inputs and outputs, or in a subclass), losses, weights,
metrics and an optimizer. Weights are set by a formula, nothing is shuffled: both packages compute
the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BATCH, ROWS = 4, 10
ACTIVATIONS = ("linear", "relu", "tanh", "sigmoid", "elu", "softplus", "softsign", "selu")


class Choices:
    """Random choices, and layers made of them."""

    def __init__(self, keras: Any, seed: int) -> None:
        self.keras = keras
        self.random = np.random.RandomState(seed)

    def one(self, *values: Any) -> Any:
        """One of some values."""
        return values[self.random.randint(len(values))]

    def likely(self, probability: float) -> bool:
        """True with this probability."""
        return bool(self.random.rand() < probability)

    def regularizer(self) -> Any:
        """A regularizer, or None."""
        kinds = self.keras.regularizers
        made = kinds.l2(0.03), kinds.l1(0.01), kinds.L1L2(0.01, 0.02)
        return self.one(None, None, None, None, *made)

    def constraint(self) -> Any:
        """A constraint, or None."""
        kinds = self.keras.constraints
        made = kinds.MaxNorm(1.0), kinds.NonNeg(), kinds.UnitNorm(), kinds.MinMaxNorm(0.3, 0.9)
        return self.one(*[None] * 8, *made)

    def kernel(self) -> dict[str, Any]:
        """Arguments of layers with a kernel."""
        chosen = {
            "activation": self.one(*ACTIVATIONS),
            "use_bias": self.likely(0.8),
            "kernel_regularizer": self.regularizer(),
            "bias_regularizer": self.regularizer(),
            "kernel_constraint": self.constraint(),
        }
        if self.likely(0.1):
            chosen["activity_regularizer"] = self.keras.regularizers.l2(0.05)
        return chosen

    def of_any(self) -> Any:
        """A layer for inputs of any rank."""
        layers = self.keras.layers
        return self.one(
            lambda: layers.Dense(self.one(2, 3, 4), **self.kernel()),
            lambda: layers.Activation(self.one(*ACTIVATIONS, "softmax", "hard_sigmoid", "gelu")),
            lambda: layers.BatchNormalization(
                momentum=self.one(0.9, 0.5),
                epsilon=self.one(1e-3, 0.1),
                center=self.likely(0.8),
                scale=self.likely(0.8),
                beta_regularizer=self.regularizer(),
                gamma_constraint=self.constraint(),
            ),
            lambda: layers.LayerNormalization(center=self.likely(0.8), scale=self.likely(0.8)),
            lambda: layers.UnitNormalization(),
            lambda: layers.LeakyReLU(0.2),
            lambda: layers.PReLU(alpha_initializer="ones", alpha_regularizer=self.regularizer()),
            lambda: layers.ELU(0.7),
            lambda: layers.ReLU(self.one(None, 1.0), self.one(0.0, 0.1), self.one(0.0, 0.2)),
            lambda: layers.Softmax(),
            lambda: layers.Dropout(0.0),
            lambda: layers.GaussianNoise(0.0),
            lambda: layers.ActivityRegularization(0.01, 0.02),
            lambda: layers.Lambda(lambda x: x * 0.5 + 0.1),
            lambda: layers.Rescaling(0.5, 0.2),
            lambda: layers.Identity(),
            lambda: Counting(self.keras),
            lambda: Watching(self.keras),
        )()

    def of_vectors(self) -> Any:
        """A layer for `(batch, n)`."""
        return self.one(
            *[self.of_any] * 5, lambda: self.keras.layers.RepeatVector(self.one(2, 3))
        )()

    def cell(self, **more: Any) -> Any:
        """A recurrent layer."""
        layers = self.keras.layers
        kind = self.one(layers.SimpleRNN, layers.GRU, layers.LSTM)
        arguments = {
            "use_bias": self.likely(0.8),
            "go_backwards": self.likely(0.3),
            "return_sequences": self.likely(0.6),
            "kernel_regularizer": self.regularizer(),
            "recurrent_regularizer": self.regularizer(),
            **more,
        }
        if kind is layers.GRU:
            arguments["reset_after"] = self.likely(0.5)
        if kind is layers.LSTM:
            arguments["unit_forget_bias"] = self.likely(0.5)
        return kind(self.one(2, 3), **arguments)

    def of_sequences(self) -> Any:
        """A layer for `(batch, steps, n)`."""
        layers = self.keras.layers
        padding = self.one("same", "valid", "causal")
        size = self.one(1, 2)
        return self.one(
            *[self.of_any] * 6,
            *[self.cell] * 4,
            lambda: layers.Conv1D(
                self.one(2, 3),
                self.one(1, 2, 3),
                padding=padding,
                **self.strided(),
                **self.kernel(),
            ),
            lambda: layers.SeparableConv1D(3, 2, padding=padding, depth_multiplier=size),
            lambda: layers.DepthwiseConv1D(2, padding=self.one("same", "valid")),
            lambda: layers.Conv1DTranspose(2, 2, strides=size, padding=self.one("same", "valid")),
            lambda: layers.LocallyConnected1D(2, 2, activation="tanh"),
            lambda: layers.MaxPooling1D(2, strides=size, padding=self.one("same", "valid")),
            lambda: layers.AveragePooling1D(2, strides=size, padding=self.one("same", "valid")),
            lambda: layers.Cropping1D((size - 1, 1)),
            lambda: layers.ZeroPadding1D((1, size)),
            lambda: layers.UpSampling1D(2),
            lambda: layers.Masking(self.one(0.0, 0.5)),
            lambda: layers.GlobalAveragePooling1D(keepdims=self.likely(0.3)),
            lambda: layers.GlobalMaxPooling1D(keepdims=self.likely(0.3)),
            lambda: layers.Permute((2, 1)),
            lambda: layers.Flatten(),
            lambda: layers.SpatialDropout1D(0.0),
            lambda: layers.Softmax(axis=1),
            lambda: layers.PReLU("ones", shared_axes=[1]),
            lambda: layers.LayerNormalization(axis=self.one(1, [1, 2], -1)),
            lambda: layers.BatchNormalization(axis=1, momentum=0.7),
            lambda: layers.GroupNormalization(1),
            lambda: layers.TimeDistributed(layers.Dense(2, activation="tanh")),
            lambda: layers.Bidirectional(
                self.cell(go_backwards=False),
                merge_mode=self.one("concat", "sum", "mul", "ave"),
            ),
            lambda: layers.RNN(
                [layers.LSTMCell(2), layers.GRUCell(3)], return_sequences=self.likely(0.5)
            ),
            lambda: layers.EinsumDense("abc,cd->abd", (None, 3), bias_axes="d", activation="tanh"),
            lambda: MaskReading(self.keras),
        )()

    def strided(self) -> dict[str, Any]:
        """Strides or dilation."""
        return self.one({}, {}, {"strides": 2}, {"dilation_rate": 2})

    def of_images(self) -> Any:
        """A layer for `(batch, height, width, n)`."""
        layers = self.keras.layers
        padding = self.one("same", "valid")
        size = self.one(1, 2)
        return self.one(
            *[self.of_any] * 4,
            lambda: layers.Conv2D(
                self.one(2, 3),
                self.one(1, 2, (1, 2)),
                padding=padding,
                **self.strided(),
                **self.kernel(),
            ),
            lambda: layers.SeparableConv2D(3, 2, padding=padding, depth_multiplier=size),
            lambda: layers.DepthwiseConv2D(2, padding=padding, depth_multiplier=size),
            lambda: layers.Conv2DTranspose(2, 2, strides=size, padding=padding),
            lambda: layers.LocallyConnected2D(2, 2),
            lambda: layers.MaxPooling2D(2, strides=size, padding=padding),
            lambda: layers.AveragePooling2D(2, strides=size, padding=padding),
            lambda: layers.Cropping2D(((0, 1), (size - 1, 0))),
            lambda: layers.ZeroPadding2D(((1, 0), (size, 1))),
            lambda: layers.UpSampling2D(2, interpolation=self.one("nearest", "bilinear")),
            lambda: layers.GlobalAveragePooling2D(keepdims=self.likely(0.3)),
            lambda: layers.GlobalMaxPooling2D(keepdims=self.likely(0.3)),
            lambda: layers.Flatten(),
            lambda: layers.SpatialDropout2D(0.0),
            lambda: layers.BatchNormalization(axis=self.one(1, 2, 3), momentum=0.7),
            lambda: layers.LayerNormalization(axis=self.one([1, 2, 3], 1, -1)),
            lambda: layers.GroupNormalization(1),
            lambda: layers.TimeDistributed(layers.Dense(2)),
        )()

    def layer(self, rank: int) -> Any:
        """A layer for inputs of a rank."""
        table = {2: self.of_vectors, 3: self.of_sequences, 4: self.of_images}
        return table[rank]()

    def to_vectors(self, rank: int) -> Any:
        """A layer that gives `(batch, n)`."""
        layers = self.keras.layers
        if rank == 2:
            return self.of_any()
        if rank == 3:
            kinds = layers.Flatten, layers.GlobalAveragePooling1D, layers.GlobalMaxPooling1D
            return self.one(*kinds, lambda: layers.LSTM(3), lambda: layers.GRU(2))()
        return self.one(layers.Flatten, layers.GlobalAveragePooling2D, layers.GlobalMaxPooling2D)()


def Counting(keras: Any) -> Any:
    """A layer with a variable that its calls assign."""

    class Counting(keras.layers.Layer):  # type: ignore[misc]
        def build(self, input_shape: Any) -> None:
            self.total = self.add_weight("total", (), initializer="zeros", trainable=False)
            super().build(input_shape)

        def call(self, inputs: Any, training: Any = None) -> Any:
            self.total.assign_add(1.0)
            self.total.assign(self.total * 0.5)
            return inputs * (0.9 + 0.1 * self.total)

    return Counting()


def Watching(keras: Any) -> Any:
    """A layer with a loss and metrics of its own."""
    backend = keras.backend

    class Watching(keras.layers.Layer):  # type: ignore[misc]
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.supports_masking = True
            self.mean = keras.metrics.Mean(name=f"mean_of_{self.name}")

        def call(self, inputs: Any) -> Any:
            self.add_loss(0.1 * backend.mean(backend.square(inputs)))
            self.add_metric(backend.max(inputs), name=f"max_of_{self.name}")
            self.add_metric(self.mean(inputs))
            return inputs

    return Watching()


def MaskReading(keras: Any) -> Any:
    """A layer that counts what its mask leaves."""
    backend = keras.backend

    class MaskReading(keras.layers.Layer):  # type: ignore[misc]
        def call(self, inputs: Any, mask: Any = None) -> Any:
            if mask is None:
                return inputs * 0.7
            return inputs * backend.expand_dims(backend.cast(mask, "float32"), -1)

        def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
            return mask

    return MaskReading()


class Built:
    """A random model, its data, and what `compile` gets.

    Args:
        tf: TensorFlow, or this package.
        seed: chooses everything.
    """

    def __init__(self, tf: Any, seed: int) -> None:
        self.tf, self.keras = tf, tf.keras
        self.choices = Choices(tf.keras, seed)
        self.numbers = np.random.RandomState(seed + 1000)
        self.inputs: list[Any] = []
        self.x: list[Any] = []
        self.y: Any = None
        self.weights: Any = None
        self.class_weight: Any = None
        kind = self.choices.one("branches", "branches", "branches", "line", "subclass")
        self.model = getattr(self, f"_{kind}")()
        if kind == "branches":
            self._add_terms()
        self.set_weights()

    # -- inputs and data

    def _data(self, *shape: int) -> Any:
        return self.numbers.randn(ROWS, *shape).astype(np.float32)

    def _shape(self) -> tuple[str, tuple[int, ...]]:
        kind = self.choices.one("vectors", "sequences", "sequences", "ids", "images")
        shapes = {"vectors": (3,), "sequences": (5, 3), "ids": (4,), "images": (4, 5, 2)}
        return kind, shapes[kind]

    def _values(self, kind: str, shape: tuple[int, ...]) -> Any:
        if kind == "ids":
            return self.numbers.randint(0, 5, (ROWS, *shape))
        values = self._data(*shape)
        if kind == "sequences":  # some steps to be masked
            values[self.numbers.rand(ROWS, shape[0]) < 0.3] = 0.0
            values[:, 0] = 0.3
        return values

    def _embedding(self) -> Any:
        return self.keras.layers.Embedding(
            5,
            3,
            mask_zero=self.choices.likely(0.6),
            embeddings_regularizer=self.choices.regularizer(),
        )

    def _input(self) -> Any:
        kind, shape = self._shape()
        tensor = self.keras.layers.Input(shape, dtype="int32" if kind == "ids" else "float32")
        self.inputs.append(tensor)
        self.x.append(self._values(kind, shape))
        if kind == "ids":
            return self._embedding()(tensor)
        masked = kind == "sequences" and self.choices.likely(0.6)
        return self.keras.layers.Masking(0.0)(tensor) if masked else tensor

    # -- structures

    def _shape_of(self, tensor: Any) -> tuple[int, ...]:
        return tuple(tensor.shape.as_list()[1:])

    def _fits(self, tensor: Any) -> bool:
        """Whether steps and pixels suffice for the windows of layers."""
        return min(self._shape_of(tensor)) >= 2 or len(self._shape_of(tensor)) == 1

    def _branches(self) -> Any:
        choices = self.choices
        pool = [self._input() for _ in range(choices.one(1, 1, 2, 3))]
        calls: list[tuple[Any, tuple[int, ...]]] = []
        for _ in range(choices.one(2, 4, 6, 8)):
            tensor = pool[choices.random.randint(len(pool))]
            shape = self._shape_of(tensor)
            again = [layer for layer, known in calls if known == shape]
            partners = [each for each in pool if self._shape_of(each) == shape]
            if choices.likely(0.25):
                pool.append(self._merged(tensor, choices.one(*partners)))
            elif again and choices.likely(0.3):
                pool.append(choices.one(*again)(tensor))
            elif choices.likely(0.1):
                pool.append(tensor * 0.8 + choices.one(*partners))
            elif self._fits(tensor):
                layer = choices.layer(len(shape) + 1)
                pool.append(layer(tensor))
                calls.append((layer, shape))
            if min(self._shape_of(pool[-1])) < 1:
                pool.pop()
        outputs = []
        for _ in range(choices.one(1, 1, 1, 2)):
            tensor = pool[-1] if not outputs else choices.one(*pool)
            outputs.append(self._head(tensor))
        return self.keras.Model(self.inputs, outputs)

    def _merged(self, one: Any, other: Any) -> Any:
        layers = self.keras.layers
        kinds = [layers.Add, layers.Subtract, layers.Multiply, layers.Average, layers.Maximum]
        kinds += [layers.Minimum, layers.Concatenate]
        if len(self._shape_of(one)) == 2:
            kinds += [
                lambda: layers.Concatenate(axis=1),
                lambda: layers.Dot(axes=self.choices.one(1, 2), normalize=self.choices.likely(0.5)),
                lambda: layers.Attention(use_scale=self.choices.likely(0.5)),
                layers.AdditiveAttention,
                lambda: MultiHead(self.keras),
            ]
        return self.choices.one(*kinds)()([one, other])

    def _head(self, tensor: Any) -> Any:
        rank = len(self._shape_of(tensor)) + 1
        if rank == 3 and self.choices.likely(0.3):  # a loss of each step, masked or not
            return self._named_head(2, "linear")(tensor)
        vectors = self.choices.to_vectors(rank)(tensor)
        width, activation = self.choices.one((1, "sigmoid"), (3, "softmax"), (2, "linear"))
        return self._named_head(width, activation)(vectors)

    def _named_head(self, width: int, activation: str) -> Any:
        number = len(getattr(self, "heads", []))
        self.heads = [*getattr(self, "heads", []), (width, activation)]
        return self.keras.layers.Dense(width, activation, name=f"head_{number}")

    def _stack(self) -> list[Any]:
        """Layers that may follow each other."""
        kind, shape = self._shape()
        tensor = self.keras.layers.Input(shape, dtype="int32" if kind == "ids" else "float32")
        self.x = [self._values(kind, shape)]
        self.kind, self.shape = kind, shape
        stack = []

        def add(layer: Any, now: Any) -> Any:
            stack.append(layer)
            return layer(now)

        if kind == "ids":
            tensor = add(self._embedding(), tensor)
        for _ in range(self.choices.one(1, 2, 4)):
            if self._fits(tensor):
                tensor = add(self.choices.layer(len(self._shape_of(tensor)) + 1), tensor)
        tensor = add(self.choices.to_vectors(len(self._shape_of(tensor)) + 1), tensor)
        width, activation = self.choices.one((1, "sigmoid"), (3, "softmax"), (2, "linear"))
        add(self._named_head(width, activation), tensor)
        return stack

    def _line(self) -> Any:
        stack = self._stack()
        model = self.keras.Sequential()
        dtype = "int32" if self.kind == "ids" else "float32"
        model.add(self.keras.layers.InputLayer(self.shape, dtype=dtype))
        for layer in stack:
            model.add(layer)
        return model

    def _subclass(self) -> Any:
        stack, keras = self._stack(), self.keras

        class Subclass(keras.Model):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.stack = stack
                self.calls = self.add_weight(
                    name="calls", shape=(), initializer="zeros", trainable=False
                )

            def call(self, inputs: Any, training: Any = None) -> Any:
                self.calls.assign_add(1.0)
                outputs = inputs
                for layer in self.stack:
                    outputs = layer(outputs)
                self.add_loss(0.01 * keras.backend.mean(keras.backend.abs(outputs)))
                return outputs

        model = Subclass()
        model.predict(self.x[0][:2], verbose=0)
        return model

    def _add_terms(self) -> None:
        """Losses and metrics of tensors inside the model."""
        outputs, backend = self.model.outputs, self.keras.backend
        if self.choices.likely(0.3):
            self.model.add_loss(0.2 * backend.mean(backend.square(outputs[0])))
        if self.choices.likely(0.3):
            self.model.add_metric(backend.sum(outputs[-1]), name="sum_of_outputs")

    # -- weights

    def set_weights(self) -> None:
        """Gives the model weights without a pattern."""
        values = []
        for number, variable in enumerate(self.model.weights):
            size = int(np.prod(variable.shape))
            flat = np.sin(np.arange(size) * 1.3 + number).astype(np.float32) * 0.6
            value = flat.reshape(tuple(variable.shape))
            values.append(np.abs(value) + 0.4 if "variance" in variable.name else value)
        self.model.set_weights(values)

    # -- compile

    def labels(self, width: int, activation: str, shape: Any) -> Any:
        """Labels for an output."""
        if activation == "softmax":
            return self.numbers.randint(0, width, (ROWS, 1))
        if activation == "sigmoid":
            return self.numbers.randint(0, 2, (ROWS, width)).astype(np.float32)
        return self._data(*shape)

    def loss(self, activation: str) -> Any:
        """A loss for an output."""
        losses, backend = self.keras.losses, self.keras.backend

        def of_examples(y_true: Any, y_pred: Any) -> Any:
            return backend.mean(backend.abs(y_true - y_pred), axis=-1)

        def of_batch(y_true: Any, y_pred: Any) -> Any:
            return backend.mean(backend.square(y_true - y_pred) * 0.7)

        if activation == "softmax":
            return "sparse_categorical_crossentropy"
        if activation == "sigmoid":
            made = losses.BinaryCrossentropy(label_smoothing=0.1), losses.Hinge()
            return self.choices.one("binary_crossentropy", of_examples, of_batch, *made)
        return self.choices.one("mse", "mae", "log_cosh", losses.Huber(0.5), of_examples, of_batch)

    def metrics(self, activation: str) -> list[Any]:
        """Metrics for an output."""
        made = {
            "softmax": ["accuracy", "sparse_categorical_crossentropy"],
            "sigmoid": ["accuracy", "mse", "binary_crossentropy"],
            "linear": ["mae", "mse", "cosine_similarity"],
        }[activation]
        return [each for each in made if self.choices.likely(0.5)]

    def optimizer(self) -> Any:
        """An optimizer."""
        kinds, choices = self.keras.optimizers.legacy, self.choices
        more = choices.one({}, {}, {}, {"clipnorm": 0.3}, {"clipvalue": 0.05}, {"decay": 0.1})
        return choices.one(
            lambda: kinds.SGD(0.1, **more),
            lambda: kinds.SGD(0.05, momentum=0.8, nesterov=choices.likely(0.5), **more),
            lambda: kinds.Adam(0.02, amsgrad=choices.likely(0.3), **more),
            lambda: kinds.RMSprop(0.01, momentum=choices.one(0.0, 0.5), **more),
            lambda: kinds.Adagrad(0.1, **more),
            lambda: kinds.Adadelta(0.5, **more),
            lambda: kinds.Adamax(0.02, **more),
            lambda: kinds.Nadam(0.02),
            lambda: kinds.Ftrl(0.1, l2_regularization_strength=0.01),
        )()

    def compile(self) -> None:
        """Compiles the model, and makes labels and weights."""
        choices = self.choices
        outputs = self.model.predict(self.of_batch(0)[0], verbose=0)
        shapes = [each.shape[1:] for each in (outputs if isinstance(outputs, list) else [outputs])]
        pairs = list(zip(self.heads, shapes, strict=True))
        self.y = [self.labels(width, kind, shape) for (width, kind), shape in pairs]
        several = len(pairs) > 1
        losses = [self.loss(kind) for (_, kind), _ in pairs]
        metrics = [self.metrics(kind) for (_, kind), _ in pairs]
        weighted = [self.metrics(kind) for (_, kind), _ in pairs] if choices.likely(0.4) else None
        if choices.likely(0.4):
            rows = np.abs(self._data()) * 2 * (self.numbers.rand(ROWS) > 0.2)
            self.weights = [rows] * len(pairs) if several else rows
        elif not several and self.heads[0][1] == "softmax" and choices.likely(0.6):
            self.class_weight = {0: 0.5, 1: 2.0, 2: 1.5}
        self.model.compile(
            self.optimizer(),
            losses if several else losses[0],
            metrics=metrics if several else metrics[0],
            loss_weights=[0.6, 1.5] if several and choices.likely(0.5) else None,
            weighted_metrics=weighted if several or weighted is None else weighted[0],
        )

    def of_batch(self, start: int) -> tuple[Any, Any, Any]:
        """Inputs, labels and weights of a batch."""
        cut = slice(start, start + BATCH)

        def part(values: Any) -> Any:
            if values is None:
                return None
            several = isinstance(values, list)
            found = [each[cut] for each in values] if several else values[cut]
            return found[0] if several and len(found) == 1 else found

        return part(self.x), part(self.y), part(self.weights)


def MultiHead(keras: Any) -> Any:
    """Multi-head attention of a pair."""

    class MultiHead(keras.layers.Layer):  # type: ignore[misc]
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.inner = keras.layers.MultiHeadAttention(2, 2)

        def call(self, inputs: Any) -> Any:
            return self.inner(inputs[0], inputs[1])

    return MultiHead()


def of_weights(model: Any) -> list[float]:
    """Two sums of each weight."""
    found = []
    for value in model.get_weights():
        flat = np.asarray(value, np.float64).ravel()
        found += [flat.sum(), (flat * np.cos(np.arange(flat.size) + 1)).sum()]
    return found


def flat(outputs: Any) -> list[float]:
    """Outputs of `predict` as one list."""
    parts = outputs if isinstance(outputs, list) else [outputs]
    return [float(each) for part in parts for each in np.ravel(part)]


# Models that need names of TensorFlow 1, by seed.
LEGACY = {"103", "126", "129"}


def run(tf: Any, seed: int) -> dict[str, list[float]]:
    """What the model of a seed gives: predictions, losses, metrics, weights, step by step."""
    built = Built(tf, seed)
    model = built.model
    found: dict[str, Any] = {"layers": [type(each).__name__ for each in model.layers]}
    x, y, weights = built.of_batch(0)
    found["predict"] = flat(model.predict(x, verbose=0))
    built.compile()
    y, weights = built.of_batch(0)[1:]
    for step in range(3):
        x, y, weights = built.of_batch(step * 3)
        logs = model.train_on_batch(
            x, y, sample_weight=weights, class_weight=built.class_weight, return_dict=True
        )
        found[f"train_{step}"] = {key: float(each) for key, each in logs.items()}
        found[f"weights_{step}"] = of_weights(model)
    logs = model.test_on_batch(x, y, sample_weight=weights, return_dict=True)
    found["test"] = {key: float(each) for key, each in logs.items()}
    every_x = built.x[0] if len(built.x) == 1 else built.x
    every_y = built.y[0] if len(built.y) == 1 else built.y
    fitted = model.fit(
        *(every_x, every_y, BATCH),
        epochs=2,
        verbose=0,
        shuffle=False,
        sample_weight=built.weights,
        class_weight=built.class_weight,
        validation_data=(every_x, every_y),
    )
    for key, values in fitted.history.items():
        found[f"fit_{key}"] = [float(each) for each in values]
    found["weights_fit"] = of_weights(model)
    logs = model.evaluate(
        *(every_x, every_y, BATCH), verbose=0, sample_weight=built.weights, return_dict=True
    )
    found["evaluate"] = {key: float(each) for key, each in logs.items()}
    found["predict_fit"] = flat(model.predict(x, verbose=0))
    return found


SEEDS = (75, 87, 103, 126, 129)
"""The models whose results are kept: of every structure, and with every kind of layer."""
