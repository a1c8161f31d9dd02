"""Array messages round-trip, and truncated or invalid ones raise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

from estimatorkit.core.errors import UnimplementedError
from estimatorkit.distribute.tasks import array_messages
from estimatorkit.distribute.tasks.array_messages import BrokenMessage, Received, receive, send

NUMBERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS += ["float16", "float32", "float64", "complex64", "complex128"]


class Stream:
    """Chunks as a stream of Flight has them."""

    def __init__(self) -> None:
        self.chunks: list[SimpleNamespace] = []

    def write_with_metadata(self, batch: pa.RecordBatch, metadata: pa.Buffer) -> None:
        self.chunks.append(SimpleNamespace(data=batch, app_metadata=metadata))

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self.chunks.append(SimpleNamespace(data=batch, app_metadata=None))

    def reader(self) -> Callable[[], Any]:
        return iter(self.chunks).__next__


def there_and_back(header: bytes, arrays: list[Any], number: int = 0) -> Received:
    stream = Stream()
    send(stream, header, arrays, number=number)
    return receive(stream.reader())


def same(one: Any, other: Any) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype == object:
        return [each.encode() if isinstance(each, str) else each for each in one.flat] == list(
            other.flat
        )
    return one.tobytes() == other.tobytes()


def texts() -> st.SearchStrategy[Any]:
    element = st.one_of(st.binary(max_size=8), st.text(max_size=4))
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
    return shapes.flatmap(lambda shape: hnp.arrays(object, shape, elements=element, fill=element))


def numbers() -> st.SearchStrategy[Any]:
    shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
    plain = hnp.arrays(st.sampled_from(NUMBERS).map(np.dtype), shapes)
    short = hnp.arrays(np.float32, shapes).map(lambda array: array.astype(ml_dtypes.bfloat16))
    return st.one_of(plain, short, plain.map(np.transpose), plain.map(np.asfortranarray))


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.binary(max_size=20),
    st.lists(st.one_of(numbers(), texts()), max_size=5),
    st.integers(0, 2**64 - 1),
)
def test_round_trip(header: bytes, arrays: list[Any], number: int) -> None:
    with np.errstate(all="ignore"):
        found = there_and_back(header, arrays, number)
    assert (found.header, found.number) == (header, number)
    assert len(found.arrays) == len(arrays)
    assert all(map(same, arrays, found.arrays))


@pytest.mark.parametrize("count", [(1 << 16) - 4, 1 << 16, (1 << 16) + 4, 1_000_000])
def test_large_arrays_are_read_in_place(count: int) -> None:
    large = np.arange(count, dtype=np.uint8)
    text = np.array([b"x" * count, "é"], object)
    header, (first, small, last, string), _ = there_and_back(
        b"a", [large, np.float32(3), large.reshape(2, -1).T, text]
    )
    assert header == b"a"
    assert small == 3
    np.testing.assert_array_equal(first, large)
    np.testing.assert_array_equal(last, large.reshape(2, -1).T)
    assert string.tolist() == [b"x" * count, "é".encode()]
    assert not first.flags.owndata


def cut_streams(stream: Stream) -> Iterator[Stream]:
    """The stream with its first chunk cut at any byte, and with whole chunks left out."""
    first, *rest = stream.chunks
    whole = first.app_metadata.to_pybytes()
    for length in range(len(whole)):
        cut = Stream()
        cut.write_with_metadata(first.data, pa.py_buffer(whole[:length]))
        cut.chunks.extend(rest)
        yield cut
    for count in range(1, len(stream.chunks)):
        cut = Stream()
        cut.chunks = stream.chunks[:count]
        yield cut


def test_truncated_message_raises() -> None:
    stream = Stream()
    arrays = [
        *(np.arange(3), np.array([b"a", b"bcd"], object), np.zeros(1 << 16, np.uint8)),
        *(np.float64(1), np.ones(1 << 17, np.uint8)),
    ]
    send(stream, b"header", arrays)
    for cut in cut_streams(stream):
        with pytest.raises(BrokenMessage, match="truncated"):
            receive(cut.reader())


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_invalid_message_raises(noise: bytes) -> None:
    stream = Stream()
    stream.write_with_metadata(pa.record_batch([pa.array([], pa.uint8())], ["a"]), noise)
    with pytest.raises(BrokenMessage):
        receive(stream.reader())


def test_ended_stream() -> None:
    with pytest.raises(StopIteration):
        receive(Stream().reader())


def test_unsupported_values_raise() -> None:
    lists = np.empty(1, object)
    lists[0] = [1, 2]
    with pytest.raises(UnimplementedError, match="on one task"):
        there_and_back(b"", [lists])


def test_arrays_larger_than_batch_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_messages, "BATCH", 100_000)
    arrays = [np.arange(count, dtype=np.float32) for count in (10, 100_000, 25_000, 30_001)]
    stream = Stream()
    send(stream, b"", arrays)
    assert len(stream.chunks) == 1 + 4 + 1 + 2
    assert all(map(same, arrays, receive(stream.reader()).arrays))
