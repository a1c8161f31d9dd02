"""`tf.math`: functions of numbers."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_OPS = "estimatorkit.ops"

_PLACES = {
    **names(
        f"{_OPS}.math.elementwise",
        "abs acos add add_n asin atan atan2 ceil cos cosh div_no_nan divide equal erf exp expm1",
        "floor floordiv floormod greater greater_equal is_finite is_inf is_nan less less_equal",
        "lgamma log log1p logical_and logical_not logical_or logical_xor maximum minimum multiply",
        "negative not_equal pow reciprocal round rsqrt sigmoid sign sin sinh sqrt square",
        "squared_difference subtract tan tanh truediv reciprocal_no_nan divide_no_nan=div_no_nan",
        "mod=floormod",
    ),
    **names(
        f"{_OPS}.math.special",
        "accumulate_n acosh angle asinh atanh bessel_i0e bessel_i1e betainc bessel_i0 bessel_i1",
        "cumulative_logsumexp erfcinv polyval xlog1py conj cumprod digamma erfc erfinv igamma",
        "igammac imag lbeta log_sigmoid multiply_no_nan ndtri nextafter polygamma real",
        "reduce_euclidean_norm reduce_std reduce_variance rint scalar_mul xdivy xlogy zeta",
    ),
    **names(f"{_OPS}.debug.checks", "is_non_decreasing is_strictly_increasing"),
    **names(
        f"{_OPS}.math.reduce",
        "argmax argmin cumsum reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean",
        "reduce_min reduce_prod reduce_sum",
    ),
    **names(
        f"{_OPS}.array.segment",
        "segment_max segment_mean segment_min segment_prod segment_sum unsorted_segment_max",
        "unsorted_segment_mean unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n",
        "unsorted_segment_sum",
    ),
    **names(f"{_OPS}.array.selection", "bincount count_nonzero"),
    **names("estimatorkit.layers.metrics.confusion_matrix", "confusion_matrix"),
    **names(f"{_OPS}.array.rearrange", "invert_permutation"),
    **names(f"{_OPS}.array.ranking", "in_top_k top_k"),
    **names(f"{_OPS}.nn.nn", "l2_normalize log_softmax softmax softplus softsign"),
    **names(f"{_OPS}.nn.normalization", "zero_fraction"),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
