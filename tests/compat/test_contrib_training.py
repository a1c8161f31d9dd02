"""`contrib.training`, `slim.learning`, `slim.evaluation`, and `contrib.framework`'s variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf

slim = tf.contrib.slim
training = tf.contrib.training
framework = tf.contrib.framework


def line() -> tuple[Any, Any]:
    """A line to be fitted, whose variable begins at 0, and its loss."""
    x = tf.constant([[1.0], [2.0]])
    w = framework.model_variable("w", [1, 1], initializer=tf.zeros_initializer())
    loss = tf.losses.mean_squared_error(tf.constant([[2.0], [4.0]]), tf.matmul(x, w))
    return w, loss


def gradient_step(**arguments: Any) -> Any:
    return slim.learning.create_train_op(
        tf.losses.get_total_loss(), tf.train.GradientDescentOptimizer(0.1), **arguments
    )


@pytest.mark.slow
def test_slim_training_and_evaluation(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        line()
        tf.summary.scalar("loss", tf.losses.get_total_loss())
        last = slim.learning.train(
            gradient_step(), str(tmp_path / "train"), number_of_steps=5, log_every_n_steps=2
        )
    assert last < 1.0
    path = tf.train.latest_checkpoint(tmp_path / "train")
    assert path.endswith("model.ckpt-5")
    with tf.Graph().as_default():
        w, loss = line()
        tf.train.get_or_create_global_step()
        tf.summary.scalar("loss", loss)
        mean, update = slim.metrics.streaming_mean(loss)
        found = slim.evaluation.evaluate_once(
            "", path, str(tmp_path / "eval"), num_evals=2, eval_op=update, final_op=[mean, w]
        )
    assert found[1] == pytest.approx(tf.train.load_variable(path, "w"))
    assert found[0] == pytest.approx(2.5 * (2 - found[1].item()) ** 2, rel=1e-4)
    assert any("tfevents" in each.name for each in (tmp_path / "eval").iterdir())
    with tf.Graph().as_default():
        w, loss = line()
        tf.train.get_or_create_global_step()
        again = slim.evaluation.evaluation_loop(
            *("", str(tmp_path / "train"), str(tmp_path / "eval")),
            eval_op=loss,
            final_op=w,
            summary_op=None,
            max_number_of_evaluations=1,
        )
    assert again == found[1]


def test_training_resumes_and_calls_train_step_fn(tmp_path: Path) -> None:
    steps = []

    def step(session: Any, train_op: Any, global_step: Any, given: Any) -> tuple[Any, bool]:
        steps.append(session.run(global_step))
        return slim.learning.train_step(session, train_op, global_step, given)

    for _ in range(2):
        with tf.Graph().as_default():
            line()
            slim.learning.train(
                gradient_step(), str(tmp_path), step, number_of_steps=2 + 2 * bool(steps)
            )
    assert steps == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="train_op cannot be None"):
        slim.learning.train(None, str(tmp_path))
    with pytest.raises(ValueError, match="`number_of_steps` must be either"):
        slim.learning.train(tf.constant(1.0), str(tmp_path), number_of_steps=0)


@pytest.mark.slow
def test_gradient_multipliers_and_clipping() -> None:
    w, _ = line()
    other = tf.get_variable("other", [2], initializer=tf.ones_initializer())
    tf.losses.add_loss(3.0 * tf.reduce_sum(other))
    op = gradient_step(
        clip_gradient_norm=1.0, gradient_multipliers={w: 0.001}, summarize_gradients=True
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(op)
        # The gradient of w is -10 at 0.
        np.testing.assert_allclose(session.run(w), [[0.001]], rtol=1e-5)
        np.testing.assert_allclose(session.run(other), 1 - 0.1 / np.sqrt([2, 2]), rtol=1e-5)
        assert session.run(tf.train.get_global_step()) == 1
        summaries = session.run(tf.summary.merge_all())
    assert b"w_gradient_norm" in summaries
    pairs = [(None, w)]
    for wrong, told in (
        ((), "must be a list"),
        ((pairs, {}), "is empty"),
        ((pairs, [1]), "must be a dict"),
        ((pairs, {"w": 2.0}), "multiple of `None` gradient"),
    ):
        with pytest.raises(ValueError, match=told):
            training.multiply_gradients(*(wrong or ((), {"w": 2.0})))


@pytest.mark.slow
def test_contrib_training_loop(tmp_path: Path) -> None:
    line()
    op = training.create_train_op(
        tf.losses.get_total_loss(),
        tf.train.GradientDescentOptimizer(0.1),
        transform_grads_fn=training.clip_gradient_norms_fn(1.0),
    )
    loss = training.train(
        op, str(tmp_path), hooks=[tf.train.StopAtStepHook(num_steps=3)], save_checkpoint_secs=1
    )
    assert loss == pytest.approx(2.5 * 1.8**2, rel=1e-4)
    found = training.evaluate_repeatedly(
        str(tmp_path),
        eval_ops=tf.losses.get_total_loss(),
        final_ops={"w": framework.get_unique_variable("w")},
        hooks=[training.StopAfterNEvalsHook(2)],
        max_number_of_evaluations=1,
    )
    assert found["w"] == pytest.approx(0.3, rel=1e-5)
    step = training.get_or_create_eval_step()
    counted = training.evaluate_once(
        None,
        eval_ops=[tf.losses.get_total_loss(), step.assign_add(1)],
        final_ops=tf.identity(step),
        hooks=[training.StopAfterNEvalsHook(6)],
    )
    assert counted == 6  # three runs, as one more is counted in each
    with pytest.raises(ValueError, match="logdir cannot be None"):
        training.train(op, None)
    with pytest.raises(ValueError, match="One of log_dir or summary_writer"):
        training.SummaryAtEndHook()


def test_non_finite_loss_raises() -> None:
    w = tf.get_variable("w", initializer=1.0)
    op = training.create_train_op(w * np.inf, tf.train.GradientDescentOptimizer(0.1))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="LossTensor is inf or nan"):
            session.run(op)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="no variables to train"):
        training.create_train_op(tf.constant(1.0), tf.train.GradientDescentOptimizer(0.1))


# -- variables


def test_variable_lookup() -> None:
    with tf.variable_scope("net"):
        weights = slim.model_variable("weights", [2], regularizer=slim.l2_regularizer(0.1))
        biases = slim.variable("biases", [2], trainable=False, device="/cpu:0")
    counter = framework.local_variable(0, name="counter")
    assert slim.get_model_variables() == [weights]
    assert slim.get_variables("net", "biases") == [biases]
    assert slim.get_trainable_variables() == [weights]
    assert framework.get_local_variables() == [counter]
    assert framework.get_variables_by_suffix("ases") == [biases]
    assert framework.get_variables_by_name("weights", "net") == [weights]
    assert framework.get_variables_by_name("eights") == []
    assert framework.get_unique_variable("net/biases") is biases
    assert framework.get_variable_full_name(biases) == "net/biases"
    assert biases.device == "/device:CPU:0"
    assert framework.get_variables_to_restore(exclude=["net/b"]) == [weights]
    assert framework.filter_variables([weights, biases], ["net"], ["bias"]) == [weights]
    assert framework.filter_variables([weights], ["eights"], reg_search=False) == []
    framework.add_model_variable(biases)
    framework.add_model_variable(biases)
    assert framework.get_model_variables() == [weights, biases]
    with pytest.raises(ValueError, match="find variable none"):
        framework.get_unique_variable("none")
    with pytest.raises(TypeError, match="include must be a list"):
        framework.get_variables_to_restore("net")


def test_variable_assignment(tmp_path: Path) -> None:
    a, b = (tf.get_variable(name, [2], initializer=tf.zeros_initializer()) for name in "ab")
    path = str(tmp_path / "model")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        framework.assign_from_values_fn({"a": [1.0, 2.0]})(session)
        tf.train.Saver([a]).save(session, path)
        session.run(a.assign([0.0, 0.0]))
        framework.assign_from_checkpoint_fn(path, [a, b], ignore_missing_vars=True)(session)
        assert session.run(a).tolist() == [1.0, 2.0]
        update, feeds = framework.assign_from_checkpoint(path, {"a": b})
        session.run(update, feeds)
        assert session.run(b).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"missing variable \[b\]"):
        framework.assign_from_checkpoint_fn(path, [a, b])
    with pytest.raises(ValueError, match="Total size of new array"):
        framework.assign_from_checkpoint(path, {"a": tf.get_variable("c", [3])})
    with pytest.raises(ValueError, match="var_list cannot be empty"):
        framework.assign_from_checkpoint_fn(path, [])


def test_slim_traces_need_a_folder(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        line()
        step = gradient_step()
        for given in (
            {"trace_every_n_steps": 2},
            {"saver": tf.train.Saver()},
            {"summary_op": None},
        ):
            name = next(iter(given))
            with pytest.raises(ValueError, match=f"Cannot provide {name} because logdir=None"):
                slim.learning.train(step, None, number_of_steps=1, **given)
        slim.learning.train(step, str(tmp_path), number_of_steps=3, trace_every_n_steps=2)
    assert sorted(each.name for each in tmp_path.glob("tf_trace*")) == [
        *("tf_trace-1.json", "tf_trace-3.json"),
    ]
