"""`tf.contrib.predictor`: a SavedModel as a function of arrays."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.core.graph import Graph
from estimatorkit.runtime.session import Session
from estimatorkit.train.saving import saved_model_constants as constants
from estimatorkit.train.saving.saved_model_loader import load
from estimatorkit.train.saving.signatures import get_tensor_from_tensor_info


class Predictor:
    """Computes a signature's outputs.

    Args:
        session: the session that holds the model; closed by `close`.
        feed_tensors: the inputs by name.
        fetch_tensors: the outputs by name.
    """

    def __init__(
        self, session: Session, feed_tensors: Mapping[str, Any], fetch_tensors: Mapping[str, Any]
    ) -> None:
        self.session = session
        self.feed_tensors = dict(feed_tensors)
        self.fetch_tensors = dict(fetch_tensors)

    @property
    def graph(self) -> Graph:
        """The model's graph."""
        return self.session.graph

    def __call__(self, input_dict: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Computes the outputs by name.

        Args:
            input_dict: values of the inputs, by name.

        Raises:
            ValueError: an input name is unknown.
        """
        unknown = [name for name in input_dict if name not in self.feed_tensors]
        if unknown:
            raise value_error(
                f"Got unexpected keys in input_dict: {set(unknown)}",
                expected=", ".join(sorted(self.feed_tensors)),
                hint=did_you_mean(unknown[0], self.feed_tensors),
            )
        feeds = {self.feed_tensors[name]: value for name, value in input_dict.items()}
        found: dict[str, NDArray[Any]] = self.session.run(self.fetch_tensors, feeds)
        return found

    def close(self) -> None:
        """Closes the session."""
        self.session.close()

    def __enter__(self) -> Predictor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"<Predictor from {sorted(self.feed_tensors)} to {sorted(self.fetch_tensors)} of "
            f"{self.graph!r}>"
        )


def from_saved_model(
    export_dir: str | os.PathLike[str],
    signature_def_key: str | None = None,
    signature_def: Any = None,
    input_names: Mapping[str, str] | None = None,
    output_names: Mapping[str, str] | None = None,
    tags: str | Sequence[str] | None = None,
    graph: Graph | None = None,
    config: Any = None,
    trusted: bool = False,
) -> Predictor:
    """Loads a SavedModel as a function.

    Args:
        export_dir: the model's directory.
        signature_def_key: one of its signatures; 'serving_default' by default.
        signature_def: a `SignatureDef` to use instead of the model's.
        input_names: tensor names by input name, instead of a signature.
        output_names: tensor names by output name.
        tags: the tags of the graph, comma-separated or as a list; 'serve' by default.
        graph: the graph to load it into; a new one by default.
        config: the session's `ConfigProto`.
        trusted: whether the model may access files and Python functions; see
            `saved_model.loader.load`.

    Raises:
        ValueError: both a signature and names are given, or the model has no such signature.
        OSError, RuntimeError, DataLossError: see `saved_model.loader.load`.
    """
    given = [signature_def_key is not None, signature_def is not None]
    if sum(given) + (input_names is not None or output_names is not None) > 1:
        raise ValueError(
            "You must specify at most one of signature_def_key OR signature_def OR (input_names "
            "AND output_names)."
        )
    if (input_names is None) != (output_names is None):
        raise ValueError("input_names and output_names must both be specified or both be None.")
    wanted = tags.split(",") if isinstance(tags, str) else tags
    session = Session(graph=graph or Graph(), config=config)
    try:
        model = load(session, wanted or [constants.SERVING], export_dir, trusted=trusted)
        places = session.graph
        feeds: dict[str, Any]
        fetches: dict[str, Any]
        if input_names is not None and output_names is not None:
            feeds, fetches = (
                {key: places.get_tensor_by_name(name) for key, name in names.items()}
                for names in (input_names, output_names)
            )
        else:
            signature = signature_def
            if signature is None:
                signature = _signature(model, signature_def_key)
            feeds, fetches = (
                {key: get_tensor_from_tensor_info(info, places) for key, info in infos.items()}
                for infos in (signature.inputs, signature.outputs)
            )
    except BaseException:
        session.close()
        raise
    return Predictor(session, feeds, fetches)


def from_estimator(
    estimator: Any,
    serving_input_receiver_fn: Any,
    output_key: str | None = None,
    graph: Graph | None = None,
    config: Any = None,
) -> Predictor:
    """Exports an estimator's newest checkpoint to a temporary directory and loads it as a function.

    Args:
        estimator: an `Estimator`.
        serving_input_receiver_fn: see `Estimator.export_saved_model`.
        output_key: one of the export's signatures; 'serving_default' by default.
        graph, config: see `from_saved_model`.

    Raises:
        ValueError: there is no checkpoint, or no such signature.
    """
    with tempfile.TemporaryDirectory(prefix="estimatorkit-predictor-") as folder:
        path = os.fsdecode(estimator.export_saved_model(folder, serving_input_receiver_fn))
        return from_saved_model(path, output_key, graph=graph, config=config, trusted=True)


def _signature(model: Any, key: str | None) -> Any:
    key = constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY if key is None else key
    if key not in model.signature_def:
        raise value_error(
            f"Got signature_def_key {key!r}, but the SavedModel has no such signature",
            expected=", ".join(sorted(model.signature_def)) or "a model with signatures",
            hint=did_you_mean(key, model.signature_def),
        )
    return model.signature_def[key]
