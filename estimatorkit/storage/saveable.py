"""`Saveable`: state other than variables that a `Saver` saves, such as a table's content.

Objects with these members are saved if they are in a Saver's `var_list` or in the SAVEABLE_OBJECTS
collection. Each tensor is stored under the object's name plus a suffix.
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
        """The name in checkpoints, unless a Saver's `var_list` overrides it."""

    @property
    def saved_suffixes(self) -> Sequence[str]:
        """The name suffix of each tensor, such as ('-keys', '-values')."""

    def values_to_save(self, state: Any) -> Sequence[NDArray[Any]]:
        """Returns its tensors in a session's `State`, in the order of `saved_suffixes`.

        Raises FailedPreconditionError if it is uninitialized.
        """

    def restore_values(self, state: Any, values: Sequence[NDArray[Any]]) -> None:
        """Replaces its content by tensors in the same order.

        Raises InvalidArgumentError if their shapes or dtypes do not match.
        """
