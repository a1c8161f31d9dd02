# %% convert_variables_to_constants
x = tf.placeholder(tf.float32, [], name="x")
tf.multiply(tf.Variable(3.0, name="weight"), x, name="y")
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    frozen = tf.graph_util.convert_variables_to_constants(
        session, session.graph.as_graph_def(), ["y"]
    )
[y] = tf.import_graph_def(frozen, {"x": 2.0}, ["y:0"])
y

# %% extract_sub_graph
a = tf.constant(1.0, name="a")
b = tf.constant(2.0, name="b")
tf.negative(a, name="c")
tf.negative(b, name="d")
graph_def = tf.get_default_graph().as_graph_def()
[node.name for node in tf.graph_util.extract_sub_graph(graph_def, ["c"]).node]

# %% import_graph_def
with tf.Graph().as_default() as graph:
    tf.square(tf.placeholder(tf.float32, name="x"), name="y")
[y] = tf.import_graph_def(graph.as_graph_def(), {"x": 3.0}, ["y:0"], name="squared")
print(y.name)
y

# %% remove_training_nodes
x = tf.placeholder(tf.float32, [], name="x")
checked = tf.check_numerics(tf.identity(x, name="copy"), "not finite", name="checked")
tf.negative(checked, name="y")
graph_def = tf.get_default_graph().as_graph_def()
kept = tf.graph_util.remove_training_nodes(graph_def, protected_nodes=["y"])
[(node.name, list(node.input)) for node in kept.node]
