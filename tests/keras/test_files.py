"""Models and weights in files: Keras's files, round trips, and crafted files."""

from __future__ import annotations

import json
import logging
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from estimatorkit import keras
from estimatorkit.core.errors import DataLossError, NotFoundError, OpError
from estimatorkit.core.graph import Graph
from estimatorkit.core.nest import flatten
from estimatorkit.keras.engine import hdf5, model_config, saving
from estimatorkit.layers.serialization import register_keras_serializable
from estimatorkit.storage.checkpoint import latest_checkpoint, read_checkpoint, write_checkpoint
from tests.golden.snippets_keras_files import MODELS, SUMMARIES, summary_of
from tests.sweep import sweep

FOLDER = Path(__file__).parents[1] / "golden"
GOLDEN = json.loads((FOLDER / "keras_files.json").read_text("utf-8"))
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
Y = X.sum(1, keepdims=True)


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    with Graph().as_default() as graph:
        yield graph


def small(compiled: bool = False) -> Any:
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Dense(4, activation="relu", input_shape=(3,), name="one"),
            layers.BatchNormalization(name="norm"),
            layers.Dense(1, name="two"),
        ]
    )
    if compiled:
        model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    return model


def same(one: Any, other: Any) -> None:
    for value, expected in zip(one, other, strict=True):
        np.testing.assert_array_equal(value, expected)


# -- what Keras wrote


@sweep("name", sorted(MODELS), quick=1)
def test_reads_keras_files(name: str, tmp_path: Path) -> None:
    golden = GOLDEN["models"][name]
    make, inputs = MODELS[name]
    whole = keras.models.load_model(FOLDER / "keras_files" / f"{name}.h5")
    outputs = flatten(whole.predict(inputs))
    for output, expected in zip(outputs, golden["predictions"], strict=True):
        np.testing.assert_allclose(output, expected, 2e-5, 1e-6)
    assert [each.name for each in whole.layers] == golden["layers"]
    assert [list(each.shape) for each in whole.get_weights()] == golden["shapes"]
    with whole.graph.as_default():
        assert whole.optimizer.get_weights()[0] == golden["iterations"]
    model = make(keras)
    for file in (f"{name}.h5", name):
        model.set_weights([np.full_like(each, 9) for each in whole.get_weights()])
        model.load_weights(FOLDER / "keras_files" / file)
        same(model.get_weights(), whole.get_weights())
    described = model_config.model_from_json(json.dumps(golden["json"]))
    assert [list(each.shape) for each in described.get_weights()] == golden["shapes"]
    whole.save(tmp_path / "again.h5")  # and back, as Keras lays it out
    with (
        h5py.File(tmp_path / "again.h5") as ours,
        h5py.File(FOLDER / "keras_files" / f"{name}.h5") as theirs,
    ):
        for group in ("model_weights", "optimizer_weights"):
            assert sorted(ours[group]) == sorted(theirs[group])
        assert [*ours["model_weights"].attrs["layer_names"]] == [
            each.encode() for each in golden["layers"]
        ]


def test_summary_matches_keras() -> None:
    for name in SUMMARIES:
        assert summary_of(keras, name) == GOLDEN["summaries"][name], name


# -- what is written is read back


@pytest.mark.slow
def test_training_resumes_from_saved_model(tmp_path: Path) -> None:
    model = small(compiled=True)
    options: dict[str, Any] = {"epochs": 2, "verbose": 0, "shuffle": False}
    model.fit(X, Y, 2, **options)
    files = ("folder", "one.keras", "one.h5")
    for file in files:
        model.save(tmp_path / file)
        model.save(tmp_path / file)  # over what is there
        with pytest.raises(ValueError, match="is there already"):
            model.save(tmp_path / file, overwrite=False)
    rest = model.fit(X, Y, 2, **options).history
    assert list(rest) == ["loss", "mae"]
    with Graph().as_default():
        loaded = keras.models.load_model(tmp_path / "folder")
        found = loaded.fit(X, Y, 2, **options).history
    assert list(found) == list(rest)
    for key in rest:
        np.testing.assert_allclose(found[key], rest[key], 1e-6)
    folder, *others = (
        hdf5.read_model(tmp_path / file) if file == "one.h5" else saving.read(tmp_path / file)
        for file in files
    )
    for other in others:
        assert other.model == folder.model
        assert other.compiled == folder.compiled
        same(other.optimizer, folder.optimizer)
        weighted = [each for each in other.layers if each.weights]
        for one, two in zip(weighted, folder.layers, strict=True):
            assert one.name == two.name
            same([value for _, value in one.weights], [value for _, value in two.weights])


@pytest.mark.parametrize("name", ["functional", "nested"])
def test_config_round_trip(name: str, tmp_path: Path) -> None:
    model = MODELS[name][0](keras)
    model.save(tmp_path / "model")
    with Graph().as_default():
        loaded = keras.models.load_model(tmp_path / "model")
        assert json.loads(loaded.to_json()) == json.loads(model.to_json())
        same(loaded.get_weights(), model.get_weights())
    clone = keras.models.clone_model(model)
    assert not {*map(id, clone.weights)} & {*map(id, model.weights)}
    assert [each.shape for each in clone.get_weights()] == [
        each.shape for each in model.get_weights()
    ]
    clone.set_weights(model.get_weights())
    text = model.to_yaml()
    assert json.loads(model_config.model_from_yaml(text).to_json()) == json.loads(model.to_json())


@pytest.mark.parametrize("file", ["weights", "weights.h5", "weights.safetensors"])
def test_weights_load_in_order_or_by_name(
    file: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = small()
    model.save_weights(tmp_path / file)
    other = small()
    other.load_weights(tmp_path / file)
    same(other.get_weights(), model.get_weights())
    layers = keras.layers
    wider = keras.Sequential(
        [layers.Dense(4, input_shape=(3,), name="one"), layers.Dense(7, name="two")]
    )
    before = wider.get_weights()
    with pytest.raises(ValueError, match="expected 2 layers, found 3 saved layers"):
        wider.load_weights(tmp_path / file)
    with pytest.raises(ValueError, match=r"Shape mismatch .*two.*\(4, 7\).*\(4, 1\)"):
        wider.load_weights(tmp_path / file, by_name=True)
    same(wider.get_weights(), before)
    with caplog.at_level(logging.WARNING):
        wider.load_weights(tmp_path / file, by_name=True, skip_mismatch=True)
    assert "Skipping loading weights for layer two" in caplog.text
    same(wider.get_weights()[:2], model.get_weights()[:2])
    same(wider.get_weights()[2:], before[2:])
    with pytest.raises(ValueError, match="skip_mismatch can only be set to True when by_name"):
        wider.load_weights(tmp_path / file, skip_mismatch=True)


def test_frozen_layers_round_trip(tmp_path: Path) -> None:
    layers = keras.layers
    part = small()
    model = keras.Sequential([part, layers.Dense(1, name="end")])
    model.build((None, 3))
    model.save_weights(tmp_path / "free.safetensors")
    expected = [each.copy() for each in part.get_weights()]
    part.get_layer("one").trainable = False
    part.set_weights([each + 1 for each in part.get_weights()])
    model.load_weights(tmp_path / "free.safetensors")
    same(part.get_weights(), expected)


def test_load_weights_takes_latest_checkpoint_of_folder(tmp_path: Path) -> None:
    model = small()
    model.save_weights(tmp_path / "cp-0001.ckpt")
    model.save_weights(tmp_path / "cp-0002.ckpt")
    assert latest_checkpoint(tmp_path) == str(tmp_path / "cp-0002.ckpt")
    model.load_weights(latest_checkpoint(tmp_path))
    names = sorted(read_checkpoint(tmp_path / "cp-0002.ckpt").tensors)
    assert "layers/one/kernel" in names
    assert "layers/norm/moving_mean" in names


def test_own_format_without_h5py(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = small()
    monkeypatch.setitem(sys.modules, "h5py", None)
    with caplog.at_level(logging.WARNING):
        model.save(tmp_path / "model.h5")
    assert "pip install estimatorkit[h5]" in caplog.text
    assert zipfile.is_zipfile(tmp_path / "model.h5")
    same(keras.models.load_model(tmp_path / "model.h5").get_weights(), model.get_weights())
    with pytest.raises(ImportError, match="need h5py"):
        model.load_weights(FOLDER / "keras_files" / "sequential.h5")


def test_custom_objects_are_found_by_name(tmp_path: Path) -> None:
    class Scale(keras.layers.Layer):
        def __init__(self, by: float = 2.0, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.by = by

        def call(self, inputs: Any) -> Any:
            return inputs * self.by

        def get_config(self) -> dict[str, Any]:
            return {**super().get_config(), "by": self.by}

    def twice(y_true: Any, y_pred: Any) -> Any:
        return 2 * keras.losses.mean_squared_error(y_true, y_pred)

    @register_keras_serializable("test_files")
    def halved(x: Any) -> Any:
        return x / 2

    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Dense(2, input_shape=(3,), activation=halved),
            Scale(3.0),
            layers.Lambda(halved),
        ]
    )
    model.compile("sgd", twice)
    model.save(tmp_path / "model")
    custom = {"Scale": Scale, "twice": twice}
    loaded = keras.models.load_model(tmp_path / "model", custom)
    assert loaded.layers[1].by == 3.0
    assert loaded.loss is twice
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="Unknown layer: 'Scale'"):
        keras.models.load_model(tmp_path / "model")
    with pytest.raises(ValueError, match="Unknown loss function: 'twice'"):
        keras.models.load_model(tmp_path / "model", {"Scale": Scale})
    assert keras.models.load_model(tmp_path / "model", {"Scale": Scale}, compile=False)


def test_unnamed_loss_is_omitted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = small()
    model.compile("sgd", lambda y_true, y_pred: keras.losses.mean_squared_error(y_true, y_pred))
    with caplog.at_level(logging.WARNING):
        model.save(tmp_path / "model")
    assert "is saved without what compile() was given" in caplog.text
    assert keras.models.load_model(tmp_path / "model").optimizer is None


def test_subclassed_model_config(tmp_path: Path) -> None:
    class Own(keras.Model):
        def __init__(self, units: int = 2, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.units = units
            self.first = keras.layers.Dense(units, name="first")

        def call(self, inputs: Any) -> Any:
            return self.first(inputs)

    class Described(Own):
        def get_config(self) -> dict[str, Any]:
            return {"units": self.units, "name": self.name}

    for kind in (Own, Described):
        model = kind(4)
        with pytest.raises(ValueError, match="has not created its variables yet"):
            model.save_weights(tmp_path / "w")
        model.predict(X)
        model.save_weights(tmp_path / "w")
        other = kind(4)
        with pytest.raises(ValueError, match="has not created its variables yet"):
            other.load_weights(tmp_path / "w")
        other.build((None, 3))
        other.load_weights(tmp_path / "w")
        same(other.get_weights(), model.get_weights())
    with pytest.raises(NotImplementedError, match="cannot be described"):
        Own(4).get_config()
    text = Described(5).to_json()
    found = model_config.model_from_json(text, {"Described": Described})
    assert found.units == 5
    assert keras.models.clone_model(Described(3)).units == 3


def test_tensors_without_layer_have_no_config() -> None:
    x = keras.Input([3])
    dense = keras.layers.Dense(2)
    with pytest.raises(ValueError, match=r"applies the operation .*(?s:.*)test_files.py"):
        keras.Model(x, dense(x) + 1.0).get_config()

    class Both(keras.layers.Layer):
        def call(self, one: Any, other: Any) -> Any:
            return one + other

    mine = keras.Model(x, Both()(dense(x), keras.backend.constant([1.0, 2.0])))
    with pytest.raises(ValueError, match="which no layer of the model made"):
        mine.get_config()
    one = keras.layers.Dense(2, name="same")(x)
    with pytest.raises(ValueError, match="All layer names should be unique"):
        keras.Model(x, keras.layers.Dense(2, name="same")(one))


def test_call_arguments_round_trip() -> None:
    class Mix(keras.layers.Layer):
        def call(self, one: Any, other: Any, factor: float = 1.0, more: Any = None) -> Any:
            return one + factor * other + more["rest"][0]

    q, v = keras.Input([3], name="q"), keras.Input([3], name="v")
    mixed = Mix(name="mix")(q, v, 2.0, more={"rest": [v]})
    attended = keras.layers.Concatenate(name="joined")([mixed, v])
    model = keras.Model({"q": q, "v": v}, {"out": attended, "mixed": mixed}, name="arguments")
    again = model_config.model_from_json(model.to_json(), {"Mix": Mix})
    assert json.loads(again.to_json()) == json.loads(model.to_json())
    inputs = {"q": X, "v": X + 1}
    found = again.predict(inputs)
    np.testing.assert_allclose(found["mixed"], X + 3 * (X + 1), 1e-6)
    assert found["out"].shape == (4, 6)


def test_copies_share_only_unnamed_functions() -> None:
    x = keras.Input([3])
    model = keras.Model(x, keras.layers.Lambda(lambda x: x * 2)(keras.layers.Dense(2)(x)))
    with pytest.raises(ValueError, match="<lambda>"):
        model.to_json()
    copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    asked: list[str] = []

    def frozen(layer: Any) -> Any:
        asked.append(layer.name)
        made = type(layer).from_config({**layer.get_config(), "trainable": False})
        return made

    given = keras.Input([3])
    other = keras.models.clone_model(small(), given, frozen)
    assert asked == ["one", "norm", "two"]
    assert other.trainable_weights == []


# -- what somebody made up


def describe(**config: Any) -> str:
    dense = {"units": 2, "name": "d", "batch_input_shape": [None, 3], **config}
    layers = [{"class_name": "Dense", "config": dense}]
    return json.dumps({"class_name": "Sequential", "config": {"name": "s", "layers": layers}})


@pytest.mark.parametrize(
    "text",
    [
        describe(activation="os.system"),
        describe(activation="builtins>eval"),
        describe(kernel_initializer={"class_name": "Popen", "config": {"args": ["touch", "x"]}}),
        describe(kernel_initializer={"module": "os", "class_name": "system", "config": "id"}),
        describe(kernel_regularizer={"class_name": "__lambda__", "config": {"value": "4wEAAAA="}}),
        '{"class_name": "subprocess.Popen", "config": {}}',
        '{"module": "subprocess", "class_name": "Popen", "config": {}, "registered_name": null}',
        '{"class_name": "TFOpLambda", "config": {"function": "os.system"}}',
        '{"class_name": "Sequential", "config": {"layers": [{"class_name": "Lambda", "config": '
        '{"function": ["4wEAAAA=", null, null], "function_type": "lambda"}}]}}',
        '{"class_name": "Functional", "config": {"layers": [{"class_name": "Dense", "name": "d", '
        '"config": {"units": 1}, "inbound_nodes": [[["d", 0, 0, {}]]]}], "input_layers": [], '
        '"output_layers": [["d", 0, 0]]}}',
        '{"class_name": 3}',
        "[]",
        "[" * 100_000,
    ],
    ids=range(13),
)
def test_config_runs_and_imports_nothing(text: str) -> None:
    modules = set(sys.modules)
    with pytest.raises((ValueError, TypeError)):
        model_config.model_from_json(text)
    assert not {"os.system", "Popen"} & (set(sys.modules) - modules)


def test_yaml_creates_no_objects() -> None:
    with pytest.raises(
        ValueError, match=r"no YAML of a model.*\n.*could not determine a constructor"
    ):
        model_config.model_from_yaml("!!python/object/apply:os.system ['true']")
    with pytest.raises(ValueError, match="has an alias"):
        model_config.model_from_yaml("{class_name: &a Sequential, config: {name: *a}}")


@pytest.mark.parametrize("member", ["../../evil", "/etc/evil", "state.json ", "evil.py"])
def test_zip_with_extra_files_is_refused(member: str, tmp_path: Path) -> None:
    small().save(tmp_path / "model.keras")
    with zipfile.ZipFile(tmp_path / "model.keras", "a") as archive:
        archive.writestr(member, "evil")
    before = sorted(tmp_path.parent.rglob("*evil*"))
    with pytest.raises(ValueError, match="is no model of estimatorkit"):
        keras.models.load_model(tmp_path / "model.keras")
    assert sorted(tmp_path.parent.rglob("*evil*")) == before


def test_zip_bomb_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.keras", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("state.json", b" " * (64 << 20))
    assert (tmp_path / "model.keras").stat().st_size < 1 << 20
    with pytest.raises(ValueError, match="not compressed"):
        keras.models.load_model(tmp_path / "model.keras")


def test_zip_with_overlapping_members_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.keras", "w") as archive:
        archive.writestr("state.json", b" " * (1 << 20))
        [member] = archive.filelist
        for number in range(300):  # 300 MB of the same bytes
            again = zipfile.ZipInfo(f"variables-{number:05d}-of-00300.safetensors")
            again.file_size = again.compress_size = member.file_size
            again.CRC, again.header_offset = member.CRC, member.header_offset
            archive.filelist.append(again)
    with pytest.raises(ValueError, match=r"members of more than the [0-9]+ bytes of the file"):
        keras.models.load_model(tmp_path / "model.keras")


def test_zip_with_many_members_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.keras", "w") as archive:
        for number in range(10_001):
            archive.writestr(f"variables-{number:05d}-of-99999.safetensors", b"")
    with pytest.raises(ValueError, match="10001 members"):
        keras.models.load_model(tmp_path / "model.keras")


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    model = small()
    model.save(tmp_path / "model.keras")
    content = (tmp_path / "model.keras").read_bytes()
    (tmp_path / "cut.keras").write_bytes(content[: len(content) // 2])
    (tmp_path / "text.keras").write_text("not a model")
    at = content.index(b"safetensors") + 400
    (tmp_path / "flipped.keras").write_bytes(
        content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
    )
    before = model.get_weights()
    for name in ("cut", "text", "flipped"):
        with pytest.raises((ValueError, OpError, zipfile.BadZipFile)):
            model.load_weights(tmp_path / f"{name}.keras")
    with pytest.raises(NotFoundError, match="there is no file"):
        model.load_weights(tmp_path / "nothing")
    same(model.get_weights(), before)


def test_layer_names_are_not_paths(tmp_path: Path) -> None:
    layers = keras.layers
    name = "../../../evil"
    model = keras.Sequential([layers.Dense(2, input_shape=(3,))])
    model.layers[0]._name = name
    for file in ("folder", "one.keras", "one.h5"):
        model.save_weights(tmp_path / "inside" / file)
        other = keras.Sequential([layers.Dense(2, input_shape=(3,))])
        other.layers[0]._name = name
        other.load_weights(tmp_path / "inside" / file, by_name=True)
        same(other.get_weights(), model.get_weights())
    assert [each.name for each in tmp_path.iterdir()] == ["inside"]
    assert not list(tmp_path.parent.glob("evil*"))


@pytest.mark.parametrize(
    "state",
    [
        {"kind": "other"},
        {"kind": "keras", "layers": 3},
        {"kind": "keras", "layers": [["d"]], "optimizer_weights": 0},
        {"kind": "keras", "layers": [["d", ["x"]]], "optimizer_weights": 0},
        {"kind": "keras", "layers": [], "optimizer_weights": "many"},
    ],
)
def test_state_of_other_structure_is_refused(state: Any, tmp_path: Path) -> None:
    write_checkpoint(tmp_path, "model", {"a": np.ones(2)}, state)
    with pytest.raises(ValueError, match=r"not of a Keras-style model|not laid out"):
        keras.models.load_model(tmp_path / "model")


def test_modified_state_is_refused(tmp_path: Path) -> None:
    small().save(tmp_path / "model")
    path = tmp_path / "model" / "state.json"
    path.write_text(path.read_text().replace('"relu"', '"tanh"'))
    with pytest.raises(DataLossError):
        keras.models.load_model(tmp_path / "model")


def test_hdf5_external_links_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "secret.h5", "w") as secret:
        secret["kernel"] = np.ones((3, 2), "f")
    layers = keras.layers
    model = keras.Sequential([layers.Dense(2, input_shape=(3,), use_bias=False, name="d")])

    def crafted(name: str, put: Any) -> Path:
        with h5py.File(tmp_path / name, "w") as file:
            file.attrs["layer_names"] = [b"d"]
            group = file.create_group("d")
            group.attrs["weight_names"] = [b"kernel:0"]
            put(group)
        return tmp_path / name

    def linked(group: Any) -> None:
        group["kernel:0"] = h5py.ExternalLink("secret.h5", "/kernel")

    def virtual(group: Any) -> None:
        layout = h5py.VirtualLayout((3, 2), "f")
        layout[:] = h5py.VirtualSource("secret.h5", "kernel", (3, 2))
        group.create_virtual_dataset("kernel:0", layout)

    def outside(group: Any) -> None:
        group.create_dataset(
            "kernel:0", (3, 2), "f", external=[(str(tmp_path / "secret.h5"), 0, 24)]
        )

    def text(group: Any) -> None:
        group["kernel:0"] = "text"

    before = model.get_weights()
    for put in (linked, virtual, outside, text):
        with pytest.raises(ValueError, match=r"of its own|no array of numbers within the file"):
            model.load_weights(crafted(f"{put.__name__}.h5", put))
    with h5py.File(tmp_path / "empty.h5", "w"):
        pass
    with pytest.raises(ValueError, match="not laid out as a file of Keras"):
        model.load_weights(tmp_path / "empty.h5")
    with pytest.raises(ValueError, match="No model config found"):
        keras.models.load_model(tmp_path / "secret.h5")
    same(model.get_weights(), before)


def test_hdf5_must_hold_listed_weights(tmp_path: Path) -> None:
    layers = keras.layers
    model = keras.Sequential([layers.Dense(2, input_shape=(3,), use_bias=False, name="d")])
    before = model.get_weights()

    def crafted(count: int, **dataset: Any) -> Path:
        with h5py.File(tmp_path / "crafted.h5", "w") as file:
            file.attrs["layer_names"] = [b"d"]
            group = file.create_group("d")
            group.attrs["weight_names"] = [b"kernel:0"] * count
            group.create_dataset("kernel:0", **dataset)
        return tmp_path / "crafted.h5"

    never_written = crafted(1, shape=(1 << 31,), dtype="f8")
    assert never_written.stat().st_size < 10_000
    with pytest.raises(ValueError, match="does not hold what it lists: 'kernel:0'"):
        model.load_weights(never_written)
    compressed = crafted(1, data=np.zeros(1 << 20, "f"), compression="gzip")
    with pytest.raises(ValueError, match="does not hold what it lists"):
        model.load_weights(compressed)
    with pytest.raises(ValueError, match="does not hold what it lists"):
        model.load_weights(crafted(200, data=np.zeros(1 << 16, "f")))
    same(model.get_weights(), before)
    data = np.arange(6, dtype="f").reshape(3, 2)
    model.load_weights(crafted(1, data=data, compression="gzip"))
    same(model.get_weights(), [data])


def test_hdf5_invalid_attributes(tmp_path: Path) -> None:
    for text in ("[" * 100_000, "[1]", "{"):
        with h5py.File(tmp_path / "model.h5", "w") as file:
            file.attrs.create("layer_names", [], dtype="S1")
            file.create_group("model_weights").attrs.create("layer_names", [], dtype="S1")
            file.create_dataset("text", data=text)
            file.attrs["model_config"] = text[:60_000]
        with pytest.raises(ValueError, match="attribute 'model_config' is not"):
            keras.models.load_model(tmp_path / "model.h5")


def test_tensorflow_saved_model_is_recognized(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(ValueError, match="is a SavedModel"):
        keras.models.load_model(tmp_path)
    with pytest.raises(ValueError, match="safe_mode=False is not supported"):
        saving.load_model(tmp_path, safe_mode=False)
    with pytest.raises(ValueError, match="Unknown format: pickle"):
        small().save(tmp_path / "x", save_format="pickle")
