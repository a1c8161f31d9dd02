"""Click-through models: DeepCTR's logits, training, columns, exports, configs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.experiment import runner
from estimatorkit.experiment.load import load_experiment

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "interactions.npz"
DATA = Path(os.environ.get("ESTIMATORKIT_DATA_DIR") or ROOT.parent / "shared" / "data")
FIELDS = [f"C{at}" for at in range(5)]
ids = tf.feature_column.categorical_column_with_identity
embed = tf.feature_column.embedding_column
Golden = dict[str, Any]


def _columns(dimension: int = 4) -> list[Any]:
    return [
        *(embed(ids(key, 7), dimension) for key in FIELDS),
        tf.feature_column.numeric_column("I0", 2),
    ]


def _linear() -> list[Any]:
    return [*(ids(key, 7) for key in FIELDS), tf.feature_column.numeric_column("I0", 2)]


# -- DeepCTR's variables, by our names


def _cross_vector(file: Golden) -> Golden:
    return {
        f"cross/{kind}_{at}": file[f"cross_net/{kind}{at}"].reshape(shape)
        for at in (0, 1)
        for kind, shape in (("kernel", (-1, 1)), ("bias", (-1,)))
    }


def _cross_matrix(file: Golden) -> Golden:
    kernels = {f"cross/kernel_{at}": file[f"cross_net/kernel{at}"].T for at in (0, 1)}
    return kernels | {f"cross/bias_{at}": file[f"cross_net/bias{at}"][:, 0] for at in (0, 1)}


def _cross_mix(file: Golden) -> Golden:
    found = {}
    of = {key.removeprefix("cross_net_mix/"): value for key, value in file.items()}
    for at in (0, 1):
        found[f"cross/project_{at}"] = of[f"V_list{at}"]
        found[f"cross/expand_{at}"] = of[f"U_list{at}"].transpose(0, 2, 1)
        found[f"cross/mix_{at}"] = of[f"C_list{at}"].transpose(0, 2, 1)
        found[f"cross/bias_{at}"] = of[f"bias{at}"][:, 0]
        gates = [file[f"cross_net_mix/{name}/kernel"] for name in ("dense", "dense_1")]
        found[f"cross/gate_{at}"] = np.concatenate(gates, 1)
    return found


def _cin(file: Golden) -> Golden:
    kernels = {f"cin/kernel_{at}": file[f"cin/filter{at}"][0] for at in (0, 1)}
    logits = np.concatenate([file["dense_1/kernel"], file["dense/kernel"]])
    return kernels | {"logits/kernel": logits}


def _attention(file: Golden) -> Golden:
    names = {"query": "query", "key": "key", "value": "value", "residual": "res"}
    return {
        f"attention_{at}/{ours}": file[f"interacting_layer{end}/{theirs}"]
        for at, end in ((0, ""), (1, "_1"))
        for ours, theirs in names.items()
    }


def _bilinear(file: Golden) -> Golden:
    found = {
        f"senet/{n}": file[f"senet_layer/W_{at}"] for at, n in ((1, "squeeze"), (2, "excitation"))
    }
    for name, end in (("weighed_pairs", ""), ("pairs", "_1")):
        prefix = f"bilinear_interaction{end}/bilinear_weight"
        pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
        found[f"{name}/kernel"] = np.stack([file[f"{prefix}{i}_{j}"] for i, j in pairs])
    # DeepCTR joins both products of a pair, then the pairs.
    kernel = file["dnn/kernel0"]
    pairs_first = kernel[:80].reshape(10, 2, 4, -1)
    both_first = pairs_first.transpose(1, 0, 2, 3).reshape(80, -1)
    found["hiddenlayer_0/kernel"] = np.concatenate([both_first, kernel[80:]])
    return found


MODELS: dict[str, tuple[str, dict[str, Any], Callable[[Golden], Golden]]] = {
    "DeepFM": ("DeepFM", {}, lambda file: {}),
    "DCN_vector": ("DCN", {"version": 1}, _cross_vector),
    "DCN_matrix": ("DCN", {}, _cross_matrix),
    "DCN_mix": ("DCN", {"rank": 3, "experts": 2}, _cross_mix),
    "xDeepFM": ("xDeepFM", {"cin_layers": (6, 4), "cin_split_half": True}, _cin),
    "AutoInt": ("AutoInt", {"attention_layers": 2, "key_dim": 3}, _attention),
    "FiBiNET": ("FiBiNET", {"reduction_ratio": 2}, _bilinear),
}


def _values(case: str, scope: str, file: Golden, own: Callable[[Golden], Golden]) -> Golden:
    below = {
        f"hiddenlayer_{at}/{kind}": file[f"dnn/{kind}{at}"]
        for at in (0, 1)
        for kind in ("kernel", "bias")
    }
    below |= {"logits/kernel": file["dense/kernel"], "logits/bias": np.zeros(1)} | own(file)
    tables = "input_from_feature_columns/input_layer"
    for key in FIELDS:
        below[f"{tables}/{key}_embedding/embedding_weights"] = file[f"sparse_emb_{key}/embeddings"]
    found = {f"{scope}/{name}": value for name, value in below.items()}
    linear = "linear/linear_model"
    for key in FIELDS:
        found[f"{linear}/{key}/weights"] = file[f"linear0sparse_emb_{key}/embeddings"]
    found[f"{linear}/I0/weights"] = file["linear/linear_kernel"]
    found[f"{linear}/bias_weights"] = file["prediction_layer/global_bias"]
    return found


@pytest.mark.parametrize("case", MODELS)
def test_logits_match_deepctr(case: str) -> None:
    kind, arguments, own = MODELS[case]
    with np.load(GOLDEN) as loaded:
        parts = ((*key.split("/", 1), value) for key, value in loaded.items())
        file = {name: value for one, name, value in parts if one == case}
    model = getattr(tf.estimator, kind)(
        _columns(), [6, 3], linear_feature_columns=_linear(), **arguments
    )
    features = {key: tf.constant(file[key]) for key in (*FIELDS, "I0")}
    spec = model.model_fn(features, None, "infer", model.config)
    values = _values(case, kind.lower(), file, own)
    variables = {each.op.name: each for each in tf.trainable_variables()}
    assert variables.keys() == values.keys()
    with tf.Session() as session:
        for name, variable in variables.items():
            variable.load(values[name].astype("float32"), session)
        found = session.run(spec.predictions["logits"])
    np.testing.assert_allclose(found, file["logits"], rtol=1e-5, atol=1e-5)


# -- training


def _clicks(rows: int = 96) -> tuple[dict[str, Any], Any]:
    random = np.random.RandomState(0)
    features: dict[str, Any] = {key: random.randint(0, 7, rows) for key in FIELDS}
    features["I0"] = random.normal(size=(rows, 2)).astype("float32")
    return features, ((features["C0"] + features["C1"]) % 2).astype("int64")


def _input_fn() -> Any:
    return tf.data.Dataset.from_tensor_slices(_clicks()).repeat(40).batch(32)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["DCN", "DeepFM", "xDeepFM", "AutoInt", "FiBiNET"])
def test_models_learn_predict_and_export(kind: str, tmp_path: Path) -> None:
    config = tf.estimator.RunConfig(tf_random_seed=1)
    adam = tf.train.AdamOptimizer(0.02)
    model = getattr(tf.estimator, kind)(
        _columns(), [8], str(tmp_path), optimizer=adam, config=config
    )
    model.train(_input_fn)
    assert model.evaluate(_input_fn, steps=3)["auc"] > 0.95
    rows = list(model.predict(_input_fn))[:3]
    spec = tf.feature_column.make_parse_example_spec(_columns())
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    assert Path(os.fsdecode(model.export_saved_model(str(tmp_path / "export"), receiver))).is_dir()
    assert [row["probabilities"].shape for row in rows] == [(2,)] * 3


def test_factorization_machine_step_matches_numpy() -> None:
    """Gradient descent on the loss of a machine without linear model and network."""
    features, labels = _clicks(8)
    columns = [embed(ids(key, 7), 3) for key in FIELDS]
    model = tf.estimator.DeepFM(
        columns, [], linear_feature_columns=[], optimizer=tf.train.GradientDescentOptimizer(0.5)
    )
    given = {key: tf.constant(features[key]) for key in FIELDS}
    spec = model.model_fn(given, tf.constant(labels), "train", model.config)
    tables = tf.trainable_variables()
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        values = [each.astype("float64") for each in session.run(tables)]
        found = [session.run([spec.train_op, spec.loss])[1] for _ in range(4)]
    expected = []
    for _ in range(4):
        x = np.stack([t[features[key]] for t, key in zip(values, FIELDS, strict=True)], 1)
        total = x.sum(1, keepdims=True)
        logits = 0.5 * (total**2 - (x**2).sum(1, keepdims=True)).sum((1, 2))
        expected.append(np.mean(np.logaddexp(0, logits) - labels * logits))
        slope = (1 / (1 + np.exp(-logits)) - labels) / len(labels)
        moves = slope[:, None, None] * (total - x)
        for at, key in enumerate(FIELDS):
            np.subtract.at(values[at], features[key], 0.5 * moves[:, at])
    np.testing.assert_allclose(found, expected, rtol=1e-5)


# -- columns and arguments


@pytest.mark.slow
def test_weighted_ids_and_shared_tables_are_fields() -> None:
    fc = tf.feature_column
    words = fc.categorical_column_with_hash_bucket("words", 50)
    fields = [
        embed(fc.weighted_categorical_column(words, "weights"), 4, combiner="sum"),
        *fc.shared_embedding_columns([ids("seen", 9), ids("ad", 9)], 4),
    ]
    features = {
        "words": [["a", "b"], ["c", ""]],
        "weights": [[1.0, 0.5], [2.0, 0.0]],
        "seen": [[1, 2], [3, -1]],
        "ad": [[1], [3]],
    }

    def input_fn() -> Any:
        return tf.data.Dataset.from_tensors((features, [[1], [0]])).repeat(30)

    model = tf.estimator.DeepFM(fields, [4])
    assert model.train(input_fn).evaluate(input_fn, steps=1)["accuracy"] == 1.0
    tables = [name for name in model.get_variable_names() if name.endswith("embedding_weights")]
    assert len(tables) == 2


@pytest.mark.parametrize("kind", ["DeepFM", "xDeepFM", "AutoInt", "FiBiNET"])
def test_fields_of_unequal_dimension_are_named(kind: str) -> None:
    columns = [embed(ids("a", 3), 4), embed(ids("b", 3), 8)]
    with pytest.raises(ValueError, match=r"a_embedding \(4\), b_embedding \(8\)"):
        getattr(tf.estimator, kind)(columns, [4])
    tf.estimator.DCN(columns, [4])  # reads them side by side
    with pytest.raises(ValueError, match="too few fields"):
        getattr(tf.estimator, kind)(columns[:1], [4])


@pytest.mark.slow
def test_multi_logit_and_regression_heads() -> None:
    features, labels = _clicks()

    def input_fn() -> Any:
        return tf.data.Dataset.from_tensor_slices((features, labels)).repeat(30).batch(32)

    for head, metric in (
        (tf.estimator.RegressionHead(), "average_loss"),
        (tf.estimator.MultiClassHead(3), "average_loss"),
    ):
        model = tf.estimator.DeepFM(_columns(), [8], head=head)
        before = model.train(input_fn, steps=1).evaluate(input_fn, steps=3)[metric]
        assert model.train(input_fn).evaluate(input_fn, steps=3)[metric] < before


@pytest.mark.parametrize(
    ("kind", "arguments", "words"),
    [
        ("DCN", {"version": 3}, "version or structure"),
        ("DCN", {"version": 1, "rank": 3}, "version 2"),
        ("DCN", {"experts": 3}, "rank and experts"),
        ("DeepFM", {"dropout": 1.5}, "dropout"),
        ("FiBiNET", {"bilinear_type": "al"}, "bilinear_type"),
        ("xDeepFM", {"cin_layers": ()}, "maps"),
    ],
)
def test_invalid_arguments_raise(kind: str, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        getattr(tf.estimator, kind)(_columns(), [4], **arguments)


# -- configs


@pytest.mark.slow
def test_config_trains_and_exports(tmp_path: Path) -> None:
    table = DATA / "criteo" / "train.tiny.csv"
    if not table.is_file():
        pytest.skip("criteo/train.tiny.csv is not here (ESTIMATORKIT_DATA_DIR)")
    changes = [f"data.train.csv={table}", f"model_dir={tmp_path}", "train.epochs=2"]
    experiment = load_experiment(ROOT / "configs" / "recommend" / "deepfm_criteo.yaml", changes)
    assert runner.train(experiment).metrics["eval"]["auc"] > 0.55
    assert any((tmp_path / "export" / "best").iterdir())
