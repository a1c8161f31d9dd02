# %% LossScaleOptimizer
weight, factor = tf.Variable(1.0), tf.placeholder(tf.float32, [])
inner = tf.keras.optimizers.SGD(0.1)
optimizer = tf.keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=8.0)
step = optimizer.minimize(factor * weight, [weight])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for gradient in 1.0, np.inf:
        session.run(step, {factor: gradient})
        print(session.run([weight, optimizer.loss_scale]))

# %% Policy
policy = tf.keras.mixed_precision.Policy("mixed_bfloat16")
layer = tf.keras.layers.Dense(2, dtype=policy)
outputs = layer(tf.zeros([4, 3]))
outputs.dtype, layer.kernel.dtype

# %% global_policy
tf.keras.mixed_precision.global_policy()

# %% set_global_policy
tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
layer = tf.keras.layers.Dense(2)
tf.keras.mixed_precision.set_global_policy("float32")
layer.compute_dtype, layer.variable_dtype
