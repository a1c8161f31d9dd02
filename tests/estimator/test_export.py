"""`export_saved_model` and `load_predictor`: folders, signatures, results, kinds of models."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import jax
import jax.export
import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import errors
from estimatorkit.estimator import export as exports
from estimatorkit.estimator.serving import exporting, predictor as predictor_module
from estimatorkit.estimator.serving.exporting import (
    experimental_export_all_saved_models,
    export_saved_model,
)
from estimatorkit.estimator.serving.predictor import Predictor, load_predictor
from estimatorkit.estimator.serving.serving_inputs import build_raw_supervised_input_receiver_fn
from estimatorkit.runtime import executor
from estimatorkit.runtime.xla.compiler_options import options_for
from tests.estimator.exported import (
    batch,
    classifier,
    export,
    input_fn,
    shared_export,
    shared_model,
)
from tests.sweep import sweep


@pytest.fixture(scope="module")
def model() -> Any:
    """A trained classifier."""
    return shared_model()


@pytest.fixture(scope="module")
def folder() -> Path:
    """Its export, fed with features."""
    return shared_export()


@pytest.fixture(scope="module")
def parsing() -> Path:
    """Its export, fed with Examples."""
    return shared_export(parse=True)


# -- answers


@pytest.mark.slow
def test_predictor_matches_estimator(model: Any, folder: Path) -> None:
    expected = list(model.predict(input_fn))
    with load_predictor(folder) as predictor:
        found = predictor(batch(0, 24), signature="predict")
        assert set(found) == set(expected[0])
        for key, values in found.items():
            wanted = np.stack([each[key] for each in expected])
            assert values.dtype == wanted.dtype
            if values.dtype.kind == "f":
                np.testing.assert_allclose(values, wanted, rtol=1e-5, atol=1e-6)
            else:
                np.testing.assert_array_equal(values, wanted)
        assert predictor.signatures["serving_default"].outputs.keys() == found.keys()


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
def test_batch_sizes_share_few_compilations(folder: Path) -> None:
    with load_predictor(folder) as predictor:
        whole = predictor(batch(0, 24))["logits"]
        for size in (1, 2, 3, 5, 7, 8, 13, 16):
            found = predictor(batch(0, size))["logits"]
            np.testing.assert_allclose(found, whole[:size], rtol=1e-5, atol=1e-6)
        state = predictor._sessions[predictor.signature().graph].state
        assert all(isinstance(each, jax.Array) for each in state.values.values())  # not copied
        counts = state.compilations
        assert sum(counts.values()) == 6  # batches of 1, 2, 4, 8, 16 and 32


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
@pytest.mark.parametrize("rows", [8, 9, 21, 24])
def test_many_rows_are_predicted_in_blocks_of_one_size(
    rows: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predictor_module, "BLOCK", 8)
    given = batch(0, rows)
    with load_predictor(folder) as predictor:
        found = predictor(given, "predict")
        state = predictor._sessions[predictor.signature().graph].state
        assert sum(state.compilations.values()) == 1
        for row in range(rows):
            alone = predictor({key: each[row : row + 1] for key, each in given.items()}, "predict")
            for key, values in alone.items():
                if values.dtype.kind == "f":
                    np.testing.assert_allclose(found[key][row], values[0], rtol=1e-5, atol=1e-6)
                else:
                    np.testing.assert_array_equal(found[key][row], values[0])
        assert {len(each) for each in found.values()} == {rows}


@pytest.mark.slow
def test_examples_are_parsed_and_classified(parsing: Path, model: Any) -> None:
    features = {"x": [0.5, 1.0, -1.0], "word": [b"a"], "name": [b"v"]}
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.extend(features["x"])
    for key in ("word", "name"):
        example.features.feature[key].bytes_list.value.extend(features[key])

    def one() -> tf.Dataset:
        rows = {key: np.array([value]) for key, value in features.items()}
        rows["x"] = rows["x"].astype(np.float32)
        return tf.data.Dataset.from_tensor_slices(rows).batch(1)

    (expected,) = model.predict(one)
    with load_predictor(parsing) as predictor:
        found = predictor({"inputs": [example.SerializeToString()]})
        assert found["classes"].tolist() == [[b"0", b"1", b"2"]]
        np.testing.assert_allclose(found["scores"][0], expected["probabilities"], rtol=1e-5)
        methods = {name: each.method for name, each in predictor.signatures.items()}
    assert methods == {
        "serving_default": "tensorflow/serving/classify",
        "classification": "tensorflow/serving/classify",
        "predict": "tensorflow/serving/predict",
    }


def test_device_segments_are_stablehlo_of_any_batch_size(folder: Path) -> None:
    content = json.loads((folder / "signature.json").read_text())
    assert [graph["rows_alone"] for graph in content["graphs"]] == [True, True]
    assert content["graphs"][1]["modules"] == {}  # for inputs of shapes that modules do not take
    (file,) = content["graphs"][0]["modules"].values()
    program = jax.export.deserialize(bytearray((folder / "serving" / file).read_bytes()))
    assert {str(each.shape[0]) for each in program.out_avals} == {"batch"}
    assert program.platforms == ("cpu", "cuda", "tpu")


def test_example_request_gives_example_response(folder: Path) -> None:
    request = json.loads((folder / "example_request.json").read_text())
    response = json.loads((folder / "example_response.json").read_text())
    assert request["signature_name"] == "serving_default"
    rows = request["instances"]
    assert [row["word"][0] for row in rows] == ["a", "a", "a"]  # a word that the model knows
    with load_predictor(folder) as predictor:
        found = predictor({key: [row[key] for row in rows] for key in rows[0]})
    wanted = [row["probabilities"] for row in response["predictions"]]
    np.testing.assert_allclose(found["probabilities"], wanted, rtol=1e-4)


@pytest.mark.slow
def test_loading_needs_no_model_code(folder: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(folder, moved)
    program = (
        "import sys, json, numpy as np\n"
        "import estimatorkit as ek\n"
        "predictor = ek.load_predictor(sys.argv[1])\n"
        "found = predictor({'x': [[1., 2., 3.]], 'word': [['a']], 'name': ['u']})\n"
        "print(json.dumps([found['probabilities'].shape, sorted(sys.modules)]))\n"
    )
    command = [sys.executable, "-c", program, str(moved)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    shape, modules = json.loads(run.stdout)
    assert shape == [1, 3]
    premade = {name for name in modules if "premade" in name or "tests" in name}
    assert not premade


def test_folder_without_an_export(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match="there is no exported model in"):
        load_predictor(tmp_path)
    (tmp_path / "saved_model.pb").touch()
    with pytest.raises(errors.NotFoundError, match="from_saved_model runs it"):
        load_predictor(tmp_path)


def test_concurrent_predictors(folder: Path) -> None:
    with load_predictor(folder) as predictor:
        expected = predictor(batch(0, 8))["logits"]
        wrong: list[Any] = []

        def ask(start: int) -> None:
            for _ in range(20):
                found = predictor(batch(start, start + 1))["logits"]
                if not np.allclose(found[0], expected[start], atol=1e-6):
                    wrong.append((start, found))

        threads = [threading.Thread(target=ask, args=(start,)) for start in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert not wrong


def test_wrong_requests_raise(folder: Path) -> None:
    with load_predictor(folder) as predictor:
        inputs = batch(0, 2)
        for changed, words in (
            ({**inputs, "X": inputs["x"]}, r"unknown input 'X'(.|\n)*expected: name, word, x"),
            ({"x": inputs["x"]}, "input 'name' is missing"),
            ({**inputs, "x": np.zeros((2, 4))}, r"input 'x' has another shape(.|\n)*\(\?, 3\)"),
            ({**inputs, "x": [["a"] * 3] * 2}, "input 'x' is of another kind"),
            ({**inputs, "x": np.zeros((3, 3))}, "different numbers of examples(.|\n)*x: 3"),
        ):
            with pytest.raises(ValueError, match=words):
                predictor(changed)
        with pytest.raises(ValueError, match=r"no signature 'predikt'(.|\n)*'predict'"):
            predictor(inputs, "predikt")
    with pytest.raises(errors.InvalidArgumentError, match="closed"):
        predictor(inputs)


# -- folders


@pytest.mark.slow
def test_folders_are_complete_unique_and_increasing(
    model: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert time.time() - 3600 < int(folder.name) < time.time() + 60
    base = tmp_path
    (base / "9000000000").mkdir()  # a version from the future: the clock has gone back since
    again = export(model, base)
    assert int(again.name) == 9000000001
    assert load_predictor(base).directory == again
    assert {each.name for each in base.iterdir()} == {"9000000000", again.name}  # no temporaries

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("estimatorkit.estimator.serving.exporting.write_contents", fail)
    with pytest.raises(errors.ResourceExhaustedError):
        export(model, base)
    assert {each.name for each in base.iterdir()} == {"9000000000", again.name}


def test_export_is_renamed_atomically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is killed leaves no empty version; whoever comes second takes the next name."""
    (tmp_path / "7" / "theirs").mkdir(parents=True)
    written = tmp_path / "7.tmp-1-00000000"
    (written / "ours").mkdir(parents=True)
    before: list[set[str]] = []

    def rename(source: Path, target: Path, original: Any = os.rename) -> None:
        before.append({each.name for each in tmp_path.iterdir()})
        original(source, target)

    monkeypatch.setattr(os, "rename", rename)
    versions = iter([7, 8])
    monkeypatch.setattr(exporting, "_next_version", lambda _: next(versions))
    assert exporting._renamed(written, tmp_path) == tmp_path / "8"
    assert before == [{"7", written.name}] * 2
    assert {each.name for each in tmp_path.glob("*/*")} == {"theirs", "ours"}


def test_export_with_different_results_is_refused(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Predictor.answers

    def wrong(self: Predictor, *args: Any) -> Any:
        found = original(self, *args)
        return [{key: each[::-1] for key, each in answer.items()} for answer in found]

    monkeypatch.setattr(Predictor, "answers", wrong)
    with pytest.raises(errors.InternalError, match="output differs from the model's"):
        export(model, tmp_path)
    assert not list(tmp_path.iterdir())


def test_verification_optimizes_little_and_predictors_do_not(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is called once costs more to compile well than to run."""
    few: list[bool] = []

    def noted(segment: Any, *args: Any, few_runs: bool = False) -> Any:
        few.append(few_runs)
        return options_for(segment, *args, few_runs=few_runs)

    monkeypatch.setattr(executor, "options_for", noted)
    exported = export(model, tmp_path)
    assert any(few)
    few.clear()
    monkeypatch.setenv("ESTIMATORKIT_EXECUTOR", "xla")
    with load_predictor(exported) as predictor:
        predictor({"x": [[1.0, 2.0, 3.0]], "word": [["a"]], "name": ["u"]})
    assert few
    assert not any(few)


@pytest.mark.slow
def test_vocabulary_files_are_embedded(tmp_path: Path) -> None:
    vocabulary = tmp_path / "words.txt"
    vocabulary.write_text("a\nb\n")
    estimator = classifier(tmp_path / "model", vocabulary)
    expected = next(iter(estimator.predict(input_fn)))["logits"]
    folder = export(estimator, tmp_path / "export")
    vocabulary.unlink()
    with load_predictor(folder) as predictor:
        np.testing.assert_allclose(predictor(batch(0, 1))["logits"][0], expected, rtol=1e-5)


@pytest.mark.slow
def test_extra_assets_are_copied(model: Any, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("iris")
    extra = {"notes/labels.txt": tmp_path / "labels.txt"}
    folder = export(model, tmp_path / "export", assets_extra=extra)
    assert (folder / "assets.extra" / "notes" / "labels.txt").read_text() == "iris"
    for name in ("../labels.txt", "/labels.txt"):
        with pytest.raises(ValueError, match="leads out of the folder"):
            export(model, tmp_path / "export", assets_extra={name: tmp_path / "labels.txt"})


# -- models of one's own


def _estimator(folder: Path, model_fn: Any) -> Any:
    config = tf.estimator.RunConfig(log_step_count_steps=None)
    made = tf.estimator.Estimator(model_fn, model_dir=folder, config=config)
    rows = {"x": np.ones([8, 2], np.float32)}
    return made.train(
        lambda: tf.data.Dataset.from_tensor_slices((rows, np.ones(8, np.float32))).batch(4), steps=1
    )


def _model_fn(features: Any, labels: Any, mode: str) -> Any:
    """Shapes by value, a table, and labels as strings beside a regression."""
    x = features["x"]
    weights = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
    count = tf.get_variable("count", [], tf.int64, tf.zeros_initializer(), trainable=False)
    value = tf.matmul(x, weights)
    spread = tf.tile(tf.reshape(value, [tf.shape(x)[0], 1]), [1, 3]) * tf.ones([tf.shape(x)[0], 3])
    if mode == tf.estimator.ModeKeys.PREDICT:
        words = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(np.array([0, 1]), ["low", "high"]), "?"
        )
        predictions = {
            "value": value,
            "spread": spread,
            "word": words.lookup(tf.cast(value[:, 0] > 1.5, tf.int64)),
            "count": count + tf.cast(tf.shape(x)[:1], tf.int64) * 0,
        }
        outputs = {"mine": tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
    loss = tf.reduce_mean(tf.square(value[:, 0] - labels))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(
        loss, global_step=tf.train.get_global_step()
    )
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train, predictions={"v": value})


def _raw() -> Any:
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    return exports.ServingInputReceiver({"x": x}, {"x": x}, {"doubled": {"half": x}})


@pytest.mark.slow
def test_shapes_tables_and_integers_of_model_fn(tmp_path: Path) -> None:
    estimator = _estimator(tmp_path / "model", _model_fn)
    folder = Path(export_saved_model(estimator, str(tmp_path / "out"), _raw).decode())
    weights = estimator.get_variable_value("w")
    x = np.array([[1.0, 0.0], [1.0, 2.0], [0.0, 0.0]], np.float32)
    with load_predictor(folder) as predictor:
        assert set(predictor.signatures) == {
            *("mine", "serving_default", "doubled:mine", "doubled:serving_default")
        }
        found = predictor({"half": x}, "doubled:mine")
        np.testing.assert_allclose(found["value"], x @ weights, rtol=1e-6)
        np.testing.assert_allclose(found["spread"], np.tile(x @ weights, [1, 3]), rtol=1e-6)
        assert found["word"].tolist() == [b"low", b"high", b"low"]
        assert found["count"].dtype == np.int64
        # The second graph, without modules, is for shapes that the first does not take.
        assert [len(each.modules) for each in predictor._contents.graphs] == [1, 0]


@pytest.mark.slow
def test_images_and_sequences_are_stablehlo(tmp_path: Path) -> None:
    def convolve(features: Any, labels: Any, mode: str) -> Any:
        if mode != tf.estimator.ModeKeys.PREDICT:
            return _model_fn(features, labels, mode)
        image = tf.reshape(features["x"], [-1, 4, 4, 1])
        seen = tf.nn.conv2d(image, tf.ones([3, 3, 1, 2]), [1, 1, 1, 1], "SAME")
        pooled = tf.nn.max_pool(seen, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
        steps = tf.range(tf.shape(features["x"])[0])
        predictions = {"y": tf.reshape(pooled, [-1, 8]), "place": steps}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)

    def raw() -> Any:
        x = tf.placeholder(tf.float32, [None, 16], name="x")
        return exports.ServingInputReceiver({"x": x}, {"x": x})

    folder = export_saved_model(_estimator(tmp_path / "model", convolve), tmp_path / "out", raw)
    with load_predictor(folder) as predictor:
        graph, general = predictor._contents.graphs
        assert list(graph.modules.values()) == ["module-0.stablehlo"]
        assert not general.modules
        found = predictor({"x": np.ones([5, 16])})
    assert found["place"].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(found["y"][0], np.repeat(9.0, 8))


def _two_inputs() -> Any:
    fed = {key: tf.placeholder(tf.float32, [None, 2], name=key) for key in ("x", "more")}
    return exports.ServingInputReceiver(fed, fed)


def _summed(features: Any, labels: Any, mode: str, params: Any) -> Any:
    """The sum of two features, less that of all rows where `params` say so."""
    if mode != tf.estimator.ModeKeys.PREDICT:
        return _model_fn(features, labels, mode)
    tf.get_variable("count", [], tf.int64, trainable=False)
    rows = features["x"] + features["more"]
    shift = tf.reduce_sum(rows) if params["mixes"] else 0.0
    return tf.estimator.EstimatorSpec(
        mode, predictions={"y": tf.matmul(rows - shift, tf.get_variable("w", [2, 1]))}
    )


@pytest.mark.parametrize("rows", [1, 2, 5])
@sweep("mixes", [False, True], quick=1)
def test_example_inputs_of_any_row_count(rows: int, mixes: bool, tmp_path: Path) -> None:
    estimator = _estimator(tmp_path / "model", functools.partial(_summed, params={"mixes": mixes}))
    given = {key: np.arange(2.0 * rows).reshape(rows, 2) for key in ("x", "more")}
    folder = estimator.export_saved_model(tmp_path / "out", _two_inputs, example_inputs=given)
    with load_predictor(folder) as predictor:
        graph, general = predictor._contents.graphs
        assert (len(graph.modules), len(general.modules)) == (1, 0)
        # Of one row nobody can tell, so that it is not said.
        assert graph.rows_alone == (rows > 1 and not mixes)
        total = predictor({"x": np.ones([3, 2]), "more": np.ones([3, 2])})["y"]
        weights = estimator.get_variable_value("w").sum()
        np.testing.assert_allclose(total, np.full([3, 1], (2 - 12 * mixes) * weights), rtol=1e-5)
    request = json.loads((Path(os.fsdecode(folder)) / "example_request.json").read_text())
    assert len(request.get("instances", request.get("inputs", {}).get("x"))) == rows


def test_example_inputs_of_other_names_raise(tmp_path: Path) -> None:
    estimator = _estimator(tmp_path / "model", _model_fn)
    with pytest.raises(ValueError, match=r"do not match any signature(.|\n)*\['half'\]"):
        estimator.export_saved_model(
            tmp_path / "out", _raw, example_inputs={"X": np.ones([2, 2], np.float32)}
        )
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.slow
def test_layers_see_exported_mode(tmp_path: Path) -> None:
    """Also those that are not told: a graph that is exported to be trained has dropout."""
    told = []

    def noted(features: Any, labels: Any, mode: str) -> Any:
        told.append((mode, tf.keras.backend.learning_phase()))
        return _model_fn(features, labels, mode)

    estimator = _estimator(tmp_path / "model", noted)
    del told[:]
    with tf.Graph().as_default():
        supervised = tf.estimator.experimental.build_raw_supervised_input_receiver_fn(
            {"x": tf.placeholder(tf.float32, [None, 2])}, tf.placeholder(tf.float32, [None])
        )
    modes = tf.estimator.ModeKeys
    estimator.experimental_export_all_saved_models(
        tmp_path / "out", {modes.PREDICT: _raw, modes.TRAIN: supervised}
    )
    assert told == [(modes.TRAIN, True), (modes.PREDICT, False)]


@pytest.mark.slow
def test_random_numbers_are_drawn_while_serving(tmp_path: Path) -> None:
    def noisy(features: Any, labels: Any, mode: str) -> Any:
        if mode != tf.estimator.ModeKeys.PREDICT:
            return _model_fn(features, labels, mode)
        x = features["x"]
        weights = tf.get_variable("w", [2, 1])
        tf.get_variable("count", [], tf.int64, trainable=False)
        noise = tf.random_uniform([], 5.0, 6.0)
        return tf.estimator.EstimatorSpec(
            mode, predictions={"y": tf.matmul(x, weights) * 0 + noise}
        )

    estimator = _estimator(tmp_path / "model", noisy)
    with pytest.raises(errors.InternalError, match="output differs"):
        export_saved_model(estimator, tmp_path / "out", _raw)


@pytest.mark.slow
def test_all_modes_in_one_export(tmp_path: Path) -> None:
    estimator = _estimator(tmp_path / "model", _model_fn)
    with tf.Graph().as_default():
        supervised = build_raw_supervised_input_receiver_fn(
            {"x": tf.placeholder(tf.float32, [None, 2])}, tf.placeholder(tf.float32, [None])
        )
    path = experimental_export_all_saved_models(
        estimator,
        tmp_path / "out",
        {
            tf.estimator.ModeKeys.PREDICT: _raw,
            tf.estimator.ModeKeys.TRAIN: supervised,
            tf.estimator.ModeKeys.EVAL: supervised,
        },
    )
    found = {}
    for tag in ("serve", "train", "eval"):
        with tf.Graph().as_default(), tf.Session() as session:
            found[tag] = set(tf.saved_model.load(session, [tag], path).signature_def)
    assert found["train"] == {"train"}
    assert found["eval"] == {"eval"}
    assert "serving_default" in found["serve"]
    with load_predictor(path) as predictor:
        assert predictor({"x": [[1.0, 1.0]]})["value"].shape == (1, 1)


def test_unsupported_models_raise(tmp_path: Path) -> None:
    estimator = _estimator(tmp_path / "model", _model_fn)

    def forgotten() -> Any:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        other = tf.placeholder(tf.float32, [None, 2], name="other")
        return exports.ServingInputReceiver({"x": x}, {"other": other})

    with pytest.raises(ValueError, match=r"(?s)No signature.*insufficient to.*placeholder.*'x'"):
        export_saved_model(estimator, tmp_path / "out", forgotten)

    def by_python() -> Any:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        doubled = tf.py_func(lambda each: 2 * each, [x], tf.float32)
        doubled.set_shape([None, 2])
        return exports.ServingInputReceiver({"x": doubled}, {"x": x})

    with pytest.raises(ValueError, match=r"PyFunc.* cannot be part of an exported model"):
        export_saved_model(estimator, tmp_path / "out", by_python)
    with pytest.raises(ValueError, match="must return a ServingInputReceiver"):
        export_saved_model(estimator, tmp_path / "out", lambda: {"x": 1})
    untrained = tf.estimator.Estimator(_model_fn, model_dir=tmp_path / "nothing")
    with pytest.raises(ValueError, match="Could not find trained model in model_dir"):
        export_saved_model(untrained, tmp_path / "out", _raw)
    assert not list((tmp_path / "out").iterdir())
