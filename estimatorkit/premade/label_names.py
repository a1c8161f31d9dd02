"""String labels: vocabulary lookup, and names of predicted classes.

Strings live on the host, so these are host ops: one before the training step (`label_ids`), two
after a prediction (`class_names`, `all_class_names`, which `ops.tables.class_names` has).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import make
from estimatorkit.core.dtypes import int64
from estimatorkit.core.errors import InvalidArgumentError, did_you_mean, value_error
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.tables.class_names import all_class_names, class_names

Vocabulary = tuple[bytes, ...]

_SHOWN = 20  # entries of a vocabulary listed in an error


def as_vocabulary(
    label_vocabulary: Any, n_classes: int, multi_label: bool = False
) -> Vocabulary | None:
    """Validates a vocabulary.

    Args:
        label_vocabulary: a list or tuple of strings, one per class, or None.
        n_classes: how many there must be.
        multi_label: whether errors have the words of TensorFlow's head of several labels.

    Raises:
        ValueError: it is something else.
    """
    if label_vocabulary is None:
        return None
    if not isinstance(label_vocabulary, (list, tuple)):
        wanted = "must be a list or tuple" if multi_label else "should be a list or a tuple"
        raise ValueError(f"label_vocabulary {wanted}. Given type: {type(label_vocabulary)}")
    if len(label_vocabulary) != n_classes:
        words = (
            '"label_vocabulary" does not have "n_classes" items. '
            f"len(label_vocabulary)={len(label_vocabulary)}, n_classes={n_classes}"
        )
        if multi_label:
            words = (
                f"Length of label_vocabulary must be n_classes ({n_classes}). "
                f"Given: {len(label_vocabulary)}"
            )
        raise value_error(
            f"{words}, label_vocabulary={list(label_vocabulary)[:_SHOWN]}",
            hint=f"n_classes={len(label_vocabulary)}, or list every class once",
        )
    names = []
    for label in label_vocabulary:
        if not isinstance(label, (str, bytes)):
            raise value_error(
                "label_vocabulary should hold strings",
                received=f"{label!r} of type {type(label).__name__}",
                hint="leave it out if labels are the integers 0 to n_classes - 1",
            )
        names.append(label.encode() if isinstance(label, str) else label)
    if len(set(names)) < len(names):
        twice = sorted({name.decode() for name in names if names.count(name) > 1})
        raise value_error("label_vocabulary lists a class twice", received=twice)
    return tuple(names)


def _label_ids(labels: NDArray[Any], vocabulary: Vocabulary) -> NDArray[np.int64]:
    index = {name: position for position, name in enumerate(vocabulary)}
    try:
        found = [index[label] for label in labels.flat]
    except KeyError as error:
        unknown = str(error.args[0], "utf-8", "replace")
        known = [str(name, "utf-8", "replace") for name in vocabulary]
        more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
        raise InvalidArgumentError.explained(
            f"label {unknown!r} is not in label_vocabulary",
            expected=f"one of {known[:_SHOWN]}{more}",
            received=repr(unknown),
            hint=did_you_mean(unknown, known)
            or "add it to label_vocabulary (and to n_classes), or filter out such examples",
        ) from None
    return np.array(found, np.int64).reshape(labels.shape)


def _strings(*values: bytes) -> NDArray[Any]:
    result = np.empty(len(values), object)
    result[:] = values
    return result


_NAMES = (b"a", b"b", b"c")
_IDS = np.array([[2], [0]], np.int64)

register(
    "LabelIds",
    _label_ids,
    where="host",
    infer=lambda inputs, attrs: [Spec(int64, inputs[0].shape)],
    gradient=None,
    cases=lambda: [Case((_strings(b"c", b"a")[:, None],), {"vocabulary": _NAMES}, _IDS)],
)


def label_ids(labels: Tensor, vocabulary: Vocabulary) -> Tensor:
    """The position of each label in the vocabulary, int64 in the shape of `labels`.

    A run raises InvalidArgumentError for labels that are not in the vocabulary.
    """
    return make("LabelIds", {"labels": labels}, {"vocabulary": vocabulary}, "class_id_lookup")


__all__ = ["Vocabulary", "all_class_names", "as_vocabulary", "class_names", "label_ids"]
