from estimatorkit.compat.ops.parsing.protos import decode_proto as decode_proto
from estimatorkit.compat.train.queues.input_producers import (
    match_filenames_once as match_filenames_once,
)
