# %% CosineDecay
schedule = tf.keras.optimizers.schedules.CosineDecay(
    0.0, decay_steps=1000, warmup_target=0.1, warmup_steps=100
)
tf.stack([schedule(step) for step in (0, 50, 100, 600, 1100)])

# %% CosineDecayRestarts
schedule = tf.keras.optimizers.schedules.CosineDecayRestarts(0.1, 1000)
tf.stack([schedule(step) for step in (0, 500, 999, 1000, 2000)])

# %% ExponentialDecay
schedule = tf.keras.optimizers.schedules.ExponentialDecay(0.1, 1000, 0.5)
tf.stack([schedule(step) for step in (0, 500, 1000, 2000)])

# %% InverseTimeDecay
schedule = tf.keras.optimizers.schedules.InverseTimeDecay(0.1, 1000, decay_rate=1.0)
tf.stack([schedule(step) for step in (0, 1000, 3000)])


# %% LearningRateSchedule
class InverseRoot(tf.keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, step):
        return self.scale * tf.rsqrt(tf.cast(step, "float32") + 1.0)

    def get_config(self):
        return {"scale": self.scale}


schedule = InverseRoot(0.1)
tf.stack([schedule(step) for step in (0, 3, 99)])

# %% PiecewiseConstantDecay
boundaries, rates = [100, 200], [1.0, 0.1, 0.01]
schedule = tf.keras.optimizers.schedules.PiecewiseConstantDecay(boundaries, rates)
tf.stack([schedule(step) for step in (0, 100, 101, 500)])

# %% PolynomialDecay
schedule = tf.keras.optimizers.schedules.PolynomialDecay(0.1, 1000, power=2.0)
tf.stack([schedule(step) for step in (0, 500, 1000, 2000)])

# %% deserialize
config = tf.keras.optimizers.schedules.serialize(
    tf.keras.optimizers.schedules.ExponentialDecay(0.1, 1000, 0.5)
)
schedule = tf.keras.optimizers.schedules.deserialize(config)
schedule(1000)

# %% serialize
schedule = tf.keras.optimizers.schedules.InverseTimeDecay(0.1, 1000, 1.0)
tf.keras.optimizers.schedules.serialize(schedule)
