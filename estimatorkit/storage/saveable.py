"""`Saveable`: state other than variables that a `Saver` saves, such as a table's content.

An object that has these members takes part in checkpoints when it is in a Saver's `var_list` or in
the collection SAVEABLE_OBJECTS. Its tensors lie under its name with a suffix each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray


@runtime_checkable
class Saveable(Protocol):
    """State of a session that is not a variable."""

    @property
    def name(self) -> str:
        """Its name in checkpoints, unless a Saver's `var_list` gives another."""

    @property
    def saved_suffixes(self) -> Sequence[str]:
        """What is put behind the name for each of its tensors, such as ('-keys', '-values')."""

    def values_to_save(self, state: Any) -> Sequence[NDArray[Any]]:
        """Its tensors in a session's `State`, in the order of `saved_suffixes`.

        Raises:
            FailedPreconditionError: it has no content yet.
        """

    def restore_values(self, state: Any, values: Sequence[NDArray[Any]]) -> None:
        """Puts tensors, in the same order, in place of its content.

        Raises:
            InvalidArgumentError: they have other shapes or dtypes than it can take.
        """
