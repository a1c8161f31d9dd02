from estimatorkit.interop.graph_util import (
    convert_variables_to_constants as convert_variables_to_constants,
    extract_sub_graph as extract_sub_graph, remove_training_nodes as remove_training_nodes,
)
from estimatorkit.interop.graphdef import import_graph_def as import_graph_def
