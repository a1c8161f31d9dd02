# %% ConditionalAccumulator
total = tf.ConditionalAccumulator(tf.float32, shape=[2])
with tf.Session() as session:
    session.run(total.apply_grad([1.0, 2.0]))
    session.run(total.apply_grad([3.0, 4.0]))
    print(session.run(total.take_grad(2)))

# %% CriticalSection
section = tf.CriticalSection(name="section")
variable = tf.get_variable("count", initializer=0)
section.execute(lambda: variable.assign_add(1))

# %% DType
tf.float32.name, tf.float32.size, tf.float32.is_floating, tf.int8.max

# %% FixedLengthRecordReader
with open("records", "wb") as file:
    file.write(b"aabbcc")
reader = tf.FixedLengthRecordReader(record_bytes=2)
queue = tf.train.string_input_producer(["records"], shuffle=False)
key, value = reader.read(queue)
with tf.train.MonitoredSession() as session:
    print(session.run([key, value]))

# %% GradientTape
x = tf.constant(3.0)
with tf.GradientTape() as tape:
    tape.watch(x)
    y = x * x
tape.gradient(y, x)

# %% Graph
graph = tf.Graph()
with graph.as_default():
    total = tf.constant(1.0) + 2.0
print(graph)

# %% GraphKeys
v = tf.get_variable("v", [2])
tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)[0].name

# %% IdentityReader
queue = tf.train.string_input_producer(["a.txt"], shuffle=False)
key, value = tf.IdentityReader().read(queue)
with tf.train.MonitoredSession() as session:
    print(session.run([key, value]))

# %% IndexedSlices
values, indices = tf.constant([[1.0], [2.0]]), tf.constant([0, 2])
slices = tf.IndexedSlices(values, indices, tf.constant([3, 1]))
tf.convert_to_tensor(slices)

# %% IndexedSlicesSpec
values, indices = tf.constant([[1.0], [2.0]]), tf.constant([0, 2])
slices = tf.IndexedSlices(values, indices, tf.constant([3, 1]))
spec = tf.IndexedSlicesSpec([3, 1], tf.float32, tf.int32, tf.int32)
spec.is_compatible_with(slices)

# %% NotDifferentiable
tf.NotDifferentiable("MyQuantize")

# %% Operation
x = tf.constant([1.0, 2.0], name="x")
x.op.name, x.op.type, len(x.op.inputs)

# %% PartitionedVariable
table = tf.get_variable("table", [4, 2], partitioner=tf.fixed_size_partitioner(2))
[part.name for part in table], table.shape

# %% Print
x = tf.constant([1.0, 2.0])
tf.Print(x, [tf.reduce_sum(x)], message="sum: ")

# %% ReaderBase
queue = tf.train.string_input_producer(["a.txt", "b.txt"], shuffle=False)
reader = tf.IdentityReader()
read = reader.read(queue)
with tf.train.MonitoredSession() as session:
    session.run(read)
isinstance(reader, tf.ReaderBase)


# %% RegisterGradient
@tf.RegisterGradient("TenfoldGradient")
def tenfold(op, gradient):
    return 10.0 * gradient


x = tf.constant(1.0)
with tf.get_default_graph().gradient_override_map({"Identity": "TenfoldGradient"}):
    y = tf.identity(x)
tf.gradients(y, x)

# %% SparseConditionalAccumulator
total = tf.SparseConditionalAccumulator(tf.float32, shape=[3, 1])
with tf.Session() as session:
    session.run(total.apply_grad([0, 2], [[1.0], [3.0]]))
    print(session.run(total.take_indexed_slices_grad(1)))

# %% SparseTensorValue
place = tf.sparse_placeholder(tf.float32)
dense = tf.sparse_tensor_to_dense(place)
with tf.Session() as session:
    value = tf.SparseTensorValue([[0, 1]], [5.0], [2, 2])
    print(session.run(dense, {place: value}))

# %% StagingArea
area = tf.StagingArea([tf.float32], shapes=[[2]])
put = area.put([tf.constant([1.0, 2.0])])
(taken,) = area.get()
with tf.Session() as session:
    session.run(put)
    print(session.run(taken))

# %% TFRecordReader
with tf.python_io.TFRecordWriter("records") as writer:
    writer.write(b"first")
queue = tf.train.string_input_producer(["records"], shuffle=False)
key, value = tf.TFRecordReader().read(queue)
with tf.train.MonitoredSession() as session:
    print(session.run([key, value]))

# %% Tensor
x = tf.constant([[1.0, 2.0]])
x.shape.as_list(), x.dtype, x.name

# %% TensorArray
squares = tf.TensorArray(tf.float32, size=3)
for index in range(3):
    squares = squares.write(index, float(index**2))
squares.stack()

# %% TensorShape
shape = tf.TensorShape([None, 3])
shape.rank, shape.as_list(), shape.is_compatible_with([2, 3])

# %% TextLineReader
with open("lines.txt", "w") as file:
    file.write("first\nsecond\n")
queue = tf.train.string_input_producer(["lines.txt"], shuffle=False)
key, value = tf.TextLineReader().read(queue)
with tf.train.MonitoredSession() as session:
    print(session.run([key, value]))

# %% UnconnectedGradients
x, y = tf.constant(1.0), tf.constant(2.0)
tf.gradients(y, x, unconnected_gradients=tf.UnconnectedGradients.ZERO)

# %% Variable
count = tf.Variable(1, name="count")
step = count.assign_add(2)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(step)
    print(session.run(count))

# %% VariableAggregation
[each.name for each in tf.VariableAggregation]

# %% VariableScope
with tf.variable_scope("layer") as scope:
    weights = tf.get_variable("weights", [2])
type(scope).__name__, scope.name, weights.name

# %% VariableSynchronization
[each.name for each in tf.VariableSynchronization]

# %% WholeFileReader
with open("words.txt", "w") as file:
    file.write("all of it")
queue = tf.train.string_input_producer(["words.txt"], shuffle=False)
key, value = tf.WholeFileReader().read(queue)
with tf.train.MonitoredSession() as session:
    print(session.run([key, value]))

# %% add_check_numerics_ops
x = tf.placeholder(tf.float32, [])
y = tf.log(x)
check = tf.add_check_numerics_ops()
with tf.Session() as session:
    try:
        session.run([y, check], {x: -1.0})
    except tf.errors.InvalidArgumentError as error:
        print(type(error).__name__)

# %% add_to_collection
tf.add_to_collection("limits", 3.0)
tf.add_to_collection("limits", 4.0)
tf.get_collection("limits")

# %% all_variables
v = tf.get_variable("v", [2])
[each.name for each in tf.all_variables()]

# %% argsort
tf.argsort([3.0, 1.0, 2.0], direction="DESCENDING")

# %% as_dtype
tf.as_dtype("float32"), tf.as_dtype(np.int64)

# %% assert_variables_initialized
v = tf.get_variable("v", initializer=1.0)
check = tf.assert_variables_initialized()
with tf.Session() as session:
    try:
        session.run(check)
    except tf.errors.FailedPreconditionError as error:
        print(type(error).__name__)

# %% assign
v = tf.get_variable("v", initializer=1.0)
tf.assign(v, 5.0)

# %% assign_add
v = tf.get_variable("v", initializer=1.0)
tf.assign_add(v, 5.0)

# %% assign_sub
v = tf.get_variable("v", initializer=1.0)
tf.assign_sub(v, 5.0)

# %% batch_gather
tf.batch_gather([[1, 2, 3], [4, 5, 6]], [[2], [0]])

# %% batch_scatter_update
v = tf.get_variable("v", initializer=[[1, 2], [3, 4]])
tf.batch_scatter_update(v, [[0], [1]], [[10], [40]])

# %% batch_to_space
x = tf.reshape(tf.range(4), [4, 1, 1, 1])
tf.batch_to_space(x, crops=[[0, 0], [0, 0]], block_size=2)[0, :, :, 0]

# %% batch_to_space_nd
x = tf.reshape(tf.range(4), [4, 1, 1, 1])
tf.batch_to_space_nd(x, block_shape=[2, 2], crops=[[0, 0], [0, 0]])[0, :, :, 0]

# %% bitcast
tf.bitcast(tf.constant(1.0), tf.int32)

# %% boolean_mask
tf.boolean_mask([10, 20, 30], [True, False, True])

# %% broadcast_to
tf.broadcast_to([1, 2], [2, 2])

# %% case
x = tf.constant(5)
tf.case([(x < 3, lambda: x), (x < 10, lambda: x * 10)], default=lambda: -x)

# %% cast
tf.cast([1.7, -1.7], tf.int32)

# %% clip_by_average_norm
tf.clip_by_average_norm([3.0, 4.0], 1.0)

# %% clip_by_global_norm
tf.clip_by_global_norm([tf.constant([3.0]), tf.constant([4.0])], 1.0)

# %% clip_by_norm
tf.clip_by_norm([3.0, 4.0], 1.0)

# %% clip_by_value
tf.clip_by_value([-1.0, 0.5, 9.0], 0.0, 1.0)

# %% colocate_with
v = tf.get_variable("v", initializer=1.0)
with tf.colocate_with(v):
    double = v * 2.0
double

# %% complex
tf.complex(1.0, 2.0)

# %% concat
tf.concat([[[1, 2]], [[3, 4]]], axis=0)

# %% cond
x = tf.constant(3.0)
tf.cond(x > 1.0, lambda: x * 10.0, lambda: x - 1.0)

# %% constant
tf.constant([[1, 2], [3, 4]], dtype=tf.float32)

# %% container
with tf.container("experiment"):
    v = tf.get_variable("v", initializer=1.0)
v

# %% control_dependencies
v = tf.get_variable("v", initializer=1.0)
with tf.control_dependencies([v.assign(5.0)]):
    after = v.read_value()
after

# %% convert_to_tensor
tf.convert_to_tensor([1.0, 2.0])

# %% convert_to_tensor_or_sparse_tensor
tf.convert_to_tensor_or_sparse_tensor([1.0, 2.0])

# %% count_up_to
v = tf.get_variable("v", initializer=0, trainable=False)
step = tf.count_up_to(v, limit=1)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    print(session.run(step))
    try:
        session.run(step)
    except tf.errors.OutOfRangeError:
        print("the limit is reached")

# %% create_partitioned_variables
parts = tf.create_partitioned_variables([4, 2], [2, 1], tf.ones_initializer())
[part.shape for part in parts]


# %% custom_gradient
@tf.custom_gradient
def clipped(x):
    return x * 100.0, lambda gradient: tf.clip_by_value(gradient * 100.0, -1.0, 1.0)


x = tf.constant(2.0)
tf.gradients(clipped(x), x)

# %% device
with tf.device("/cpu:0"):
    x = tf.constant(1.0)
x.device

# %% div
tf.div([7, 8], 2), tf.div(7.0, 2.0)

# %% dynamic_partition
tf.dynamic_partition([10, 20, 30], [0, 1, 0], num_partitions=2)

# %% dynamic_stitch
tf.dynamic_stitch([[0, 2], [1]], [[10, 30], [20]])

# %% edit_distance
words = tf.SparseTensor([[0, 0], [0, 1]], ["c", "t"], [1, 2])
truth = tf.SparseTensor([[0, 0], [0, 1], [0, 2]], ["c", "a", "t"], [1, 3])
tf.edit_distance(words, truth, normalize=False)

# %% ensure_shape
x = tf.placeholder_with_default(np.ones([2, 3], "float32"), None)
tf.ensure_shape(x, [None, 3]).shape

# %% expand_dims
tf.expand_dims([1, 2], axis=0)

# %% fill
tf.fill([2, 2], 7)

# %% fixed_size_partitioner
table = tf.get_variable("table", [5, 2], partitioner=tf.fixed_size_partitioner(2))
[part.shape for part in table]

# %% floor_div
tf.floor_div([7, -7], 2)

# %% foldl
tf.foldl(lambda total, x: total * 2 + x, tf.constant([1, 2, 3]))

# %% foldr
tf.foldr(lambda total, x: total * 2 + x, tf.constant([1, 2, 3]))

# %% gather
tf.gather([10, 20, 30], [2, 0, 0])

# %% gather_nd
tf.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]])

# %% get_collection
v = tf.get_variable("v", [2])
[each.name for each in tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)]

# %% get_collection_ref
tf.get_collection_ref("names").append("first")
tf.get_collection("names")

# %% get_default_graph
x = tf.constant(1.0)
x.graph is tf.get_default_graph()

# %% get_default_session
with tf.Session() as session:
    print(tf.get_default_session() is session)

# %% get_local_variable
count = tf.get_local_variable("count", initializer=0)
tf.local_variables()[0].name, tf.trainable_variables()

# %% get_static_value
tf.get_static_value(tf.constant([1, 2]) + 1)

# %% get_variable
with tf.variable_scope("layer", reuse=tf.AUTO_REUSE):
    first = tf.get_variable("weights", [2, 3])
    again = tf.get_variable("weights", [2, 3])
first.name, first is again

# %% get_variable_scope
with tf.variable_scope("layer"):
    print(tf.get_variable_scope().name)

# %% global_variables
v = tf.get_variable("v", [2])
local = tf.get_local_variable("count", initializer=0)
[each.name for each in tf.global_variables()]

# %% grad_pass_through
x = tf.constant(1.7)
rounded = tf.grad_pass_through(tf.round)(x)
rounded, tf.gradients(rounded, x)

# %% gradients
x = tf.constant(3.0)
tf.gradients(x**2, x)

# %% group
a, b = tf.get_variable("a", initializer=1.0), tf.get_variable("b", initializer=1.0)
both = tf.group(a.assign(5.0), b.assign(6.0))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(both)
    print(session.run([a, b]))

# %% guarantee_const
tf.guarantee_const(tf.constant([1.0, 2.0]))

# %% hessians
x = tf.constant([1.0, 2.0])
tf.hessians(tf.reduce_sum(x**3), x)

# %% histogram_fixed_width
tf.histogram_fixed_width([0.1, 0.2, 0.9], [0.0, 1.0], nbins=2)

# %% histogram_fixed_width_bins
tf.histogram_fixed_width_bins([0.1, 0.2, 0.9], [0.0, 1.0], nbins=2)

# %% identity
v = tf.get_variable("v", initializer=1.0)
tf.identity(v, name="copy")

# %% init_scope
with tf.name_scope("inner"), tf.init_scope():
    x = tf.constant(1.0, name="x")
x.name

# %% is_tensor
tf.is_tensor(tf.constant(1.0)), tf.is_tensor(1.0)

# %% is_variable_initialized
v = tf.get_variable("v", initializer=1.0)
with tf.Session() as session:
    print(session.run(tf.is_variable_initialized(v)))

# %% jax_function
import jax.numpy as jnp

tf.jax_function(lambda x: x * jnp.tanh(x), tf.constant([1.0, 2.0]))

# %% lin_space
tf.lin_space(0.0, 1.0, 5)

# %% local_variables
count = tf.get_local_variable("count", initializer=0)
[each.name for each in tf.local_variables()]

# %% make_ndarray
tf.make_ndarray(tf.make_tensor_proto([[1, 2]]))

# %% make_tensor_proto
tf.make_tensor_proto([1.0, 2.0]).tensor_shape.dim[0].size

# %% map_fn
tf.map_fn(lambda x: x * x, tf.constant([1, 2, 3]))

# %% meshgrid
tf.meshgrid([1, 2], [10, 20])

# %% min_max_variable_partitioner
partitioner = tf.min_max_variable_partitioner(max_partitions=3, min_slice_size=64)
table = tf.get_variable("table", [32, 4], partitioner=partitioner)
len(list(table))

# %% model_variables
v = tf.get_variable("v", [2], collections=[tf.GraphKeys.MODEL_VARIABLES])
[each.name for each in tf.model_variables()]

# %% moving_average_variables
v = tf.get_variable("v", initializer=1.0)
update = tf.train.ExponentialMovingAverage(0.9).apply([v])
[each.name for each in tf.moving_average_variables()]

# %% name_scope
with tf.name_scope("layer"):
    x = tf.constant(1.0, name="x")
x.name

# %% no_op
tf.no_op().type

# %% no_regularizer
with tf.variable_scope("layer", regularizer=tf.keras.regularizers.l2(0.1)):
    v = tf.get_variable("v", [2], regularizer=tf.no_regularizer)
tf.losses.get_regularization_losses()

# %% numpy_function
tf.numpy_function(np.sort, [tf.constant([3.0, 1.0])], tf.float32)

# %% one_hot
tf.one_hot([0, 2], depth=3)

# %% ones
tf.ones([2, 2])

# %% ones_like
tf.ones_like([[1, 2]])

# %% pad
tf.pad([[1, 2]], [[0, 1], [1, 0]])

# %% parallel_stack
tf.parallel_stack([tf.constant([1, 2]), tf.constant([3, 4])])

# %% placeholder
x = tf.placeholder(tf.float32, [None], name="x")
with tf.Session() as session:
    print(session.run(x * 2.0, feed_dict={x: [1.0, 2.0]}))

# %% placeholder_with_default
rate = tf.placeholder_with_default(0.5, [])
with tf.Session() as session:
    print(session.run(rate), session.run(rate, {rate: 0.9}))

# %% print
import sys

x = tf.constant([1.0, 2.0])
with tf.control_dependencies([tf.print("x is", x, output_stream=sys.stdout)]):
    y = x * 2.0
y

# %% py_func
tf.py_func(lambda x: np.float32(x.sum()), [tf.constant([1.0, 2.0])], tf.float32)

# %% py_function
try:
    tf.py_function(lambda x: x * x, [tf.constant(2.0)], tf.float32)
except NotImplementedError as error:
    print(error)

# %% range
tf.range(2, 10, 3)

# %% rank
tf.rank([[1, 2], [3, 4]])

# %% realdiv
tf.realdiv(7.0, 2.0)

# %% recompute_grad
layer = tf.recompute_grad(lambda x: tf.tanh(x) ** 2)
x = tf.constant(1.0)
tf.gradients(layer(x), x)


# %% register_tensor_conversion_function
class Celsius:
    def __init__(self, degrees):
        self.degrees = degrees


def convert(value, dtype=None, name=None, as_ref=False):
    return tf.constant(value.degrees, dtype, name=name)


tf.register_tensor_conversion_function(Celsius, convert)
tf.constant(1.0) + Celsius(20.0)

# %% repeat
tf.repeat([1, 2], repeats=[3, 1])

# %% report_uninitialized_variables
v = tf.get_variable("v", initializer=1.0)
with tf.Session() as session:
    print(session.run(tf.report_uninitialized_variables()))

# %% required_space_to_batch_paddings
tf.required_space_to_batch_paddings([5, 5], [2, 2])

# %% reset_default_graph
try:
    tf.reset_default_graph()  # examples run inside `with graph.as_default()`
except AssertionError as error:
    print(error)

# %% reshape
tf.reshape([1, 2, 3, 4], [2, -1])

# %% reverse
tf.reverse([[1, 2], [3, 4]], axis=[0])

# %% reverse_sequence
tf.reverse_sequence([[1, 2, 3], [4, 5, 6]], [2, 3], seq_axis=1)

# %% roll
tf.roll([1, 2, 3], shift=1, axis=0)

# %% saturate_cast
tf.saturate_cast([300.0, -5.0], tf.uint8)

# %% scan
tf.scan(lambda total, x: total + x, tf.constant([1, 2, 3]))

# %% scatter_add
v = tf.get_variable("v", initializer=[1, 2, 3])
tf.scatter_add(v, [0, 2], [10, 30])

# %% scatter_div
v = tf.get_variable("v", initializer=[10, 20, 30])
tf.scatter_div(v, [0, 2], [5, 3])

# %% scatter_max
v = tf.get_variable("v", initializer=[1, 2, 3])
tf.scatter_max(v, [0, 2], [10, 0])

# %% scatter_min
v = tf.get_variable("v", initializer=[1, 2, 3])
tf.scatter_min(v, [0, 2], [10, 0])

# %% scatter_mul
v = tf.get_variable("v", initializer=[1, 2, 3])
tf.scatter_mul(v, [0, 2], [10, 10])

# %% scatter_nd
tf.scatter_nd([[0], [2]], [10, 30], shape=[4])

# %% scatter_nd_add
v = tf.get_variable("v", initializer=[1, 2, 3])
tf.scatter_nd_add(v, [[0], [2]], [10, 30])

# %% scatter_nd_sub
v = tf.get_variable("v", initializer=[1, 2, 3])
tf.scatter_nd_sub(v, [[0], [2]], [10, 30])

# %% scatter_nd_update
v = tf.get_variable("v", initializer=[1, 2, 3])
tf.scatter_nd_update(v, [[0], [2]], [10, 30])

# %% scatter_sub
v = tf.get_variable("v", initializer=[1, 2, 3])
tf.scatter_sub(v, [0, 2], [10, 30])

# %% scatter_update
v = tf.get_variable("v", initializer=[1, 2, 3])
tf.scatter_update(v, [0, 2], [10, 30])

# %% searchsorted
tf.searchsorted([1.0, 3.0, 5.0], [0.0, 3.0, 9.0])

# %% sequence_mask
tf.sequence_mask([1, 3], maxlen=3)

# %% setdiff1d
tf.setdiff1d([1, 2, 3, 4], [2, 4])

# %% shape
x = tf.placeholder(tf.float32, [None, 3])
with tf.Session() as session:
    print(session.run(tf.shape(x), {x: np.ones([2, 3])}))

# %% shape_n
tf.shape_n([tf.zeros([2]), tf.zeros([3, 4])])

# %% size
tf.size([[1, 2, 3], [4, 5, 6]])

# %% slice
tf.slice([[1, 2, 3], [4, 5, 6]], begin=[0, 1], size=[2, 2])

# %% sort
tf.sort([3.0, 1.0, 2.0])

# %% space_to_batch_nd
x = tf.reshape(tf.range(4), [1, 2, 2, 1])
tf.space_to_batch_nd(x, [2, 2], [[0, 0], [0, 0]])[:, 0, 0, 0]

# %% sparse_matmul
tf.sparse_matmul([[1.0, 0.0]], [[2.0], [3.0]], a_is_sparse=True)

# %% sparse_to_dense
tf.sparse_to_dense([1, 3], [5], [10, 30])

# %% split
tf.split([1, 2, 3, 4], num_or_size_splits=2)

# %% squeeze
tf.squeeze([[[1, 2]]], axis=0)

# %% stack
tf.stack([[1, 2], [3, 4]], axis=1)

# %% stop_gradient
x = tf.constant(3.0)
tf.gradients(x * tf.stop_gradient(x), x)

# %% strided_slice
tf.strided_slice([1, 2, 3, 4, 5], [0], [5], [2])

# %% string_split
tf.string_split(["to be", "or not"])

# %% switch_case
index = tf.constant(1)
tf.switch_case(index, [lambda: tf.constant(10), lambda: tf.constant(20)])

# %% tensor_scatter_nd_add
tf.tensor_scatter_nd_add([1, 2, 3], [[0], [2]], [10, 30])

# %% tensor_scatter_nd_max
tf.tensor_scatter_nd_max([1, 2, 3], [[0], [2]], [10, 0])

# %% tensor_scatter_nd_min
tf.tensor_scatter_nd_min([1, 2, 3], [[0], [2]], [10, 0])

# %% tensor_scatter_nd_sub
tf.tensor_scatter_nd_sub([1, 2, 3], [[0], [2]], [10, 30])

# %% tensor_scatter_nd_update
tf.tensor_scatter_nd_update([1, 2, 3], [[0], [2]], [10, 30])

# %% tile
tf.tile([1, 2], [3])

# %% timestamp
tf.timestamp() > 1e9

# %% to_float
tf.to_float([1, 2])

# %% to_int32
tf.to_int32([1.7, 2.2])

# %% to_int64
tf.to_int64([1.7, 2.2])

# %% trainable_variables
v = tf.get_variable("v", [2])
fixed = tf.get_variable("fixed", [2], trainable=False)
[each.name for each in tf.trainable_variables()]

# %% transpose
tf.transpose([[1, 2, 3], [4, 5, 6]])

# %% truncatediv
tf.truncatediv([7, -7], 2)

# %% truncatemod
tf.truncatemod([7, -7], 3)

# %% tune
tuned = tf.tune(
    lambda settings: (settings["x"] - 0.3) ** 2,
    {"x": {"uniform": [0.0, 1.0]}},
    trials=10,
    seed=1,
)
abs(tuned.settings["x"] - 0.3) < 0.2

# %% tuple
a, b = tf.tuple([tf.constant(1.0), tf.constant(2.0)])
a + b

# %% unique
tf.unique([5, 7, 5, 5])

# %% unique_with_counts
tf.unique_with_counts([5, 7, 5, 5])

# %% unravel_index
tf.unravel_index([2, 5], [2, 3])

# %% unstack
tf.unstack([[1, 2], [3, 4]])

# %% variable_axis_size_partitioner
partitioner = tf.variable_axis_size_partitioner(max_shard_bytes=32)
table = tf.get_variable("table", [8, 2], partitioner=partitioner)
len(list(table))


# %% variable_creator_scope
def named(next_creator, **kwargs):
    return next_creator(**{**kwargs, "name": "made_by_creator"})


with tf.variable_creator_scope(named):
    v = tf.Variable(1.0)
v.name

# %% variable_op_scope
with tf.variable_op_scope([], "layer"):
    v = tf.get_variable("v", [2])
v.name

# %% variable_scope
with tf.variable_scope("layer", initializer=tf.ones_initializer()):
    weights = tf.get_variable("weights", [2])
weights

# %% vectorized_map
tf.vectorized_map(lambda row: tf.reduce_sum(row), tf.constant([[1, 2], [3, 4]]))

# %% where
tf.where([True, False], [1, 2], [10, 20])

# %% while_loop
tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), [0, 1.0])

# %% write_report
import re

x = tf.feature_column.numeric_column("x")
rows = tf.data.Dataset.from_tensor_slices(({"x": [0.0, 1.0]}, [1.0, 3.0])).batch(2)
model = tf.estimator.LinearRegressor([x], "model")
model.train(lambda: rows, steps=1)
tf.write_report(model, lambda: rows, "report.html", importance=False)
with open("report.html") as file:
    print(re.findall("<h2[^>]*>([^<]*)", file.read()))

# %% zeros
tf.zeros([2, 2])

# %% zeros_like
tf.zeros_like([[1, 2]])
