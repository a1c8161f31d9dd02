"""`Batcher`: dynamic batching of requests.

The event loop collects requests; one worker thread computes. With a delay of 0 a request never
waits for others: a batch has the requests that arrived while the previous one ran.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

Run = Callable[[Hashable, list[Any]], list[Any]]


@dataclass(frozen=True)
class _Request:
    key: Hashable
    rows: list[Any]
    result: asyncio.Future[list[Any]]


class Batcher:
    """Joins the rows of requests with the same key.

    Args:
        run: computes the results of rows, in order; called on the executor.
        executor: one thread.
        most_rows: the largest batch; a longer request runs alone.
        delay: seconds to wait for more rows while there are fewer.
        invalid: the exceptions for invalid rows. If a batch raises one, its requests run again
            singly, so that each gets its own error.
        observe: called with the number of rows of each batch.
    """

    def __init__(
        self,
        run: Run,
        executor: Executor,
        most_rows: int,
        delay: float = 0.0,
        invalid: tuple[type[Exception], ...] = (ValueError,),
        observe: Callable[[int], None] = lambda rows: None,
    ) -> None:
        self._run = run
        self._executor = executor
        self._most = most_rows
        self._delay = delay
        self._invalid = invalid
        self._observe = observe
        self._pending: deque[_Request] = deque()
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, key: Hashable, rows: list[Any]) -> list[Any]:
        """The results of a request's rows."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[list[Any]] = loop.create_future()
        self._pending.append(_Request(key, rows, result))
        if self._task is None:
            self._task = loop.create_task(self._work())
        return await result

    async def _work(self) -> None:
        try:
            while self._pending:
                if self._delay and sum(len(each.rows) for each in self._pending) < self._most:
                    await asyncio.sleep(self._delay)
                await self._compute(self._take())
        finally:
            self._task = None

    def _take(self) -> list[_Request]:
        """The next batch: the oldest request and those after it with its key."""
        batch: list[_Request] = []
        rows = 0
        while self._pending:
            first = self._pending[0]
            if batch and (first.key != batch[0].key or rows + len(first.rows) > self._most):
                break
            self._pending.popleft()
            if not first.result.done():  # its client still waits
                batch.append(first)
                rows += len(first.rows)
        return batch

    async def _compute(self, batch: list[_Request]) -> None:
        if not batch:
            return
        rows = [row for each in batch for row in each.rows]
        self._observe(len(rows))
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self._executor, self._run, batch[0].key, rows)
        except Exception as error:  # raised by the requests
            if len(batch) == 1 or not isinstance(error, self._invalid):
                for each in batch:
                    if not each.result.done():
                        each.result.set_exception(error)
                return
            for each in batch:
                await self._compute([each])
            return
        start = 0
        for each in batch:
            end = start + len(each.rows)
            if not each.result.done():
                each.result.set_result(found[start:end])
            start = end


__all__ = ["Batcher"]
