# %% DynamicLossScale
scale = tf.train.experimental.DynamicLossScale(8.0, increment_period=2, multiplier=2.0)
finite, _ = scale.update([tf.constant(1.0)])
overflow, _ = scale.update([tf.constant(np.inf)])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for update in (finite, finite, overflow):
        session.run(update)
        print(session.run(scale()))

# %% FixedLossScale
scale = tf.train.experimental.FixedLossScale(128.0)
weight = tf.Variable(1.0)
optimizer = tf.train.GradientDescentOptimizer(0.1)
optimizer = tf.train.experimental.MixedPrecisionLossScaleOptimizer(optimizer, scale)
optimizer.get_scaled_loss(weight**2)


# %% LossScale
class HalvingLossScale(tf.train.experimental.LossScale):
    def __init__(self):
        self.scale = tf.Variable(64.0, trainable=False)

    def __call__(self):
        return self.scale.read_value()

    def update(self, grads):
        return self.scale.assign(self.scale / 2.0).op, True


loss_scale = HalvingLossScale()
update, _ = loss_scale.update([])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(update)
    print(session.run(loss_scale()))

# %% MixedPrecisionLossScaleOptimizer
weight = tf.Variable(1.0)
factor = tf.placeholder(tf.float32, [])
optimizer = tf.train.experimental.MixedPrecisionLossScaleOptimizer(
    tf.train.GradientDescentOptimizer(0.1), "dynamic"
)
train_op = optimizer.minimize(factor * weight)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for value in (1.0, np.inf, 1.0):
        session.run(train_op, {factor: value})
        print(session.run(weight))

# %% enable_mixed_precision_graph_rewrite
weight = tf.Variable(1.0)
optimizer = tf.train.experimental.enable_mixed_precision_graph_rewrite(
    tf.train.GradientDescentOptimizer(0.1)
)
train_op = optimizer.minimize(weight**2)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(train_op)
    print(session.run([weight, *optimizer.variables()]))
