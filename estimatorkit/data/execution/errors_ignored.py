"""`ignore_errors`: drops and counts elements that raise errors."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from estimatorkit.core.errors import OpError, OutOfRangeError
from estimatorkit.data.execution.block_iterator import (
    BlockIterator,
    State,
    UnaryIterator,
    position,
)
from estimatorkit.data.execution.buffers import Columns
from estimatorkit.data.execution.randomness import Seeds
from estimatorkit.data.plan import UNKNOWN, Unary

_LOGGER = logging.getLogger("estimatorkit")


@dataclass(frozen=True, eq=False)
class IgnoreErrors(Unary):
    """The elements of the source that raise no error."""

    log_warning: bool

    @property
    def cardinality(self) -> int:
        return UNKNOWN if self.source.cardinality else 0

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return IgnoreErrorsIterator(source, self.log_warning)


class IgnoreErrorsIterator(UnaryIterator):
    """See `IgnoreErrors`. Only the failing element is dropped, whatever the block size.

    Attributes:
        ignored: the number of dropped elements.
    """

    ignored: int = position(0)

    def __init__(self, source: BlockIterator, log_warning: bool) -> None:
        super().__init__(source)
        self._log_warning = log_warning

    def _produce(self, n: int) -> Columns:
        after: State | None = None  # the input's position after the previous error
        while True:
            try:
                return self._input.next_block(n)
            except OutOfRangeError:
                self._report()
                raise
            except OpError as error:
                before, after = after, self._input.get_state()
                if after == before:  # no progress: an error that cannot be skipped ends the input
                    raise
                self.ignored += 1
                if self._log_warning:
                    _LOGGER.warning("An element is left out: %s", error.message)

    def _report(self) -> None:
        if self.ignored:
            _LOGGER.warning("ignore_errors() left out %d elements.", self.ignored)
