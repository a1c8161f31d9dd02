"""HTML reports: content, safety (scripts, escaping), and layout."""

from __future__ import annotations

import base64
import os
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.metrics import roc_auc_score

import estimatorkit as tf
from estimatorkit.experiment import report_html, report_plots, report_rows
from estimatorkit.experiment.command import cli
from estimatorkit.experiment.report_html import read_scalars, write_report
from estimatorkit.interop.events import MetricsWriter
from estimatorkit.storage.checkpoint import write_checkpoint
from tests.experiment.commands import succeed

pytest.importorskip("matplotlib", reason="NOT TESTED: reports, for want of matplotlib")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
NASTY = "<img src=x onerror=alert(1)>$a$"


class Page(HTMLParser):
    """The titles of a page's parts, its pictures, and the names of all its elements."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.pictures: list[bytes] = []
        self.titles: list[str] = []
        self.attributes: set[str] = set()
        self.text = Path(path).read_text(encoding="utf-8")
        self.feed(self.text)
        self.titles = re.findall(r"<h2>(.*?)</h2>", self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes |= {name for name, _ in attrs}
        source = dict(attrs).get("src")
        if source is not None:
            kind, _, data = source.partition(",")
            assert kind == "data:image/png;base64"
            self.pictures.append(base64.b64decode(data))


ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "nav", "a", "section"),
    *("figure", "figcaption", "img", "table", "thead", "tbody", "tr", "th", "td", "pre"),
}


def is_self_contained(page: Page) -> bool:
    assert set(page.elements) <= ALLOWED
    assert not [name for name in page.attributes if name.startswith("on")]
    assert re.findall(r"https?:", page.text) == []
    return all(picture.startswith(b"\x89PNG") for picture in page.pictures)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model folder that no training made."""
    model_dir = tmp_path / "model"
    tensors = {"dnn/logits/kernel": np.zeros((3, 1), np.float32), "global_step": np.int64(20)}
    write_checkpoint(model_dir, "model.ckpt-20", tensors, {"columns": {"dnn": [NASTY]}})
    for name, values in (("", [3.0, 2.0, np.nan, 1.0]), ("eval", [4.0, 3.0]), ("eval_big", [5.0])):
        writer = MetricsWriter(model_dir / name)
        for number, value in enumerate(values):
            writer.write(10 * number, {"loss": value, NASTY: number, "same": 1.0})
        writer.close()
    (model_dir / "config.yaml").write_text(f"name: '{NASTY}'\n", encoding="utf-8")
    return model_dir


@pytest.mark.slow
def test_report_from_folder_alone(folder: Path, tmp_path: Path) -> None:
    path = write_report(folder, None, tmp_path / "report.html", title=NASTY)
    page = Page(path)
    assert page.titles == ["Learning curves", "Model", "Configuration"]
    assert len(page.pictures) == 1
    assert is_self_contained(page)
    assert page.text.count("&lt;img src=x onerror=alert(1)&gt;") >= 4
    assert "Not drawn: same." in page.text
    assert "global step 20" in page.text


def test_scalars_from_records_match_events(folder: Path) -> None:
    expected = {
        "loss": [(0, 3.0), (10, 2.0), (30, 1.0)],  # what is not finite is left out
        NASTY: [(0, 0.0), (10, 1.0), (20, 2.0), (30, 3.0)],
        "same": [(0, 1.0), (10, 1.0), (20, 1.0), (30, 1.0)],
    }
    assert read_scalars(folder) == expected
    with open(folder / "metrics.jsonl", "a", encoding="utf-8") as file:
        file.write('{"step": 40, "lo')
    assert read_scalars(folder) == expected
    (folder / "metrics.jsonl").unlink()
    assert read_scalars(folder) == expected


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report on a linear model with two classes, called by words."""
    folder = tmp_path_factory.mktemp("classifier")
    random = np.random.default_rng(0)
    features = {
        "x": random.normal(size=200).astype(np.float32),
        NASTY: np.array(["a", "b"], object)[random.integers(0, 2, 200)],
    }
    labels = np.where(features["x"] > 0, "yes", NASTY).astype(object)
    fc = tf.feature_column
    columns = [
        fc.numeric_column("x"),
        fc.categorical_column_with_vocabulary_list(NASTY, ["a", "b"]),
    ]
    estimator = tf.estimator.LinearClassifier(
        columns, str(folder / "model"), label_vocabulary=[NASTY, "yes"]
    )

    def input_fn() -> Any:
        return tf.data.Dataset.from_tensor_slices((features, labels)).batch(64)

    estimator.train(lambda: input_fn().repeat(), steps=60)
    return write_report(estimator, input_fn, folder / "report.html")


@pytest.mark.slow
def test_report_with_data(report: str) -> None:
    page = Page(report)
    assert page.titles == [
        *("Metrics", "Learning curves", "Confusion matrix", "ROC, precision and recall"),
        *("Calibration and scores", "Slices", "Importance of features", "Linear weights", "Model"),
    ]
    assert len(page.pictures) == 5  # one record is no curve
    assert is_self_contained(page)
    accuracy = re.search(r"<td>accuracy</td><td[^>]*>(.*?)</td>", page.text)
    assert accuracy is not None
    assert float(accuracy[1]) > 0.9


@pytest.mark.slow
@pytest.mark.browser
def test_browser_shows_all_plots_without_overflow(report: str) -> None:
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("NOT TESTED: how reports look, for want of a browser; name one in CHROMIUM")
    playwright = pytest.importorskip("playwright.sync_api", reason="NOT TESTED: no Playwright")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 700, "height": 900})
        problems: list[str] = []
        page.on("console", lambda message: problems.append(message.text))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.goto(Path(report).absolute().as_uri())
        shown = "images => images.filter(image => image.naturalWidth > 300).length"
        assert page.locator("img").evaluate_all(shown) == 5
        assert page.evaluate("document.documentElement.scrollWidth") <= 700
        assert page.locator("h1").inner_text() == "model"
        chromium.close()
    assert problems == []


@pytest.mark.slow
def test_multi_class_and_regression_plots() -> None:
    random = np.random.default_rng(1)
    scores = random.dirichlet([1, 1, 1], 50).astype(np.float32)
    predictions = {"probabilities": scores, "class_ids": scores.argmax(axis=1)[:, None]}
    labels = random.integers(0, 2, 50)  # nothing is of class 2
    titles = [each.title for each in report_html._class_sections(labels, predictions, "abc", {})]
    assert titles == ["Confusion matrix", "ROC, precision and recall", "Calibration and scores"]
    numbers = random.normal(size=(50, 2))
    (section,) = report_html._number_sections(numbers, numbers + 0.1)
    assert section.content.count("<img") == 2
    assert "Label 1: 50 examples" in section.content


@pytest.mark.slow
def test_curves_show_the_metrics_of_the_table_and_the_classes() -> None:
    random = np.random.default_rng(1)
    hits = random.random((200, 1)) < 0.2
    scores = np.clip(random.normal(0.2 + 0.2 * hits, 0.1), 0, 1)
    decided = scores > 0.35
    given = (hits, scores, ["yes"], decided)
    areas = {"auc": 0.98765, "average_precision": 0.87654}
    left, right = report_plots.roc_and_precision(*given, areas).axes
    legends = [text.get_text() for each in (left, right) for text in each.get_legend().get_texts()]
    assert legends == ["yes: area 0.9877", "yes: average 0.8765"]
    (dot,) = left.get_lines()[-1].get_xydata()
    assert dot.tolist() == [decided[~hits].mean(), decided[hits].mean()]
    (dot,) = right.get_lines()[1].get_xydata()
    assert dot.tolist() == [decided[hits].mean(), hits[decided].mean()]
    nothing = report_plots.roc_and_precision(hits, scores, ["yes"], decided & False)
    exact = roc_auc_score(hits[:, 0], scores[:, 0])
    assert nothing.axes[0].get_legend().get_texts()[0].get_text() == f"yes: area {exact:.4f}"


def test_slices_name_what_is_missing() -> None:
    columns = {
        "month": np.tile([-1, 3], 100),
        "month_of_others": np.tile([-1, 3], 100),
        "word": np.tile(np.array([b"", b"a"], object), 100),
        "few": np.tile(np.array([np.nan, 2.0]), 100),
        "many": np.where(np.arange(200) % 4, np.arange(200) / 7, np.nan),
    }
    losses = (np.arange(200) % 4 == 0).astype(float)
    found = {
        (key, text): (count, mean)
        for key, text, count, mean in report_html.slices(columns, losses, {"month"})
    }
    for key in ("month", "word", "few"):
        assert found[key, "missing"] == (100, 0.5)
    assert found["month_of_others", "-1"] == (100, 0.5)
    assert found["many", "missing"] == (50, 1.0)
    assert [count for (key, _), (count, mean) in found.items() if key == "many" and mean == 0] == [
        *(38, 37, 37, 38),
    ]


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no such model folder"):
        write_report(tmp_path / "none", None, tmp_path / "report.html")
    with pytest.raises(ValueError, match="evaluation data requires an estimator"):
        write_report(tmp_path, lambda: None, tmp_path / "report.html")
    with pytest.raises(ValueError, match="input_fn does not return a dataset"):
        report_html.collect(lambda: 3, 10)


def test_command_on_folder(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.html"
    arguments = ["report", str(folder), "--curves-only", "-o", str(target)]
    answer = CliRunner().invoke(cli, arguments)
    assert answer.exit_code == 0, answer.output
    assert f"The report is in {target}." in answer.output
    assert Page(target).titles == ["Learning curves", "Model", "Configuration"]
    (folder / "config.yaml").unlink()
    refused = CliRunner().invoke(cli, ["report", str(folder), "--data", "x.csv"])
    assert refused.exit_code == 2
    assert "--data needs --experiment" in refused.output


@pytest.mark.slow
def test_command_on_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[list[str]] = []
    confusion = report_plots.confusion

    def watched(counts: Any, names: Any) -> Any:
        drawn.append(list(names))
        return confusion(counts, names)

    monkeypatch.setattr(report_plots, "confusion", watched)
    config = Path(__file__).parents[2] / "configs" / "iris_linear.yaml"
    model_dir = str(tmp_path / "model")
    run = ["train", str(config), "--set", "train.steps=20", "--model-dir", model_dir]
    trained = CliRunner().invoke(cli, run)
    assert trained.exit_code == 0, trained.output
    answer = CliRunner().invoke(cli, ["report", model_dir])
    assert answer.exit_code == 0, answer.output
    page = Page(Path(model_dir) / "report.html")
    assert drawn == [["Setosa", "Versicolor", "Virginica"]]
    assert page.titles[0] == "Metrics"
    assert page.titles[-3:] == ["Linear weights", "Model", "Configuration"]
    assert is_self_contained(page)
    assert sorted(each.name for each in Path(model_dir).glob("eval*")) == ["eval"]


def test_notes_on_inferred_columns_are_a_table(tmp_path: Path) -> None:
    write_checkpoint(str(tmp_path), "model-0", {"global_step": np.int64(0)}, {})
    path = tmp_path / "report.html"
    write_report(str(tmp_path), None, path)
    assert "Columns" not in Page(path).titles
    (tmp_path / "inferred_notes.json").write_text('{"age": "int64 -> numeric", "n": "<b>"}')
    write_report(str(tmp_path), None, path)
    page = Page(path)
    assert "Columns" in page.titles
    assert is_self_contained(page)
    assert "<td>age</td><td>int64 -&gt; numeric</td>" in page.text
    (tmp_path / "inferred_notes.json").write_text("damaged")
    write_report(str(tmp_path), None, path)
    assert "Columns" not in Page(path).titles


def _drawn(names: list[str], chances: list[float], labels: list[str]) -> dict[int, str]:
    columns = {"prediction": np.array(names, object), "probability": np.array(chances)}
    return report_rows.chosen_rows(columns, np.array(labels, object))


@pytest.mark.parametrize("seed", range(5))
def test_rows_to_explain_are_the_extreme_ones(seed: int) -> None:
    random = np.random.default_rng(seed)
    names = random.choice(["a", "b"], 50).tolist()
    labels = random.choice(["a", "b"], 50).tolist()
    chances = random.permutation(np.linspace(0.5, 1, 50)).tolist()
    found = _drawn(names, chances, labels)
    place = {text: row for row, text in found.items()}
    is_right = [one == other for one, other in zip(names, labels, strict=True)]
    for text, right in (("right", True), ("wrong", False)):
        some = [chances[row] for row in range(50) if is_right[row] == right]
        assert chances[place[f"the most certain of those that are {text}"]] == max(some)
    second = place["the second most certain of those that are wrong"]
    assert chances[second] == sorted(c for c, r in zip(chances, is_right, strict=True) if not r)[-2]
    assert chances[place["the least certain"]] == min(chances)
    assert "wrong" not in " ".join(_drawn(names, chances, names).values())
    assert list(_drawn(["a"], [0.9], ["b"])) == [0]

    truth, errors = random.normal(size=30), random.permutation(np.arange(-10, 20.0))
    rows = report_rows.chosen_rows({"prediction": truth + errors}, truth)
    by = {text: row for row, text in rows.items()}
    assert errors[by["the most overestimated"]] == 19
    assert errors[by["the most underestimated"]] == -10
    assert len(rows) <= 5


@pytest.mark.slow
def test_bars_of_single_rows_are_their_explanations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[float] = []
    bars = report_plots.bars

    def watched(names: Any, values: Any, errors: Any, across: str, title: str = "") -> Any:
        if title:
            drawn.append(float(across.split()[4].rstrip(":")) + sum(values))
        return bars(names, values, errors, across, title)

    monkeypatch.setattr(report_plots, "bars", watched)
    config = Path(__file__).parents[2] / "configs" / "iris_linear.yaml"
    model_dir = str(tmp_path / "model")
    succeed("train", str(config), "--set", "train.steps=20", "--model-dir", model_dir)
    succeed("report", model_dir)
    page = Page(Path(model_dir) / "report.html")
    assert "Single rows" in page.titles
    assert is_self_contained(page)
    assert 3 <= len(drawn) <= 5
    shown = re.findall(r"<figcaption>[^<]* is predicted \(([\d.]+)%\)", page.text)
    np.testing.assert_allclose(drawn, [float(each) / 100 for each in shown], atol=2e-3)
    (Path(model_dir) / "background.json").unlink()  # as where nobody may see rows
    succeed("report", model_dir)
    assert "Single rows" not in Page(Path(model_dir) / "report.html").titles
