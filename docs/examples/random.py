# %% categorical
logits = tf.math.log([[0.5, 0.5, 0.0], [0.0, 0.1, 0.9]])
tf.random.categorical(logits, num_samples=8, seed=1)

# %% fold_in
seed = tf.constant([1, 2])
steps = [tf.random.fold_in(seed, step) for step in range(2)]
steps, [tf.random.stateless_uniform([2], step) for step in steps]

# %% gamma
draws = tf.random.gamma([1000], alpha=[1.0, 4.0], beta=2.0, seed=1)
tf.reduce_mean(draws, axis=0)

# %% multinomial
logits = tf.math.log([[0.5, 0.5, 0.0], [0.0, 0.1, 0.9]])
tf.random.multinomial(logits, num_samples=8, seed=1)

# %% normal
draws = tf.random.normal([2, 3], mean=10.0, stddev=2.0, seed=1)
with tf.Session() as session:
    print(session.run(draws))
    print(session.run(draws))

# %% poisson
tf.random.poisson([1.0, 10.0], shape=[4], seed=1)

# %% set_random_seed
for _ in range(2):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.random.set_random_seed(7)
        print(session.run(tf.random.uniform([3])))

# %% shuffle
tf.random.shuffle([[0, 0], [1, 1], [2, 2], [3, 3]], seed=1)

# %% split
first, second = tf.unstack(tf.random.split([1, 2]))
tf.random.stateless_uniform([2], first), tf.random.stateless_uniform([2], second)

# %% stateless_binomial
tf.random.stateless_binomial([3, 2], seed=[1, 2], counts=100, probs=[0.1, 0.9])

# %% stateless_categorical
logits = tf.math.log([[0.5, 0.5, 0.0], [0.0, 0.1, 0.9]])
tf.random.stateless_categorical(logits, num_samples=8, seed=[1, 2])

# %% stateless_gamma
draws = tf.random.stateless_gamma([1000, 2], seed=[1, 2], alpha=[1.0, 4.0], beta=2.0)
tf.reduce_mean(draws, axis=0)

# %% stateless_multinomial
logits = tf.math.log([[0.5, 0.5, 0.0], [0.0, 0.1, 0.9]])
tf.random.stateless_multinomial(logits, num_samples=8, seed=[1, 2])

# %% stateless_normal
draws = tf.random.stateless_normal([3], seed=[1, 2], mean=10.0)
again = tf.random.stateless_normal([3], seed=[1, 2], mean=10.0)
draws, again

# %% stateless_parameterized_truncated_normal
draws = tf.random.stateless_parameterized_truncated_normal(
    [1000, 2], seed=[1, 2], means=[0.0, 5.0], minvals=-1.0, maxvals=[1.0, 5.0]
)
tf.reduce_min(draws, axis=0), tf.reduce_max(draws, axis=0)

# %% stateless_poisson
tf.random.stateless_poisson([4, 2], seed=[1, 2], lam=[1.0, 10.0])

# %% stateless_truncated_normal
draws = tf.random.stateless_truncated_normal([1000], seed=[1, 2])
tf.reduce_min(draws), tf.reduce_max(draws)

# %% stateless_uniform
draws = tf.random.stateless_uniform([3], seed=[1, 2])
integers = tf.random.stateless_uniform([5], [1, 2], minval=1, maxval=7, dtype=tf.int32)
with tf.Session() as session:
    for _ in range(2):
        print(session.run([draws, integers]))

# %% truncated_normal
draws = tf.random.truncated_normal([1000], stddev=0.1, seed=1)
tf.reduce_min(draws), tf.reduce_max(draws)

# %% uniform
draws = tf.random.uniform([2, 3], seed=1)
dice = tf.random.uniform([6], minval=1, maxval=7, dtype=tf.int32, seed=2)
draws, dice
