"""`tf.python.tools`: prints checkpoints, freezes graphs, and prunes graphs for inference."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import Graph
from estimatorkit.interop.graph_util import (
    convert_variables_to_constants,
    extract_sub_graph,
    freeze,
    remove_training_nodes,
)


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def freeze_graph(
    input_graph: str | os.PathLike[str] = "",
    input_saver: str = "",
    input_binary: bool = False,
    input_checkpoint: str | os.PathLike[str] = "",
    output_node_names: str = "",
    restore_op_name: str = "",
    filename_tensor_name: str = "",
    output_graph: str | os.PathLike[str] = "",
    clear_devices: bool = True,
    initializer_nodes: str = "",
    variable_names_whitelist: str = "",
    variable_names_blacklist: str = "",
    input_meta_graph: str | os.PathLike[str] | None = None,
    input_saved_model_dir: str | os.PathLike[str] | None = None,
    saved_model_tags: str = "serve",
    checkpoint_version: int = 2,
) -> Any:
    """Writes a graph with its variables converted to constants.

    The graph is that of `input_saved_model_dir`, else of `input_meta_graph`, else `input_graph`.

    Args:
        input_graph: a file with a `GraphDef`, as written by `train.write_graph`.
        input_saver, restore_op_name, filename_tensor_name, checkpoint_version: accepted for
            TensorFlow's signature.
        input_binary: whether `input_graph` is binary rather than text.
        input_checkpoint: the variables' values; not used for a SavedModel.
        output_node_names: comma-separated names of the operations to keep.
        output_graph: the output file.
        clear_devices: whether to remove the operations' devices.
        initializer_nodes: operations to run first, comma-separated (not with `input_graph`).
        variable_names_whitelist: convert only these variables, comma-separated.
        variable_names_blacklist: do not convert these variables, comma-separated.
        input_meta_graph: a file with a `MetaGraphDef`, as written by a `Saver`.
        input_saved_model_dir: the directory of a SavedModel.
        saved_model_tags: its comma-separated tags.

    Returns:
        The written `GraphDef`.
    """
    outputs = _listed(output_node_names)
    if not outputs:
        raise ValueError("You need to supply the name of a node to --output_node_names.")
    chosen = (_listed(variable_names_whitelist) or None, _listed(variable_names_blacklist))
    if input_saved_model_dir is None and input_meta_graph is None:
        if initializer_nodes:
            raise value_error(
                "freeze_graph: initializer_nodes need a session",
                hint="give the graph as input_meta_graph, the file that ends in .meta",
            )
        from estimatorkit.storage.checkpoint_reader import CheckpointReader

        graph_def = _read_graph(input_graph, input_binary)
        reader = CheckpointReader(input_checkpoint)
        result = freeze(
            graph_def, outputs, lambda names: [reader.get_tensor(name) for name in names], *chosen
        )
    else:
        from estimatorkit.runtime.session import Session

        with Graph().as_default() as graph, Session() as session:
            if input_saved_model_dir is not None:
                from estimatorkit.saved_model import loader

                loader.load(session, _listed(saved_model_tags), os.fspath(input_saved_model_dir))
            else:
                from estimatorkit.train.saving.saver import import_meta_graph

                saver: Any = import_meta_graph(input_meta_graph, clear_devices=clear_devices)
                saver.restore(session, input_checkpoint)
            for name in _listed(initializer_nodes):
                session.run(graph.get_operation_by_name(name))
            result = convert_variables_to_constants(session, graph.as_graph_def(), outputs, *chosen)
    if clear_devices:
        for node in result.node:
            node.device = ""
    if output_graph:
        with open(output_graph, "wb") as file:
            file.write(result.SerializeToString())
    return result


def _read_graph(path: str | os.PathLike[str], binary: bool) -> Any:
    from google.protobuf import text_format

    from estimatorkit.interop.protos import GraphDef

    with open(path, "rb") as file:
        content = file.read()
    if binary:
        return GraphDef.FromString(content)
    return text_format.Parse(content.decode("utf-8"), GraphDef())


def strip_unused(
    input_graph_def: Any,
    input_node_names: Sequence[str],
    output_node_names: Sequence[str],
    placeholder_type_enum: int | Sequence[int] | Mapping[str, int],
) -> Any:
    """The part of a graph between some nodes; its inputs become placeholders.

    Args:
        input_graph_def: a `GraphDef`.
        input_node_names: the nodes that become placeholders.
        output_node_names: the nodes to compute.
        placeholder_type_enum: the placeholders' dtype (a dtype's `as_datatype_enum`), or one per
            input, as a list or by name.

    Returns:
        A new `GraphDef`.

    Raises:
        KeyError: an input is not in the graph.
    """
    if isinstance(placeholder_type_enum, int):
        types = dict.fromkeys(input_node_names, placeholder_type_enum)
    elif isinstance(placeholder_type_enum, Mapping):
        types = dict(placeholder_type_enum)
    else:
        types = dict(zip(input_node_names, placeholder_type_enum, strict=True))
    missing = set(input_node_names) - {node.name for node in input_graph_def.node}
    if missing:
        raise KeyError(f"The following input nodes were not found: {sorted(missing)}")
    cut = type(input_graph_def)()
    cut.CopyFrom(input_graph_def)
    for node in cut.node:
        if node.name in types:
            placeholder = type(node)(name=node.name, op="Placeholder")
            placeholder.attr["dtype"].type = types[node.name]
            if "shape" in node.attr:
                placeholder.attr["shape"].CopyFrom(node.attr["shape"])
            else:
                placeholder.attr["shape"].shape.unknown_rank = True
            node.CopyFrom(placeholder)
    return extract_sub_graph(cut, list(output_node_names))


def optimize_for_inference(
    input_graph_def: Any,
    input_node_names: Sequence[str],
    output_node_names: Sequence[str],
    placeholder_type_enum: int | Sequence[int] | Mapping[str, int],
    toco_compatible: bool = False,
) -> Any:
    """`strip_unused`, also without nodes that are needed for training only.

    Batch norms are not folded into convolutions: XLA fuses them when the graph is compiled.

    Args:
        input_graph_def, input_node_names, output_node_names, placeholder_type_enum: see
            `strip_unused`.
        toco_compatible: accepted for compatibility only.
    """
    stripped = strip_unused(
        input_graph_def, input_node_names, output_node_names, placeholder_type_enum
    )
    return remove_training_nodes(stripped, output_node_names)


def print_tensors_in_checkpoint_file(
    file_name: str | os.PathLike[str],
    tensor_name: str | None,
    all_tensors: bool,
    all_tensor_names: bool = False,
    count_exclude_pattern: str = "",
) -> None:
    """Prints the content of a checkpoint.

    Args:
        file_name: the checkpoint's path.
        tensor_name: the tensor to print; if empty, all shapes are printed.
        all_tensors: whether to print all tensors.
        all_tensor_names: whether to print all names.
        count_exclude_pattern: a regular expression: tensors that do not count as parameters.
    """
    import re

    from estimatorkit.storage.checkpoint_reader import CheckpointReader

    reader = CheckpointReader(file_name)
    shapes = reader.get_variable_to_shape_map()
    dtypes = reader.get_variable_to_dtype_map()
    if not (all_tensors or all_tensor_names or tensor_name):
        print(reader.debug_string().decode("utf-8", errors="ignore"))
    elif not (all_tensors or all_tensor_names) and tensor_name not in shapes:
        print(f"Tensor {tensor_name} not found in checkpoint")
        return
    else:
        for name in sorted(shapes) if all_tensors or all_tensor_names else [str(tensor_name)]:
            print(f"tensor: {name} ({dtypes[name].name}) {shapes[name]}")
            if all_tensors or not all_tensor_names:
                print(reader.get_tensor(name))
    left_out = re.compile(count_exclude_pattern) if count_exclude_pattern else None
    total = 0
    for name, shape in shapes.items():
        if left_out is None or not left_out.search(name):
            count = 1
            for dim in shape:
                count *= dim
            total += count
    print(f"# Total number of params: {total}")
