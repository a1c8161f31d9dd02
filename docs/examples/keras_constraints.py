# %% Constraint
class Centered(tf.keras.constraints.Constraint):
    def __call__(self, w):
        return w - tf.reduce_mean(w, 0)


weights = tf.Variable([1.0, 2.0, 6.0], constraint=Centered())
step = tf.keras.optimizers.SGD(0.1).minimize(weights[2], [weights])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(step)
    print(session.run(weights))

# %% MaxNorm
tf.keras.constraints.MaxNorm(5.0)(tf.constant([[3.0, 6.0], [4.0, 8.0]]))

# %% MinMaxNorm
weights = tf.constant([[0.6, 3.0, 6.0], [0.8, 4.0, 8.0]])
tf.keras.constraints.MinMaxNorm(2.0, 5.0)(weights)

# %% NonNeg
tf.keras.constraints.NonNeg()(tf.constant([-1.0, 2.0]))

# %% RadialConstraint
kernel = tf.reshape(tf.range(9.0), [3, 3, 1, 1])
tf.keras.constraints.RadialConstraint()(kernel)[:, :, 0, 0]

# %% UnitNorm
tf.keras.constraints.UnitNorm()(tf.constant([[3.0, 6.0], [4.0, 8.0]]))

# %% deserialize
config = tf.keras.constraints.serialize(tf.keras.constraints.MaxNorm(5.0))
constraint = tf.keras.constraints.deserialize(config)
constraint(tf.constant([[6.0], [8.0]]))

# %% get
constraint = tf.keras.constraints.get("non_neg")
constraint(tf.constant([-1.0, 2.0]))

# %% serialize
tf.keras.constraints.serialize(tf.keras.constraints.MaxNorm(5.0))
