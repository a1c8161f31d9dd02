# %% Assert
count = tf.placeholder(tf.int32, [])
positive = tf.debugging.Assert(count > 0, ["count must be positive:", count])
with tf.control_dependencies([positive]):
    inverse = 1 / count
with tf.Session() as session:
    print(session.run(inverse, {count: 4}))
    try:
        session.run(inverse, {count: 0})
    except tf.errors.InvalidArgumentError as error:
        print(error)

# %% assert_all_finite
x = tf.placeholder(tf.float32, [2])
checked = tf.debugging.assert_all_finite(x, "x is not finite")
with tf.Session() as session:
    print(session.run(checked, {x: [1.0, 2.0]}))
    try:
        session.run(checked, {x: [1.0, np.nan]})
    except tf.errors.InvalidArgumentError as error:
        print(error)

# %% assert_equal
x = tf.placeholder(tf.int32, [2])
with tf.control_dependencies([tf.debugging.assert_equal(x, [1, 2])]):
    checked = tf.identity(x)
with tf.Session() as session:
    print(session.run(checked, {x: [1, 2]}))
    try:
        session.run(checked, {x: [1, 3]})
    except tf.errors.InvalidArgumentError as error:
        print(error)

# %% assert_greater
x = tf.placeholder(tf.float32, [2])
with tf.control_dependencies([tf.debugging.assert_greater(x, 0.0)]):
    logarithm = tf.math.log(x)
with tf.Session() as session:
    print(session.run(logarithm, {x: [1.0, 2.0]}))
    try:
        session.run(logarithm, {x: [1.0, 0.0]})
    except tf.errors.InvalidArgumentError as error:
        print(error)

# %% assert_greater_equal
x = tf.placeholder(tf.float32, [2])
with tf.control_dependencies([tf.debugging.assert_greater_equal(x, 0.0)]):
    root = tf.sqrt(x)
with tf.Session() as session:
    print(session.run(root, {x: [0.0, 4.0]}))
    try:
        session.run(root, {x: [-1.0, 4.0]})
    except tf.errors.InvalidArgumentError as error:
        print(error)

# %% assert_integer
tf.debugging.assert_integer(tf.constant([1, 2]))
try:
    tf.debugging.assert_integer(tf.constant([1.0, 2.0]))
except TypeError as error:
    print(error)

# %% assert_less
labels = tf.placeholder(tf.int32, [None])
with tf.control_dependencies([tf.debugging.assert_less(labels, 3)]):
    one_hot = tf.one_hot(labels, 3)
with tf.Session() as session:
    print(session.run(one_hot, {labels: [0, 2]}))
    try:
        session.run(one_hot, {labels: [0, 3]})
    except tf.errors.InvalidArgumentError as error:
        print(error)

# %% assert_less_equal
rate = tf.placeholder(tf.float32, [])
with tf.control_dependencies([tf.debugging.assert_less_equal(rate, 1.0)]):
    percent = rate * 100.0
with tf.Session() as session:
    print(session.run(percent, {rate: 0.5}))
    try:
        session.run(percent, {rate: 1.5})
    except tf.errors.InvalidArgumentError as error:
        print(error)

# %% assert_near
x = tf.placeholder(tf.float32, [2])
assertion = tf.debugging.assert_near(x, [1.0, 2.0], atol=0.01)
with tf.Session() as session:
    session.run(assertion, {x: [1.0, 2.001]})
    try:
        session.run(assertion, {x: [1.0, 2.1]})
    except tf.errors.InvalidArgumentError as error:
        print(error)

# %% assert_negative
x = tf.placeholder(tf.float32, [2])
assertion = tf.debugging.assert_negative(x)
with tf.Session() as session:
    session.run(assertion, {x: [-1.0, -2.0]})
    try:
        session.run(assertion, {x: [-1.0, 0.0]})
    except tf.errors.InvalidArgumentError as error:
        print(error)

# %% assert_non_negative
x = tf.placeholder(tf.float32, [2])
with tf.control_dependencies([tf.debugging.assert_non_negative(x)]):
    root = tf.sqrt(x)
with tf.Session() as session:
    print(session.run(root, {x: [0.0, 4.0]}))
    try:
        session.run(root, {x: [-1.0, 4.0]})
    except tf.errors.InvalidArgumentError as error:
        print(error)

# %% assert_non_positive
x = tf.placeholder(tf.float32, [2])
assertion = tf.debugging.assert_non_positive(x)
with tf.Session() as session:
    session.run(assertion, {x: [-1.0, 0.0]})
    try:
        session.run(assertion, {x: [-1.0, 1.0]})
    except tf.errors.InvalidArgumentError as error:
        print(error)

# %% assert_none_equal
x = tf.placeholder(tf.float32, [2])
with tf.control_dependencies([tf.debugging.assert_none_equal(x, 0.0)]):
    inverse = 1.0 / x
with tf.Session() as session:
    print(session.run(inverse, {x: [1.0, 2.0]}))
    try:
        session.run(inverse, {x: [1.0, 0.0]})
    except tf.errors.InvalidArgumentError as error:
        print(error)

# %% assert_positive
x = tf.placeholder(tf.float32, [2])
with tf.control_dependencies([tf.debugging.assert_positive(x)]):
    logarithm = tf.math.log(x)
with tf.Session() as session:
    print(session.run(logarithm, {x: [1.0, 2.0]}))
    try:
        session.run(logarithm, {x: [1.0, 0.0]})
    except tf.errors.InvalidArgumentError as error:
        print(error)

# %% assert_proper_iterable
tf.debugging.assert_proper_iterable([1, 2])
try:
    tf.debugging.assert_proper_iterable("text")
except TypeError as error:
    print(error)

# %% assert_rank
image = tf.placeholder(tf.float32, [28, 28])
tf.debugging.assert_rank(image, 2)
try:
    tf.debugging.assert_rank(image, 3, message="an image needs channels")
except ValueError as error:
    print(error)

# %% assert_rank_at_least
batch = tf.placeholder(tf.float32, [None, 28, 28])
tf.debugging.assert_rank_at_least(batch, 2)
try:
    tf.debugging.assert_rank_at_least(batch, 4)
except ValueError as error:
    print(error)

# %% assert_rank_in
images = tf.placeholder(tf.float32, [28, 28])
tf.debugging.assert_rank_in(images, [2, 3])
try:
    tf.debugging.assert_rank_in(images, [3, 4])
except ValueError as error:
    print(error)

# %% assert_same_float_dtype
x, y = tf.constant(1.0), tf.constant(2.0, tf.float64)
print(tf.debugging.assert_same_float_dtype([x, None]))
try:
    tf.debugging.assert_same_float_dtype([x, y])
except ValueError as error:
    print(error)

# %% assert_scalar
print(tf.debugging.assert_scalar(tf.constant(3.0)).shape)
try:
    tf.debugging.assert_scalar(tf.constant([1.0, 2.0]))
except ValueError as error:
    print(error)

# %% assert_shapes
features = tf.placeholder(tf.float32, [None, 4])
labels = tf.placeholder(tf.int32, [None])
assertion = tf.debugging.assert_shapes([(features, ("N", 4)), (labels, ("N",))])
with tf.Session() as session:
    session.run(assertion, {features: np.zeros([2, 4]), labels: [0, 1]})
    try:
        session.run(assertion, {features: np.zeros([2, 4]), labels: [0, 1, 2]})
    except tf.errors.InvalidArgumentError as error:
        print(error)

# %% assert_type
tf.debugging.assert_type(tf.constant(1.0), tf.float32)
try:
    tf.debugging.assert_type(tf.constant(1.0), tf.int32)
except TypeError as error:
    print(error)

# %% check_numerics
x = tf.placeholder(tf.float32, [2])
quotient = tf.debugging.check_numerics(1.0 / x, "bad quotient")
with tf.Session() as session:
    print(session.run(quotient, {x: [1.0, 2.0]}))
    try:
        session.run(quotient, {x: [1.0, 0.0]})
    except tf.errors.InvalidArgumentError as error:
        print(error)

# %% is_numeric_tensor
values = [tf.constant(1), tf.constant("text"), 1]
[tf.debugging.is_numeric_tensor(value) for value in values]
