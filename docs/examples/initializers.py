# %% RandomNormal
initializer = tf.initializers.RandomNormal(mean=5.0, stddev=0.1, seed=1)
weights = tf.get_variable("weights", [1000], initializer=initializer)
tf.reduce_mean(weights), tf.math.reduce_std(weights)

# %% RandomUniform
initializer = tf.initializers.RandomUniform(-1.0, 1.0, seed=1)
weights = tf.get_variable("weights", [1000], initializer=initializer)
tf.reduce_min(weights), tf.reduce_max(weights)

# %% TruncatedNormal
initializer = tf.initializers.TruncatedNormal(stddev=0.1, seed=1)
weights = tf.get_variable("weights", [1000], initializer=initializer)
tf.reduce_min(weights), tf.reduce_max(weights)

# %% UniformUnitScaling
initializer = tf.initializers.UniformUnitScaling(seed=1)
weights = tf.get_variable("weights", [300, 100], initializer=initializer)
tf.reduce_min(weights), tf.reduce_max(weights)

# %% global_variables
weight = tf.Variable(3.0)
initialize = tf.initializers.global_variables()
with tf.Session() as session:
    session.run(initialize)
    print(session.run(weight))

# %% local_variables
total = tf.get_variable("total", initializer=0.0, collections=["local_variables"])
with tf.Session() as session:
    session.run(tf.initializers.local_variables())
    print(session.run(total.assign_add(2.0)))

# %% tables_initializer
table = tf.lookup.index_table_from_tensor(["red", "green"])
ids = table.lookup(tf.constant(["green", "red"]))
with tf.Session() as session:
    session.run(tf.initializers.tables_initializer())
    print(session.run(ids))

# %% variables
first, second = tf.Variable(1.0), tf.Variable(2.0)
with tf.Session() as session:
    session.run(tf.initializers.variables([first]))
    print(session.run([tf.is_variable_initialized(each) for each in (first, second)]))
