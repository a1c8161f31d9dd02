"""Recurrent networks over sequences: `RNNEstimator` and `RNNClassifier`.

Variables, as TensorFlow 2.15's: `sequence_features/<column>/...`, `dense_features/<column>/...`,
`rnn_model/rnn/<cell>/{kernel,recurrent_kernel,bias}` (`rnn_model/lstm/lstm_cell/...` where `units`
is one number), `rnn_model/logits/{kernel,bias}`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.keras import layers, optimizers as keras_optimizers
from estimatorkit.layers.feature_column import (
    DenseFeatures,
    SequenceFeatures,
    concatenate_context_input,
)
from estimatorkit.logger import logger
from estimatorkit.ops.array import array
from estimatorkit.ops.array.rearrange import sequence_mask
from estimatorkit.premade.classification_heads import classification_head
from estimatorkit.premade.head import Head
from estimatorkit.premade.parts import OptimizerLike, Part, Premade
from estimatorkit.premade.sequential_head import SequentialHeadWrapper
from estimatorkit.train.optimizers.optimizer import Optimizer
from estimatorkit.train.optimizers.optimizers_by_name import get_optimizer_by_name

LEARNING_RATE = 0.05
CLIP_NORM = 5.0
"""For optimizers given by name: each gradient's norm is at most this, as in TensorFlow."""

_DEFAULT = ""
_LAYERS = {"simple_rnn": "SimpleRNN", "lstm": "LSTM", "gru": "GRU"}

CellType = str | Callable[..., Any]


def _cell_of(cell_type: CellType, units: int) -> Any:
    known = isinstance(cell_type, str) and cell_type in _LAYERS
    kind: Any = getattr(layers, f"{_LAYERS[str(cell_type)]}Cell") if known else cell_type
    if not callable(kind):
        raise value_error(
            "`cell_type` should be a class producing a RNN cell, or a string specifying the "
            f"cell type. Supported strings are: {list(_LAYERS)}.",
            received=repr(cell_type),
            hint=did_you_mean(str(cell_type), _LAYERS),
        )
    return kind(units=units)


def _layer_of(
    rnn_cell_fn: Callable[[], Any] | None,
    units: int | Sequence[int] | None,
    cell_type: CellType,
    return_sequences: bool,
) -> Any:
    """The recurrent layer."""
    if rnn_cell_fn is not None:
        return layers.RNN(rnn_cell_fn(), return_sequences=return_sequences)
    kind = "simple_rnn" if cell_type == _DEFAULT else cell_type
    if isinstance(units, int):
        if isinstance(kind, str):
            return getattr(layers, _LAYERS[kind])(units, return_sequences=return_sequences)
        units = [units]
    cells = [_cell_of(kind, width) for width in units or ()]
    cell = cells[0] if len(cells) == 1 else cells
    return layers.RNN(cell, return_sequences=return_sequences)


def _optimizer_of(optimizer: OptimizerLike) -> Optimizer:
    if not isinstance(optimizer, str):
        return get_optimizer_by_name(optimizer)
    get_optimizer_by_name(optimizer)  # raises if the name is unknown
    name = "RMSprop" if optimizer == "RMSProp" else optimizer
    made: Optimizer = getattr(keras_optimizers.legacy, name)(
        learning_rate=LEARNING_RATE, clipnorm=CLIP_NORM
    )
    return made


class RNNEstimator(Premade):
    """A recurrent network under a head (`tf.estimator.experimental.RNNEstimator`).

    Args:
        head: determines labels, loss, metrics and predictions; must be a `SequentialHeadWrapper`
            with `return_sequences`.
        sequence_feature_columns: the inputs of each step: `sequence_numeric_column`, or embeddings
            and indicators of `sequence_categorical_column_with_*`.
        context_feature_columns: dense columns that are added to the inputs of every step; none by
            default.
        units: the width of each recurrent layer, for example `[32, 16]`; an int for a single layer.
        cell_type: 'simple_rnn' (default), 'lstm', 'gru', or a class of cells.
        rnn_cell_fn: a function without arguments that returns the cell, instead of `units` and
            `cell_type`.
        return_sequences: whether to compute logits for every step rather than only for the last
            (default).
        model_dir: where checkpoints and logs go; a temporary folder by default.
        optimizer: an `Optimizer`, a function without arguments that returns one, or 'Adagrad'
            (default), 'Adam', 'Ftrl', 'RMSProp', 'SGD', all with learning rate 0.05 and each
            gradient's norm at most 5.
        config: a `RunConfig`.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        head: Head,
        sequence_feature_columns: Any,
        context_feature_columns: Any = None,
        units: int | Sequence[int] | None = None,
        cell_type: CellType = _DEFAULT,
        rnn_cell_fn: Callable[[], Any] | None = None,
        return_sequences: bool = False,
        model_dir: str | os.PathLike[str] | None = None,
        optimizer: OptimizerLike = "Adagrad",
        config: RunConfig | None = None,
    ) -> None:
        if return_sequences and not isinstance(head, SequentialHeadWrapper):
            raise ValueError(
                "Provided head must be a `_SequentialHead` object when `return_sequences` is set "
                "to True."
            )
        if rnn_cell_fn is not None and (units or cell_type != _DEFAULT):
            raise ValueError("units and cell_type must not be specified when using rnn_cell_fn")
        if rnn_cell_fn is None:
            for width in (units,) if isinstance(units, int) else units or (0,):
                if isinstance(width, bool) or not isinstance(width, int) or width < 1:
                    raise value_error(
                        "units must be a positive int, or a list with one per layer",
                        expected="for example [32, 16], or rnn_cell_fn",
                        received=repr(units),
                    )
            _cell_of("simple_rnn" if cell_type == _DEFAULT else cell_type, 1)

        def logits(features: Any, mode: str, outputs: int) -> Tensor:
            if not isinstance(features, Mapping):
                raise ValueError(
                    f"inputs should be a dictionary of `Tensor`s. Given type: {type(features)}"
                )
            training = mode == ModeKeys.TRAIN
            steps, lengths = SequenceFeatures(sequence_feature_columns)(features)
            if context_feature_columns:
                context = DenseFeatures(context_feature_columns)(features)
                width = int(steps.shape[2] or 0) + int(context.shape[1] or 0)
                steps = concatenate_context_input(context, steps)
                steps.set_shape([None, None, width])
            mask = sequence_mask(lengths, array.shape(steps)[1])
            if isinstance(head, SequentialHeadWrapper) and isinstance(features, dict):
                # The head looks for the mask under this key, as in TensorFlow.
                features.setdefault(head.input_sequence_mask_key, mask)
            layer = _layer_of(rnn_cell_fn, units, cell_type, return_sequences)
            with get_default_graph().name_scope("rnn_model"):
                hidden = layer(steps, mask=mask, training=training)
                result: Tensor = layers.Dense(outputs, name="logits")(hidden)
            return result

        super().__init__(head, [Part(logits, lambda: _optimizer_of(optimizer))], model_dir, config)


class RNNClassifier(RNNEstimator):
    """A classifier of sequences, or of their steps (`tf.estimator.experimental.RNNClassifier`).

    Labels, metrics and predictions: see `DNNClassifier`; with `return_sequences` those of
    `SequentialHeadWrapper`.

    Args:
        sequence_feature_columns, context_feature_columns, units, cell_type, rnn_cell_fn,
            return_sequences, model_dir, optimizer, config: see `RNNEstimator`.
        n_classes: the number of classes; 2 by default.
        weight_column: the key or `NumericColumn` of the weights of examples or steps (with
            `return_sequences` it must be a key); None (default) for weights of 1.
        label_vocabulary: the `n_classes` names of the classes, if labels are strings; None by
            default.
        loss_reduction: 'sum_over_batch_size' (default), 'sum', or another of `losses.Reduction`,
            but not NONE.
        sequence_mask: the key of the feature that masks steps, with `return_sequences`; if there is
            no such feature, the mask is derived from the sequences' lengths.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        sequence_feature_columns: Any,
        context_feature_columns: Any = None,
        units: int | Sequence[int] | None = None,
        cell_type: CellType = _DEFAULT,
        rnn_cell_fn: Callable[[], Any] | None = None,
        return_sequences: bool = False,
        model_dir: str | os.PathLike[str] | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: OptimizerLike = "Adagrad",
        loss_reduction: str = "sum_over_batch_size",
        sequence_mask: str = "sequence_mask",
        config: RunConfig | None = None,
    ) -> None:
        head = classification_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        if return_sequences:
            logger.info(
                "Converting head to sequential head with `SequentialHeadWrapper` to allow "
                "sequential predictions."
            )
            head = SequentialHeadWrapper(head, sequence_mask, weight_column)
        super().__init__(
            head,
            sequence_feature_columns,
            context_feature_columns,
            units,
            cell_type,
            rnn_cell_fn,
            return_sequences,
            model_dir,
            optimizer,
            config,
        )


__all__ = ["RNNClassifier", "RNNEstimator"]
