# %% ClusterTask
import json

cluster = {"chief": ["10.0.0.1:2222"], "worker": ["10.0.0.2:2222", "10.0.0.3:2222"]}
config = {"cluster": cluster, "task": {"type": "worker", "index": 1}}
task = tf.distribute.ClusterTask.of_environment({"TF_CONFIG": json.dumps(config)})
print(task.type, task.index, task.is_chief, task.address)
print(task.num_worker_replicas, task.global_id_in_cluster)

# %% InputContext
context = tf.distribute.InputContext(num_input_pipelines=2, input_pipeline_id=1)
numbers = tf.data.Dataset.range(6)
shard = numbers.shard(context.num_input_pipelines, context.input_pipeline_id)
batches = shard.batch(context.get_per_replica_batch_size(2))
batches.make_one_shot_iterator().get_next()

# %% InteractiveSession
session = tf.InteractiveSession()
total = tf.add(1, 2)
print(total.eval())
session.close()

# %% Launch
import io
import sys

program = "import json, os; print(json.loads(os.environ['TF_CONFIG'])['task'])"
command = [sys.executable, "-c", program]
output = io.StringIO()
launch = tf.distribute.Launch(command, {"worker": 2}, out=output)
print("exit code", launch.run())
print(*sorted(output.getvalue().splitlines()), sep="\n")


# %% MirroredStrategy
def input_fn():
    batch = ({"x": [[1.0], [2.0]]}, [[2.0], [4.0]])
    return tf.data.Dataset.from_tensors(batch).repeat()


strategy = tf.distribute.MirroredStrategy(["/cpu:0"], shard_rows_above=2**20)
config = tf.estimator.RunConfig("model", train_distribute=strategy)
columns = [tf.feature_column.numeric_column("x")]
estimator = tf.estimator.LinearRegressor(columns, config=config)
estimator.train(input_fn, steps=3)
strategy.num_replicas_in_sync, estimator.get_variable_value("global_step")

# %% MultiWorkerMirroredStrategy
strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
strategy.num_replicas_in_sync, strategy.is_chief, strategy.has_others

# %% OneDeviceStrategy
strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
with strategy.scope():
    print(tf.distribute.get_strategy() is strategy)
strategy.device, strategy.num_replicas_in_sync

# %% ReduceOp
context = tf.distribute.get_replica_context()
context.all_reduce(tf.distribute.ReduceOp.SUM, tf.constant([1.0, 2.0]))

# %% ReplicaContext
context = tf.distribute.get_replica_context()
loss = tf.constant(2.0)
mean_loss = context.all_reduce("mean", loss)
print("replicas:", context.num_replicas_in_sync)
mean_loss

# %% Session
x = tf.placeholder(tf.float32, [])
weight = tf.Variable(3.0)
product = weight * x
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    print(session.run(product, {x: 2.0}))
    print(session.run({"x": x, "product": product}, {x: 4.0}))

# %% Strategy
strategy = tf.distribute.get_strategy()
print(type(strategy).__name__, strategy.num_replicas_in_sync)
strategy.input_context

# %% dynamically_sharded
for name in ("a.txt", "b.txt"):
    with tf.gfile.GFile(name, "w") as file:
        file.write(f"{name} line 1\n{name} line 2\n")
units = tf.data.Dataset.list_files("*.txt", shuffle=False)
lines = tf.distribute.dynamically_sharded(units, tf.data.TextLineDataset)
line = lines.make_one_shot_iterator().get_next()
with tf.Session() as session:
    print(*[session.run(line) for _ in range(4)])

# %% get_loss_reduction
tf.distribute.get_loss_reduction()

# %% get_replica_context
print(tf.distribute.get_replica_context().num_replicas_in_sync)
with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
    print(tf.distribute.get_replica_context())

# %% get_strategy
strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
print(type(tf.distribute.get_strategy()).__name__)
with strategy.scope():
    print(type(tf.distribute.get_strategy()).__name__)

# %% has_strategy
print(tf.distribute.has_strategy())
with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
    print(tf.distribute.has_strategy())

# %% in_cross_replica_context
print(tf.distribute.in_cross_replica_context())
with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
    print(tf.distribute.in_cross_replica_context())

# %% local_cluster
cluster = tf.distribute.local_cluster(ps=1, workers=3)
{job: len(addresses) for job, addresses in cluster.items()}
