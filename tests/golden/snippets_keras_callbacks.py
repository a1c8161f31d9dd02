"""Trainings with callbacks, as functions of the module that they use as `keras`.

`CASES` give the callbacks of a training of one small model on fixed data, from fixed weights and
without shuffling; `run` trains and says what came of it: logs, learning rates, when it ended, the
last weights, what was printed, and which files there are.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable
from typing import Any

import numpy as np

EPOCHS = 7
_random = np.random.default_rng(5)
X = _random.normal(0, 1, (16, 3)).astype(np.float32)
Y = (X.sum(1, keepdims=True) + _random.normal(0, 1, (16, 1))).astype(np.float32)
X_TEST = _random.normal(0, 1, (8, 3)).astype(np.float32)
Y_TEST = (X_TEST.sum(1, keepdims=True) + 1.5).astype(np.float32)
WEIGHTS = [
    _random.normal(0, 0.7, (3, 4)).astype(np.float32),
    np.zeros(4, np.float32),
    _random.normal(0, 0.7, (4, 1)).astype(np.float32),
    np.zeros(1, np.float32),
]

Case = Callable[[Any, str], list[Any]]

CASES: dict[str, tuple[float, Case]] = {
    "early stopping": (
        0.35,
        lambda c, _: [c.EarlyStopping(patience=1, verbose=1)],
    ),
    "early stopping, restored": (
        0.35,
        lambda c, _: [c.EarlyStopping(patience=2, restore_best_weights=True, verbose=1)],
    ),
    "early stopping of the largest": (
        0.1,
        lambda c, _: [c.EarlyStopping("loss", mode="max", restore_best_weights=True)],
    ),
    "early stopping, a baseline": (
        0.05,
        lambda c, _: [c.EarlyStopping("val_loss", patience=2, baseline=0.01)],
    ),
    "early stopping, small steps": (
        0.05,
        lambda c, _: [c.EarlyStopping("loss", patience=1, min_delta=0.3)],
    ),
    "early stopping, later": (
        0.35,
        lambda c, _: [c.EarlyStopping("loss", mode="max", start_from_epoch=3)],
    ),
    "early stopping of what is not there": (0.05, lambda c, _: [c.EarlyStopping("nothing")]),
    "plateau": (
        0.35,
        lambda c, _: [c.ReduceLROnPlateau(factor=0.5, patience=1, cooldown=1, verbose=1)],
    ),
    "plateau, a lowest rate": (
        0.35,
        lambda c, _: [c.ReduceLROnPlateau("loss", 0.1, 1, 1, "max", min_lr=0.02)],
    ),
    "plateau, large steps": (
        0.05,
        lambda c, _: [c.ReduceLROnPlateau("loss", 0.5, 1, epsilon=0.5)],
    ),
    "schedule": (0.1, lambda c, _: [c.LearningRateScheduler(lambda epoch: 0.1 / (epoch + 1), 1)]),
    "schedule of rates": (
        0.1,
        lambda c, _: [c.LearningRateScheduler(lambda epoch, rate: rate * 0.8)],
    ),
    "csv": (0.1, lambda c, folder: [c.CSVLogger(os.path.join(folder, "log.csv"), ";")]),
    "checkpoints": (
        0.1,
        lambda c, folder: [
            c.ModelCheckpoint(
                os.path.join(folder, "w.{epoch:02d}-{val_loss:.2f}.h5"),
                save_weights_only=True,
                verbose=1,
            )
        ],
    ),
    "checkpoints of the best": (
        0.35,
        lambda c, folder: [
            c.ModelCheckpoint(
                os.path.join(folder, "best.{epoch}.h5"),
                save_weights_only=True,
                save_best_only=True,
                verbose=1,
            )
        ],
    ),
    "checkpoints from a threshold on": (
        0.1,
        lambda c, folder: [
            c.ModelCheckpoint(
                os.path.join(folder, "best.{epoch}.h5"),
                "loss",
                save_weights_only=True,
                save_best_only=True,
                initial_value_threshold=1.2,
            )
        ],
    ),
    "checkpoints of every third epoch": (
        0.1,
        lambda c, folder: [
            c.ModelCheckpoint(os.path.join(folder, "{epoch}.h5"), save_weights_only=True, period=3)
        ],
    ),
    "checkpoints of batches": (
        0.1,
        lambda c, folder: [
            c.ModelCheckpoint(
                os.path.join(folder, "{epoch}-{batch}.h5"), save_weights_only=True, save_freq=3
            )
        ],
    ),
    "not a number": (1e30, lambda c, _: [c.TerminateOnNaN()]),
    "two together": (
        0.35,
        lambda c, _: [
            c.ReduceLROnPlateau(factor=0.3, patience=1),
            c.EarlyStopping(patience=2, restore_best_weights=True),
        ],
    ),
}


def recorder(callbacks: Any, hooks: list[Any]) -> Any:
    """A callback that notes every hook, its number, and the names of its logs."""

    class Recorder(callbacks.Callback):  # type: ignore[misc]
        pass

    def noting(name: str) -> Callable[..., None]:
        def hook(self: Any, *args: Any, **kwargs: Any) -> None:
            given = [*args, *kwargs.values()]
            logs = given[-1] if isinstance(given[-1], dict) else {}
            number = given[0] if not isinstance(given[0], dict) and given[0] is not None else None
            hooks.append([name, number, sorted(logs)])

        return hook

    kinds = ("train", "test", "predict")
    names = [f"on_{kind}_{end}" for kind in kinds for end in ("begin", "end")]
    names += [f"on_{kind}_batch_{end}" for kind in kinds for end in ("begin", "end")]
    for name in (*names, "on_epoch_begin", "on_epoch_end"):
        setattr(Recorder, name, noting(name))
    return Recorder()


def model_of(keras: Any, rate: float) -> Any:
    """The model, compiled, with its weights."""
    layers = keras.layers
    model = keras.Sequential(
        [layers.Dense(4, activation="tanh", input_shape=(3,)), layers.Dense(1)]
    )
    model.compile(keras.optimizers.legacy.SGD(rate), "mse", metrics=["mae"])
    model.set_weights(WEIGHTS)
    return model


def run(keras: Any, name: str, folder: str) -> dict[str, Any]:
    """What comes of a training with the callbacks of a case."""
    rate, make = CASES[name]
    model = model_of(keras, rate)
    rates: list[float] = []
    noted = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: rates.append(
            float(keras.backend.get_value(model.optimizer.lr))
        )
    )
    callbacks = make(keras.callbacks, folder)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        history = model.fit(
            *(X, Y, 4),
            epochs=EPOCHS,
            verbose=0,
            callbacks=[*callbacks, noted],
            validation_data=(X_TEST, Y_TEST),
            shuffle=False,
        )
    facts = [
        {
            key: getattr(each, key)
            for key in ("stopped_epoch", "best", "best_epoch", "wait")
            if hasattr(each, key)
        }
        for each in callbacks
    ]
    log = os.path.join(folder, "log.csv")
    rows = []
    if os.path.exists(log):
        with open(log, newline="", encoding="utf-8") as file:
            rows = file.read().split("\r\n")
    return {
        "epochs": history.epoch,
        "history": {k: [float(v) for v in values] for k, values in history.history.items()},
        "rates": rates,
        "callbacks": [{k: float(v) for k, v in sorted(each.items())} for each in facts],
        "weights": [each.astype(float).ravel().tolist() for each in model.get_weights()],
        "printed": printed.getvalue().replace(folder, "FOLDER").splitlines(),
        "files": sorted(each for each in os.listdir(folder) if not each.endswith(".json")),
        "rows": [row.split(";") for row in rows],
    }


def hooks_of(keras: Any) -> list[Any]:
    """All hooks of a training with a validation, an evaluation and a prediction."""
    model = model_of(keras, 0.1)
    hooks: list[Any] = []
    noted = [recorder(keras.callbacks, hooks)]
    model.fit(
        *(X, Y, 8),
        epochs=2,
        verbose=0,
        callbacks=noted,
        validation_data=(X_TEST, Y_TEST),
        validation_batch_size=4,
        shuffle=False,
    )
    model.evaluate(X_TEST, Y_TEST, 4, verbose=0, callbacks=noted)
    model.predict(X_TEST, 4, verbose=0, callbacks=noted)
    return hooks
