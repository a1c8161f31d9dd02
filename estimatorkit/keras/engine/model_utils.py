"""`tf.keras.utils` of models: the inputs behind a tensor, old names."""

from __future__ import annotations

from typing import Any, NoReturn

from estimatorkit.core.errors import explain
from estimatorkit.layers.engine.call_record import record_of


def get_source_inputs(tensor: Any, layer: Any = None, node_index: Any = None) -> list[Any]:
    """Returns the input tensors from which layers computed a tensor
    (`tf.keras.utils.get_source_inputs`).

    Args:
        tensor: the output of a layer.
        layer, node_index: accepted for compatibility only.
    """
    calls = record_of(tensor.graph).calls
    found: dict[int, Any] = {}
    seen: set[int] = set()
    waiting = [tensor]
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        call = calls.get(each)
        needed = list(each.op.inputs) if call is None else call.input_tensors
        if needed:
            waiting += reversed(needed)
        else:
            found[id(each)] = each
    return list(found.values())


def multi_gpu_model(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: TensorFlow 2.4 removed it.

    Raises:
        NotImplementedError: always; the message names a replacement.
    """
    raise NotImplementedError(
        explain(
            "multi_gpu_model is not part of this package (TensorFlow removed it in 2.4)",
            hint="train the model as it is: XLA uses one device; for several, give batches to "
            "estimators with a cluster",
        )
    )


__all__ = ["get_source_inputs", "multi_gpu_model"]
