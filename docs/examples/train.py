# %% AdadeltaOptimizer
weight = tf.Variable(3.0)
train_op = tf.train.AdadeltaOptimizer(1.0, rho=0.9, epsilon=1e-2).minimize(weight**2)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(30):
        session.run(train_op)
    print(session.run(weight))

# %% AdagradDAOptimizer
step = tf.train.create_global_step()
weights = tf.Variable([0.0, 0.0])
loss = tf.reduce_sum(tf.square(weights - [2.0, 0.1]))
optimizer = tf.train.AdagradDAOptimizer(0.5, step, l1_regularization_strength=0.5)
train_op = optimizer.minimize(loss, global_step=step)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(20):
        session.run(train_op)
    print(session.run(weights))

# %% AdagradOptimizer
weights = tf.Variable([1.0, 1.0])
loss = tf.reduce_sum([100.0, 0.1] * weights**2)
optimizer = tf.train.AdagradOptimizer(0.1)
train_op = optimizer.minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(5):
        session.run(train_op)
    print(*session.run([weights, optimizer.get_slot(weights, "accumulator")]))

# %% AdamOptimizer
weights = tf.Variable([1.0, 1.0])
loss = tf.reduce_sum([100.0, 0.01] * weights**2)
train_op = tf.train.AdamOptimizer(0.1).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(5):
        session.run(train_op)
    print(session.run(weights))

# %% AdamWOptimizer
weights = tf.Variable([1.0, 1.0], name="kernel")
bias = tf.Variable(1.0, name="bias")
loss = tf.reduce_sum([100.0, 0.0] * weights**2) + bias
optimizer = tf.train.AdamWOptimizer(0.1, weight_decay=0.5, factors={"bias$": (0.1, 0.0)})
train_op = optimizer.minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(5):
        session.run(train_op)
    print(*session.run([weights, bias]))

# %% Checkpoint
weight = tf.Variable(1.0)
checkpoint = tf.train.Checkpoint(weight=weight)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    path = checkpoint.save("model", session)
    session.run(weight.assign(5.0))
    checkpoint.restore(path).run_restore_ops(session)
    print(path, session.run(weight))

# %% CheckpointManager
counter = tf.Variable(0)
checkpoint = tf.train.Checkpoint(counter=counter)
manager = tf.train.CheckpointManager(checkpoint, "model", max_to_keep=2)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run(counter.assign_add(1))
        manager.save(session=session)
manager.checkpoints

# %% CheckpointReader
weights = tf.Variable([[1.0, 2.0]], name="weights")
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    path = tf.train.Saver().save(session, "./model.ckpt")
reader = tf.train.CheckpointReader(path)
print(reader.get_variable_to_shape_map())
reader.get_tensor("weights")

# %% CheckpointState
state = tf.train.CheckpointState("model.ckpt-20", ["model.ckpt-10", "model.ckpt-20"])
state.model_checkpoint_path, len(state.all_model_checkpoint_paths)

# %% ChiefSessionCreator
weight = tf.Variable(2.0)
creator = tf.train.ChiefSessionCreator()
with creator.create_session() as session:
    print(session.run(weight), session.graph.finalized)

# %% ClusterSpec
workers = ["10.0.0.2:2222", "10.0.0.3:2222"]
cluster = tf.train.ClusterSpec({"ps": ["10.0.0.1:2222"], "worker": workers})
print(cluster.jobs, cluster.num_tasks("worker"))
cluster.task_address("worker", 1)

# %% Coordinator
import threading

coordinator = tf.train.Coordinator()
seen = []


def work():
    with coordinator.stop_on_exception():
        while not coordinator.should_stop():
            seen.append(len(seen))
            if len(seen) == 3:
                coordinator.request_stop()


thread = threading.Thread(target=work)
thread.start()
coordinator.join([thread])
seen

# %% ExponentialMovingAverage
loss = tf.Variable(10.0)
average = tf.train.ExponentialMovingAverage(decay=0.9)
update = average.apply([loss])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(loss.assign(0.0))
    for _ in range(3):
        session.run(update)
        print(session.run(average.average(loss)))

# %% FtrlOptimizer
weights = tf.Variable([0.0, 0.0])
loss = tf.reduce_sum(tf.square(weights - [2.0, 0.1]))
optimizer = tf.train.FtrlOptimizer(1.0, l1_regularization_strength=0.5)
train_op = optimizer.minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(20):
        session.run(train_op)
    print(session.run(weights))

# %% GradientDescentOptimizer
weight = tf.Variable(1.0)
train_op = tf.train.GradientDescentOptimizer(0.1).minimize(weight**2)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run(train_op)
        print(session.run(weight))

# %% LazyAdamOptimizer
table = tf.Variable([[1.0], [1.0], [1.0]])
rows = tf.placeholder(tf.int32, [None])
loss = tf.reduce_sum(tf.nn.embedding_lookup(table, rows))
train_op = tf.train.LazyAdamOptimizer(0.1).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(train_op, {rows: [0, 1]})
    session.run(train_op, {rows: [1]})
    print(session.run(table))

# %% LooperThread
coordinator = tf.train.Coordinator()
ticks = []


def tick():
    ticks.append(len(ticks))
    if len(ticks) == 3:
        coordinator.request_stop()


tf.train.LooperThread.loop(coordinator, 0.01, tick)
coordinator.join()
ticks

# %% MomentumOptimizer
weight = tf.Variable(1.0)
optimizer = tf.train.MomentumOptimizer(0.1, momentum=0.9)
train_op = optimizer.minimize(weight**2)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run(train_op)
        print(*session.run([weight, optimizer.get_slot(weight, "momentum")]))

# %% MonitoredSession
step = tf.train.create_global_step()
train_op = step.assign_add(1)
hooks = [tf.train.StopAtStepHook(last_step=3)]
with tf.train.MonitoredSession(hooks=hooks) as session:
    while not session.should_stop():
        print(session.run(train_op))

# %% MonitoredTrainingSession
train_op = tf.train.create_global_step().assign_add(1)
for last_step in (2, 4):
    hooks = [tf.train.StopAtStepHook(last_step=last_step)]
    session = tf.train.MonitoredTrainingSession(checkpoint_dir="model", hooks=hooks)
    with session:
        while not session.should_stop():
            print(session.run(train_op))

# %% OptaxOptimizer
import optax

weight = tf.Variable(1.0)
train_op = tf.train.OptaxOptimizer(optax.adamw(0.1)).minimize(weight**2)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(5):
        session.run(train_op)
    print(session.run(weight))

# %% Optimizer
weight = tf.Variable(10.0)
optimizer = tf.train.GradientDescentOptimizer(0.1)
[(gradient, variable)] = optimizer.compute_gradients(weight**2)
clipped = tf.clip_by_value(gradient, -1.0, 1.0)
train_op = optimizer.apply_gradients([(clipped, variable)])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    print(*session.run([gradient, clipped]))
    session.run(train_op)
    print(session.run(weight))

# %% ProximalAdagradOptimizer
weights = tf.Variable([0.0, 0.0])
loss = tf.reduce_sum(tf.square(weights - [2.0, 0.1]))
optimizer = tf.train.ProximalAdagradOptimizer(0.5, l1_regularization_strength=0.5)
train_op = optimizer.minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(20):
        session.run(train_op)
    print(session.run(weights))

# %% ProximalGradientDescentOptimizer
weights = tf.Variable([0.0, 0.0])
loss = tf.reduce_sum(tf.square(weights - [2.0, 0.1]))
optimizer = tf.train.ProximalGradientDescentOptimizer(
    learning_rate=0.1,
    l1_regularization_strength=0.5,
)
train_op = optimizer.minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(20):
        session.run(train_op)
    print(session.run(weights))

# %% QueueRunner
queue = tf.FIFOQueue(10, tf.float32, shapes=[()])
number = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0])
enqueue = queue.enqueue(number.make_one_shot_iterator().get_next())
runner = tf.train.QueueRunner(queue, [enqueue])
with tf.Session() as session:
    coordinator = tf.train.Coordinator()
    runner.create_threads(session, coord=coordinator, start=True)
    print(session.run(queue.dequeue_many(3)))
    coordinator.request_stop()
    coordinator.join()

# %% RMSPropOptimizer
weights = tf.Variable([1.0, 1.0])
loss = tf.reduce_sum([100.0, 0.1] * weights**2)
train_op = tf.train.RMSPropOptimizer(0.05).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(10):
        session.run(train_op)
    print(session.run(weights))

# %% RowwiseAdagradOptimizer
table = tf.Variable(tf.ones([3, 2]))
loss = tf.reduce_sum(tf.gather(table, [0, 0, 2]) * [1.0, 3.0])
optimizer = tf.train.RowwiseAdagradOptimizer(0.1)
train_op = optimizer.minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(train_op)
    print(session.run(table))
    print(session.run(optimizer.get_slot(table, "accumulator")))

# %% Saver
weight = tf.Variable(1.0, name="weight")
saver = tf.train.Saver(max_to_keep=2)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(3):
        session.run(weight.assign_add(1.0))
        saver.save(session, "./model.ckpt", global_step=step)
with tf.Session() as session:
    saver.restore(session, tf.train.latest_checkpoint("."))
    print(saver.last_checkpoints, session.run(weight))

# %% Scaffold
weight = tf.Variable(0.0)


def initialize(scaffold, session):
    weight.load(7.0, session)


scaffold = tf.train.Scaffold(init_fn=initialize)
creator = tf.train.ChiefSessionCreator(scaffold)
with tf.train.MonitoredSession(creator) as session:
    print(session.run(weight))

# %% Server
server = tf.train.Server.create_local_server()
counter = tf.Variable(0, name="counter")
with tf.Session(server.target) as session:
    session.run(counter.initializer)
    session.run(counter.assign_add(5))
with tf.Session(server.target) as session:
    print(session.run(counter))


# %% SessionCreator
class LoggingCreator(tf.train.SessionCreator):
    def create_session(self):
        print("creating a session")
        return tf.train.ChiefSessionCreator().create_session()


weight = tf.Variable(2.0)
with tf.train.MonitoredSession(LoggingCreator()) as session:
    print(session.run(weight))

# %% SessionManager
weight = tf.Variable(2.0)
init_op = tf.global_variables_initializer()
manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables())
with manager.prepare_session("", init_op=init_op) as session:
    print(session.run(weight))

# %% SingularMonitoredSession
weight = tf.Variable(2.0)
saver = tf.train.Saver()
with tf.train.SingularMonitoredSession() as session:
    print(session.run(weight))
    print(saver.save(session.raw_session(), "./model.ckpt"))

# %% Supervisor
step = tf.train.create_global_step()
train_op = step.assign_add(1)
supervisor = tf.train.Supervisor(logdir="model")
with supervisor.managed_session() as session:
    for _ in range(3):
        print(session.run(train_op))
    supervisor.saver.save(session, supervisor.save_path, global_step=step)
tf.train.latest_checkpoint("model")

# %% SyncReplicasOptimizer
step = tf.train.create_global_step()
weight = tf.Variable(1.0)
optimizer = tf.train.SyncReplicasOptimizer(
    tf.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=1
)
train_op = optimizer.minimize(weight**2, global_step=step)
hook = optimizer.make_session_run_hook(is_chief=True, num_tokens=0)
with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
    for _ in range(3):
        session.run(train_op)
        print(*session.run([step, weight]))

# %% WorkerSessionCreator
server = tf.train.Server.create_local_server()
weight = tf.Variable(2.0, name="weight")
chief = tf.train.ChiefSessionCreator(master=server.target)
worker = tf.train.WorkerSessionCreator(master=server.target)
with chief.create_session(), worker.create_session() as session:
    print(session.run(weight))

# %% add_queue_runner
queue = tf.FIFOQueue(10, tf.int32, shapes=[()])
runner = tf.train.QueueRunner(queue, [queue.enqueue(7)])
tf.train.add_queue_runner(runner)
number = queue.dequeue()
with tf.train.MonitoredSession() as session:
    print(session.run(number))

# %% apply_checkpoint_delta
table = tf.get_variable("table", [1000, 8])
change = tf.scatter_add(table, [3], tf.ones([1, 8]))
saver = tf.train.Saver()
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    base = saver.save(session, "model.ckpt", global_step=1)
    session.run(change)
    latest = saver.save(session, "model.ckpt", global_step=2)
    expected = session.run(table)
delta = tf.train.write_checkpoint_delta(base, latest, "delta-2")  # one row
again = tf.train.apply_checkpoint_delta(base, delta, "elsewhere/model.ckpt-2")
np.array_equal(tf.train.load_variable(again, "table"), expected)

# %% assert_global_step
tf.train.assert_global_step(tf.train.create_global_step())
try:
    tf.train.assert_global_step(tf.Variable(0.0))
except TypeError as error:
    print(error)

# %% basic_train_loop
step = tf.train.create_global_step()
train_op = step.assign_add(1)
supervisor = tf.train.Supervisor()


def train_step(session, last_step):
    if session.run(train_op) == last_step:
        supervisor.request_stop()
        print("stopped at", session.run(step))


tf.train.basic_train_loop(supervisor, train_step, args=[3])

# %% batch
number = tf.train.range_input_producer(7, num_epochs=1, shuffle=False).dequeue()
batch = tf.train.batch([number, number**2], 3, allow_smaller_final_batch=True)
with tf.train.MonitoredSession() as session:
    while not session.should_stop():
        print(session.run(batch))

# %% batch_join
producers = [tf.train.range_input_producer(4, num_epochs=1) for _ in range(2)]
examples = [[producer.dequeue()] for producer in producers]
numbers = tf.train.batch_join(examples, batch_size=8)
with tf.train.MonitoredSession() as session:
    print(np.sort(session.run(numbers)))

# %% checkpoint_exists
weight = tf.Variable(1.0)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    tf.train.Saver().save(session, "./model.ckpt", global_step=10)
tf.train.checkpoint_exists("model.ckpt-10"), tf.train.checkpoint_exists("model.ckpt-20")

# %% checkpoints_iterator
weight = tf.Variable(1.0)
saver = tf.train.Saver()
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    saver.save(session, "model/model.ckpt", global_step=1)
    for path in tf.train.checkpoints_iterator("model", timeout=0):
        print(path)
        if path.endswith("-1"):
            saver.save(session, "model/model.ckpt", global_step=2)

# %% cosine_decay
rates = [tf.train.cosine_decay(0.1, step, decay_steps=100) for step in (0, 50, 100)]
tf.stack(rates)

# %% cosine_decay_restarts
steps = (0, 5, 9, 10, 20, 29, 30)
tf.stack([tf.train.cosine_decay_restarts(0.1, step, 10) for step in steps])

# %% coslog_decay
tf.stack([tf.train.coslog_decay(0.1, step, 15) for step in range(16)])

# %% create_global_step
step = tf.train.create_global_step()
weight = tf.Variable(1.0)
train_op = tf.train.GradientDescentOptimizer(0.1).minimize(weight**2, global_step=step)
with tf.control_dependencies([train_op]):
    step_after = tf.identity(step.read_value())
step_after

# %% exponential_decay
step = tf.train.create_global_step()
rate = tf.train.exponential_decay(0.1, step, decay_steps=10, decay_rate=0.5)
with tf.Session() as session:
    print(*[session.run(rate, {step: value}) for value in (0, 10, 20)])

# %% export_meta_graph
tf.add(tf.placeholder(tf.float32, name="x"), 1.0, name="y")
meta_graph = tf.train.export_meta_graph("model.meta")
[node.name for node in meta_graph.graph_def.node], tf.gfile.Exists("model.meta")

# %% flat_cosine_decay
tf.stack([tf.train.flat_cosine_decay(0.1, step, 10) for step in (0, 5, 6, 8, 10)])

# %% generate_checkpoint_state_proto
state = tf.train.generate_checkpoint_state_proto("model", "model/model.ckpt-10")
state.model_checkpoint_path, state.all_model_checkpoint_paths

# %% get_checkpoint_mtimes
weight = tf.Variable(1.0)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    path = tf.train.Saver().save(session, "./model.ckpt")
times = tf.train.get_checkpoint_mtimes([path, "missing.ckpt"])
len(times), times[0] > 0

# %% get_checkpoint_state
weight = tf.Variable(1.0)
saver = tf.train.Saver()
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in (10, 20):
        saver.save(session, "model/model.ckpt", global_step=step)
tf.train.get_checkpoint_state("model").all_model_checkpoint_paths

# %% get_global_step
print(tf.train.get_global_step())
tf.train.create_global_step()
tf.train.get_global_step().name

# %% get_or_create_global_step
step = tf.train.get_or_create_global_step()
step is tf.train.get_or_create_global_step(), step.name, step.dtype

# %% global_step
step = tf.train.create_global_step()
with tf.Session() as session:
    session.run(step.initializer)
    session.run(step.assign_add(5))
    print(tf.train.global_step(session, step))

# %% import_meta_graph
tf.Variable(3.0, name="weight")
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    path = tf.train.Saver().save(session, "./model.ckpt")
with tf.Graph().as_default(), tf.Session() as session:
    saver = tf.train.import_meta_graph(f"{path}.meta")
    saver.restore(session, path)
    print(session.run("weight:0"))

# %% init_from_checkpoint
tf.Variable([1.0, 2.0], name="old/weights")
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    path = tf.train.Saver().save(session, "./model.ckpt")
weights = tf.get_variable("new/weights", [2])
tf.train.init_from_checkpoint(path, {"old/": "new/"})
weights

# %% input_producer
points = [[1, 2], [3, 4], [5, 6]]
point = tf.train.input_producer(points, num_epochs=1, shuffle=False).dequeue()
with tf.train.MonitoredSession() as session:
    while not session.should_stop():
        print(session.run(point))

# %% inverse_time_decay
rates = [tf.train.inverse_time_decay(0.1, step, 10, 1.0) for step in (0, 10, 30)]
tf.stack(rates)

# %% latest_checkpoint
weight = tf.Variable(1.0)
saver = tf.train.Saver()
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in (10, 20):
        saver.save(session, "model/model.ckpt", global_step=step)
tf.train.latest_checkpoint("model")

# %% limit_epochs
value = tf.train.limit_epochs(tf.constant(7), num_epochs=2)
with tf.train.MonitoredSession() as session:
    while not session.should_stop():
        print(session.run(value))

# %% linear_cosine_decay
rates = [tf.train.linear_cosine_decay(0.1, step, 100) for step in (0, 50, 100)]
tf.stack(rates)

# %% list_variables
tf.get_variable("dense/kernel", [3, 2])
tf.get_variable("dense/bias", [2])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    path = tf.train.Saver().save(session, "./model.ckpt")
tf.train.list_variables(path)

# %% load_checkpoint
tf.get_variable("weights", initializer=[1.0, 2.0])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    tf.train.Saver().save(session, "model/model.ckpt")
reader = tf.train.load_checkpoint("model")
reader.has_tensor("weights"), reader.get_tensor("weights")

# %% load_variable
tf.get_variable("weights", initializer=[1.0, 2.0])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    tf.train.Saver().save(session, "model/model.ckpt")
tf.train.load_variable("model", "weights")

# %% match_filenames_once
for name in ("b.csv", "a.csv", "notes.txt"):
    with tf.gfile.GFile(name, "w") as file:
        file.write("text")
tf.train.match_filenames_once("*.csv")

# %% maybe_batch
number = tf.train.range_input_producer(8, num_epochs=1, shuffle=False).dequeue()
even = tf.train.maybe_batch([number], keep_input=number % 2 < 1, batch_size=2)
with tf.train.MonitoredSession() as session:
    while not session.should_stop():
        print(session.run(even))

# %% maybe_batch_join
numbers = [tf.train.limit_epochs(values, 1) for values in ([1, 2, 3], [10, 20, 30])]
examples = [[each] for each in numbers]
keep = [True, False, True]
kept = tf.train.maybe_batch_join(examples, keep, batch_size=4, enqueue_many=True)
with tf.train.MonitoredSession() as session:
    print(np.sort(session.run(kept)))

# %% maybe_shuffle_batch
number = tf.train.range_input_producer(8, num_epochs=1, shuffle=False).dequeue()
even = tf.train.maybe_shuffle_batch(
    [number], 4, capacity=20, min_after_dequeue=10, keep_input=number % 2 < 1, seed=1
)
with tf.train.MonitoredSession() as session:
    print(session.run(even))

# %% maybe_shuffle_batch_join
numbers = [tf.train.limit_epochs(values, 1) for values in ([1, 2, 3], [10, 20, 30])]
kept = tf.train.maybe_shuffle_batch_join(
    [[each] for each in numbers],
    batch_size=4,
    capacity=20,
    min_after_dequeue=10,
    keep_input=[True, False, True],
    enqueue_many=True,
)
with tf.train.MonitoredSession() as session:
    print(np.sort(session.run(kept)))

# %% natural_exp_decay
rates = [tf.train.natural_exp_decay(0.1, step, 10, 1.0) for step in (0, 10, 20)]
tf.stack(rates)

# %% noisy_linear_cosine_decay
tf.set_random_seed(1)
tf.stack(
    [
        tf.train.noisy_linear_cosine_decay(0.1, step, 100, initial_variance=0.01)
        for step in (0, 50, 100)
    ]
)

# %% piecewise_constant
step = tf.train.create_global_step()
rate = tf.train.piecewise_constant(step, boundaries=[10, 20], values=[0.1, 0.01, 0.001])
with tf.Session() as session:
    print(*[session.run(rate, {step: value}) for value in (10, 11, 20, 21)])

# %% polynomial_decay
rates = [tf.train.polynomial_decay(0.1, step, 10, 0.02) for step in (0, 5, 10, 15)]
tf.stack(rates)

# %% range_input_producer
queue = tf.train.range_input_producer(3, num_epochs=2, shuffle=False)
indices = queue.dequeue_many(6)
with tf.train.MonitoredSession() as session:
    print(session.run(indices))

# %% remove_checkpoint
weight = tf.Variable(1.0)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    path = tf.train.Saver().save(session, "./model.ckpt")
tf.train.remove_checkpoint(path)
tf.train.checkpoint_exists(path)

# %% replica_device_setter
with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
    variables = [tf.Variable(float(index)) for index in range(3)]
    total = tf.add_n(variables)
[each.device for each in [*variables, total]]

# %% shuffle_batch
number = tf.train.range_input_producer(8, num_epochs=1, shuffle=False).dequeue()
batch = tf.train.shuffle_batch([number], 4, capacity=20, min_after_dequeue=10, seed=1)
with tf.train.MonitoredSession() as session:
    while not session.should_stop():
        print(session.run(batch))

# %% shuffle_batch_join
producers = [tf.train.range_input_producer(4, num_epochs=1) for _ in range(2)]
examples = [[producer.dequeue()] for producer in producers]
batch = tf.train.shuffle_batch_join(examples, 8, capacity=20, min_after_dequeue=10)
with tf.train.MonitoredSession() as session:
    print(np.sort(session.run(batch)))

# %% slice_input_producer
images, labels = ["a.png", "b.png", "c.png"], [0, 1, 2]
example = tf.train.slice_input_producer([images, labels], num_epochs=1, shuffle=False)
with tf.train.MonitoredSession() as session:
    while not session.should_stop():
        print(session.run(example))

# %% start_queue_runners
queue = tf.train.range_input_producer(3, shuffle=False)
with tf.Session() as session:
    coordinator = tf.train.Coordinator()
    tf.train.start_queue_runners(session, coordinator)
    print(session.run(queue.dequeue_many(5)))
    coordinator.request_stop()
    coordinator.join()

# %% string_input_producer
names = ["a.csv", "b.csv"]
name = tf.train.string_input_producer(names, num_epochs=1, shuffle=False).dequeue()
with tf.train.MonitoredSession() as session:
    while not session.should_stop():
        print(session.run(name))

# %% summary_iterator
loss = tf.placeholder(tf.float32, [])
summary = tf.summary.scalar("loss", loss)
with tf.Session() as session, tf.summary.FileWriter("logs") as writer:
    for step, value in enumerate([0.5, 0.25]):
        writer.add_summary(session.run(summary, {loss: value}), step)
[path] = tf.gfile.Glob("logs/events*")
for event in tf.train.summary_iterator(path):
    for value in event.summary.value:
        print(event.step, value.tag, value.simple_value)

# %% update_checkpoint_state
weight = tf.Variable(1.0)
saver = tf.train.Saver()
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in (10, 20):
        saver.save(session, "model/model.ckpt", global_step=step)
tf.train.update_checkpoint_state("model", "model/model.ckpt-10")
tf.train.latest_checkpoint("model")

# %% warm_start
tf.get_variable("kernel", initializer=[1.0, 2.0])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    path = tf.train.Saver().save(session, "./model.ckpt")
with tf.Graph().as_default(), tf.Session() as session:
    kernel = tf.get_variable("kernel", [2])
    bias = tf.get_variable("bias", initializer=[5.0])
    tf.train.warm_start(path, vars_to_warm_start="kernel")
    session.run(tf.global_variables_initializer())
    print(session.run([kernel, bias]))

# %% write_checkpoint_delta
table = tf.get_variable("table", [1000, 8])
change = tf.scatter_add(table, [3], tf.ones([1, 8]))
saver = tf.train.Saver()
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    base = saver.save(session, "model.ckpt", global_step=1)
    session.run(change)
    latest = saver.save(session, "model.ckpt", global_step=2)
delta = tf.train.write_checkpoint_delta(base, latest, "delta-2")
tf.train.list_variables(delta)

# %% write_graph
tf.add(tf.placeholder(tf.float32, name="x"), 1.0, name="y")
path = tf.train.write_graph(tf.get_default_graph(), "graphs", "model.pbtxt")
print(path)
print(tf.gfile.GFile(path).read()[:50])
