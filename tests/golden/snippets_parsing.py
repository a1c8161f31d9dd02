"""Expressions that parse examples, run on TensorFlow and on this package.

Each is a function of the module that stands for `tf`, as in `snippets_strings.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Values = Mapping[str, list[Any]]


def _feature(tf: Any, values: list[Any]) -> Any:
    if values and isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if values and isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    if values:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Feature()


def _features(tf: Any, features: Values) -> Any:
    return tf.train.Features(
        feature={key: _feature(tf, values) for key, values in features.items()}
    )


def example(tf: Any, **features: list[Any]) -> bytes:
    """A serialized `Example`; its bytes are the same each time."""
    made = tf.train.Example(features=_features(tf, features))
    return bytes(made.SerializeToString(deterministic=True))


def sequence(tf: Any, context: Values, **lists: list[list[Any]]) -> bytes:
    """A serialized `SequenceExample`."""
    feature_list = {
        key: tf.train.FeatureList(feature=[_feature(tf, values) for values in steps])
        for key, steps in lists.items()
    }
    made = tf.train.SequenceExample(
        context=_features(tf, context),
        feature_lists=tf.train.FeatureLists(feature_list=feature_list),
    )
    return bytes(made.SerializeToString(deterministic=True))


def _batch(tf: Any) -> list[bytes]:
    return [
        example(tf, x=[1.5, 2.5], n=[3], s=[b"a", b"b"], k=[4, 0], v=[1.0, 2.0]),
        example(tf, x=[0.5, -1.0], n=[-4], s=[], w=[b"only here"]),
        example(tf, x=[0.0, 1e-3], n=[1 << 40], s=[b"c"], k=[2], v=[3.0]),
    ]


def _parse(features: Callable[[Any], Any], **rest: Any) -> Callable[[Any], Any]:
    return lambda tf: tf.parse_example(_batch(tf), features(tf), **rest)


def _single(features: Callable[[Any], Any], at: int = 0) -> Callable[[Any], Any]:
    return lambda tf: tf.parse_single_example(serialized=_batch(tf)[at], features=features(tf))


def _mixed(tf: Any) -> Any:
    return {
        "x": tf.FixedLenFeature([2], tf.float32),
        "n": tf.FixedLenFeature(shape=[], dtype=tf.int64),
        "s": tf.VarLenFeature(tf.string),
        "w": tf.FixedLenFeature([], tf.string, default_value="nothing"),
    }


def _sparse(tf: Any, **rest: Any) -> Any:
    return {"f": tf.SparseFeature("k", "v", tf.float32, 5, **rest)}


def _sequences(tf: Any) -> list[bytes]:
    return [
        sequence(tf, {"n": [7]}, x=[[1.0, 2.0], [3.0, 4.0]], s=[[b"a"], [b"b", b"c"], []]),
        sequence(tf, {"n": [8]}, x=[[5.0, 6.0]], s=[]),
        sequence(tf, {"n": [9]}, x=[]),
    ]


def _steps(tf: Any) -> dict[str, Any]:
    return {
        "x": tf.FixedLenSequenceFeature([2], tf.float32),
        "s": tf.VarLenFeature(tf.string),
        "m": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
    }


def _context(tf: Any) -> dict[str, Any]:
    return {"n": tf.FixedLenFeature([], tf.int64), "o": tf.FixedLenFeature([1], tf.float32, [0.5])}


def _histories(tf: Any) -> list[bytes]:
    """Sequences with contexts of every kind, and steps of every dtype."""
    return [
        sequence(
            tf,
            {"n": [7, -1], "w": [b"a"], "k": [1, 3], "v": [0.5, 1.5]},
            m=[[1, 2, 3, 4], [5, 6, 7, 8]],
            i=[[3], [], [1 << 40, -2]],
            f=[[0.5, 0.25]],
            t=[[b"one"], [b"two"]],
        ),
        sequence(tf, {}, m=[], i=[[9]], t=[[b""]]),
        sequence(tf, {"n": [2], "k": [0], "v": [2.5]}, m=[[9, 9, 9, 9]]),
    ]


def _all_context(tf: Any) -> dict[str, Any]:
    return {
        "n": tf.VarLenFeature(tf.int64),
        "w": tf.FixedLenFeature([], tf.string, "none"),
    }


def _all_steps(tf: Any) -> dict[str, Any]:
    return {
        "m": tf.FixedLenSequenceFeature([2, 2], tf.int64),
        "i": tf.VarLenFeature(tf.int64),
        "f": tf.VarLenFeature(tf.float32),
        "t": tf.FixedLenSequenceFeature([], tf.string, allow_missing=True),
    }


def _one_history(steps: Callable[[Any], Any], at: int = 0) -> Callable[[Any], Any]:
    return lambda tf: tf.parse_single_sequence_example(
        _histories(tf)[at], sequence_features=steps(tf)
    )


EXPRESSIONS: dict[str, Callable[[Any], Any]] = {
    "bytes of an example": lambda tf: tf.constant(_batch(tf)),
    "bytes of a sequence": lambda tf: tf.constant(_sequences(tf)),
    "mixed": _parse(_mixed),
    "mixed single": _single(_mixed),
    "mixed single without lists": _single(_mixed, 1),
    "matrix": _parse(lambda tf: {"x": tf.FixedLenFeature([1, 2], tf.float32)}),
    "default of a vector": _parse(
        lambda tf: {"q": tf.FixedLenFeature([2], tf.int64, default_value=[8, 9])}
    ),
    "names that no operation can have": _parse(
        lambda tf: {
            "capital gain": tf.FixedLenFeature([2], tf.float32, default_value=[1.0, 2.0]),
            "a:b": tf.FixedLenFeature([], tf.int64, default_value=3),
            "1/%": tf.FixedLenFeature([2], tf.string, default_value=["a", "b"]),
        }
    ),
    "lists of int64": _parse(lambda tf: {"k": tf.VarLenFeature(dtype=tf.int64)}),
    "lists that are nowhere": _parse(lambda tf: {"none": tf.VarLenFeature(tf.float32)}),
    "padded": _parse(
        lambda tf: {"k": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}
    ),
    "padded strings": _parse(
        lambda tf: {"s": tf.FixedLenSequenceFeature([1], tf.string, True, "-")}
    ),
    "padded single": _single(
        lambda tf: {"k": tf.FixedLenSequenceFeature([2], tf.int64, allow_missing=True)}
    ),
    "sparse": _parse(_sparse),
    "sparse single": _single(_sparse),
    "sparse in order": _parse(lambda tf: _sparse(tf, already_sorted=True)),
    "no examples": lambda tf: tf.parse_example(tf.zeros([0], tf.string), _mixed(tf)),
    "single sequence": lambda tf: tf.parse_single_sequence_example(
        _sequences(tf)[0], _context(tf), _steps(tf)
    ),
    "single sequence without steps": lambda tf: tf.parse_single_sequence_example(
        _sequences(tf)[2], sequence_features=_steps(tf)
    ),
    "sequences": lambda tf: tf.io.parse_sequence_example(_sequences(tf), _context(tf), _steps(tf)),
    "histories": lambda tf: tf.io.parse_sequence_example(
        _histories(tf), _all_context(tf), _all_steps(tf), ["a", "b", "c"]
    ),
    "one history": lambda tf: tf.parse_single_sequence_example(
        _histories(tf)[0], _all_context(tf), _all_steps(tf)
    ),
    "one history without most": lambda tf: tf.parse_single_sequence_example(
        _histories(tf)[1], _all_context(tf), _all_steps(tf)
    ),
    "a context alone": lambda tf: tf.parse_single_sequence_example(
        _histories(tf)[2], context_features=_all_context(tf)
    )[0],
    "json": lambda tf: tf.parse_example(
        tf.decode_json_example(
            ['{"features": {"feature": {"n": {"int64_list": {"value": [3, "4"]}}}}}']
        ),
        {"n": tf.VarLenFeature(tf.int64)},
    ),
}

ERRORS: dict[str, Callable[[Any], Any]] = {
    "no example": lambda tf: tf.parse_example(["\1garbage"], _mixed(tf)),
    "missing": _parse(lambda tf: {"w": tf.FixedLenFeature([], tf.string)}),
    "missing with a name": _parse(
        lambda tf: {"w": tf.FixedLenFeature([], tf.string)}, example_names=["one", "two", "three"]
    ),
    "missing single": _single(lambda tf: {"q": tf.FixedLenFeature([], tf.string)}),
    "another dtype": _parse(lambda tf: {"x": tf.FixedLenFeature([2], tf.int64)}),
    "another dtype of lists": _parse(lambda tf: {"x": tf.VarLenFeature(tf.int64)}),
    "another size": _parse(lambda tf: {"x": tf.FixedLenFeature([3], tf.float32)}),
    "another stride": _parse(lambda tf: {"k": tf.FixedLenSequenceFeature([2], tf.int64, True)}),
    "sparse out of range": _parse(lambda tf: {"f": tf.SparseFeature("k", "v", tf.float32, 3)}),
    "no features": _parse(lambda tf: {}),
    "unknown shape": _parse(lambda tf: {"x": tf.FixedLenFeature([None], tf.float32)}),
    "sequence without allow_missing": _parse(
        lambda tf: {"x": tf.FixedLenSequenceFeature([], tf.float32)}
    ),
    "unsupported dtype": _parse(lambda tf: {"x": tf.FixedLenFeature([], tf.int32)}),
    "a feature that is none": _parse(lambda tf: {"x": tf.float32}),
    "steps missing": lambda tf: tf.parse_single_sequence_example(
        _sequences(tf)[0], sequence_features={"q": tf.FixedLenSequenceFeature([], tf.int64)}
    ),
    "steps of another size": lambda tf: tf.parse_single_sequence_example(
        _sequences(tf)[0], sequence_features={"x": tf.FixedLenSequenceFeature([3], tf.float32)}
    ),
    "steps of another dtype": _one_history(
        lambda tf: {"m": tf.FixedLenSequenceFeature([4], tf.float32)}
    ),
    "lists of steps of another dtype": _one_history(lambda tf: {"i": tf.VarLenFeature(tf.string)}),
    "steps of lists of different lengths": _one_history(
        lambda tf: {"i": tf.FixedLenSequenceFeature([1], tf.int64)}
    ),
    "steps missing in a batch": lambda tf: tf.io.parse_sequence_example(
        _histories(tf),
        sequence_features={"t": tf.FixedLenSequenceFeature([], tf.string)},
        example_names=["a", "b", "c"],
    ),
    "steps of another size in a batch": lambda tf: tf.io.parse_sequence_example(
        _histories(tf), sequence_features={"m": tf.FixedLenSequenceFeature([3], tf.int64)}
    ),
    "a context without a feature": lambda tf: tf.parse_single_sequence_example(
        _histories(tf)[1], {"n": tf.FixedLenFeature([2], tf.int64)}
    ),
    "a context of another dtype": lambda tf: tf.parse_single_sequence_example(
        _histories(tf)[0], {"n": tf.FixedLenFeature([2], tf.float32)}
    ),
    "no sequence example": lambda tf: tf.parse_single_sequence_example(
        "\1garbage", sequence_features=_steps(tf)
    ),
    "a vector for one": lambda tf: tf.parse_single_example(_batch(tf), _mixed(tf)),
    "json that is none": lambda tf: tf.decode_json_example("{"),
}
