"""Files of text and CSV, and datasets of them, as functions of the module used as `tf`.

Each case takes `tf` and a function that gives the path of a file of `FILES`.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from typing import Any

_PEOPLE = b'''name,age,score,city,big
Ann,31,1.5,"Berlin, Mitte",3000000000
"Bob ""B""",42,2,Paris,1
,,NA,"two
lines",-5
Eve, 7 ,-1e-3,,0
'''

FILES: dict[str, bytes] = {
    "lines": b"one\r\n\r\n\ntwo\rlines\nlast \xff",
    "lines.gz": gzip.compress(b"a\nb\r\nc", mtime=0),
    "lines.z": zlib.compress(b"a\nb\r\nc"),
    "two members.gz": gzip.compress(b"a\nb", mtime=0) + gzip.compress(b"c\nd\n", mtime=0),
    "people": _PEOPLE,
    "people crlf": _PEOPLE.replace(b"\n", b"\r\n"),
    "people.gz": gzip.compress(_PEOPLE, mtime=0),
    "more people": b"name,age,score,city,big\nDan,1,0,x,2",
    "numbers": b"1,2.5,9007199254740993,0.1\n-2147483648,+2,-9223372036854775808,1e-320\n"
    b" 7 , .5e1 , 5 , 1.7976931348623157e308\n007,1e39,0,-0\n0,nan,1,-inf\n"
    b"1,3.4028234663852886e38,1,0.30000000000000004\n16777217,16777217,16777217,16777217\n",
    "quotes": b'"a ""b""",2\n"x\ny",3\n"",""\n"1","2"\n"a,b",c\n',
    "missing": b'NA,2\n"NA",3\n,NA\n5,\n',
    "cr": b"1,2\r3,4\r\n5,6",
    "no quotes": b'"a,b"\nx"y,z\n',
    "semicolons": b"1;a,b\n2;c\n",
    "bad ints": b"+1\n1.0\n1e2\n2147483648\n1\n-2147483649\n1_0\n--1\nx\n2\n",
    "bad widths": b"1,2,3\n1\n1,2\n",
    "bad quotes": b'"q" ,3\nab"c,4\na,5\n',
    "unclosed": b'a,1\n"abc,2\n1,3\n',
    "bytes": b"caf\xe9,\xff\n",
    "types": b"i,l,f,d,s,e,n\n1,1,1,1,1,,1\n2,3000000000,2.5,1e300,x,,nan\n3,4,5,6,7,,8\n",
    "empty": b"",
}

Path = Callable[[str], str]
Case = Callable[[Any, Path], Any]


def _csv(name: str, defaults: Callable[[Any], list[Any]], **options: Any) -> Case:
    return lambda tf, path: tf.data.experimental.CsvDataset(path(name), defaults(tf), **options)


def _batches(name: str, size: int = 3, **options: Any) -> Case:
    def case(tf: Any, path: Path) -> Any:
        given = {"num_epochs": 1, "shuffle": False, **options}
        return tf.data.experimental.make_csv_dataset(path(name), size, **given)

    return case


CASES: dict[str, Case] = {
    "lines": lambda tf, path: tf.data.TextLineDataset(path("lines")),
    "lines of several files": lambda tf, path: tf.data.TextLineDataset(
        [path("lines"), path("empty"), path("people crlf")]
    ),
    "lines gzip": lambda tf, path: tf.data.TextLineDataset(path("lines.gz"), "GZIP"),
    "lines zlib": lambda tf, path: tf.data.TextLineDataset(path("lines.z"), "ZLIB"),
    "lines of two members": lambda tf, path: tf.data.TextLineDataset(
        path("two members.gz"), compression_type="GZIP", buffer_size=16
    ),
    "csv numbers": _csv("numbers", lambda tf: [tf.int32, tf.float32, tf.int64, tf.float64]),
    "csv numbers as text": _csv("numbers", lambda tf: [tf.string] * 4),
    "csv quotes": _csv("quotes", lambda tf: [["d"], ["e"]]),
    "csv missing": _csv("missing", lambda tf: [[7], [5]], na_value="NA"),
    "csv missing floats": _csv("missing", lambda tf: [[7.5], [float("nan")]], na_value="NA"),
    "csv missing strings": _csv("missing", lambda tf: [["none"], [""]], na_value="NA"),
    "csv required": _csv("missing", lambda tf: [tf.int32, [5]], na_value="NA"),
    "csv cr": _csv("cr", lambda tf: [tf.int32, tf.int64]),
    "csv header": _csv(
        "people", lambda tf: [[""], [0], [0.0], [""], [0.5]], header=True, na_value="NA"
    ),
    "csv select": _csv("people", lambda tf: [[0], [""]], header=True, select_cols=[1, 3]),
    "csv exclude": _csv(
        "people", lambda tf: [[""], [0], [""]], header=True, exclude_cols=[2, 4]
    ),
    "csv no quotes": _csv("no quotes", lambda tf: [tf.string] * 2, use_quote_delim=False),
    "csv delimiter": _csv("semicolons", lambda tf: [tf.int32, tf.string], field_delim=";"),
    "csv gzip": _csv(
        "people.gz", lambda tf: [[""]] * 5, compression_type="GZIP", buffer_size=32
    ),
    "csv bad ints": _csv("bad ints", lambda tf: [tf.int32]),
    "csv bad widths": _csv("bad widths", lambda tf: [tf.int32, tf.int32]),
    "csv bad quotes": _csv("bad quotes", lambda tf: [tf.string, tf.string]),
    "csv unclosed": _csv("unclosed", lambda tf: [tf.string, tf.string]),
    "csv bytes": _csv("bytes", lambda tf: [tf.string, tf.string]),
    "csv of several files": lambda tf, path: tf.data.experimental.CsvDataset(
        [path("cr"), path("cr")], [tf.int32, tf.int32]
    ),
    "batches": _batches("people", na_value="NA"),
    "batches crlf": _batches("people crlf", na_value="NA"),
    "batches with label": _batches("people", 2, label_name="age", na_value="NA"),
    "batches of selected": _batches("people", select_columns=["city", 1]),
    "batches of selected with label": _batches(
        "people", select_columns=["age", "name"], label_name="name", column_defaults=[["?"], [-1]]
    ),
    "batches with defaults": _batches(
        "people", column_defaults=[["nobody"], [-1], [0.5], [""], [0.0]], na_value="NA"
    ),
    "batches with names": _batches(
        "numbers", column_names=["i", "f", "l", "d"], header=False, label_name="f"
    ),
    "batches of types": _batches("types"),
    "batches of types from one row": _batches("types", 1, num_rows_for_inference=1),
    "batches gzip": _batches("people.gz", compression_type="GZIP", na_value="NA"),
    "batches without bad rows": _batches(
        "bad widths", column_names=["a", "b"], header=False, ignore_errors=True,
        column_defaults=[0, 0],
    ),
    "batches in two epochs": _batches("people", 3, num_epochs=2, na_value="NA"),
    "batches without end": lambda tf, path: _batches("people", 3, num_epochs=None, na_value="NA")(
        tf, path
    ).take(4),
    "batches of several files": lambda tf, path: tf.data.experimental.make_csv_dataset(
        [path("people"), path("more people")], 3, num_epochs=1, shuffle=False, na_value="NA",
        num_parallel_reads=1,
    ),
    "batches of no file": _batches("nothing"),
    "batches without names": _batches("people", header=False),
    "batches of a wrong label": _batches("people", label_name="Age"),
    "batches of a wrong column": _batches("people", select_columns=["Age"]),
    "batches with too few defaults": _batches(
        "people", select_columns=[0, 1], column_defaults=[0]
    ),
}  # fmt: skip
