"""DIN, DIEN, MMoE, PLE and ESMM learn, predict and export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.recommend.dien import auxiliary_loss, sampled_steps
from estimatorkit.recommend.esmm import logit_of_product

RANDOM = np.random.default_rng(7)
COUNT, ITEMS, STEPS = 256, 6, 5


def behaviours() -> tuple[dict[str, Any], Any]:
    """Examples whose label is 1 if the target's parity is that of most of the history."""
    lengths = RANDOM.integers(0, STEPS + 1, COUNT)
    parity = RANDOM.integers(0, 2, COUNT)
    history = 2 * RANDOM.integers(0, ITEMS // 2, (COUNT, STEPS)) + parity[:, None]
    history[np.arange(STEPS) >= lengths[:, None]] = -1
    item = RANDOM.integers(0, ITEMS, COUNT)
    other = np.where(history < 0, -1, (history + 1) % ITEMS)
    label = ((item % 2 == parity) & (lengths > 0)).astype(np.int64)
    return {"item": item, "history": history, "other": other}, label


FEATURES, LABELS = behaviours()


def columns() -> Any:
    """Embeddings of the target, the history, and the negatives."""
    fc = tf.feature_column
    ids = [
        fc.categorical_column_with_identity("item", ITEMS),
        *(fc.sequence_categorical_column_with_identity(key, ITEMS) for key in ("history", "other")),
    ]
    return fc.shared_embeddings(ids, 4, shared_embedding_collection_name="items")


def input_fn(features: Any, labels: Any, epochs: int = 1) -> Any:
    return lambda: tf.data.Dataset.from_tensor_slices((features, labels)).repeat(epochs).batch(64)


def config() -> Any:
    return tf.estimator.RunConfig(tf_random_seed=3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["DIN", pytest.param("DIEN", marks=pytest.mark.slow), "DIEN with negatives"]
)
def test_target_interest_is_learned(kind: str, tmp_path: Path) -> None:
    item, history, other = columns()
    more: dict[str, Any] = {"negatives": [other]} if kind == "DIEN with negatives" else {}
    model = getattr(tf.estimator, kind.split()[0])(
        *([16], [item], [(history, item)]),
        model_dir=tmp_path / "model",
        attention_units=(8,),
        optimizer=lambda: tf.train.AdamOptimizer(0.02),
        config=config(),
        **more,
    )
    model.train(input_fn(FEATURES, LABELS, 40))
    metrics = model.evaluate(input_fn(FEATURES, LABELS))
    assert metrics["auc"] > 0.95, metrics
    names = model.get_variable_names()
    assert "items" in names  # one table for the target and all sequences
    assert [name for name in names if name.endswith("dice/alpha")]
    probabilities = [each["probabilities"][1] for each in model.predict(input_fn(FEATURES, LABELS))]
    spec = tf.feature_column.make_parse_example_spec([item, history, *more.get("negatives", ())])
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    served = tf.estimator.load_predictor(model.export_saved_model(tmp_path / "export", receiver))
    examples = np.array([_example(row) for row in range(3)], object)
    found = served({"examples": examples}, "predict")["probabilities"][:, 1]
    np.testing.assert_allclose(found, probabilities[:3], rtol=1e-4)


def _example(row: int) -> bytes:
    def ints(values: Any) -> Any:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[v for v in values if v >= 0]))

    keys = {key: np.atleast_1d(values[row]) for key, values in FEATURES.items()}
    features = {key: ints(values) for key, values in keys.items()}
    example = tf.train.Example(features=tf.train.Features(feature=features))
    serialized: bytes = example.SerializeToString()
    return serialized


@pytest.mark.slow
def test_padding_is_ignored() -> None:
    item, history, _ = columns()
    model = tf.estimator.DIEN([8], [item], [(history, item)], attention_units=(4,))
    model.train(input_fn(FEATURES, LABELS), steps=2)
    wider = np.concatenate([FEATURES["history"], np.full((COUNT, 3), -1)], 1)
    results = [
        [
            each["logits"][0]
            for each in model.predict(input_fn(FEATURES | {"history": each}, LABELS))
        ]
        for each in (FEATURES["history"], wider)
    ]
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-6)


def test_invalid_arguments_raise() -> None:
    item, history, other = columns()
    with pytest.raises(ValueError, match="pairs of a sequence column"):
        tf.estimator.DIN([8], [item], [(item, history)])
    with pytest.raises(ValueError, match="pairs of a sequence column"):
        tf.estimator.DIN([8], [item], [])
    with pytest.raises(ValueError, match="as many columns as sequences"):
        tf.estimator.DIEN([8], [item], [(history, item)], negatives=[other, other])
    with pytest.raises(ValueError, match="update is not known"):
        tf.estimator.DIEN([8], [item], [(history, item)], update="none")
    with pytest.raises(ValueError, match="hidden_units"):
        tf.estimator.DIN([0], [item], [(history, item)])
    heads = [tf.estimator.BinaryClassHead(name="a")]
    with pytest.raises(ValueError, match="num_experts"):
        tf.estimator.MMoE(heads, [4], [item], num_experts=0)


def test_auxiliary_loss_matches_paper() -> None:
    states, clicked, unclicked = RANDOM.normal(size=(3, 2, 4, 3)).astype(np.float32)
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 1]], bool)
    with tf.Graph().as_default(), tf.Session() as session:
        tensors = [tf.constant(each) for each in (states, clicked, unclicked, mask)]
        loss, nothing = (
            auxiliary_loss(*tensors[:3], each, (5,)) for each in (tensors[3], tf.zeros_like(mask))
        )
        session.run(tf.global_variables_initializer())
        found, empty, *weights = session.run([loss, nothing, *tf.trainable_variables()[:4]])

    def probability(items: Any) -> Any:
        hidden = 1 / (1 + np.exp(-(np.concatenate([states, items], -1) @ weights[0] + weights[1])))
        return 1 / (1 + np.exp(-(hidden @ weights[2] + weights[3])))[..., 0]

    losses = -np.log(probability(clicked)) - np.log(1 - probability(unclicked))
    np.testing.assert_allclose(found, losses[mask].mean(), rtol=1e-5)
    assert empty == 0


def test_negatives_come_from_all_steps_of_batch() -> None:
    lengths = np.array([2, 0, 3])
    steps = np.arange(12, dtype=np.float32).reshape(3, 4, 1)
    with tf.Graph().as_default(), tf.Session() as session:
        drawn = sampled_steps(tf.constant(steps), tf.constant(lengths))
        found = np.concatenate([session.run(drawn).ravel() for _ in range(200)])
    values, counts = np.unique(found, return_counts=True)
    assert values.tolist() == [0, 1, 8, 9, 10]
    assert counts.min() > 0.8 * len(found) / 5


def test_logit_of_product_is_exact_and_finite() -> None:
    one, other = np.meshgrid(*[np.linspace(-100, 100, 41)] * 2)
    with tf.Graph().as_default(), tf.Session() as session:
        logits = logit_of_product(tf.constant(one), tf.constant(other))
        found, gradients = session.run([logits, tf.gradients(logits, [logits.op.inputs[0]])])
    assert np.isfinite(found).all()
    assert np.isfinite(gradients[0]).all()
    small = (abs(one) < 12) & (abs(other) < 12)
    product = 1 / (1 + np.exp(-one[small])) / (1 + np.exp(-other[small]))
    np.testing.assert_allclose(found[small], np.log(product / (1 - product)), rtol=1e-6)


X = RANDOM.normal(size=(COUNT, 3)).astype(np.float32)
CLICKS = (X[:, 0] + 0.3 * X[:, 2] > 0).astype(np.int64)
CONVERSIONS = CLICKS * (X[:, 1] > 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["MMoE", "PLE"])
def test_multi_task_models_learn(kind: str) -> None:
    heads = [tf.estimator.BinaryClassHead(name="sign"), tf.estimator.RegressionHead(2, name="sum")]
    labels = {"sign": CLICKS, "sum": X[:, :2] + X[:, 1:]}
    model = getattr(tf.estimator, kind)(
        *(heads, [8], [tf.feature_column.numeric_column("x", [3])]),
        expert_units=(16,),
        gate_units=(4,),
        optimizer=lambda: tf.train.AdamOptimizer(0.02),
        config=config(),
    )
    model.train(input_fn({"x": X}, labels, 60))
    metrics = model.evaluate(input_fn({"x": X}, labels))
    assert metrics["auc/sign"] > 0.98
    assert metrics["average_loss/sum"] < 0.2
    first = next(iter(model.predict(input_fn({"x": X}, labels))))
    assert first["sum", "predictions"].shape == (2,)


@pytest.mark.slow
def test_esmm_learns_clicks_and_conversions() -> None:
    labels = {"ctr": CLICKS, "ctcvr": CONVERSIONS}
    model = tf.estimator.ESMM(
        [8],
        [tf.feature_column.numeric_column("x", [3])],
        optimizer=lambda: tf.train.AdamOptimizer(0.02),
        config=config(),
    )
    model.train(input_fn({"x": X}, labels, 60))
    metrics = model.evaluate(input_fn({"x": X}, labels))
    assert metrics["auc/ctr"] > 0.98
    assert metrics["auc/ctcvr"] > 0.98
    np.testing.assert_allclose(metrics["loss"], metrics["loss/ctr"] + metrics["loss/ctcvr"], 1e-5)
    found = list(model.predict(input_fn({"x": X}, labels)))
    ctr, cvr, ctcvr = (
        np.array([each[name, "logistic"] for each in found]) for name in ("ctr", "cvr", "ctcvr")
    )
    np.testing.assert_allclose(ctr * cvr, ctcvr, rtol=1e-4)
