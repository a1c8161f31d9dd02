# %% InferredColumns
table = {"age": np.arange(20.0, 60.0), "job": np.array(["chef", "pilot"] * 20)}
inferred = tf.feature_columns.infer(table)
print([column.name for column in inferred])
inferred.prepare({"age": [31.0], "job": ["pilot"]}).to_dict("list")

# %% RobustScaling
scaling = tf.feature_columns.RobustScaling(center=40.0, scale=10.0)
column = tf.feature_column.numeric_column("age", normalizer_fn=scaling)
tf.feature_column.input_layer({"age": tf.constant([30.0, 40.0, 4000.0])}, [column])

# %% Scaling
scaling = tf.feature_columns.Scaling(center=40.0, scale=10.0)
column = tf.feature_column.numeric_column("age", normalizer_fn=scaling)
tf.feature_column.input_layer({"age": tf.constant([30.0, 40.0, 55.0])}, [column])

# %% infer
table = {
    "age": np.linspace(18.0, 80.0, 50),
    "job": np.array(["chef", "pilot"] * 25),
    "country": np.array(["UK"] * 50),
    "buys": np.array([0, 1] * 25),
}
inferred = tf.feature_columns.infer(table, label="buys")
for name, note in inferred.notes.items():
    print(name, "-", note)
[column.name for column in inferred], [column.name for column in inferred.wide]

# %% read_cells
import pandas as pd

prices = pd.Series(["$1,234.50", "($5)", "unknown"])
days = pd.Series(["31/01/2024", "2024-02-01", "3 Feb 2024"])
print(tf.feature_columns.read_cells(prices, "number", units=["$"]).tolist())
tf.feature_columns.read_cells(days, "date", day_first=True).tolist()

# %% robust_scaling
tf.feature_columns.robust_scaling([1.0, 2.0, 3.0, 4.0, 500.0, np.nan])
