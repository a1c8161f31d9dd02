from estimatorkit.ops.text.strings import (
    string_length, string_lower, regex_full_match as regex_full_match,
    regex_replace as regex_replace, string_strip, substr as substr, string_upper,
)
from estimatorkit.ops.text.string_numbers import (
    as_string as as_string, string_to_hash_bucket, string_to_hash_bucket_fast,
    string_to_hash_bucket_strong, string_to_number,
)
from estimatorkit.ops.text.string_pieces import (
    bytes_split as bytes_split, string_format, string_join, reduce_join as reduce_join,
    split as split,
)
from estimatorkit.ops.text.unicode import (
    unicode_decode as unicode_decode, unicode_decode_with_offsets as unicode_decode_with_offsets,
    unicode_encode as unicode_encode, unicode_split as unicode_split,
    unicode_split_with_offsets as unicode_split_with_offsets,
    unicode_transcode as unicode_transcode,
)

length = string_length
lower = string_lower
strip = string_strip
upper = string_upper
to_hash_bucket = string_to_hash_bucket
to_hash_bucket_fast = string_to_hash_bucket_fast
to_hash_bucket_strong = string_to_hash_bucket_strong
to_number = string_to_number
format = string_format
join = string_join
