"""`tf.debugging`: assertions and checks."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    **names(
        "estimatorkit.ops.debug.checks",
        "assert_equal assert_greater assert_greater_equal assert_integer assert_less",
        "assert_less_equal assert_near assert_negative assert_non_negative assert_non_positive",
        "assert_none_equal assert_positive assert_proper_iterable assert_rank assert_rank_at_least",
        "assert_rank_in assert_same_float_dtype assert_scalar assert_type is_non_decreasing",
        "is_numeric_tensor is_strictly_increasing",
    ),
    **names(
        "estimatorkit.ops.debug.debug",
        "Assert check_numerics assert_all_finite=verify_tensor_all_finite",
    ),
    **names("estimatorkit.ops.debug.shape_checks", "assert_shapes"),
    **names("estimatorkit.ops.math.elementwise", "is_finite is_inf is_nan"),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
