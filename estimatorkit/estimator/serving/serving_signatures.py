"""The signatures of an exported model: each output for each way to feed the model.

As in TensorFlow, a signature that cannot be served is omitted with a log message; unlike there, a
model without any is an error, and a model that is fed features has a default signature.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.estimator.serving.export_outputs import EvalOutput, ExportOutput, TrainOutput
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.logger import logger
from estimatorkit.runtime.plan import make_plan
from estimatorkit.train.saving import saved_model_constants as constants
from estimatorkit.train.saving.signatures import get_tensor_from_tensor_info, is_valid_signature

_SUPERVISED = {
    ModeKeys.TRAIN: (constants.DEFAULT_TRAIN_SIGNATURE_DEF_KEY, TrainOutput),
    ModeKeys.EVAL: (constants.DEFAULT_EVAL_SIGNATURE_DEF_KEY, EvalOutput),
}


def export_outputs(spec: EstimatorSpec) -> dict[str, ExportOutput]:
    """The outputs by signature; by default those of the predictions."""
    if spec.mode != ModeKeys.PREDICT:
        name, kind = _SUPERVISED[spec.mode]
        return {name: kind(spec.loss, _or_none(spec.predictions), _or_none(spec.eval_metric_ops))}
    return dict(spec.export_outputs or {})


def _or_none(given: Any) -> Any:
    """Returns None for an empty dict."""
    return None if isinstance(given, Mapping) and not given else given


def make_signatures(
    receiver: Any, outputs: Mapping[str, ExportOutput], mode: str
) -> dict[str, Any]:
    """The servable `SignatureDef`s: each output for each way to feed the model.

    Args:
        receiver: a `ServingInputReceiver` or similar.
        outputs: by signature.
        mode: the `ModeKeys` in which the model was built.

    Raises:
        ValueError: there is none.
    """
    receivers = {"": receiver.receiver_tensors}
    receivers.update(getattr(receiver, "receiver_tensors_alternatives", None) or {})
    found: dict[str, Any] = {}
    excluded: dict[str, str] = {}
    for name, tensors in receivers.items():
        for key, output in outputs.items():
            full = f"{name}:{key}" if name else str(key or "None")
            try:
                signature = output.as_signature_def(tensors)
                _check_servable(tensors, signature)
            except (ValueError, InvalidArgumentError) as error:
                excluded[full] = str(error)
                continue
            if mode != ModeKeys.PREDICT or is_valid_signature(signature):
                found[full] = signature
            else:
                excluded[full] = "its inputs and outputs do not fit its method"
    if not found:
        reasons = "\n".join(f"  {name}: {reason}" for name, reason in excluded.items())
        raise ValueError(f"No signature of the model can be served:\n{reasons}")
    default = constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    if mode == ModeKeys.PREDICT and default not in found:
        # A classifier that is fed features instead of Examples would have no default signature, and
        # could only be called by signature names.
        others = [each for each in found if ":" not in each]
        if "predict" in others or len(others) == 1:
            found[default] = found["predict" if "predict" in others else others[0]]
        else:
            logger.warning("Export includes no default signature!")
    for name in sorted(excluded.keys() - found):
        reason = excluded[name].splitlines()[0]
        logger.info("Signature %r is not part of the export: %s", name, reason)
    return found


def _check_servable(tensors: Mapping[str, Any], signature: Any) -> None:
    """Rejects outputs that depend on an unfed placeholder."""
    feeds: list[Any] = []
    for each in tensors.values():
        feeds.extend(each._components() if isinstance(each, SparseTensor) else [each])
    graph = feeds[0].graph
    outputs = [get_tensor_from_tensor_info(info, graph) for info in signature.outputs.values()]
    fetches: list[Any] = []
    for each in outputs:
        fetches.extend(each._components() if isinstance(each, SparseTensor) else [each])
    try:
        make_plan(graph, fetches, [], feeds, optimize=False)
    except InvalidArgumentError as error:
        raise ValueError(
            f"The signature's input tensors {[each.name for each in feeds]} are insufficient to "
            f"compute its output keys {sorted(signature.outputs)}: {error.message}"
        ) from error


__all__ = ["export_outputs", "make_signatures"]
