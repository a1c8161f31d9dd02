"""DeepFM in the manner of the popular implementation: embeddings of 20 fields, a factorization
machine of first and second order beside a deep network with batch normalization and dropout,
fed in batches of 1,024 for three epochs over 200,000 generated clicks."""

import numpy as np

import estimatorkit.compat.v1 as tf

ROWS, FIELDS, FEATURES, FACTORS, BATCH, EPOCHS = 200_000, 20, 20_000, 8, 1024, 3

random = np.random.RandomState(1)
tf.set_random_seed(1)
per_field = FEATURES // FIELDS
index = (random.zipf(1.3, (ROWS, FIELDS)) % per_field + np.arange(FIELDS) * per_field).astype(
    np.int32
)
true_first = random.randn(FEATURES) * 0.4
true_factors = random.randn(FEATURES, 4) * 0.3
own = true_factors[index]
score = true_first[index].sum(1) + 0.5 * ((own.sum(1) ** 2 - (own**2).sum(1)).sum(1))
clicks = (random.rand(ROWS) < 1 / (1 + np.exp(-(score - np.median(score))))).astype(np.float32)
value_of = np.ones((ROWS, FIELDS), np.float32)

feat_index = tf.placeholder(tf.int32, [None, FIELDS])
feat_value = tf.placeholder(tf.float32, [None, FIELDS])
label = tf.placeholder(tf.float32, [None, 1])
keep = tf.placeholder(tf.float32)
training = tf.placeholder(tf.bool)
factors = tf.Variable(tf.random_normal([FEATURES, FACTORS], 0.0, 0.01))
biases = tf.Variable(tf.random_uniform([FEATURES, 1], 0.0, 0.01))
values = tf.reshape(feat_value, [-1, FIELDS, 1])
embeddings = tf.multiply(tf.nn.embedding_lookup(factors, feat_index), values)
first = tf.reduce_sum(tf.multiply(tf.nn.embedding_lookup(biases, feat_index), values), 2)
first = tf.nn.dropout(first, keep)
summed_squared = tf.square(tf.reduce_sum(embeddings, 1))
squared_summed = tf.reduce_sum(tf.square(embeddings), 1)
second = tf.nn.dropout(0.5 * tf.subtract(summed_squared, squared_summed), keep)
deep = tf.reshape(embeddings, [-1, FIELDS * FACTORS])
for size in (32, 32):
    deep = tf.layers.batch_normalization(tf.layers.dense(deep, size), training=training)
    deep = tf.nn.dropout(tf.nn.relu(deep), keep)
out = tf.sigmoid(tf.layers.dense(tf.concat([first, second, deep], 1), 1))
loss = tf.losses.log_loss(label, out)
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    train_op = tf.train.AdamOptimizer(0.002).minimize(loss)


def auc(labels, scores):
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores)] = np.arange(1, len(scores) + 1)
    ones = labels.sum()
    return (ranks[labels == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(labels) - ones))


def feed_for(rows, rate, is_training):
    return {
        feat_index: index[rows],
        feat_value: value_of[rows],
        label: clicks[rows, None],
        keep: rate,
        training: is_training,
    }


split = ROWS * 9 // 10
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(EPOCHS):
        order = random.permutation(split)
        for at in range(0, split, BATCH):
            sess.run(train_op, feed_for(order[at : at + BATCH], 0.8, True))
        scores = []
        for at in range(split, ROWS, BATCH):
            scores.append(sess.run(out, feed_for(slice(at, min(at + BATCH, ROWS)), 1.0, False)))
        found = auc(clicks[split:], np.concatenate(scores)[:, 0])
        print(f"[{epoch + 1}] valid-result={found:.4f}")
print(f"figure auc {found:.4f}")
