"""`TensorBoard`: the logs of trainings and validations as event files."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from estimatorkit.interop import projector
from estimatorkit.interop.summary_writer import FileWriter
from estimatorkit.keras.callback import Callback, Logs, has_learning_rate, learning_rate_of
from estimatorkit.layers.engine.sessions import values_of
from estimatorkit.ops.files import summary_values


class TensorBoard(Callback):
    """Writes logs for TensorBoard: `epoch_loss` and so on, in `log_dir/train` and
    `log_dir/validation` (`tf.keras.callbacks.TensorBoard`).

    Args:
        log_dir: the folder.
        histogram_freq: the number of epochs between histograms of the weights; 0 for none.
        write_graph: whether to write the graph.
        write_images: whether to write the weights as images along with histograms.
        write_steps_per_second: whether to write `epoch_steps_per_second`.
        update_freq: 'epoch'; or 'batch' or a number of batches, to also write `batch_loss` and so
            on at that interval, in which case training runs one step per call.
        profile_batch: has no effect; use `train.ProfilerHook` or `Session` for profiling.
        embeddings_freq: the number of epochs between writing the weights of embeddings for the
            projector; 0 for never.
        embeddings_metadata: the file with the labels of the rows, or a dict of files by layer name.
        kwargs: arguments of older versions (`batch_size`, `write_grads`, ...), which have no
            effect.

    Raises:
        ValueError: `update_freq` is something else.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] = "logs",
        histogram_freq: int = 0,
        write_graph: bool = True,
        write_images: bool = False,
        write_steps_per_second: bool = False,
        update_freq: Any = "epoch",
        profile_batch: Any = 0,
        embeddings_freq: int = 0,
        embeddings_metadata: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if update_freq not in ("epoch", "batch") and not isinstance(update_freq, int):
            raise ValueError(
                f"update_freq: expected 'epoch', 'batch' or a number of batches, received "
                f"{update_freq!r}."
            )
        self.log_dir = os.fspath(log_dir)
        self.histogram_freq = histogram_freq
        self.write_graph = write_graph
        self.write_images = write_images
        self.write_steps_per_second = write_steps_per_second
        self.update_freq: Any = 1 if update_freq == "batch" else update_freq
        self.embeddings_freq = embeddings_freq
        self.embeddings_metadata = embeddings_metadata
        self._writers: dict[str, FileWriter] = {}
        self._batches = 0
        self._epoch_began = (0.0, 0)
        self._training = False

    def wants_batches(self, kind: str) -> bool:
        """Whether it also writes after batches."""
        return kind == "train" and self.update_freq != "epoch"

    def _writer(self, name: str) -> FileWriter:
        """That of 'train' or 'validation', made when it is needed."""
        if name not in self._writers:
            self._writers[name] = FileWriter(os.path.join(self.log_dir, name))
        return self._writers[name]

    def _write(self, name: str, values: dict[str, Any], step: int) -> None:
        for tag, value in values.items():
            if np.ndim(value) == 0:
                self._writer(name).add_summary(summary_values.scalar(value, tag), step)

    def on_train_begin(self, logs: Logs = None) -> None:
        """Writes the graph."""
        self._training = True
        self._batches = 0
        if self.write_graph:
            self._writer("train").add_graph(self.model.graph)
        if self.embeddings_freq:
            self._configure_projector()

    def on_train_end(self, logs: Logs = None) -> None:
        """Closes the files."""
        self._training = False
        self._close()

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Records the time."""
        self._epoch_began = (time.monotonic(), self._batches)

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Writes the logs of a batch if due."""
        began, before = self._epoch_began
        self._batches = before + batch + 1
        if self.update_freq != "epoch" and (self._batches - 1) % self.update_freq == 0:
            values = {f"batch_{name}": value for name, value in (logs or {}).items()}
            if self.write_steps_per_second:
                values["batch_steps_per_second"] = (batch + 1) / (time.monotonic() - began)
            self._write("train", values, self._batches - 1)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Writes the logs of an epoch."""
        given = dict(logs or {})
        train = {f"epoch_{k}": v for k, v in given.items() if not k.startswith("val_")}
        if has_learning_rate(self.model):
            train["epoch_learning_rate"] = learning_rate_of(self.model)
        if self.write_steps_per_second:
            began, before = self._epoch_began
            train["epoch_steps_per_second"] = (self._batches - before) / (time.monotonic() - began)
        validation = {f"epoch_{k[4:]}": v for k, v in given.items() if k.startswith("val_")}
        self._write("train", train, epoch)
        self._write("validation", validation, epoch)
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            self._write_weights(epoch)
        if self.embeddings_freq and epoch % self.embeddings_freq == 0:
            self._write_embeddings()
        for writer in self._writers.values():
            writer.flush()

    def on_test_end(self, logs: Logs = None) -> None:
        """Writes the logs of an evaluation at the current number of training steps."""
        with self.model.graph.as_default():
            iterations = getattr(self.model.optimizer, "iterations", None)
        if iterations is not None:
            step = int(values_of([iterations])[0])
            tags = {f"evaluation_{k}_vs_iterations": v for k, v in (logs or {}).items()}
            self._write("validation", tags, step)
        if not self._training:
            self._close()

    def _close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()

    # -- weights

    def _write_weights(self, epoch: int) -> None:
        writer = self._writer("train")
        weights = self.model.weights
        for variable, value in zip(weights, values_of(weights), strict=True):
            name = variable.name.replace(":", "_")
            writer.add_summary(summary_values.histogram(value, f"{name}/histogram"), epoch)
            picture = _as_picture(value) if self.write_images else None
            if picture is not None:
                tag = f"{name}/image"
                writer.add_summary(summary_values.image(picture, tag, 1, (255, 0, 0)), epoch)

    def _embeddings(self) -> list[tuple[str, Any]]:
        """Names of the layers that have an embedding, and its variable."""
        found = [(each.name, getattr(each, "embeddings", None)) for each in self.model.layers]
        return [(name, variable) for name, variable in found if variable is not None]

    def _configure_projector(self) -> None:
        from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

        config = ProjectorConfig()
        given = self.embeddings_metadata
        for name, _ in self._embeddings():
            embedding = config.embeddings.add()
            embedding.tensor_name = name
            embedding.tensor_path = self._table_name(name)
            labels = given.get(name) if isinstance(given, dict) else given
            if labels:
                embedding.metadata_path = os.fspath(labels)
        projector.visualize_embeddings(self.log_dir, config)

    def _table_name(self, layer: str) -> str:
        """A file of a name that was not given by anybody: layer names do not go into paths."""
        names = [name for name, _ in self._embeddings()]
        return f"embeddings-{names.index(layer)}.tsv"

    def _write_embeddings(self) -> None:
        for name, variable in self._embeddings():
            path = os.path.join(self.log_dir, self._table_name(name))
            np.savetxt(path, values_of([variable])[0], fmt="%.7g", delimiter="\t")


def _as_picture(value: Any) -> Any:
    """A matrix or vector as a picture `(1, height, width, 1)`, scaled to [0, 1]; or None."""
    squeezed = np.squeeze(np.asarray(value, np.float32))
    if squeezed.ndim == 1:
        squeezed = squeezed[np.newaxis]
    if squeezed.ndim != 2 or squeezed.size == 0:
        return None
    low, high = squeezed.min(), squeezed.max()
    return ((squeezed - low) / max(high - low, 1e-12))[np.newaxis, :, :, np.newaxis]


__all__ = ["TensorBoard"]
