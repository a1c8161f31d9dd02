# %% AbortedError
iterations = []


def step():
    iterations.append(len(iterations))
    if len(iterations) == 1:
        raise tf.errors.AbortedError(None, None, "a parameter server restarted")
    return np.float32(1.0)


value = tf.py_func(step, [], tf.float32)
with tf.train.MonitoredSession() as session:
    print(session.run(value), "after", len(iterations), "attempts")

# %% AlreadyExistsError
for name in ("a.txt", "b.txt"):
    with tf.gfile.GFile(name, "w") as file:
        file.write("text")
try:
    tf.gfile.Copy("a.txt", "b.txt")
except tf.errors.AlreadyExistsError as error:
    print(error)

# %% CancelledError
queue = tf.FIFOQueue(3, tf.int32)
with tf.Session() as session:
    session.run(queue.close())
    try:
        session.run(queue.enqueue(1))
    except tf.errors.CancelledError as error:
        print(error)

# %% DataLossError
with tf.gfile.GFile("broken.tfrecord", "wb") as file:
    file.write(b"these are no records")
try:
    list(tf.python_io.tf_record_iterator("broken.tfrecord"))
except tf.errors.DataLossError as error:
    print(error)

# %% DeadlineExceededError
queue = tf.FIFOQueue(3, tf.int32)
options = tf.RunOptions(timeout_in_ms=50)
with tf.Session() as session:
    try:
        session.run(queue.dequeue(), options=options)
    except tf.errors.DeadlineExceededError as error:
        print(error)

# %% FailedPreconditionError
weight = tf.Variable(1.0, name="weight")
with tf.Session() as session:
    try:
        session.run(weight)
    except tf.errors.FailedPreconditionError as error:
        print(error)

# %% InternalError
value = tf.py_func(lambda: np.array([None]), [], tf.string)
with tf.Session() as session:
    try:
        session.run(value)
    except tf.errors.InternalError as error:
        print(error)

# %% InvalidArgumentError
size = tf.placeholder(tf.int32, [])
matrix = tf.reshape([1.0, 2.0, 3.0], [size, 2])
with tf.Session() as session:
    try:
        session.run(matrix, {size: 2})
    except tf.errors.InvalidArgumentError as error:
        print(error)

# %% NotFoundError
try:
    tf.gfile.GFile("missing.txt").read()
except tf.errors.NotFoundError as error:
    print(error)

# %% OpError
x = tf.placeholder(tf.float32, [])
checked = tf.check_numerics(x, "x is not finite", name="checked")
with tf.Session() as session:
    try:
        session.run(checked, {x: np.nan})
    except tf.errors.OpError as error:
        print(type(error).__name__, error.error_code, error.op.name)

# %% OutOfRangeError
number = tf.data.Dataset.range(2).make_one_shot_iterator().get_next()
with tf.Session() as session:
    try:
        while True:
            print(session.run(number))
    except tf.errors.OutOfRangeError:
        print("end of the input")

# %% PermissionDeniedError
tf.read_file("secret.txt", name="read")
untrusted = tf.get_default_graph().as_graph_def()
[content] = tf.import_graph_def(untrusted, return_elements=["read:0"])
with tf.Session() as session:
    try:
        session.run(content)
    except tf.errors.PermissionDeniedError as error:
        print(error)


# %% ResourceExhaustedError
def allocate():
    raise MemoryError("no memory left")


value = tf.py_func(allocate, [], tf.float32)
with tf.Session() as session:
    try:
        session.run(value)
    except tf.errors.ResourceExhaustedError as error:
        print(str(error).splitlines()[0])

# %% UnauthenticatedError
error = tf.errors.UnauthenticatedError(None, None, "the token is wrong")
isinstance(error, tf.errors.OpError), error.error_code


# %% UnavailableError
class LoseConnection(tf.train.SessionRunHook):
    is_lost = False

    def before_run(self, run_context):
        if not self.is_lost:
            self.is_lost = True
            raise tf.errors.UnavailableError(None, None, "a task is unreachable")

    def after_create_session(self, session, coord):
        print("new session")


weight = tf.Variable(1.0)
with tf.train.MonitoredSession(hooks=[LoseConnection()]) as session:
    print(session.run(weight))

# %% UnimplementedError
strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
try:
    strategy.run(lambda: tf.constant(1.0))
except tf.errors.UnimplementedError as error:
    print(error)


# %% UnknownError
def fail():
    raise KeyError("label")


value = tf.py_func(fail, [], tf.float32)
with tf.Session() as session:
    try:
        session.run(value)
    except tf.errors.UnknownError as error:
        print(str(error).splitlines()[0])

# %% error_code_from_exception_type
tf.errors.error_code_from_exception_type(tf.errors.NotFoundError)

# %% exception_type_from_error_code
tf.errors.exception_type_from_error_code(tf.errors.NOT_FOUND)
