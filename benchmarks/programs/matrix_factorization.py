"""Recommendations by matrix factorization in the manner of the popular scripts: biases and
embeddings of users and items, L2 regularization, 200,000 generated ratings in batches of 1,000,
ten epochs with the error of a test set after each."""

import numpy as np

import estimatorkit.compat.v1 as tf

USERS, ITEMS, RATINGS, FACTORS, BATCH, EPOCHS = 4000, 2000, 200_000, 15, 1000, 10

random = np.random.RandomState(1)
tf.set_random_seed(1)
user, item = random.randint(0, USERS, RATINGS), random.randint(0, ITEMS, RATINGS)
tastes, kinds = random.randn(USERS, 5) * 0.5, random.randn(ITEMS, 5) * 0.5
rate = 3.5 + 0.4 * random.randn(USERS)[user] + 0.4 * random.randn(ITEMS)[item]
rate += (tastes[user] * kinds[item]).sum(1) + 0.3 * random.randn(RATINGS)
rate = np.clip(np.round(rate), 1, 5).astype(np.float32)
split = RATINGS * 9 // 10

user_batch = tf.placeholder(tf.int32, [None], "id_user")
item_batch = tf.placeholder(tf.int32, [None], "id_item")
rate_batch = tf.placeholder(tf.float32, [None])
with tf.device("/cpu:0"):
    bias_global = tf.get_variable("bias_global", [], initializer=tf.constant_initializer(3.5))
    bias_user = tf.nn.embedding_lookup(tf.get_variable("bias_user", [USERS]), user_batch)
    bias_item = tf.nn.embedding_lookup(tf.get_variable("bias_item", [ITEMS]), item_batch)
    initializer = tf.truncated_normal_initializer(stddev=0.1)
    users = tf.get_variable("embd_user", [USERS, FACTORS], initializer=initializer)
    items = tf.get_variable("embd_item", [ITEMS, FACTORS], initializer=initializer)
    of_user = tf.nn.embedding_lookup(users, user_batch)
    of_item = tf.nn.embedding_lookup(items, item_batch)
infer = tf.reduce_sum(of_user * of_item, 1) + bias_global + bias_user + bias_item
penalty = 0.02 * (tf.nn.l2_loss(of_user) + tf.nn.l2_loss(of_item))
cost = tf.nn.l2_loss(infer - rate_batch) + penalty
global_step = tf.train.get_or_create_global_step()
train_op = tf.train.AdamOptimizer(0.003).minimize(cost, global_step=global_step)


def feed_for(rows):
    return {user_batch: user[rows], item_batch: item[rows], rate_batch: rate[rows]}


with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(EPOCHS):
        errors = []
        for _ in range(split // BATCH):
            rows = random.randint(0, split, BATCH)
            _, predicted = sess.run([train_op, infer], feed_for(rows))
            errors.append(np.mean((np.clip(predicted, 1, 5) - rate[rows]) ** 2))
        predicted = np.clip(sess.run(infer, feed_for(slice(split, RATINGS))), 1, 5)
        value = np.sqrt(np.mean((predicted - rate[split:]) ** 2))
        print(f"{epoch:3d} {np.sqrt(np.mean(errors)):f} {value:f}")
print(f"figure rmse {value:.4f}")
