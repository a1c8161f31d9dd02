from estimatorkit.compat.train.queues.input_producers import (
    match_filenames_once as match_filenames_once,
)
