"""Dtype policies: the dtypes of a layer's computations and variables.

A layer without a policy uses the global one. If the two dtypes differ (mixed precision), the layer
holds `AutoCastVariable`s and computes inside `autocast`, where reads are cast; optimizers, savers
and regularizers see the uncast variables. The public API is `estimatorkit.keras.mixed_precision`.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator, Mapping
from typing import Any

from estimatorkit.core.dtypes import DType, as_dtype, float32
from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.ops.math.elementwise import cast

_MIXED = {"mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}


class Policy:
    """The dtypes of a layer: one to compute in, and one for its variables.

    Source: `tf.keras.mixed_precision.Policy`.

    Args:
        name: 'mixed_bfloat16' or 'mixed_float16' (variables in float32, computations in the 16-bit
            dtype), or a dtype or its name (both in it).

    Raises:
        ValueError: the name is unknown.
    """

    def __init__(self, name: str | DType) -> None:
        if name in _MIXED:
            self._name = str(name)
            self._compute_dtype, self._variable_dtype = _MIXED[self._name], float32.name
            return
        try:
            dtype = as_dtype(name)
        except TypeError as error:
            raise value_error(
                f"Cannot convert value {name} to a mixed precision Policy",
                expected="'mixed_bfloat16', 'mixed_float16', or the name of a dtype such as "
                "'float32'",
                received=repr(name),
                hint=did_you_mean(str(name), (*_MIXED, "float32", "float64", "bfloat16")),
            ) from error
        self._name = self._compute_dtype = self._variable_dtype = dtype.name

    @property
    def name(self) -> str:
        """The policy's name."""
        return self._name

    @property
    def compute_dtype(self) -> str:
        """The name of the dtype of a layer's inputs, computations and outputs."""
        return self._compute_dtype

    @property
    def variable_dtype(self) -> str:
        """The name of the dtype of a layer's variables."""
        return self._variable_dtype

    @property
    def is_mixed(self) -> bool:
        """Whether the dtypes differ, so that variables are cast when read."""
        return self._compute_dtype != self._variable_dtype

    def __repr__(self) -> str:
        return f'<Policy "{self._name}">'

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and self._name == other._name

    def __hash__(self) -> int:
        return hash(self._name)

    def get_config(self) -> dict[str, Any]:
        """The config for `from_config`."""
        return {"name": self._name}

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> Policy:
        """Creates a policy from its config; ignores 'loss_scale' of older versions."""
        return cls(config["name"])


_global: Policy | None = None
_local: contextvars.ContextVar[Policy | None] = contextvars.ContextVar(
    "estimatorkit_policy", default=None
)


def global_policy() -> Policy:
    """The policy of layers without an explicit one; float32 by default.

    Source: `tf.keras.mixed_precision.global_policy`.
    """
    return _local.get() or _global or Policy(float32)


def local_policy() -> Policy | None:
    """The policy of the enclosing `policy_scope`, which `tf.layers` take, too; None outside.

    The global policy is Keras's alone, as in TensorFlow.
    """
    return _local.get()


@contextlib.contextmanager
def policy_scope(name: str) -> Iterator[None]:
    """Context manager: replaces the global policy, in this thread."""
    token = _local.set(Policy(name))
    try:
        yield
    finally:
        _local.reset(token)


def set_global_policy(policy: Policy | str | DType | None) -> None:
    """Sets the policy of layers that are created later without an explicit one.

    Source: `tf.keras.mixed_precision.set_global_policy`.

    Args:
        policy: a policy or its name; None for float32.

    Raises:
        ValueError: the name is unknown, or the compute dtype is not floating.
    """
    global _global
    chosen = policy if policy is None or isinstance(policy, Policy) else Policy(policy)
    if chosen is not None and not as_dtype(chosen.compute_dtype).is_floating:
        raise value_error(
            "set_global_policy can only be used to set the global policy to floating-point "
            'policies, such as "float32" and "mixed_bfloat16"',
            received=f"policy: {chosen.name}",
            hint="give a layer of integers its dtype by its argument dtype=",
        )
    _global = chosen


def as_policy(identifier: Any) -> Policy:
    """Converts a layer's `dtype` argument to a policy.

    Args:
        identifier: a policy, its config (as of `get_config`, or with 'class_name' and 'config'),
            its name, a dtype, or None for the global policy.

    Raises:
        ValueError: `identifier` is none of these.
    """
    if identifier is None:
        return global_policy()
    if isinstance(identifier, Policy):
        return identifier
    if isinstance(identifier, Mapping):
        return Policy.from_config(identifier.get("config", identifier))
    return Policy(identifier)


# -- reading variables in the dtype of a computation

_cast_to: contextvars.ContextVar[DType | None] = contextvars.ContextVar(
    "estimatorkit_autocast", default=None
)


@contextlib.contextmanager
def autocast(dtype: str | DType | None) -> Iterator[None]:
    """Context manager: floating `AutoCastVariable`s are read as `dtype`; None disables the cast."""
    token = _cast_to.set(None if dtype is None else as_dtype(dtype))
    try:
        yield
    finally:
        _cast_to.reset(token)


class AutoCastVariable(Variable):
    """A `Variable` that is cast on reads inside `autocast`.

    `dtype` is the uncast one. Assignments, and reads by optimizers and savers, are not cast.
    Source: Keras's private `AutoCastVariable`.
    """

    @property
    def read_dtype(self) -> DType:
        """The dtype of reads in the current context, also used for constant operands."""
        dtype = _cast_to.get()
        return self.dtype if dtype is None or not self.dtype.is_floating else dtype

    def _as_tensor(self) -> Tensor:
        return self._cast(super()._as_tensor())

    def read_value(self) -> Tensor:
        """Reads again, after the active control dependencies; cast inside `autocast`."""
        return self._cast(super().read_value())

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """Gathers rows at `indices`; inside `autocast` only those rows are cast."""
        with autocast(None):
            rows = super().sparse_read(indices, name)
        return self._cast(rows)

    def _cast(self, value: Tensor) -> Tensor:
        return value if value.dtype == self.read_dtype else cast(value, self.read_dtype)


__all__ = [
    "AutoCastVariable",
    "Policy",
    "as_policy",
    "autocast",
    "global_policy",
    "local_policy",
    "policy_scope",
    "set_global_policy",
]
