"""`Options` of datasets (`tf.data.Options`).

They are accepted for compatibility and have no effect on elements or order, which is deterministic
unless shuffled. Names and types are TensorFlow's; those of TensorFlow 1 are accepted, too.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from estimatorkit.core.errors import type_error


class OptionGroup:
    """Options by name; those that are not set are None."""

    _types: ClassVar[dict[str, type]] = {}
    """The types of the options; a group's option is another group."""
    _same: ClassVar[dict[str, str]] = {}
    """Other names of options."""

    def __init__(self) -> None:
        values = {
            name: kind() if issubclass(kind, OptionGroup) else None
            for name, kind in self._types.items()
        }
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_mutable", True)

    def __getattr__(self, name: str) -> Any:
        name = self._same.get(name, name)
        if name not in self._types:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        name = self._same.get(name, name)
        if not self._mutable:
            raise ValueError(
                "Mutating `tf.data.Options()` returned by `tf.data.Dataset.options()` has no "
                "effect. Use `tf.data.Dataset.with_options(options)` to set or update dataset "
                "options."
            )
        if name not in self._types:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        if not isinstance(value, self._types[name]):
            raise type_error(
                f'Property "{name}" must be of type {self._types[name]}',
                received=f"{value!r} (type: {type(value)})",
            )
        self._values[name] = value

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values == vars(other)["_values"]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        unset = type(self)()._values
        given = ", ".join(
            f"{name}={value!r}"
            for name, value in sorted(self._values.items())
            if value != unset[name]
        )
        return f"{type(self).__name__}({given})"

    def merge(self, options: Self) -> Self:
        """Returns these options, overridden by those that are set in `options`."""
        merged = type(self)()
        unset = type(self)()._values
        for name, mine in self._values.items():
            other = options._values[name]
            if isinstance(mine, OptionGroup):
                value = mine.merge(other)
            else:
                value = mine if other == unset[name] else other
            merged._values[name] = value
        return merged

    def fixed(self) -> Self:
        """A copy whose options cannot be set."""
        copy = self.merge(type(self)())
        for group in (copy, *copy._values.values()):
            if isinstance(group, OptionGroup):
                object.__setattr__(group, "_mutable", False)
        return copy


class AutotuneOptions(OptionGroup):
    """Options of tuning (`tf.data.experimental.AutotuneOptions`)."""

    _types: ClassVar = {
        "enabled": bool,
        "cpu_budget": int,
        "ram_budget": int,
        "autotune_algorithm": object,
    }


class ThreadingOptions(OptionGroup):
    """Threading options (`tf.data.ThreadingOptions`)."""

    _types: ClassVar = {"max_intra_op_parallelism": int, "private_threadpool_size": int}


class OptimizationOptions(OptionGroup):
    """Graph rewriting options (`tf.data.experimental.OptimizationOptions`)."""

    _types: ClassVar = {
        **dict.fromkeys(
            (
                "apply_default_optimizations",
                "autotune",
                "autotune_buffers",
                "filter_fusion",
                "filter_parallelization",
                "filter_with_random_uniform_fusion",
                "hoist_random_uniform",
                "inject_prefetch",
                "map_and_batch_fusion",
                "map_and_filter_fusion",
                "map_fusion",
                "map_parallelization",
                "noop_elimination",
                "parallel_batch",
                "reorder_data_discarding_ops",
                "shuffle_and_repeat_fusion",
            ),
            bool,
        ),
        "autotune_cpu_budget": int,
        "autotune_ram_budget": int,
        "map_vectorization": object,
    }


class DistributeOptions(OptionGroup):
    """Sharding options (`tf.data.experimental.DistributeOptions`)."""

    _types: ClassVar = {"auto_shard_policy": object, "num_devices": int}
    _same: ClassVar = {"auto_shard": "auto_shard_policy"}

    def __init__(self) -> None:
        super().__init__()
        self._values["auto_shard_policy"] = 0  # AutoShardPolicy.AUTO


class Options(OptionGroup):
    """The options of `Dataset.with_options`; none changes the elements.

    Raises:
        AttributeError: an option that does not exist is set or read.
        TypeError: the value has not the option's type.
        ValueError: the options of a dataset (`Dataset.options`) are changed.
    """

    _types: ClassVar = {
        "autotune": AutotuneOptions,
        "deterministic": bool,
        "experimental_autotune": bool,
        "experimental_distribute": DistributeOptions,
        "experimental_external_state_policy": object,
        "experimental_numa_aware": bool,
        "experimental_optimization": OptimizationOptions,
        "experimental_slack": bool,
        "experimental_stateful_whitelist": object,
        "experimental_stats": object,
        "experimental_symbolic_checkpoint": bool,
        "experimental_warm_start": bool,
        "threading": ThreadingOptions,
    }
    _same: ClassVar = {
        "experimental_deterministic": "deterministic",
        "experimental_threading": "threading",
    }
