"""`export_saved_model`: an estimator's model as a folder that is served without its code.

The folder holds the model twice. As TensorFlow's SavedModel (`train.saving.saved_model_builder`),
where TensorFlow has node types for its operations; and in a form of our own (`serving_graph`,
`exported_files`), which `load_predictor` and `estimatorkit serve` run. The latter is loaded and
asked an example request before the folder gets its name: an export that answers otherwise than the
model does not exist. Folders are written whole or not at all.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import (
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    value_error,
)
from estimatorkit.core.graph import Graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor, as_operation
from estimatorkit.estimator.serving import exported_files as files
from estimatorkit.estimator.serving.example_requests import sample_inputs
from estimatorkit.estimator.serving.predictor import Predictor
from estimatorkit.estimator.serving.rest_json import column_request, reply, row_request
from estimatorkit.estimator.serving.serving_graph import ServingGraph, make_serving_graph
from estimatorkit.estimator.serving.serving_signatures import export_outputs, make_signatures
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.estimator.warm_starting import not_trained
from estimatorkit.layers.engine.call_record import set_learning_phase
from estimatorkit.logger import logger
from estimatorkit.ops.variables.variable_collections import global_variables_initializer
from estimatorkit.runtime.session import Session
from estimatorkit.storage.atomic_files import os_errors, sync_file, temporary_beside
from estimatorkit.storage.checkpoint_format import write_contents
from estimatorkit.storage.gfile import local_path
from estimatorkit.train.saving import saved_model_constants as constants
from estimatorkit.train.saving.saved_model_builder import SavedModelBuilder
from estimatorkit.train.saving.saver import Saver
from estimatorkit.train.saving.signatures import get_tensor_from_tensor_info
from estimatorkit.train.sessions.scaffold import Scaffold
from estimatorkit.version import __version__

TAGS = {  # in TensorFlow's order
    ModeKeys.TRAIN: [constants.TRAINING],
    ModeKeys.EVAL: [constants.EVAL],
    ModeKeys.PREDICT: [constants.SERVING],
}
_ROWS = 3
_SHARD_BYTES = 2 << 30


def export_saved_model(
    estimator: Any,
    export_dir_base: str | os.PathLike[str],
    serving_input_receiver_fn: Callable[[], Any],
    assets_extra: Mapping[str, Any] | None = None,
    as_text: bool = False,
    checkpoint_path: str | os.PathLike[str] | None = None,
    experimental_mode: str = ModeKeys.PREDICT,
    example_inputs: Mapping[str, Any] | None = None,
) -> bytes:
    """Exports an estimator's model.

    Args:
        estimator: the estimator; it must have been trained or have `warm_start_from`, or
            `checkpoint_path` be given.
        export_dir_base: the folder of the exports; each is a folder in it whose name is a number,
            the time in seconds and greater than all that are there.
        serving_input_receiver_fn: makes a `ServingInputReceiver`.
        assets_extra: files to be taken along, by their paths in the folder 'assets.extra'.
        as_text: whether TensorFlow's proto is text (`saved_model.pbtxt`).
        checkpoint_path: the checkpoint; the newest by default.
        experimental_mode: the `ModeKeys` in which the model is built.
        example_inputs: a request that the model can answer, arrays by input `(batch, ...)`; made up
            by default. Needed only where what is made up is refused.

    Returns:
        The path of the export, as bytes (as TensorFlow).

    Raises:
        ValueError: there is no checkpoint, it lacks variables, or the model has no signature
            that can be served.
        InternalError: the exported model does not answer as the model does.
        OpError: the disk refuses.

    Source: `tf.estimator.Estimator.export_saved_model`.
    """
    return experimental_export_all_saved_models(
        estimator,
        export_dir_base,
        {experimental_mode: serving_input_receiver_fn},
        assets_extra,
        as_text,
        checkpoint_path,
        example_inputs,
    )


def experimental_export_all_saved_models(
    estimator: Any,
    export_dir_base: str | os.PathLike[str],
    input_receiver_fn_map: Mapping[str, Callable[[], Any]],
    assets_extra: Mapping[str, Any] | None = None,
    as_text: bool = False,
    checkpoint_path: str | os.PathLike[str] | None = None,
    example_inputs: Mapping[str, Any] | None = None,
) -> bytes:
    """Exports the graphs of several modes, with one set of variables.

    Args:
        input_receiver_fn_map: by `ModeKeys` what makes the mode's receiver: a
            `SupervisedInputReceiver` for TRAIN and EVAL.

    The others as for `export_saved_model`. Only the graph of PREDICT is written in the form that
    `load_predictor` reads.

    Raises:
        ValueError: as there; or no mode, or one that there is not.
    """
    unknown = set(input_receiver_fn_map) - set(TAGS)
    if unknown or not input_receiver_fn_map:
        raise value_error(
            "input_receiver_fn_map has no mode, or one that there is not",
            expected=f"some of {sorted(TAGS)}",
            received=sorted(map(str, input_receiver_fn_map)),
        )
    if any(not callable(each) for each in input_receiver_fn_map.values()):
        raise ValueError("serving_input_receiver_fn must be defined: a function without arguments.")
    checkpoint = estimator._checkpoint_or_none(checkpoint_path)
    if checkpoint is None and estimator._warm_start is None:
        raise not_trained(estimator.model_dir)
    assets = _checked_assets(assets_extra or {})
    base = Path(local_path(export_dir_base))
    with os_errors("export the model", base), ExitStack() as opened:
        base.mkdir(parents=True, exist_ok=True)
        with temporary_beside(base / str(_next_version(base))) as temporary:
            builder = SavedModelBuilder(temporary)
            modes = [mode for mode in TAGS if mode in input_receiver_fn_map]
            for mode in modes:
                opened.close()  # one model at a time is in memory
                model = ServedModel(estimator, mode, input_receiver_fn_map[mode])
                opened.enter_context(model.session)
                model.load(checkpoint)
                model.add_to(builder, with_variables=mode == modes[0])
            builder.save(as_text)
            if mode == ModeKeys.PREDICT:
                model.write(temporary, example_inputs)
            _copy_assets(temporary, assets)
            sync_file(temporary)
            final = _renamed(temporary, base)
            sync_file(base)
    logger.info("SavedModel written to: %s", final)
    return os.fsencode(final)


def _next_version(base: Path) -> int:
    """The time in seconds, or one more than the newest version where the clock has gone back."""
    there = [int(entry.name) for entry in os.scandir(base) if entry.name.isdecimal()]
    return max(int(time.time()), max(there, default=0) + 1)


def _renamed(temporary: Path, base: Path) -> Path:
    """Gives an export its name in one step; where another process has just taken that, the next."""
    while True:
        final = base / str(_next_version(base))
        try:
            os.rename(temporary, final)  # refused where there is a folder that is not empty
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
        else:
            return final


def _checked_assets(assets: Mapping[str, Any]) -> dict[PurePosixPath, str]:
    """The files to be taken along, by their paths in the folder of extra assets."""
    found = {}
    for name, source in assets.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in name:
            raise value_error(
                "a path of assets_extra leads out of the folder",
                expected="a relative path without '..'",
                received=repr(name),
            )
        found[path] = os.fsdecode(source)
        if not os.path.isfile(found[path]):
            raise value_error("assets_extra names no file", received=found[path])
    return found


def _copy_assets(folder: Path, assets: Mapping[PurePosixPath, str]) -> None:
    for name, source in assets.items():
        path = folder / constants.EXTRA_ASSETS_DIRECTORY / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, path)
        sync_file(path)


class ServedModel:
    """A model built for one mode, and its signatures.

    Attributes:
        session: holds the graph, and values once `load` has been called.
        signatures: the `SignatureDef`s by key.
        main_op: what fills tables and gives local variables their values.
    """

    def __init__(self, estimator: Any, mode: str, receiver_fn: Callable[[], Any]) -> None:
        graph = Graph()
        graph.seed = estimator.config.tf_random_seed
        set_learning_phase(mode == ModeKeys.TRAIN, graph)  # as in the estimator's own graphs
        with graph.as_default():
            estimator._make_global_step(graph)
            receiver = receiver_fn()
            self._check_receiver(receiver)
            labels = getattr(receiver, "labels", None)
            spec = estimator._call_model_fn(receiver.features, labels, mode, estimator.config)
            self._scaffold = spec.scaffold
            self._saver = self._scaffold.saver or Saver(allow_empty=True)
            self.main_op = self._scaffold.local_init_op or Scaffold.default_local_init_op()
            self.session = Session(graph=graph)
            try:
                self.signatures = make_signatures(receiver, export_outputs(spec), mode)
            except BaseException:
                self.session.close()
                raise
            if spec.train_op is not None:
                graph.add_to_collection(constants.TRAIN_OP_KEY, as_operation(spec.train_op))
        self._mode, self._warm_start = mode, estimator._warm_start

    @staticmethod
    def _check_receiver(receiver: Any) -> None:
        if not hasattr(receiver, "receiver_tensors") or not hasattr(receiver, "features"):
            raise value_error(
                "serving_input_receiver_fn must return a ServingInputReceiver",
                received=f"{receiver!r:.200}",
                hint="return estimator.export.ServingInputReceiver(features, placeholders), or "
                "use build_parsing_serving_input_receiver_fn(feature_spec)",
            )

    def load(self, checkpoint: str | None) -> None:
        """Gives the variables a checkpoint's values; None: those that they start with, as the
        estimator's `warm_start_from` says.
        """
        if checkpoint is None:
            with self.session.graph.as_default():
                self._warm_start.apply()
                self.session.run(global_variables_initializer())
            return
        try:
            self._saver.restore(self.session, checkpoint)
        except NotFoundError as error:
            raise ValueError(
                "Could not load all requested variables from checkpoint. Please make sure your "
                "model_fn does not expect variables that were not saved in the checkpoint.\n\n"
                f"Encountered error with mode `{self._mode}` while restoring checkpoint from: "
                f"`{checkpoint}`.\n\n{error}"
            ) from error

    def add_to(self, builder: SavedModelBuilder, with_variables: bool) -> None:
        """Adds the graph to a SavedModel; the first one with the variables."""
        graph = self.session.graph
        options: dict[str, Any] = {
            "tags": TAGS[self._mode],
            "signature_def_map": self.signatures,
            "assets_collection": graph.get_collection(GraphKeys.ASSET_FILEPATHS),
            "main_op": self.main_op,
            "saver": self._saver,
        }
        with graph.as_default():
            if with_variables:
                builder.add_meta_graph_and_variables(self.session, **options)
            else:
                builder.add_meta_graph(**options)

    # -- the form of our own

    def write(self, folder: Path, example_inputs: Mapping[str, Any] | None) -> None:
        """Writes the files that `load_predictor` reads, then loads and asks them."""
        self.session.run(self.main_op)
        with self.session.graph.as_default():
            parts = {name: self.parts(each) for name, each in self.signatures.items()}
        _check_examples(example_inputs, {name: list(given) for name, (given, _) in parts.items()})
        plans: dict[Any, int] = {}
        graphs: list[ServedGraph] = []
        listed: dict[str, Any] = {}
        for name, (inputs, outputs) in parts.items():
            key = (tuple(inputs.items()), tuple(outputs.items()))
            if key not in plans:
                plans[key] = len(graphs)
                graphs.append(ServedGraph(self.session, inputs, outputs, example_inputs))
            served = graphs[plans[key]]
            listed[name] = {
                "method": self.signatures[name].method_name,
                "inputs": _entries(inputs, served.graph.feeds),
                "outputs": _entries(outputs, served.graph.fetches),
                "graph": plans[key],
            }
        written: dict[str, Any] = {}
        (folder / files.FOLDER).mkdir()
        entries = self._write_graphs(folder, graphs, written)
        for name, content in _example_files(self.signatures, listed, graphs).items():
            text = json.dumps(content, indent=1) + "\n"
            files.write_file(folder, name, text.encode(), written)
        contents = {
            "versions": _versions(),
            "files": written,
            "signatures": listed,
            "graphs": entries,
        }
        files.write_signature(folder, contents)
        _self_test(folder, {name: graphs[each["graph"]] for name, each in listed.items()})

    def parts(self, signature: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The tensors of a signature's inputs and outputs; sparse ones are three each."""
        found = []
        for infos in (signature.inputs, signature.outputs):
            tensors: dict[str, Tensor] = {}
            for key in sorted(infos):
                given = get_tensor_from_tensor_info(infos[key], self.session.graph)
                if isinstance(given, SparseTensor):
                    tensors[f"{key}/indices"] = given.indices
                    tensors[f"{key}/values"] = given.values
                    tensors[f"{key}/dense_shape"] = given.dense_shape
                else:
                    tensors[key] = given
            found.append(tensors)
        return found[0], found[1]

    def _write_graphs(
        self, folder: Path, graphs: list[ServedGraph], written: dict[str, Any]
    ) -> list[Any]:
        weights: dict[str, Any] = {}
        entries = []
        modules: dict[bytes, str] = {}
        for number, served in enumerate(graphs):
            made = served.graph
            for program in made.modules.values():
                if program not in modules:
                    modules[program] = f"module-{len(modules)}.stablehlo"
                    name = f"{files.FOLDER}/{modules[program]}"
                    files.write_file(folder, name, program, written)
            data = made.graph_def.SerializeToString(deterministic=True)
            files.write_file(folder, f"{files.FOLDER}/graph-{number}.pb", data, written)
            weights.update(made.arrays)
            for variable in made.variables:
                (weights[f"variable/{variable}"],) = self.session.state.read([variable])
            entries.append(
                {
                    "modules": {each: modules[made.modules[each]] for each in made.modules},
                    "arrays": made.array_places,
                    "variables": made.variables,
                    "initializers": made.initializers,
                    "rows_alone": served.rows_alone,
                }
            )
        place = folder / files.FOLDER / files.WEIGHTS
        place.mkdir()
        write_contents(place, weights, {}, _SHARD_BYTES)
        return entries


def _entries(tensors: Mapping[str, Tensor], names: Mapping[str, str]) -> dict[str, Any]:
    return {
        key: {
            "tensor": names[key],
            "dtype": tensor.dtype.name,
            "shape": None if tensor.shape.dims is None else list(tensor.shape.dims),
        }
        for key, tensor in tensors.items()
    }


def _versions() -> dict[str, str]:
    import jax
    import jax.export

    last = jax.export.maximum_supported_calling_convention_version
    return {
        "estimatorkit": __version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "jax calling convention": str(last),
    }


# -- examples, and the test


class ServedGraph:
    """What one or more signatures share: a graph, and example inputs with the model's answers."""

    def __init__(
        self,
        session: Session,
        inputs: dict[str, Tensor],
        outputs: dict[str, Tensor],
        example_inputs: Mapping[str, Any] | None,
    ) -> None:
        self.inputs: dict[str, NDArray[Any]] | None = None
        self.outputs: dict[str, NDArray[Any]] = {}
        self.rows_alone = False
        samples: list[dict[str, Any]] = []
        given = example_inputs if example_inputs and example_inputs.keys() == inputs.keys() else {}
        whole = {key: np.asarray(given[key]) for key in given and inputs}
        whole = whole or sample_inputs(inputs, _ROWS)
        try:
            run = session.make_callable(list(outputs.values()), list(inputs.values()))
            answers = [dict(zip(outputs, run(*whole.values()), strict=True))]
            samples.append(whole)
            if all(tensor.shape.rank and tensor.shape[0] is None for tensor in inputs.values()):
                several = len(next(iter(whole.values()))) > 1
                other = {
                    key: each[:-1] if several else np.concatenate([each, each])
                    for key, each in whole.items()
                }
                answers.append(dict(zip(outputs, run(*other.values()), strict=True)))
                samples.append(other)
                self.rows_alone = several and _rows_alone(*answers)
            self.inputs, self.outputs = whole, answers[0]
        except (InvalidArgumentError, ValueError) as error:
            if given:
                raise
            logger.warning(
                "The export is not tested, as the model refuses the example that was made up for "
                "it; give export_saved_model example_inputs={...}. %s",
                error,
            )
        self.graph: ServingGraph = make_serving_graph(session, inputs, outputs, samples)
        for segment, reason in self.graph.kept.items():
            logger.info("%s is exported as a graph, not as StableHLO: %s", segment, reason)


def _check_examples(
    example_inputs: Mapping[str, Any] | None, signatures: Mapping[str, list[str]]
) -> None:
    """Raises ValueError if no signature takes the example inputs that were given."""
    if example_inputs is not None and not any(
        example_inputs.keys() == set(names) for names in signatures.values()
    ):
        raise value_error(
            "example_inputs are not those of any signature",
            expected=" or ".join(f"{sorted(names)} ({name})" for name, names in signatures.items()),
            received=sorted(example_inputs),
        )


def _rows_alone(whole: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    """Whether rows are answered as before where another row is left out."""
    for key, answers in whole.items():
        rows = np.shape(answers)[:1], np.shape(part[key])[:1]
        if rows[0] != (rows[1][0] + 1 if rows[1] else 0,) or not _same(answers[:-1], part[key]):
            return False
    return True


def _same(one: Any, other: Any) -> bool:
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind in "fcV":
        return bool(np.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True))
    return bool((one == other).all())


def _example_files(
    signatures: Mapping[str, Any], listed: Mapping[str, Any], graphs: list[ServedGraph]
) -> dict[str, Any]:
    """The request and the response of the default signature (or of the first)."""
    default = constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    name = default if default in listed else next(iter(listed))
    served = graphs[listed[name]["graph"]]
    if served.inputs is None:
        return {}
    make = row_request if served.rows_alone else column_request
    request = make(name, served.inputs)
    return {files.REQUEST: request, files.RESPONSE: reply(served.outputs, "instances" in request)}


def _self_test(folder: Path, served: Mapping[str, ServedGraph]) -> None:
    """Loads what was written and asks it what the model was asked.

    Raises:
        InternalError: it answers otherwise.
    """
    with Predictor(folder) as predictor:
        for name, each in served.items():
            if each.inputs is None:
                continue
            found = predictor(each.inputs, name)
            for key, expected in each.outputs.items():
                if not _same(expected, found[key]):
                    raise InternalError.explained(
                        f"the exported model answers otherwise than the model: signature "
                        f"{name!r}, output {key!r}",
                        expected=f"{expected!r:.300}",
                        received=f"{found[key]!r:.300}",
                        hint="nothing was exported; please report it with the model",
                    )


__all__ = ["ServedModel", "experimental_export_all_saved_models", "export_saved_model"]
