"""Expressions of strings, numbers in text, and CSV, that run on TensorFlow and on this package.

`EXPRESSIONS` are tensors, sparse tensors, or lists of them; `ERRORS` fail when they are built or
run. Each is a function of the module that stands for `tf`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

NUMBERS = ["1.5", " 2 ", "-.5", "1.", "1e5", "-1e-3", "inf", "-inf", "+3", "1e400", "1e-400", "007"]
TEXTS = ["hello world", "", "größer", "a\0b", " \tpadded\n", "A,B;C", "aXbXXc", "数据"]


def _all(function: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda tf: function(tf, tf.constant(TEXTS))


def _csv(records: Sequence[str], defaults: Callable[[Any], Any], **rest: Any) -> Any:
    return lambda tf: tf.decode_csv(records=list(records), record_defaults=defaults(tf), **rest)


def _two(tf: Any) -> Any:
    return [[0], [""]]


EXPRESSIONS: dict[str, Callable[[Any], Any]] = {
    "strip": _all(lambda tf, s: tf.strings.strip(s)),
    "lower": _all(lambda tf, s: tf.strings.lower(s)),
    "upper": _all(lambda tf, s: tf.strings.upper(s)),
    "upper utf-8": lambda tf: tf.strings.upper(["größer", "a b"], encoding="utf-8"),
    "length": _all(lambda tf, s: tf.strings.length(s)),
    "length in characters": _all(lambda tf, s: tf.strings.length(s, unit="UTF8_CHAR")),
    "substr": lambda tf: tf.substr(["hello", "world"], [1, -3], [3, 9]),
    "substr by scalars": lambda tf: tf.substr(["hello", "world"], pos=1, len=2),
    "substr in characters": lambda tf: tf.strings.substr("größer", 2, 2, unit="UTF8_CHAR"),
    "substr of a scalar": lambda tf: tf.substr("hello", [0, 1, 5], [1, 2, 3]),
    "substr of a matrix": lambda tf: tf.substr(
        [["ten", "eleven"], ["a2", "b3"]], [[1, 2]], [[1, 1]]
    ),
    "join": lambda tf: tf.string_join([["a", "b"], "c", ["d", "e"]], separator="-"),
    "join of scalars": lambda tf: tf.strings.join(["a", "b"]),
    "reduce_join": lambda tf: tf.reduce_join([["a", "b"], ["c", "d"]], axis=0, separator=" "),
    "reduce_join of two axes": lambda tf: tf.reduce_join([["a", "b"], ["c", "d"]], [0, 1]),
    "reduce_join of all": lambda tf: tf.reduce_join([["a", "b"], ["c", "d"]], separator="|"),
    "reduce_join keeping": lambda tf: tf.reduce_join([["a", "b"]], 1, keep_dims=True),
    "reduce_join of nothing": lambda tf: tf.reduce_join(tf.zeros([2, 0], tf.string), 1),
    "reduce_join of no axes": lambda tf: tf.reduce_join([["a", "b"]], tf.zeros([0], tf.int32)),
    "split": lambda tf: tf.string_split(["a b  c", "", " d"]),
    "split with empty": lambda tf: tf.string_split(["a b  c", "", " d"], skip_empty=False),
    "split at several": lambda tf: tf.string_split(["a,b;c", "d"], delimiter=",;"),
    "split to bytes": lambda tf: tf.string_split(["abc", "d"], delimiter=""),
    "split to bytes of empty": lambda tf: tf.string_split(["", "a"], "", skip_empty=False),
    "split of no strings": lambda tf: tf.string_split(tf.zeros([0], tf.string)),
    "split v2": lambda tf: tf.strings.split(["a  b c", " d "], result_type="SparseTensor"),
    "split v2 at a word": lambda tf: tf.strings.split(["a<>b<><>c", "<>"], sep="<>"),
    "split v2 at most": lambda tf: tf.strings.split(["a b c d", "a  b  c "], maxsplit=2),
    "split v2 at most at": lambda tf: tf.strings.split(["a,b,c,d", ""], sep=",", maxsplit=1),
    "split v2 of a matrix": lambda tf: tf.strings.split([["a b", "c"], ["", "d e f"]]),
    "format": lambda tf: tf.strings.format("a: {}, b: {}", [tf.range(10), tf.constant("x")]),
    "format of floats": lambda tf: tf.strings.format("{}", tf.constant([1.5, 1e-7, 3.0])),
    "format of a matrix": lambda tf: tf.strings.format("%t%", tf.ones([5, 2]), "%t%", summarize=1),
    "regex_replace": lambda tf: tf.regex_replace(TEXTS, "[a-z]+", "<\\0>"),
    "regex_replace once": lambda tf: tf.regex_replace(TEXTS, "X", "", replace_global=False),
    "regex_replace of empty": lambda tf: tf.strings.regex_replace("abxd", "x*", "-"),
    "regex_replace of empty at ends": lambda tf: tf.strings.regex_replace("xaxx", "x*", "-"),
    "regex_replace of classes": lambda tf: tf.strings.regex_replace(
        "a,b[c]-d é 1", "[[:punct:][:digit:]]", "_"
    ),
    "regex_replace at the end": lambda tf: tf.strings.regex_replace("a\n", "a$", "b"),
    "regex_replace of groups": lambda tf: tf.regex_replace("k=v", r"(\w+)=(\w+)", r"\2\\\1"),
    "regex_replace of any": lambda tf: tf.regex_replace("größer", "g..ß", "."),
    "regex_replace of words": lambda tf: tf.regex_replace("größer", r"\w", "."),
    "regex_replace ignoring case": lambda tf: tf.regex_replace("aAbB", "(?i)a", "."),
    "regex_full_match": lambda tf: tf.strings.regex_full_match(["abc", "xabc", "abcx"], "a.*c"),
    "to_number": lambda tf: tf.string_to_number(NUMBERS),
    "to_number hexadecimal": lambda tf: tf.string_to_number([" 0x10", "-0XfF ", "nan", "-inf"]),
    "split words": lambda tf: tf.strings.split(["a b  c", " ", "ab "], maxsplit=1).values,
    "to_number float64": lambda tf: tf.string_to_number(NUMBERS, out_type=tf.float64),
    "to_number int32": lambda tf: tf.string_to_number(["12", " -5 ", "2147483647"], tf.int32),
    "to_number int64": lambda tf: tf.strings.to_number(["-9223372036854775808"], tf.int64),
    "as_string int": lambda tf: tf.as_string([1, -20, 300]),
    "as_string int filled": lambda tf: tf.as_string([1, -20], width=5, fill="0"),
    "as_string int left": lambda tf: tf.as_string([1, -20], width=5, fill="-"),
    "as_string int sign": lambda tf: tf.as_string([1, -20], fill="+"),
    "as_string int8": lambda tf: tf.as_string(tf.constant([-128, 127], tf.int8)),
    "as_string int64": lambda tf: tf.as_string(tf.constant([1 << 62], tf.int64), width=3),
    "as_string float": lambda tf: tf.as_string([1.5, -0.1, 1e10, float("inf"), 1e-10]),
    "as_string float64": lambda tf: tf.as_string(tf.constant([0.1, 1e300], tf.float64)),
    "as_string precision": lambda tf: tf.as_string([3.14159, -2.5], precision=2, width=8),
    "as_string scientific": lambda tf: tf.as_string([3.14159, 0.0], scientific=True, precision=3),
    "as_string shortest": lambda tf: tf.as_string([3.14159, 1e10, 1e-5], shortest=True),
    "as_string bool": lambda tf: tf.as_string([True, False]),
    "as_string complex": lambda tf: tf.as_string(tf.constant([1 + 2j]), precision=1),
    "as_string half": lambda tf: tf.as_string(tf.constant([0.1], tf.float16)),
    "as_string string": lambda tf: tf.as_string(["ab"], width=4, fill="-"),
    "hash fast": _all(lambda tf, s: tf.string_to_hash_bucket_fast(s, 1000)),
    "hash strong": _all(lambda tf, s: tf.string_to_hash_bucket_strong(s, 1000, [1, 2])),
    "hash legacy": _all(lambda tf, s: tf.string_to_hash_bucket(s, 1000)),
    "encode_base64": _all(lambda tf, s: tf.encode_base64(s)),
    "encode_base64 padded": _all(lambda tf, s: tf.encode_base64(s, pad=True)),
    "decode_base64": lambda tf: tf.decode_base64(["", "YQ", "YQ==", "-_8", "YWJj"]),
    "unicode_encode": lambda tf: tf.strings.unicode_encode([[97, 233], [0x6570, 98]], "UTF-8"),
    "unicode_transcode": lambda tf: tf.strings.unicode_transcode(
        ["é", b"a\xffb"], "UTF-8", "UTF-16-BE"
    ),
    "unicode_decode": lambda tf: tf.strings.unicode_decode("aé数", "UTF-8"),
    "unicode_split": lambda tf: tf.strings.unicode_split("aé数", "UTF-8"),
    "bytes_split": lambda tf: tf.strings.bytes_split("abc"),
    "csv": _csv(["1,a", "2,b"], _two),
    "csv defaults": _csv(["1,", ",b", ","], lambda tf: [[7], ["x"]]),
    "csv quotes": _csv(['1,"a ""b"" c"', '"2","x,y"', '3,"line\nbreak"'], _two),
    "csv of all types": _csv(
        ["1,2.5,3,4.5,s", "-1, 2.5 , 3,1e3,"],
        lambda tf: [
            tf.constant([0], tf.int32),
            tf.constant([0.0], tf.float32),
            tf.constant([0], tf.int64),
            tf.constant([0.0], tf.float64),
            tf.constant([""], tf.string),
        ],
    ),
    "csv na_value": _csv(["NA,a", "1,NA"], lambda tf: [[9], ["none"]], na_value="NA"),
    "csv select": _csv(["1,x,2", "3,y,4"], lambda tf: [[0], [0]], select_cols=[0, 2]),
    "csv other delimiter": _csv(["1|a", "2|b,c"], _two, field_delim="|"),
    "csv without quotes": _csv(['1,a"b', '2,"'], _two, use_quote_delim=False),
    "csv of a scalar": lambda tf: tf.decode_csv("5,x", [[0], [""]]),
    "csv of a matrix": lambda tf: tf.decode_csv([["5,x"], ["6,y"]], [[0], [""]]),
    "csv newline before a field": _csv(["1,\nb", "\r\n2,c"], _two),
    "csv one column": _csv(["a", "b"], lambda tf: [["z"]]),
    "csv scalar defaults": _csv(["1,", ",b"], lambda tf: [3, "q"]),
    "decode_raw": lambda tf: tf.decode_raw(["\1\0\2\0", "\3\0\4\0"], tf.int16),
    "decode_raw uint8": lambda tf: tf.decode_raw(bytes="abc", out_type=tf.uint8),
    "decode_raw big": lambda tf: tf.decode_raw(["\0\1"], tf.int16, little_endian=False),
    "decode_raw of no strings": lambda tf: tf.decode_raw(tf.zeros([0], tf.string), tf.int16),
    "serialize floats": lambda tf: tf.io.serialize_tensor([[1.5, 2.0]]),
    "serialize strings": lambda tf: tf.serialize_tensor(["a", "b"]),
    "serialize a scalar": lambda tf: tf.serialize_tensor(tf.constant(3, tf.int64)),
    "serialize bools": lambda tf: tf.serialize_tensor([True, False]),
    "serialize nothing": lambda tf: tf.serialize_tensor(tf.zeros([0, 2])),
    "parse_tensor": lambda tf: tf.parse_tensor(tf.serialize_tensor([[1, 2]]), tf.int32),
}

ERRORS: dict[str, Callable[[Any], Any]] = {
    "substr out of range": lambda tf: tf.substr("abc", 4, 1),
    "to_number of infinity": lambda tf: tf.string_to_number(["infinity"]),
    "to_number of a word": lambda tf: tf.string_to_number(["1", "abc"]),
    "to_number of nothing": lambda tf: tf.string_to_number(""),
    "to_number with underscore": lambda tf: tf.string_to_number("1_0"),
    "to_number int of a float": lambda tf: tf.string_to_number("1.5", tf.int32),
    "to_number int of a plus": lambda tf: tf.string_to_number("+1", tf.int32),
    "to_number int too large": lambda tf: tf.string_to_number("2147483648", tf.int32),
    "to_number of int8": lambda tf: tf.string_to_number("1", tf.int8),
    "lower of another encoding": lambda tf: tf.strings.lower("a", encoding="latin"),
    "decode_base64 of no base64": lambda tf: tf.decode_base64("a+b/"),
    "hash into no buckets": lambda tf: tf.string_to_hash_bucket_fast("a", 0),
    "regex that is none": lambda tf: tf.regex_replace("a", "(", ""),
    "rewrite of no group": lambda tf: tf.regex_replace("a", "a", "\\1"),
    "join of other shapes": lambda tf: tf.string_join([["a"], ["b", "c"]]),
    "format with too few": lambda tf: tf.strings.format("{} {}", [tf.constant(1)]),
    "csv missing": _csv(["1,a", ",b"], lambda tf: [tf.constant([], tf.int32), [""]]),
    "csv of an empty record": _csv(["", "b"], lambda tf: [["z"]]),
    "csv with too few": _csv(["1,a", "1"], _two),
    "csv with too many": _csv(["1,a,b"], _two),
    "csv of a word": _csv(["1,a", "x,b"], _two),
    "csv of a quote inside": _csv(['1,a"b'], _two),
    "csv of a newline inside": _csv(["1,a\nb"], _two),
    "csv of a quote without end": _csv(['1,"ab'], _two),
    "csv of a quote before more": _csv(['1,"a"b'], _two),
    "csv of a long delimiter": _csv(["1,a"], _two, field_delim=",,"),
    "csv select in disorder": _csv(["1,a"], _two, select_cols=[1, 0]),
    "csv select of others": _csv(["1,a"], _two, select_cols=[0]),
    "csv float with range": _csv(["99999999999"], lambda tf: [[0]]),
    "decode_raw of other lengths": lambda tf: tf.decode_raw(["a", "ab"], tf.uint8),
    "decode_raw of a part": lambda tf: tf.decode_raw("abc", tf.int16),
    "parse_tensor of nothing": lambda tf: tf.parse_tensor("x", tf.int32),
    "parse_tensor of others": lambda tf: tf.parse_tensor(tf.serialize_tensor([1.0]), tf.int32),
}


# -- characters and their places, n-grams, segments


def _flat(pieces: Any) -> Any:
    """The pieces of strings, one after the other."""
    return getattr(pieces, "flat_values", getattr(pieces, "values", pieces))


_BROKEN = [
    *(b"\xfe", b"hello", b"==\xff==", b"a\x01b", b"\xed\xa0\xbd", b"\xf4\x90\x80\x80", b""),
    "\ufffd今👍".encode(),
]


def _offsets(**how: Any) -> Callable[[Any], Any]:
    def expression(tf: Any) -> Any:
        both = tf.strings.unicode_decode_with_offsets(_BROKEN, "UTF-8", **how)
        plain = tf.strings.unicode_decode(_BROKEN, "UTF-8", **how)
        return [_flat(each) for each in (*both, plain)]

    return expression


_TABLE = [["Y", "q", "c"], ["Y", "6", "6"], ["p", "G", "a"]]
EXPRESSIONS |= {
    "offsets": _offsets(),
    "offsets ignoring": _offsets(errors="ignore", replace_control_characters=True),
    "offsets of other characters": _offsets(replacement_char=65, replace_control_characters=True),
    "offsets in UTF-16": lambda tf: [
        _flat(each)
        for each in tf.strings.unicode_split_with_offsets(
            ["今👍a".encode("utf-16-be")], "UTF-16-BE"
        )
    ],
    "offsets of a scalar": lambda tf: list(
        tf.strings.unicode_split_with_offsets("今a".encode(), "UTF-8")
    ),
    "transcode without control characters": lambda tf: tf.strings.unicode_transcode(
        _BROKEN, "UTF-8", "UTF-16-BE", replace_control_characters=True
    ),
    "join of nothing": lambda tf: tf.strings.join([]),
    "reduce_join of no strings": lambda tf: tf.reduce_join(tf.zeros([0, 1], tf.string), 1),
}
ERRORS |= {
    "unknown encoding": lambda tf: _flat(tf.strings.unicode_decode(["a"], "x-y")),
    "replacement out of range": lambda tf: tf.strings.unicode_transcode(
        "a", "UTF-8", "UTF-8", replacement_char=0x110000
    ),
    "as_string of both": lambda tf: tf.as_string([1.0], scientific=True, shortest=True),
    "as_string of an integer": lambda tf: tf.as_string([1], scientific=True),
    "base64 with too many signs": lambda tf: tf.decode_base64("aGVsbG8=="),
    "hash with a key of one": lambda tf: tf.string_to_hash_bucket_strong(["a"], 10, [1]),
    "substr at a float": lambda tf: tf.substr("abc", 1.5, 2),
    "reduce_join along another axis": lambda tf: tf.reduce_join(
        tf.placeholder_with_default(["a"], None), 1
    ),
    "reduce_join along one axis twice": lambda tf: tf.reduce_join(
        tf.placeholder_with_default([["a"]], None), [-1, 1]
    ),
}
