# %% FileWriter
summary = tf.summary.scalar("loss", 0.5)
with tf.Session() as session, tf.summary.FileWriter("logs") as writer:
    writer.add_summary(session.run(summary), global_step=1)
(path,) = tf.gfile.glob("logs/events*")
[value.tag for event in tf.train.summary_iterator(path) for value in event.summary.value]

# %% FileWriterCache
writer = tf.summary.FileWriterCache.get("shared_logs")
again = tf.summary.FileWriterCache.get("shared_logs")
tf.summary.FileWriterCache.clear()
writer is again

# %% audio
summary = tf.summary.audio("tone", tf.zeros([1, 100]), sample_rate=8000)
with tf.Session() as session, tf.summary.FileWriter("logs") as writer:
    writer.add_summary(session.run(summary), global_step=1)
(path,) = tf.gfile.glob("logs/events*")
[value.tag for event in tf.train.summary_iterator(path) for value in event.summary.value]

# %% get_summary_description
node = tf.NodeDef(op="TensorSummary")  # as in graphs of TensorFlow 1.0
node.attr["description"].s = b'{"typeHint": "image"}'
tf.summary.get_summary_description(node).type_hint

# %% histogram
summary = tf.summary.histogram("weights", [1.0, 2.0, 2.5])
with tf.Session() as session, tf.summary.FileWriter("logs") as writer:
    writer.add_summary(session.run(summary), global_step=1)
(path,) = tf.gfile.glob("logs/events*")
[value.tag for event in tf.train.summary_iterator(path) for value in event.summary.value]

# %% image
summary = tf.summary.image("picture", tf.ones([1, 4, 4, 1]))
with tf.Session() as session, tf.summary.FileWriter("logs") as writer:
    writer.add_summary(session.run(summary), global_step=1)
(path,) = tf.gfile.glob("logs/events*")
[value.tag for event in tf.train.summary_iterator(path) for value in event.summary.value]

# %% merge
parts = [tf.summary.scalar("loss", 0.5), tf.summary.scalar("accuracy", 0.9)]
summary = tf.summary.merge(parts)
with tf.Session() as session, tf.summary.FileWriter("logs") as writer:
    writer.add_summary(session.run(summary), global_step=1)
(path,) = tf.gfile.glob("logs/events*")
[value.tag for event in tf.train.summary_iterator(path) for value in event.summary.value]

# %% merge_all
tf.summary.scalar("loss", 0.5)
tf.summary.scalar("accuracy", 0.9)
summary = tf.summary.merge_all()
with tf.Session() as session, tf.summary.FileWriter("logs") as writer:
    writer.add_summary(session.run(summary), global_step=1)
(path,) = tf.gfile.glob("logs/events*")
[value.tag for event in tf.train.summary_iterator(path) for value in event.summary.value]

# %% scalar
summary = tf.summary.scalar("accuracy", 0.9)
with tf.Session() as session, tf.summary.FileWriter("logs") as writer:
    writer.add_summary(session.run(summary), global_step=1)
(path,) = tf.gfile.glob("logs/events*")
[value.tag for event in tf.train.summary_iterator(path) for value in event.summary.value]

# %% tensor_summary
summary = tf.summary.tensor_summary("matrix", tf.eye(2))
with tf.Session() as session, tf.summary.FileWriter("logs") as writer:
    writer.add_summary(session.run(summary), global_step=1)
(path,) = tf.gfile.glob("logs/events*")
[value.tag for event in tf.train.summary_iterator(path) for value in event.summary.value]

# %% text
summary = tf.summary.text("note", tf.constant("a *note*"))
with tf.Session() as session, tf.summary.FileWriter("logs") as writer:
    writer.add_summary(session.run(summary), global_step=1)
(path,) = tf.gfile.glob("logs/events*")
[value.tag for event in tf.train.summary_iterator(path) for value in event.summary.value]
