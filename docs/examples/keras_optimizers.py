# %% Adadelta
weights = tf.Variable([1.0, -2.0])
optimizer = tf.keras.optimizers.Adadelta(1.0)
step = optimizer.minimize(tf.reduce_sum(weights**2), [weights])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run(step)
        print(session.run(weights))

# %% Adagrad
weights = tf.Variable([1.0, -2.0])
optimizer = tf.keras.optimizers.Adagrad(0.5)
step = optimizer.minimize(tf.reduce_sum(weights**2), [weights])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run(step)
        print(session.run(weights))

# %% Adam
tf.keras.utils.set_random_seed(1)
(features, labels), _ = tf.datasets.iris.load_data()
model = tf.keras.Sequential([tf.keras.layers.Dense(3, activation="softmax")])
model.compile(tf.keras.optimizers.Adam(0.05), "sparse_categorical_crossentropy")
history = model.fit(np.asarray(features), np.asarray(labels), epochs=5, verbose=0)
np.round(history.history["loss"], 2)

# %% AdamW
weights = tf.Variable([1.0, -2.0])
optimizer = tf.keras.optimizers.AdamW(0.1, weight_decay=0.5)
step = optimizer.minimize(0.0 * tf.reduce_sum(weights), [weights])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run(step)
        print(session.run(weights))

# %% Adamax
weights = tf.Variable([1.0, -2.0])
optimizer = tf.keras.optimizers.Adamax(0.1)
step = optimizer.minimize(tf.reduce_sum(weights**2), [weights])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run(step)
        print(session.run(weights))

# %% Ftrl
weights = tf.Variable([1.0, -2.0])
optimizer = tf.keras.optimizers.Ftrl(1.0, l1_regularization_strength=5.0)
step = optimizer.minimize(tf.reduce_sum((weights - [2.0, 0.1]) ** 2), [weights])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(10):
        session.run(step)
    print(session.run(weights))

# %% Nadam
weights = tf.Variable([1.0, -2.0])
optimizer = tf.keras.optimizers.Nadam(0.1)
step = optimizer.minimize(tf.reduce_sum(weights**2), [weights])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run(step)
        print(session.run(weights))


# %% Optimizer
class Sign(tf.keras.optimizers.Optimizer):
    def __init__(self, learning_rate=0.1, name="Sign"):
        super().__init__(name)
        self._set_hyper("learning_rate", learning_rate)

    def _resource_apply_dense(self, grad, var, apply_state=None):
        return var.assign_sub(self._decayed_lr(var.dtype) * tf.sign(grad))


weights = tf.Variable([1.0, -2.0])
step = Sign().minimize(tf.reduce_sum(weights**2), [weights])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(step)
    print(session.run(weights))

# %% RMSprop
weights = tf.Variable([1.0, -2.0])
optimizer = tf.keras.optimizers.RMSprop(0.1, momentum=0.9)
step = optimizer.minimize(tf.reduce_sum(weights**2), [weights])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run(step)
        print(session.run(weights))

# %% SGD
weights = tf.Variable([1.0, -2.0])
optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
step = optimizer.minimize(tf.reduce_sum(weights**2), [weights])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run(step)
        print(session.run(weights))

# %% deserialize
config = {"class_name": "SGD", "config": {"learning_rate": 0.1, "momentum": 0.9}}
optimizer = tf.keras.optimizers.deserialize(config)
type(optimizer).__name__, optimizer.get_config()["momentum"]

# %% get
optimizer = tf.keras.optimizers.get("adam")
type(optimizer).__name__, optimizer.get_config()["learning_rate"]

# %% serialize
schedule = tf.keras.optimizers.schedules.ExponentialDecay(0.1, 1000, 0.5)
tf.keras.optimizers.serialize(tf.keras.optimizers.SGD(schedule))
