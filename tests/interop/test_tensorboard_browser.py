"""Runs as the real TensorBoard shows them in a real browser.

Needs Chromium or Chrome on this machine (`apt-get install chromium`); the environment variable
CHROMIUM names one elsewhere. Without a browser the tests are reported as skipped, loudly. Each page
is left as a picture in the test's temporary folder.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.ops.control.control_flow import cond
from estimatorkit.projector import ProjectorConfig, write_embeddings

pytestmark = pytest.mark.browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
STEPS = 12


class Board(NamedTuple):
    """TensorBoard in a browser tab, and what the run that it shows has written."""

    page: Any
    url: str
    losses: list[float]
    pictures: Path

    def open(self, name: str) -> Any:
        """Opens a page of TensorBoard anew, and gives the tab."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}#{name}")
        return self.page

    def picture(self, name: str) -> None:
        """Keeps how the tab looks."""
        path = self.pictures / f"{name}.png"
        self.page.screenshot(path=path)
        assert path.stat().st_size > 10_000


def browser() -> str:
    """The browser's path; without one the test is skipped, which the summary of the run says."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(
            "NOT TESTED: TensorBoard's pages, for want of a browser; install Chromium "
            "(apt-get install chromium) or name one in CHROMIUM"
        )
    return found


def write_run(folder: Path) -> list[float]:
    """Trains a small model, writes all kinds of summaries, and gives the losses."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        with tf.name_scope("input"):
            x = tf.placeholder(tf.float32, [None, 16], name="x")
        with tf.variable_scope("encoder"):
            weights = tf.get_variable("weights", initializer=np.eye(16, dtype=np.float32))
            hidden = tf.nn.relu(tf.matmul(x, weights))
        with tf.name_scope("objective"):
            distance = tf.reduce_mean(tf.square(hidden - 1.0))
            loss = cond(distance > 0.1, lambda: distance * 2.0, lambda: distance)
        step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
        tf.summary.scalar("loss/train", loss)
        tf.summary.scalar("rate", 0.5)
        tf.summary.histogram("weights", weights)
        tf.summary.image("kernel", tf.reshape(weights, [1, 16, 16, 1]))
        tf.summary.text("note", tf.constant("some **bold** words"))
        merged = tf.summary.merge_all()
        session.run(tf.global_variables_initializer())
        losses = []
        with tf.summary.FileWriter(folder, graph) as writer:
            for number in range(STEPS):
                feeds = {x: np.random.default_rng(number).random([8, 16])}
                data, value, _ = session.run([merged, loss, step], feeds)
                writer.add_summary(data, number)
                losses.append(float(value))
            config = ProjectorConfig()
            config.embeddings.add(tensor_name="encoder/weights")
            write_embeddings(writer, config, session)
    return losses


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    path = browser()
    playwright = pytest.importorskip("playwright.sync_api", reason="NOT TESTED: no Playwright")
    folder = tmp_path_factory.mktemp("board")
    losses = write_run(folder / "logs" / "first")
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder / "logs")]
    server = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", "0", "--load_fast", "false"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        assert server.stderr is not None
        lines = iter(server.stderr.readline, "")
        url = next(found[0] for line in lines if (found := re.search(r"http://127\S+", line)))
        # Chromium's sandbox refuses to run as root, as containers do; the projector draws by WebGL.
        arguments = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        with playwright.sync_playwright() as driver:
            chromium = driver.chromium.launch(executable_path=path, args=arguments)
            page = chromium.new_page(viewport={"width": 1400, "height": 1000})
            page.set_default_timeout(20_000)
            yield Board(page, url, losses, folder)
            chromium.close()
    finally:
        server.terminate()
        server.communicate()


@pytest.mark.slow
def test_scalars(board: Board) -> None:
    page = board.open("scalars")
    page.get_by_text("tag: loss/train").wait_for()
    cards = page.locator("tf-scalar-card")
    assert cards.count() == 2
    lines = cards.first.locator("path.line[d*='L']")  # drawn through more than one point
    points: list[int] = []
    while not points:  # the page may draw them anew in between
        lines.first.wait_for(state="attached")
        points = [path.count("L") + 1 for path in lines.evaluate_all(PATHS)]
    assert max(points) == STEPS
    board.picture("scalars")


PATHS = "paths => paths.map(path => path.getAttribute('d'))"


@pytest.mark.slow
def test_time_series_show_last_value(board: Board) -> None:
    page = board.open("timeseries")
    card = page.locator("scalar-card", has_text="loss/train")
    card.get_by_text(f"{board.losses[-1]:.4f}").first.wait_for()
    assert str(STEPS - 1) in card.inner_text()
    board.picture("timeseries")


@pytest.mark.slow
def test_histograms(board: Board) -> None:
    page = board.open("histograms")
    layers = page.locator("vz-histogram-timeseries g.histogram")
    layers.nth(STEPS - 1).wait_for(state="attached")
    assert layers.count() == STEPS
    board.picture("histograms")


@pytest.mark.slow
def test_images(board: Board) -> None:
    page = board.open("images")
    page.get_by_text("kernel/image/0").first.wait_for()
    picture = page.locator("tf-image-loader img").first
    picture.wait_for()
    assert (
        picture.evaluate("async image => { await image.decode(); return image.naturalWidth }") == 16
    )
    assert picture.evaluate("image => image.naturalHeight") == 16
    assert picture.bounding_box()["width"] > 50
    board.picture("images")


@pytest.mark.slow
def test_text(board: Board) -> None:
    page = board.open("text")
    bold = page.locator("tf-text-loader strong").first
    assert bold.evaluate("strong => strong.parentElement.textContent").strip() == "some bold words"
    board.picture("text")


@pytest.mark.slow
def test_graph(board: Board) -> None:
    page = board.open("graphs")
    page.locator("text.nodelabel", has_text="encoder").first.wait_for()
    # A label is followed by its title, which a pointer shows.
    shown = "labels => labels.map(label => label.firstChild.textContent)"
    labels = set(page.locator("text.nodelabel").evaluate_all(shown))
    assert {"input", "encoder", "objective", "gradients"} <= labels
    edges = page.locator("g.edge textPath, g.edgeLabel, textPath").all_text_contents()
    assert any("16" in edge for edge in edges)  # the static shapes
    # What is inside a scope is shown when it is opened.
    page.locator("g.node.meta", has_text="encoder").first.dblclick()
    page.locator("text.nodelabel", has_text="MatMul").first.wait_for()
    page.wait_for_timeout(800)  # the scope grows for half a second; the picture shows it open
    board.picture("graphs")


@pytest.mark.slow
def test_projector(board: Board) -> None:
    page = board.open("projector")
    frame = page.frame_locator("iframe").frame_locator("iframe")
    frame.locator(".numDataPoints", has_text="16").wait_for()
    assert frame.locator(".dim").first.inner_text() == "16"
    board.picture("projector")
