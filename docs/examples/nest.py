# %% assert_same_structure
tf.nest.assert_same_structure({"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
try:
    tf.nest.assert_same_structure([1, 2], [1, [2, 3]])
except ValueError as error:
    print(error)

# %% flatten
tf.nest.flatten({"b": [3, (4, 5)], "a": 1})

# %% flatten_up_to
tf.nest.flatten_up_to({"a": 0, "b": 0}, {"a": [1, 2], "b": {"c": 3}})

# %% is_attrs
import attrs


@attrs.define
class Point:
    x: float


tf.nest.is_attrs(Point(1.0)), tf.nest.is_attrs((1.0,))

# %% is_namedtuple
import collections

Point = collections.namedtuple("Point", "x y")
tf.nest.is_namedtuple(Point(1, 2)), tf.nest.is_namedtuple((1, 2))

# %% is_nested
values = [(1, 2), {"a": 1}, np.zeros(3), "text"]
[tf.nest.is_nested(value) for value in values]

# %% map_structure
prices, counts = {"a": 1.5, "b": [2.0, 3.0]}, {"a": 2, "b": [1, 4]}
tf.nest.map_structure(lambda price, count: price * count, prices, counts)

# %% pack_sequence_as
tf.nest.pack_sequence_as({"b": [0, (0, 0)], "a": 0}, [1, 3, 4, 5])
