"""`tf.strings`: operations on strings."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    **names(
        "estimatorkit.ops.text.strings",
        "regex_full_match regex_replace substr length=string_length lower=string_lower",
        "strip=string_strip upper=string_upper",
    ),
    **names(
        "estimatorkit.ops.text.string_numbers",
        "as_string to_hash_bucket=string_to_hash_bucket",
        "to_hash_bucket_fast=string_to_hash_bucket_fast",
        "to_hash_bucket_strong=string_to_hash_bucket_strong to_number=string_to_number",
    ),
    **names(
        "estimatorkit.ops.text.string_pieces",
        "bytes_split reduce_join split format=string_format join=string_join",
    ),
    **names("estimatorkit.ops.text.string_groups", "ngrams unsorted_segment_join"),
    **names(
        "estimatorkit.ops.text.unicode",
        "unicode_decode unicode_decode_with_offsets unicode_encode unicode_split",
        "unicode_split_with_offsets unicode_transcode",
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
