# %% abs
tf.math.abs([-1.5, 2.0])

# %% accumulate_n
tf.math.accumulate_n([[1, 2], [10, 20], [100, 200]])

# %% acos
tf.math.acos([1.0, 0.0, -1.0])

# %% acosh
tf.math.acosh([1.0, 2.0])

# %% add
tf.math.add([1, 2], 10)

# %% add_n
tf.math.add_n([[1, 2], [10, 20], [100, 200]])

# %% angle
tf.math.angle([1 + 0j, 1 + 1j, 0 + 1j])

# %% argmax
scores = [[1, 5, 2], [7, 3, 7]]
tf.math.argmax(scores, axis=1), tf.math.argmax(scores)

# %% argmin
tf.math.argmin([[1, 5, 2], [7, 3, 7]], axis=1)

# %% asin
tf.math.asin([-1.0, 0.0, 1.0])

# %% asinh
tf.math.asinh([-1.0, 0.0, 1.0])

# %% atan
tf.math.atan([-1.0, 0.0, 1.0])

# %% atan2
tf.math.atan2([1.0, 1.0, -1.0], [1.0, -1.0, -1.0])

# %% atanh
tf.math.atanh([-0.5, 0.0, 0.5])

# %% bessel_i0
tf.math.bessel_i0([0.0, 1.0, 2.0])

# %% bessel_i0e
tf.math.bessel_i0e([0.0, 1.0, 100.0])

# %% bessel_i1
tf.math.bessel_i1([0.0, 1.0, 2.0])

# %% bessel_i1e
tf.math.bessel_i1e([0.0, 1.0, 100.0])

# %% betainc
tf.math.betainc(2.0, 2.0, [0.0, 0.25, 0.5, 1.0])

# %% bincount
counts = tf.math.bincount([0, 2, 2, 3])
sums = tf.math.bincount([0, 2, 2, 3], weights=[0.5, 1.0, 1.5, 4.0])
counts, sums

# %% ceil
tf.math.ceil([-1.5, 0.2, 2.0])

# %% confusion_matrix
tf.math.confusion_matrix(labels=[0, 1, 1, 2], predictions=[0, 1, 2, 2])

# %% conj
tf.math.conj([1 + 2j, 3 - 4j])

# %% cos
tf.math.cos([0.0, 3.1416])

# %% cosh
tf.math.cosh([-1.0, 0.0, 1.0])

# %% count_nonzero
tf.math.count_nonzero([[0, 3, 4], [0, 0, 5]], axis=1)

# %% cumprod
numbers = [1, 2, 3, 4]
tf.math.cumprod(numbers), tf.math.cumprod(numbers, exclusive=True)

# %% cumsum
numbers = [1, 2, 3, 4]
tf.math.cumsum(numbers), tf.math.cumsum(numbers, exclusive=True, reverse=True)

# %% cumulative_logsumexp
logs = tf.math.log([1.0, 2.0, 3.0])
tf.exp(tf.math.cumulative_logsumexp(logs))

# %% digamma
tf.math.digamma([1.0, 2.0, 3.0])

# %% div_no_nan
tf.math.div_no_nan([1.0, 1.0], [4.0, 0.0])

# %% divide
tf.math.divide([1, 2], 4)

# %% equal
tf.math.equal([1, 2, 3], [3, 2, 1])

# %% erf
tf.math.erf([-1.0, 0.0, 1.0])

# %% erfc
tf.math.erfc([0.0, 1.0, 5.0])

# %% erfcinv
tf.math.erfcinv([0.5, 1.5])

# %% erfinv
tf.math.erfinv(tf.math.erf([-0.5, 0.0, 0.5]))

# %% exp
tf.math.exp([0.0, 1.0])

# %% expm1
small = tf.constant([1e-10])
tf.math.expm1(small) / small, (tf.exp(small) - 1) / small

# %% floor
tf.math.floor([-1.5, 0.2, 2.0])

# %% floordiv
tf.math.floordiv([7, -7], 2), tf.math.floordiv([7.0, -7.0], 2.0)

# %% floormod
tf.math.floormod([7, -7], 3), tf.math.floormod([7, -7], -3)

# %% greater
tf.math.greater([1, 2, 3], [3, 2, 1])

# %% greater_equal
tf.math.greater_equal([1, 2, 3], [3, 2, 1])

# %% igamma
tf.math.igamma(2.0, [0.0, 1.0, 5.0])

# %% igammac
tf.math.igamma(2.0, 1.0), tf.math.igammac(2.0, 1.0)

# %% imag
tf.math.imag([1 + 2j, 3 - 4j])

# %% invert_permutation
tf.math.invert_permutation([2, 0, 1])

# %% is_finite
tf.math.is_finite([1.0, np.inf, np.nan])

# %% is_inf
tf.math.is_inf([1.0, -np.inf, np.nan])

# %% is_nan
tf.math.is_nan([1.0, np.inf, np.nan])

# %% is_non_decreasing
tf.math.is_non_decreasing([1, 2, 2]), tf.math.is_non_decreasing([1, 3, 2])

# %% is_strictly_increasing
tf.math.is_strictly_increasing([1, 2, 3]), tf.math.is_strictly_increasing([1, 2, 2])

# %% lbeta
tf.exp(tf.math.lbeta([[1.0, 1.0], [2.0, 3.0]]))

# %% less
tf.math.less([1, 2, 3], [3, 2, 1])

# %% less_equal
tf.math.less_equal([1, 2, 3], [3, 2, 1])

# %% lgamma
tf.exp(tf.math.lgamma([1.0, 2.0, 3.0, 4.0, 5.0]))

# %% log
tf.math.log([1.0, 2.7183])

# %% log1p
small = tf.constant([1e-10])
tf.math.log1p(small) / small, tf.math.log(1 + small) / small

# %% log_sigmoid
tf.math.log_sigmoid([-100.0, 0.0, 100.0])

# %% logical_and
tf.math.logical_and([True, True, False], [True, False, False])

# %% logical_not
tf.math.logical_not([True, False])

# %% logical_or
tf.math.logical_or([True, True, False], [True, False, False])

# %% logical_xor
tf.math.logical_xor([True, True, False], [True, False, False])

# %% maximum
tf.math.maximum([1, 2, 3], [3, 2, 1])

# %% minimum
tf.math.minimum([1, 2, 3], [3, 2, 1])

# %% multiply
tf.math.multiply([[1], [2]], [10, 20])

# %% multiply_no_nan
tf.math.multiply_no_nan([2.0, np.nan, np.inf], [3.0, 0.0, 0.0])

# %% ndtri
tf.math.ndtri([0.025, 0.5, 0.975])

# %% negative
tf.math.negative([1, -2])

# %% nextafter
after = tf.math.nextafter(np.float64(1.0), np.float64(2.0))
after - 1.0

# %% not_equal
tf.math.not_equal([1, 2, 3], [3, 2, 1])

# %% polygamma
tf.math.polygamma(1.0, [1.0, 2.0])

# %% polyval
coefficients = [1.0, -3.0, 2.0]
tf.math.polyval(coefficients, [0.0, 1.0, 2.0, 3.0])

# %% pow
tf.math.pow([2.0, 3.0], 2.0)

# %% real
tf.math.real([1 + 2j, 3 - 4j])

# %% reciprocal
tf.math.reciprocal([1.0, 2.0, 4.0])

# %% reciprocal_no_nan
tf.math.reciprocal_no_nan([2.0, 0.0])

# %% reduce_all
flags = [[True, True], [True, False]]
tf.math.reduce_all(flags), tf.math.reduce_all(flags, axis=1)

# %% reduce_any
flags = [[True, False], [False, False]]
tf.math.reduce_any(flags), tf.math.reduce_any(flags, axis=1)

# %% reduce_euclidean_norm
tf.math.reduce_euclidean_norm([[3.0, 4.0], [0.0, 2.0]], axis=1)

# %% reduce_logsumexp
tf.math.reduce_logsumexp([[1000.0, 1000.0], [0.0, 0.0]], axis=1)

# %% reduce_max
matrix = [[1, 5], [7, 3]]
tf.math.reduce_max(matrix), tf.math.reduce_max(matrix, axis=0)

# %% reduce_mean
matrix = [[1.0, 2.0], [3.0, 6.0]]
tf.math.reduce_mean(matrix), tf.math.reduce_mean(matrix, axis=1)

# %% reduce_min
matrix = [[1, 5], [7, 3]]
tf.math.reduce_min(matrix), tf.math.reduce_min(matrix, axis=0)

# %% reduce_prod
tf.math.reduce_prod([[1, 2], [3, 4]], axis=1)

# %% reduce_std
tf.math.reduce_std([[1.0, 3.0], [2.0, 6.0]], axis=1)

# %% reduce_sum
matrix = [[1, 2], [3, 4]]
tf.math.reduce_sum(matrix), tf.math.reduce_sum(matrix, axis=1, keepdims=True)

# %% reduce_variance
tf.math.reduce_variance([[1.0, 3.0], [2.0, 6.0]], axis=1)

# %% rint
tf.math.rint([0.5, 1.5, 1.7, -1.2])

# %% round
tf.math.round([0.5, 1.5, 2.4])

# %% rsqrt
tf.math.rsqrt([1.0, 4.0, 16.0])

# %% scalar_mul
tf.math.scalar_mul(10.0, tf.constant([1.0, 2.0]))

# %% segment_max
tf.math.segment_max([[1, 2], [3, 1], [5, 5]], segment_ids=[0, 0, 1])

# %% segment_mean
tf.math.segment_mean([1.0, 3.0, 5.0], segment_ids=[0, 0, 2])

# %% segment_min
tf.math.segment_min([[1, 2], [3, 1], [5, 5]], segment_ids=[0, 0, 1])

# %% segment_prod
tf.math.segment_prod([2, 3, 5], segment_ids=[0, 0, 2])

# %% segment_sum
tf.math.segment_sum([[1, 2], [3, 4], [5, 6]], segment_ids=[0, 0, 1])

# %% sign
tf.math.sign([-2.0, 0.0, 3.0])

# %% sin
tf.math.sin([0.0, 1.5708])

# %% sinh
tf.math.sinh([-1.0, 0.0, 1.0])

# %% sqrt
tf.math.sqrt([4.0, 9.0, -1.0])

# %% square
tf.math.square([-2.0, 3.0])

# %% squared_difference
tf.math.squared_difference([1.0, 2.0], [4.0, 0.0])

# %% subtract
tf.math.subtract([10, 20], [1, 2])

# %% tan
tf.math.tan([-np.pi / 4, 0.0, np.pi / 4])

# %% truediv
quotient = tf.math.truediv([1, 2], [2, 4])
print(quotient.dtype)
quotient

# %% unsorted_segment_max
tf.math.unsorted_segment_max([1.0, 7.0, 3.0], segment_ids=[1, 0, 1], num_segments=2)

# %% unsorted_segment_mean
tf.math.unsorted_segment_mean([1.0, 7.0, 3.0], segment_ids=[1, 0, 1], num_segments=3)

# %% unsorted_segment_min
tf.math.unsorted_segment_min([1.0, 7.0, 3.0], segment_ids=[1, 0, 1], num_segments=2)

# %% unsorted_segment_prod
tf.math.unsorted_segment_prod([2, 7, 3], segment_ids=[1, 0, 1], num_segments=3)

# %% unsorted_segment_sqrt_n
values, segments = [1.0, 1.0, 1.0, 1.0, 7.0], [1, 1, 1, 1, 0]
tf.math.unsorted_segment_sqrt_n(values, segments, num_segments=2)

# %% unsorted_segment_sum
rows = [[1, 2], [3, 4], [5, 6], [9, 9]]
tf.math.unsorted_segment_sum(rows, segment_ids=[1, 0, 1, -1], num_segments=2)

# %% xdivy
tf.math.xdivy([0.0, 1.0], [0.0, 2.0])

# %% xlog1py
tf.math.xlog1py([0.0, 2.0], [-1.0, 1.0])

# %% xlogy
probabilities = tf.constant([0.0, 0.5, 0.5])
-tf.reduce_sum(tf.math.xlogy(probabilities, probabilities))

# %% zeta
tf.math.zeta([2.0, 4.0], 1.0)
