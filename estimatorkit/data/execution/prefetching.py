"""`PrefetchIterator`: prefetches on a thread.

While the thread runs, it owns the input and shares a `_Channel` with the iterator: a bounded queue
of blocks, each with the input's position after it. The iterator's position is thus that of the last
consumed block. Errors pass through the queue with their traceback. The thread refers to the channel
only, so that a dropped iterator is collected and its thread ends.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from dataclasses import dataclass, field

from estimatorkit.core.errors import DeadlineExceededError
from estimatorkit.data.execution.block_iterator import BlockIterator, State, UnaryIterator
from estimatorkit.data.execution.buffers import Columns, count_rows
from estimatorkit.runtime.xla.at_exit import counted, idle

THREAD_NAME = "estimatorkit-prefetch"

# Seconds that closing waits for a busy input (such as a blocking generator); its thread is a
# daemon.
_JOIN_SECS = 30.0


@dataclass
class _Channel:
    """The state shared by thread and iterator; `changed` guards every field."""

    source: BlockIterator
    limit: int  # the thread waits while the queue has more rows
    block_rows: int  # rows to request
    queue: deque[tuple[Columns, State] | Exception] = field(default_factory=deque)
    rows: int = 0  # in the queue
    stopped: bool = False
    changed: threading.Condition = field(default_factory=threading.Condition)

    def stop(self) -> None:
        with self.changed:
            self.stopped = True
            self.changed.notify_all()


def _read_ahead(channel: _Channel) -> None:
    while True:
        with channel.changed:
            while channel.rows >= channel.limit and not channel.stopped:
                with idle():
                    channel.changed.wait()
            if channel.stopped:
                return
            wanted = channel.block_rows
        item: tuple[Columns, State] | Exception
        try:
            block = channel.source.next_block(wanted)
            item = block, channel.source.get_state()
        except Exception as error:
            item = error
        with channel.changed:
            channel.queue.append(item)
            channel.changed.notify_all()
            if isinstance(item, Exception):
                return
            channel.rows += count_rows(item[0])


class PrefetchIterator(UnaryIterator):
    """The rows of the input, prefetched by a thread that starts with the first request.

    Args:
        buffer_size: rows to prefetch, in blocks of the size last requested, at least one block.
    """

    def __init__(self, source: BlockIterator, buffer_size: int) -> None:
        super().__init__(source)
        self._buffer_size = buffer_size
        self._after = (
            source.get_state()
        )  # the input's position after the last block taken from the queue
        self._channel: _Channel | None = None
        self._thread: threading.Thread | None = None

    def _produce(self, n: int) -> Columns:
        channel = self._channel or self._start(n)
        with channel.changed:
            channel.block_rows = n
            while not channel.queue:
                channel.changed.wait()
            item = channel.queue.popleft()
            if not isinstance(item, Exception):
                channel.rows -= count_rows(item[0])
            channel.changed.notify_all()
        if isinstance(item, Exception):
            self._stop()
            self._after = self._input.get_state()
            raise item
        block, self._after = item
        return block

    def _start(self, n: int) -> _Channel:
        channel = _Channel(self._input, limit=self._buffer_size, block_rows=n)
        self._channel = channel
        self._thread = threading.Thread(
            target=counted(_read_ahead), args=(channel,), name=THREAD_NAME, daemon=True
        )
        self._finalizer = weakref.finalize(self, channel.stop)
        self._finalizer.atexit = False  # a thread that the program waits for may wait for rows
        self._thread.start()
        return channel

    def _stop(self) -> None:
        if self._channel is None or self._thread is None:
            return
        self._channel.stop()
        self._thread.join(_JOIN_SECS)
        if self._thread.is_alive():
            raise DeadlineExceededError(
                None,
                None,
                f"The prefetching thread did not end within {_JOIN_SECS:g} s: its input is blocked "
                "(a generator that waits?).",
            )
        self._finalizer.detach()
        self._channel = self._thread = None

    def _skip(self, n: int) -> int:
        if self._channel is not None:
            return super()._skip(n)
        count = self._input.skip(n)
        self._after = self._input.get_state()
        return count

    def _save(self) -> State:
        return {"input": self._after}

    def _restore(self, state: State) -> None:
        self._stop()
        super()._restore(state)
        self._after = self._input.get_state()

    def _restart(self, epoch: int) -> None:
        self._stop()
        super()._restart(epoch)
        self._after = self._input.get_state()

    def close(self) -> None:
        self._stop()
        super().close()
