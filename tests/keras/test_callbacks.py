"""Callbacks against TensorFlow 2.15.1, and intended differences."""

from __future__ import annotations

import json
import logging
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimatorkit import keras
from estimatorkit.core.graph import Graph
from estimatorkit.interop.summary_writer import summary_iterator
from estimatorkit.keras import callbacks
from estimatorkit.layers.engine.sessions import session_of, values_of
from tests.golden.snippets_keras_callbacks import (
    CASES,
    EPOCHS,
    WEIGHTS,
    X_TEST,
    Y_TEST,
    X,
    Y,
    hooks_of,
    model_of,
    run,
)
from tests.sweep import sweep

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "keras_callbacks.json").read_text("utf-8")
)


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    with Graph().as_default() as graph:
        yield graph


@pytest.fixture(scope="module")
def shared() -> Any:
    """A model whose steps are compiled once, for tests that look at callbacks only."""
    with Graph().as_default():
        return model_of(keras, 0.35)


def fit(model: Any, *given: Any, **kwargs: Any) -> Any:
    model.set_weights(WEIGHTS)
    keras.backend.set_value(rate_of(model), 0.35)
    options = {"epochs": EPOCHS, "verbose": 0, "validation_data": (X_TEST, Y_TEST)} | kwargs
    return model.fit(X, Y, 4, callbacks=list(given), shuffle=False, **options)


def rate_of(model: Any) -> Any:
    with model.graph.as_default():
        return model.optimizer.lr


def close(found: Any, expected: Any, where: str, rtol: float = 1e-5) -> None:
    """Asserts that nested values are the same, numbers within 1e-5; or 1e-4 where
    the rate is 0.35: losses jump there, and a difference of rounding grows tenfold.
    """
    if isinstance(expected, dict):
        assert list(found) == list(expected), where
        for key, value in expected.items():
            close(found[key], value, f"{where}/{key}", rtol)
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for number, value in enumerate(expected):
            close(found[number], value, f"{where}/{number}", rtol)
    elif isinstance(expected, float):
        np.testing.assert_allclose(found, expected, rtol, 1e-5, err_msg=where)
    else:
        assert found == expected, where


@sweep("name", sorted(CASES), quick=4)
def test_training_matches_tensorflow(name: str, tmp_path: Path) -> None:
    found, golden = run(keras, name, str(tmp_path)), dict(GOLDEN["cases"][name])
    rows, expected = found.pop("rows"), golden.pop("rows")
    assert rows[:1] == expected[:1]
    for row, other in zip(rows[1:-1], expected[1:-1], strict=True):
        np.testing.assert_allclose([*map(float, row)], [*map(float, other)], 1e-5)
    if name == "not a number":
        assert found["history"].keys() == golden["history"].keys()
        found.pop("history"), found.pop("weights"), golden.pop("history"), golden.pop("weights")
    close(found, golden, name, 1e-4 if CASES[name][0] == 0.35 else 1e-5)


@pytest.mark.slow
def test_hooks_run_in_tensorflow_order() -> None:
    def logs(hook: list[Any]) -> list[str]:
        """The golden file's, of version 2; version 1's batches of arrays have two more."""
        return sorted([*hook[2], *(("batch", "size") if "_batch_" in hook[0] else ())])

    assert hooks_of(keras) == [[*hook[:2], logs(hook)] for hook in GOLDEN["hooks"]]


def test_tensorboard_values_match_tensorflow(tmp_path: Path) -> None:
    model = model_of(keras, 0.1)
    board = callbacks.TensorBoard(tmp_path, histogram_freq=1, update_freq=2, write_images=True)
    options: dict[str, Any] = {"validation_data": (X_TEST, Y_TEST), "shuffle": False}
    model.fit(X, Y, 4, epochs=2, verbose=0, callbacks=[board], **options)
    found: dict[str, list[Any]] = {}
    graphs = 0
    for run_name in ("train", "validation"):
        for path in sorted((tmp_path / run_name).iterdir()):
            for event in summary_iterator(path):
                graphs += event.HasField("graph_def")
                for value in event.summary.value:
                    tag = f"{run_name}/{value.tag}"
                    found.setdefault(tag, []).append([event.step, value.simple_value])
    assert graphs == 1
    for tag, golden in GOLDEN["events"].items():
        parts = tag.split("/")
        if parts[-1] == "histogram":
            tags = [each for each in found if each.endswith("/".join(parts[-2:]))]
            assert [step for step, _ in found[tags[0]]] == [step for step, _ in golden]
        else:
            close(found[tag], golden, tag)
    assert [step for step, _ in found["train/batch_loss"]] == [0, 2, 4, 6]
    assert len(found["train/epoch_learning_rate"]) == 2
    assert any(tag.endswith("/image") for tag in found)


def test_many_steps_per_call_unless_callback_needs_batches() -> None:
    class OfEpochs(callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            pass

    class OfBatches(callbacks.Callback):
        def on_batch_end(self, batch: int, logs: Any = None) -> None:
            pass

    def wants(*given: Any) -> bool:
        return callbacks.CallbackList(list(given), add_history=True, add_progbar=True).wants_batches

    assert not wants(OfEpochs(), callbacks.EarlyStopping(), callbacks.TensorBoard())
    assert not wants(callbacks.LambdaCallback(on_epoch_end=print), callbacks.CSVLogger("x"))
    assert not wants(callbacks.ModelCheckpoint("x"))
    assert wants(OfBatches())
    assert wants(callbacks.LambdaCallback(on_batch_end=print))
    assert wants(callbacks.ModelCheckpoint("x", save_freq=10))
    assert wants(callbacks.TensorBoard(update_freq="batch"))
    listed = callbacks.CallbackList([callbacks.LambdaCallback(on_test_batch_end=print)])
    assert [listed.wants_batches, listed.wants_test_batches] == [False, True]
    assert not listed.wants_predict_batches


@pytest.mark.parametrize("ended_by", ["the last epoch", "itself", "another callback"])
def test_pain_point_10_best_weights_are_restored(shared: Any, ended_by: str) -> None:
    stopping = callbacks.EarlyStopping(
        patience=1 if ended_by == "itself" else 100, restore_best_weights=True
    )
    kept: list[Any] = []

    def keep(epoch: int, logs: Any) -> None:
        kept.append((logs["val_loss"], shared.get_weights()))
        if ended_by == "another callback" and epoch == 3:
            shared.stop_training = True

    history = fit(shared, callbacks.LambdaCallback(on_epoch_end=keep), stopping)
    count = {"the last epoch": EPOCHS, "itself": 2, "another callback": 4}[ended_by]
    assert history.epoch == list(range(count))
    best = min(range(count), key=lambda epoch: kept[epoch][0])
    assert stopping.best_epoch == best
    assert stopping.stopped_epoch == (1 if ended_by == "itself" else 0)
    for value, expected in zip(shared.get_weights(), kept[best][1], strict=True):
        np.testing.assert_array_equal(value, expected)


def test_resumed_training_remembers_best_value(shared: Any, tmp_path: Path) -> None:
    def checkpoint() -> Any:
        return callbacks.ModelCheckpoint(
            tmp_path / "best.safetensors", save_best_only=True, save_weights_only=True
        )

    fit(shared, checkpoint(), epochs=1)
    first = (tmp_path / "best.safetensors").read_bytes()
    worse = fit(shared, checkpoint(), initial_epoch=1, epochs=3, validation_data=(X, 100 * Y))
    assert min(worse.history["val_loss"]) > 2.6
    assert (tmp_path / "best.safetensors").read_bytes() == first
    best = tmp_path / "best.safetensors.best.json"
    assert json.loads(best.read_text())["best"] < 2.6
    fit(shared, checkpoint(), epochs=1, validation_data=(X, 100 * Y))  # a training of its own
    assert json.loads(best.read_text())["best"] > 100


def test_saved_best_value_is_plain_data(
    shared: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "w_epoch_.safetensors.best.json").write_text("[1, 2")
    checkpoint = callbacks.ModelCheckpoint(
        tmp_path / "w{epoch}.safetensors", save_best_only=True, save_weights_only=True
    )
    with caplog.at_level(logging.WARNING):
        fit(shared, checkpoint, initial_epoch=1, epochs=2)
    assert "says nothing of the best value" in caplog.text
    assert (tmp_path / "w2.safetensors").is_file()


@pytest.mark.slow
def test_killed_training_resumes(tmp_path: Path) -> None:
    class Killed(callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if epoch == 2:
                raise KeyboardInterrupt

    whole = model_of(keras, 0.1).fit(X, Y, 4, epochs=4, verbose=0, shuffle=False)
    options: dict[str, Any] = {"epochs": 4, "verbose": 0, "shuffle": False}
    with pytest.raises(KeyboardInterrupt):
        model_of(keras, 0.1).fit(
            X, Y, 4, callbacks=[callbacks.BackupAndRestore(tmp_path), Killed()], **options
        )
    model = model_of(keras, 0.1)
    rest = model.fit(X, Y, 4, callbacks=[callbacks.BackupAndRestore(tmp_path)], **options)
    assert rest.epoch == [2, 3]
    np.testing.assert_allclose(rest.history["loss"], whole.history["loss"][2:], 1e-6)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="saves after epochs"):
        callbacks.BackupAndRestore(tmp_path, save_freq=10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "error"), [("SIGINT", KeyboardInterrupt), ("SIGTERM", SystemExit)]
)
def test_interrupted_epoch_is_saved(
    tmp_path: Path, number: str, error: type[BaseException]
) -> None:
    class Interrupted(callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            begun.append(batch)
            if len(begun) == 6:  # the second of four batches in the second epoch
                signal.raise_signal(getattr(signal, number))

    begun: list[int] = []
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    backup = callbacks.BackupAndRestore(tmp_path, save_before_preemption=True)
    model = model_of(keras, 0.1)
    with pytest.raises(error):
        model.fit(X, Y, 4, epochs=9, verbose=0, callbacks=[backup, Interrupted()])
    assert signal.signal(signal.SIGINT, former) is signal.default_int_handler
    assert len(begun) == 6
    again = model_of(keras, 0.1)
    rest = again.fit(X, Y, 4, epochs=9, verbose=0, callbacks=[callbacks.BackupAndRestore(tmp_path)])
    assert rest.epoch == [*range(1, 9)]
    with again.graph.as_default():
        assert values_of([again.optimizer.iterations]) == [6 + 8 * 4]


def test_csv_logger_appends(shared: Any, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    fit(shared, callbacks.CSVLogger(path), epochs=2)
    fit(shared, callbacks.CSVLogger(path, append=True), initial_epoch=2, epochs=3)
    rows = path.read_text().splitlines()
    assert rows[0] == "epoch,loss,mae,val_loss,val_mae"
    assert [row.split(",")[0] for row in rows[1:]] == ["0", "1", "2"]
    fit(shared, callbacks.CSVLogger(path, append=True), epochs=1, validation_data=None)
    assert path.read_text().splitlines()[-1].endswith(",NA,NA")


@pytest.mark.slow
def test_remote_monitor_posts_logs(shared: Any, caplog: pytest.LogCaptureFixture) -> None:
    received: list[Any] = []

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            received.append((self.path, self.headers["X-Key"], self.rfile.read(length)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        root = f"http://127.0.0.1:{server.server_port}"
        monitor = callbacks.RemoteMonitor(root, headers={"X-Key": "k"}, send_as_json=True)
        fit(shared, monitor, epochs=1)
        server.shutdown()
        thread.join()
    ((path, key, content),) = received
    assert [path, key] == ["/publish/epoch/end/", "k"]
    assert json.loads(content)["epoch"] == 0
    assert set(json.loads(content)) == {"epoch", "loss", "mae", "val_loss", "val_mae"}
    with caplog.at_level(logging.WARNING):
        fit(shared, callbacks.RemoteMonitor(root), epochs=1)
    assert "Could not reach RemoteMonitor root server" in caplog.text
    with pytest.raises(ValueError, match="HTTP servers only"):
        callbacks.RemoteMonitor("file:///etc/passwd")


def test_pain_point_36_one_line_per_epoch_without_terminal(
    shared: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    fit(shared, epochs=2, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0::2] == ["Epoch 1/2", "Epoch 2/2"]
    for line in lines[1::2]:
        assert line.startswith("4/4 - ")
        assert " - loss: " in line
        assert " - val_mae: " in line
        assert line.endswith("/step")


def test_pain_point_36_progress_bar_is_throttled(
    shared: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    from estimatorkit.keras import callback_output

    clock = iter(np.arange(0, 1000, 0.0625))
    monkeypatch.setattr(callback_output.time, "monotonic", lambda: float(next(clock)))
    bar = callbacks.ProgbarLogger("steps")
    bar.set_params({"verbose": 1, "epochs": 1, "steps": 100})
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    bar.on_train_begin()
    bar.on_epoch_begin(0)
    for batch in range(100):
        bar.on_train_batch_end(batch, {"loss": 0.00001, "mae": 12.5})
    bar.on_epoch_end(0, {"loss": 0.00001, "mae": 12.5})
    drawn = capsys.readouterr().out.split("\r")[1:]
    assert len(drawn) == 26  # each fourth step, a quarter of a second, and the last
    assert drawn[10].startswith(" 44/100 [============>.")
    assert " - ETA: 3s - loss: 1.0000e-05 - mae: 12.5000" in drawn[10]
    assert drawn[-1].startswith(f"100/100 [{'=' * 30}] - 6s 63ms/step - loss: 1.0000e-05")
    assert drawn[-1].endswith("\n")


def test_epoch_times_of_one_call_are_equal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from estimatorkit.keras import callback_output

    now = 100.0
    monkeypatch.setattr(callback_output.time, "monotonic", lambda: now)
    bar = callbacks.ProgbarLogger("steps")
    bar.set_params({"verbose": 2, "epochs": 3, "steps": 10})
    bar.on_train_begin()
    bar.on_epoch_begin(0)
    now += 5.0
    bar.after_steps(5)
    bar.on_train_batch_end(4)
    now += 60.0
    bar.after_steps(20)
    bar.on_train_batch_end(9)
    bar.on_epoch_end(0)
    bar.on_epoch_begin(1)
    bar.on_train_batch_end(9)
    bar.on_epoch_end(1)
    bar.on_epoch_begin(2)
    bar.on_train_batch_end(4)
    now += 10.0
    bar.after_steps(5)
    bar.on_train_batch_end(9)
    now += 7.0  # a validation
    bar.on_epoch_end(2)
    lines = capsys.readouterr().out.splitlines()[1::2]
    assert [line.split(" - ")[-2] for line in lines] == ["20s/epoch", "30s/epoch", "32s/epoch"]


def test_changing_learning_rate_does_not_recompile() -> None:
    model = model_of(keras, 0.1)
    model.fit(X, Y, 4, epochs=1, verbose=0)
    count = session_of(model.graph).state.compilations
    before = sum(count.values())
    schedule = callbacks.LearningRateScheduler(lambda epoch: 0.1 / (epoch + 1))
    model.fit(X, Y, 4, epochs=3, verbose=0, callbacks=[schedule])
    assert sum(count.values()) == before > 0
    np.testing.assert_allclose(keras.backend.get_value(rate_of(model)), 0.1 / 3)


def test_invalid_arguments_raise(shared: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"factor >= 1.0. Got 2"):
        callbacks.ReduceLROnPlateau(factor=2)
    with pytest.raises(ValueError, match="Unrecognized save_freq: often"):
        callbacks.ModelCheckpoint("x", save_freq="often")
    with pytest.raises(TypeError, match="Invalid keyword arguments"):
        callbacks.ModelCheckpoint("x", freq=1)
    with pytest.raises(ValueError, match="update_freq"):
        callbacks.TensorBoard(update_freq="often")
    with pytest.raises(ValueError, match="should be float"):
        fit(shared, callbacks.LearningRateScheduler(lambda epoch: "0.1"), epochs=1)
    path = tmp_path / "{nothing}.safetensors"
    with pytest.raises(KeyError, match="Failed to format this callback filepath"):
        fit(shared, callbacks.ModelCheckpoint(path, save_weights_only=True), epochs=1)


@pytest.mark.slow
def test_logs_accept_tensorflow_1_names(tmp_path: Path) -> None:
    """`metrics=["accuracy"]` was called 'acc' there; scripts monitor 'val_acc'."""
    layers = keras.layers
    model = keras.Sequential([layers.Dense(2, activation="softmax", input_shape=(3,))])
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    saved = keras.callbacks.ModelCheckpoint(
        str(tmp_path / "{epoch:02d}-{val_acc:.2f}"), monitor="val_acc", save_best_only=True
    )
    stopped = keras.callbacks.EarlyStopping("acc", patience=9)
    x, y = np.eye(3, dtype=np.float32), np.array([0, 1, 0])
    history = model.fit(
        x, y, epochs=2, verbose=0, validation_data=(x, y), callbacks=[saved, stopped]
    ).history
    assert sorted(history) == ["accuracy", "loss", "val_accuracy", "val_loss"]
    assert history["acc"] is history["accuracy"]
    assert history.get("val_acc") is history["val_accuracy"]
    assert "acc" in history
    assert "mae" not in history
    with pytest.raises(KeyError, match="mae"):
        history["mae"]
    assert stopped.best == max(history["acc"])
    assert any(f"-{history['val_acc'][0]:.2f}" in each.name for each in tmp_path.iterdir())


def test_callback_batch_logs_and_params(shared: Any) -> None:
    seen: dict[str, list[Any]] = {"begin": [], "end": [], "test": []}

    class Noted(callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            seen["begin"].append(dict(logs))

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            seen["end"].append((logs["batch"], logs["size"], "loss" in logs))

        def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
            seen["test"].append(logs["size"])

    noted = Noted()
    given = (X_TEST, Y_TEST)
    shared.fit(X[:6], Y[:6], 4, 1, callbacks=[noted], verbose=0, validation_data=given)
    assert seen["begin"] == [{"batch": 0, "size": 4}, {"batch": 1, "size": 2}]
    assert seen["end"] == [(0, 4, True), (1, 2, True)]
    assert sum(seen["test"]) == len(X_TEST)
    assert noted.params["samples"] == 6
    assert noted.params["batch_size"] == 4
    assert noted.params["do_validation"]
    assert {"loss", "val_loss"} <= set(noted.params["metrics"])


def test_started_epoch_runs_one_batch(shared: Any) -> None:
    class Stop(callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.model.stop_training = epoch == 1

    assert len(fit(shared, Stop(), epochs=5).epoch) == 2


def test_csv_logger_with_later_validation(shared: Any, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    fit(shared, callbacks.CSVLogger(path), epochs=2, validation_freq=2)
    header, first, second = (line.split(",") for line in path.read_text().splitlines())
    column = header.index("val_loss")
    assert first[column] == "NA"
    assert float(second[column]) >= 0
