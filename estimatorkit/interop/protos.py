"""Protocol buffers of TensorFlow's Python API, from the package `tensorboard`."""

from __future__ import annotations

from tensorboard.compat.proto.config_pb2 import (
    ConfigProto as ConfigProto,
    GPUOptions as GPUOptions,
    GraphOptions as GraphOptions,
    OptimizerOptions as OptimizerOptions,
    RunMetadata as RunMetadata,
    RunOptions as RunOptions,
)
from tensorboard.compat.proto.event_pb2 import Event as Event, SessionLog as SessionLog
from tensorboard.compat.proto.graph_pb2 import GraphDef as GraphDef
from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef as MetaGraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef as NodeDef
from tensorboard.compat.proto.rewriter_config_pb2 import RewriterConfig as RewriterConfig
from tensorboard.compat.proto.summary_pb2 import (
    HistogramProto as HistogramProto,
    Summary as Summary,
    SummaryMetadata as SummaryMetadata,
)
