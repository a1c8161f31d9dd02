# %% visualize_embeddings
table = tf.get_variable("table", [3, 2])
config = tf.projector.ProjectorConfig()
config.embeddings.add().tensor_name = table.name
tf.projector.visualize_embeddings(tf.summary.FileWriter("logs_of_table"), config)
"projector_config.pbtxt" in tf.gfile.listdir("logs_of_table")

# %% write_embeddings
table = tf.get_variable("table", [3, 2])
config = tf.projector.ProjectorConfig()
config.embeddings.add().tensor_name = table.name
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    writer = tf.summary.FileWriter("logs_of_vectors")
    tf.projector.write_embeddings(writer, config, session)
sorted(name for name in tf.gfile.listdir("logs_of_vectors") if "events" not in name)
