from estimatorkit.ops.math.elementwise import (
    abs as abs, acos as acos, add as add, add_n as add_n, asin as asin, atan as atan,
    atan2 as atan2, ceil as ceil, cos as cos, cosh as cosh, div_no_nan as div_no_nan,
    divide as divide, equal as equal, erf as erf, exp as exp, expm1 as expm1, floor as floor,
    floordiv as floordiv, floormod as floormod, greater as greater, greater_equal as greater_equal,
    is_finite as is_finite, is_inf as is_inf, is_nan as is_nan, less as less,
    less_equal as less_equal, lgamma as lgamma, log as log, log1p as log1p,
    logical_and as logical_and, logical_not as logical_not, logical_or as logical_or,
    logical_xor as logical_xor, maximum as maximum, minimum as minimum, multiply as multiply,
    negative as negative, not_equal as not_equal, pow as pow, reciprocal as reciprocal,
    reciprocal_no_nan as reciprocal_no_nan, round as round, rsqrt as rsqrt, sigmoid as sigmoid,
    sign as sign, sin as sin, sinh as sinh, sqrt as sqrt, square as square,
    squared_difference as squared_difference, subtract as subtract, tan as tan, tanh as tanh,
    truediv as truediv,
)
from estimatorkit.ops.math.special import (
    accumulate_n as accumulate_n, acosh as acosh, angle as angle, asinh as asinh, atanh as atanh,
    bessel_i0 as bessel_i0, bessel_i0e as bessel_i0e, bessel_i1 as bessel_i1,
    bessel_i1e as bessel_i1e, betainc as betainc, conj as conj, cumprod as cumprod,
    cumulative_logsumexp as cumulative_logsumexp, digamma as digamma, erfc as erfc,
    erfcinv as erfcinv, erfinv as erfinv, igamma as igamma, igammac as igammac, imag as imag,
    lbeta as lbeta, log_sigmoid as log_sigmoid, multiply_no_nan as multiply_no_nan, ndtri as ndtri,
    nextafter as nextafter, polygamma as polygamma, polyval as polyval, real as real,
    reduce_euclidean_norm as reduce_euclidean_norm, reduce_std as reduce_std,
    reduce_variance as reduce_variance, rint as rint, scalar_mul as scalar_mul, xdivy as xdivy,
    xlog1py as xlog1py, xlogy as xlogy, zeta as zeta,
)
from estimatorkit.ops.debug.checks import (
    is_non_decreasing as is_non_decreasing, is_strictly_increasing as is_strictly_increasing,
)
from estimatorkit.ops.math.reduce import (
    argmax as argmax, argmin as argmin, cumsum as cumsum, reduce_all as reduce_all,
    reduce_any as reduce_any, reduce_logsumexp as reduce_logsumexp, reduce_max as reduce_max,
    reduce_mean as reduce_mean, reduce_min as reduce_min, reduce_prod as reduce_prod,
    reduce_sum as reduce_sum,
)
from estimatorkit.ops.array.segment import (
    segment_max as segment_max, segment_mean as segment_mean, segment_min as segment_min,
    segment_prod as segment_prod, segment_sum as segment_sum,
    unsorted_segment_max as unsorted_segment_max, unsorted_segment_mean as unsorted_segment_mean,
    unsorted_segment_min as unsorted_segment_min, unsorted_segment_prod as unsorted_segment_prod,
    unsorted_segment_sqrt_n as unsorted_segment_sqrt_n,
    unsorted_segment_sum as unsorted_segment_sum,
)
from estimatorkit.ops.array.selection import bincount as bincount, count_nonzero as count_nonzero
from estimatorkit.layers.metrics.confusion_matrix import confusion_matrix as confusion_matrix
from estimatorkit.ops.array.rearrange import invert_permutation as invert_permutation
from estimatorkit.ops.array.ranking import in_top_k as in_top_k, top_k as top_k
from estimatorkit.ops.nn.nn import (
    l2_normalize as l2_normalize, log_softmax as log_softmax, softmax as softmax,
    softplus as softplus, softsign as softsign,
)
from estimatorkit.ops.nn.normalization import zero_fraction as zero_fraction

divide_no_nan = div_no_nan
mod = floormod
