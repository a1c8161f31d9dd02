# %% visualize_embeddings
table = tf.get_variable("table", [3, 2])
config = tf.projector.ProjectorConfig()
config.embeddings.add(tensor_name=table.name, metadata_path="words.tsv")
tf.projector.visualize_embeddings("logs", config)
with open("logs/projector_config.pbtxt") as file:
    print(file.read())

# %% write_embeddings
table = tf.get_variable("table", initializer=[[1.0, 2.0], [3.0, 4.0]])
config = tf.projector.ProjectorConfig()
config.embeddings.add(tensor_name=table.name)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    tf.projector.write_embeddings("logs", config, session)
print(tf.gfile.listdir("logs"))
with open("logs/table.tsv") as file:
    print(file.read())
