"""Census income by ``DNNLinearCombinedClassifier``, in the manner of the official wide and deep
model: lines of CSV through ``tf.data``, vocabularies, hashes, buckets, crosses and embeddings, two
epochs of batches of 40, and an evaluation after each."""

import os
import tempfile

import estimatorkit.compat.v1 as tf

FOLDER = os.path.join(os.environ["ESTIMATORKIT_DATA_DIR"], "census")
NAMES = [
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation"),
    *("relationship", "race", "gender", "capital_gain", "capital_loss", "hours_per_week"),
    *("native_country", "income_bracket"),
]
NUMBERS = {"age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"}
RELATIONSHIPS = ["Husband", "Not-in-family", "Wife", "Own-child", "Unmarried", "Other-relative"]
fc = tf.feature_column


def build_model_columns():
    numbers = {key: fc.numeric_column(key) for key in sorted(NUMBERS - {"fnlwgt"})}
    relationship = fc.categorical_column_with_vocabulary_list("relationship", RELATIONSHIPS)
    hashed = {
        key: fc.categorical_column_with_hash_bucket(key, size)
        for key, size in [
            *(("workclass", 30), ("education", 50), ("marital_status", 30)),
            *(("occupation", 1000), ("native_country", 200)),
        ]
    }
    ages = fc.bucketized_column(numbers["age"], [18, 25, 30, 35, 40, 45, 50, 55, 60, 65])
    base = [*hashed.values(), relationship, ages]
    crossed = [
        fc.crossed_column(["education", "occupation"], hash_bucket_size=1000),
        fc.crossed_column([ages, "education", "occupation"], hash_bucket_size=1000),
    ]
    deep = [
        *numbers.values(),
        *(fc.indicator_column(hashed[key]) for key in ("workclass", "education", "marital_status")),
        fc.indicator_column(relationship),
        fc.embedding_column(hashed["occupation"], dimension=8),
    ]
    return base + crossed, deep


def input_fn(name, shuffle, batch_size):
    def parse(line):
        columns = tf.decode_csv(line, [[0.0] if name in NUMBERS else [""] for name in NAMES])
        features = dict(zip(NAMES, columns, strict=True))
        label = features.pop("income_bracket")
        return features, tf.equal(tf.substr(label, 0, 4), ">50K")

    dataset = tf.data.TextLineDataset(name)
    if shuffle:
        dataset = dataset.shuffle(buffer_size=32561, seed=1)
    return dataset.map(parse, num_parallel_calls=2).batch(batch_size)


with tempfile.TemporaryDirectory() as folder:
    files = {}
    for name in ("adult.data", "adult.test"):  # cleaned, as the official script does
        with open(os.path.join(FOLDER, name), encoding="utf-8") as lines:
            rows = [line.strip().replace(", ", ",").rstrip(".") for line in lines if "," in line]
        files[name] = os.path.join(folder, name)
        with open(files[name], "w", encoding="utf-8") as out:
            out.writelines(row + "\n" for row in rows)
    wide, deep = build_model_columns()
    model = tf.estimator.DNNLinearCombinedClassifier(
        model_dir=os.path.join(folder, "model"),
        linear_feature_columns=wide,
        dnn_feature_columns=deep,
        dnn_hidden_units=[100, 75, 50, 25],
        config=tf.estimator.RunConfig(tf_random_seed=1),
    )
    for _ in range(2):
        model.train(input_fn=lambda: input_fn(files["adult.data"], True, 40))
        results = model.evaluate(input_fn=lambda: input_fn(files["adult.test"], False, 40))
        for key in sorted(results):
            print(f"{key}: {results[key]}")
print(f"figure accuracy {results['accuracy']:.4f}")
