# %% FileWriter
loss = tf.placeholder(tf.float32, [])
summary = tf.summary.scalar("loss", loss)
with tf.Session() as session, tf.summary.FileWriter("logs", session.graph) as writer:
    for step in range(2):
        writer.add_summary(session.run(summary, {loss: 1.0 / (step + 1)}), step)
(path,) = tf.gfile.glob("logs/events*")
for event in tf.train.summary_iterator(path):
    for value in event.summary.value:
        print(event.step, value.tag, value.simple_value)

# %% FileWriterCache
writer = tf.summary.FileWriterCache.get("shared_logs")
again = tf.summary.FileWriterCache.get("shared_logs")
tf.summary.FileWriterCache.clear()
writer is again

# %% audio
time = tf.range(800) / 8000
tone = tf.sin(2 * np.pi * 440 * tf.cast(time, tf.float32))
summary = tf.summary.audio("tone", tone[None], sample_rate=8000)
with tf.Session() as session:
    (value,) = tf.Summary.FromString(session.run(summary)).value
value.tag, value.audio.sample_rate, value.audio.length_frames

# %% get_summary_description
node = tf.NodeDef(op="TensorSummary")  # as in graphs of TensorFlow 1.0
node.attr["description"].s = b'{"typeHint": "image"}'
tf.summary.get_summary_description(node).type_hint

# %% histogram
summary = tf.summary.histogram("weights", [1.0, 2.0, 2.5])
with tf.Session() as session:
    (value,) = tf.Summary.FromString(session.run(summary)).value
value.tag, value.histo.num, value.histo.min, value.histo.max, value.histo.sum

# %% image
summary = tf.summary.image("pictures", tf.random_uniform([2, 4, 6, 3], seed=1))
with tf.Session() as session:
    values = tf.Summary.FromString(session.run(summary)).value
[(value.tag, value.image.height, value.image.width) for value in values]

# %% merge
loss, accuracy = tf.summary.scalar("loss", 0.5), tf.summary.scalar("accuracy", 0.75)
summary = tf.summary.merge([loss, accuracy])
with tf.Session() as session:
    values = tf.Summary.FromString(session.run(summary)).value
[(value.tag, value.simple_value) for value in values]

# %% merge_all
tf.summary.scalar("loss", 0.5)
tf.summary.scalar("accuracy", 0.75)
summary = tf.summary.merge_all()
with tf.Session() as session:
    values = tf.Summary.FromString(session.run(summary)).value
[(value.tag, value.simple_value) for value in values]

# %% scalar
summary = tf.summary.scalar("accuracy", 0.75)
with tf.Session() as session:
    (value,) = tf.Summary.FromString(session.run(summary)).value
value.tag, value.simple_value

# %% tensor_summary
summary = tf.summary.tensor_summary("matrix", tf.eye(2))
with tf.Session() as session:
    (value,) = tf.Summary.FromString(session.run(summary)).value
value.tag, tf.make_ndarray(value.tensor)

# %% text
summary = tf.summary.text("note", tf.constant("a *note*"))
with tf.Session() as session:
    (value,) = tf.Summary.FromString(session.run(summary)).value
value.tag, value.metadata.plugin_data.plugin_name, tf.make_ndarray(value.tensor)
