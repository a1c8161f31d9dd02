from estimatorkit.ops.debug.checks import (
    assert_equal as assert_equal, assert_greater as assert_greater,
    assert_greater_equal as assert_greater_equal, assert_integer as assert_integer,
    assert_less as assert_less, assert_less_equal as assert_less_equal, assert_near as assert_near,
    assert_negative as assert_negative, assert_non_negative as assert_non_negative,
    assert_non_positive as assert_non_positive, assert_none_equal as assert_none_equal,
    assert_positive as assert_positive, assert_proper_iterable as assert_proper_iterable,
    assert_rank as assert_rank, assert_rank_at_least as assert_rank_at_least,
    assert_rank_in as assert_rank_in, assert_same_float_dtype as assert_same_float_dtype,
    assert_scalar as assert_scalar, assert_type as assert_type,
    is_non_decreasing as is_non_decreasing, is_numeric_tensor as is_numeric_tensor,
    is_strictly_increasing as is_strictly_increasing,
)
from estimatorkit.ops.debug.debug import (
    Assert as Assert, verify_tensor_all_finite, check_numerics as check_numerics,
)
from estimatorkit.ops.math.elementwise import (
    is_finite as is_finite, is_inf as is_inf, is_nan as is_nan,
)
from estimatorkit.compat.names.debugging import *

assert_all_finite = verify_tensor_all_finite
