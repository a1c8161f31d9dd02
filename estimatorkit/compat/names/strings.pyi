from estimatorkit.compat.ops.text.string_groups import (
    ngrams as ngrams, unsorted_segment_join as unsorted_segment_join,
)
