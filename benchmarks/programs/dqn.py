"""Deep Q-learning in the manner of the popular introductions: a cart-pole in NumPy, experience
replay, a target network that is copied by ``tf.assign``, one ``sess.run`` for each action and one
for each of 3,000 updates of 32."""

import collections

import numpy as np

import estimatorkit.compat.v1 as tf

STEPS, BATCH, GAMMA, COPY = 4000, 32, 0.95, 200


class CartPole:
    """The pole of Barto, Sutton and Anderson; an episode ends after 200 steps."""

    def __init__(self, random):
        self.random = random

    def reset(self):
        self.state, self.steps = self.random.uniform(-0.05, 0.05, 4), 0
        return self.state

    def step(self, action):
        _, speed, angle, turn = self.state
        force = 10.0 if action else -10.0
        sine, cosine = np.sin(angle), np.cos(angle)
        push = (force + 0.05 * turn**2 * sine) / 1.1
        faster = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        gain = push - 0.05 * faster * cosine / 1.1
        change = np.array([speed, gain, turn, faster])
        self.state = self.state + 0.02 * change
        self.steps += 1
        fallen = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21
        return self.state, -1.0 if fallen else 1.0, fallen or self.steps >= 200


def network(states, name):
    with tf.variable_scope(name):
        hidden = tf.layers.dense(states, 64, activation=tf.nn.relu)
        hidden = tf.layers.dense(hidden, 64, activation=tf.nn.relu)
        return tf.layers.dense(hidden, 2)


random = np.random.RandomState(1)
tf.set_random_seed(1)
states = tf.placeholder(tf.float32, [None, 4])
later = tf.placeholder(tf.float32, [None, 4])
actions = tf.placeholder(tf.int32, [None])
rewards = tf.placeholder(tf.float32, [None])
ends = tf.placeholder(tf.float32, [None])
values, later_values = network(states, "online"), network(later, "target")
target = rewards + GAMMA * (1 - ends) * tf.reduce_max(later_values, 1)
chosen = tf.reduce_sum(values * tf.one_hot(actions, 2), 1)
loss = tf.reduce_mean(tf.square(tf.stop_gradient(target) - chosen))
online, fixed = (
    tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, each) for each in ("online", "target")
)
train_op = tf.train.AdamOptimizer(1e-3).minimize(loss, var_list=online)
copy = [tf.assign(to, source) for to, source in zip(fixed, online, strict=True)]

world, memory, lengths = CartPole(random), collections.deque(maxlen=5000), []
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    state = world.reset()
    for step in range(STEPS):
        if random.rand() < max(0.05, 1 - step / 2000):
            action = random.randint(2)
        else:
            action = int(np.argmax(sess.run(values, {states: state[None]})))
        after, reward, done = world.step(action)
        memory.append((state, action, reward, after, float(done)))
        state = after
        if done:
            lengths.append(world.steps)
            state = world.reset()
        if len(memory) >= 500:
            sample = [memory[at] for at in random.randint(0, len(memory), BATCH)]
            columns = map(np.array, zip(*sample, strict=True))
            feed = dict(zip((states, actions, rewards, later, ends), columns, strict=True))
            sess.run(train_op, feed)
        if step % COPY == 0:
            sess.run(copy)
        if step % 1000 == 999:
            print(f"step {step + 1}: mean length {np.mean(lengths[-10:]):.1f}")
print(f"figure length {np.mean(lengths[-10:]):.1f}")
