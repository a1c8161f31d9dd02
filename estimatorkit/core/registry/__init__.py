"""The op registry: one row per op type, and `apply`, which creates operations.

A row says how the op computes (`kernel`), where (`device`: a pure JAX function; `host`: a
NumPy/Python function), how shapes are inferred (from the kernel itself unless `infer` is given) and
its gradient (`jax.vjp` of the kernel unless `gradient` is given). To add an op, write one function
and register it, with an example or two for the tests. Nothing else in the package switches on op
types.
"""

from __future__ import annotations

from estimatorkit.core.registry.folding import (
    constant_value as constant_value,
    constant_value_as_shape as constant_value_as_shape,
    fixed_value as fixed_value,
)
from estimatorkit.core.registry.op_def import (
    Attrs as Attrs,
    Case as Case,
    Infer as Infer,
    OpDef as OpDef,
    Place as Place,
    Role as Role,
    Spec as Spec,
)
from estimatorkit.core.registry.operations import (
    apply as apply,
    check_allowed as check_allowed,
    output as output,
)
from estimatorkit.core.registry.shape_rules import (
    check_same_dtype as check_same_dtype,
    fixed as fixed,
    from_attrs as from_attrs,
    no_outputs as no_outputs,
    same_as_input as same_as_input,
)
from estimatorkit.core.registry.table import (
    add_ops as add_ops,
    find as find,
    lookup as lookup,
    never_runs as never_runs,
    register as register,
    register_handle as register_handle,
    registered_types as registered_types,
    role_of as role_of,
    takes_element as takes_element,
)
