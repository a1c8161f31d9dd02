"""`Options` of datasets (`tf.data.Options`)."""

from __future__ import annotations

from typing import Any


class OptionGroup:
    """Options by name. Any can be set and read; unset options are None.

    They are accepted for compatibility and have no effect on elements or order, which is
    deterministic unless shuffled.
    """

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._values.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            self._values[name] = value

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in sorted(self._values.items()))
        return f"{type(self).__name__}({given})"


class ThreadingOptions(OptionGroup):
    """Threading options (`tf.data.ThreadingOptions`)."""


class OptimizationOptions(OptionGroup):
    """Graph rewriting options (`tf.data.experimental.OptimizationOptions`)."""


class DistributeOptions(OptionGroup):
    """Sharding options (`tf.data.experimental.DistributeOptions`)."""


class Options(OptionGroup):
    """The options of `Dataset.with_options`. Any option can be set; none changes the elements."""

    def __init__(self) -> None:
        super().__init__()
        self._values.update(
            threading=ThreadingOptions(),
            experimental_threading=ThreadingOptions(),
            experimental_optimization=OptimizationOptions(),
            experimental_distribute=DistributeOptions(),
        )

    def merge(self, options: Options) -> Options:
        """Returns these options, overridden by those that are set in `options`."""
        merged = Options()
        merged._values.update(self._values)
        merged._values.update(
            {name: value for name, value in options._values.items() if value is not None}
        )
        return merged
