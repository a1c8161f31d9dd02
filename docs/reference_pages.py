"""The pages of the API reference: one for each public namespace, from docstrings and examples.

`examples/NAMESPACE.py` holds an example for each function and class that the page documents: cells
'# %% name', whose last expression is shown with its value. A name that several namespaces share is
documented by the first of `NAMESPACES`; the others link to it.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import io
import operator
import re
import tempfile
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import estimatorkit as tf
from estimatorkit.lazy import public_names

EXAMPLES = Path(__file__).parent / "examples"
NAMESPACES = (
    *("estimator", "estimator.experimental", "estimator.export", "feature_column"),
    *("feature_columns", "inspection", "sklearn", "data", "data.experimental", "datasets"),
    *("keras", "keras.layers", "keras.models", "keras.losses", "keras.metrics"),
    *("keras.optimizers", "keras.optimizers.schedules", "keras.optimizers.legacy"),
    *("keras.callbacks", "keras.activations", "keras.initializers", "keras.regularizers"),
    *("keras.constraints", "keras.mixed_precision", "keras.utils"),
    *("keras.preprocessing.image", "keras.preprocessing.sequence", "keras.preprocessing.text"),
    *("keras.wrappers.scikit_learn", "layers", "losses", "metrics", "train", "train.experimental"),
    *("summary", "saved_model", "projector", "distribute", "nn", "math", "linalg", "bitwise"),
    *("random", "strings", "sparse", "sets", "signal", "image", "audio", "io", "python_io"),
    *("gfile", "lookup", "queue", "initializers", "debugging", "function", "graph_util", "errors"),
    *("nest", *(["compat"] if hasattr(tf, "compat") else []), "", "keras.backend"),
)


# What every layer has is described once, by Layer.
_OF_EVERY_LAYER = ["!^_", "!^(build|call|compute_mask|compute_output_shape|get_config)$"]


@dataclass(frozen=True)
class ReferencePage:
    """A page of the site.

    Attributes:
        title: the namespace as users write it.
        path: the file below docs/.
        text: its Markdown.
    """

    title: str
    path: str
    text: str


def _title(namespace: str) -> str:
    return f"tf.{namespace}".rstrip(".")


def _stem(namespace: str) -> str:
    return namespace.replace(".", "_") or "tf"


def _full(namespace: str, name: str) -> str:
    return f"{namespace}.{name}".lstrip(".")


def module_of(namespace: str) -> types.ModuleType:
    """The module of a namespace."""
    found = operator.attrgetter(namespace)(tf) if namespace else tf
    assert isinstance(found, types.ModuleType)
    return found


def _is_documented(value: Any) -> bool:
    """Whether a public value has a docstring of its own: it is a function or a class of ours."""
    home = str(getattr(value, "__module__", None) or "")
    return callable(value) and home.startswith("estimatorkit") and hasattr(value, "__qualname__")


@functools.cache
def documented() -> dict[str, dict[str, str]]:
    """For each namespace the names on its page, and the namespace and name that document each.

    The latter is '' for a value that is no function or class of this package.
    """
    first: dict[int, str] = {}
    pages: dict[str, dict[str, str]] = {}
    for namespace in NAMESPACES:
        module = module_of(namespace)
        pages[namespace] = {}
        for name in public_names(module):
            value = getattr(module, name)
            if isinstance(value, types.ModuleType):
                continue
            full = _full(namespace, name)
            pages[namespace][name] = (
                first.setdefault(id(value), full) if _is_documented(value) else ""
            )
    return pages


def documented_here(namespace: str) -> list[str]:
    """The names that a namespace's page documents."""
    here = documented()[namespace].items()
    return [name for name, where in here if where == _full(namespace, name)]


def examples(namespace: str) -> dict[str, str]:
    """The code of each example of a namespace."""
    path = EXAMPLES / f"{_stem(namespace)}.py"
    if not path.exists():
        return {}
    cells = re.split(r"^# %% (\S+)\n", path.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return dict(zip(cells[::2], map(str.strip, cells[1::2]), strict=True))


def run_example(code: str) -> str:
    """Runs an example in a graph and an empty folder of its own.

    Returns:
        what it prints, and the value of its last expression: tensors are fetched after variables
        and tables have been initialized.
    """
    space: dict[str, Any] = {"tf": tf, "np": np}
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(io.StringIO()),
        tf.Graph().as_default() as graph,
    ):
        exec(compile(tree, "<example>", "exec"), space)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<example>", "eval"), space)
        if _holds_tensors(value, graph):
            with tf.Session(graph=graph) as session:
                session.run(
                    [
                        tf.global_variables_initializer(),
                        tf.local_variables_initializer(),
                        tf.tables_initializer(),
                    ]
                )
                value = session.run(value)
    text = printed.getvalue() + ("" if value is None else _shown(value))
    return re.sub(r" at 0x[0-9a-f]+", "", text).rstrip()


def _holds_tensors(value: Any, graph: tf.Graph) -> bool:
    if isinstance(value, (tf.Tensor, tf.SparseTensor, tf.IndexedSlices, tf.Variable, tf.Operation)):
        return value.graph is graph
    leaves = tf.nest.flatten(value) if isinstance(value, (list, tuple, dict)) else []
    return any(_holds_tensors(leaf, graph) for leaf in leaves)


def _shown(value: Any) -> str:
    with np.printoptions(precision=4, suppress=True, threshold=60):
        return str(value) if isinstance(value, (np.ndarray, np.generic)) else repr(value)


def _link(name: str, where: str, namespace: str) -> str:
    if not where:
        return f"`{name}`"
    target = where.rpartition(".")[0]
    page = "" if target == namespace else f"{_stem(target)}.md"
    return f"[`{name}`]({page}#estimatorkit.{where})"


def _summary(value: Any) -> str:
    if isinstance(value, (str, int, float, bool, type(None))):
        return f"`{value!r}`"
    lines = inspect.cleandoc(value.__doc__ or "").split("\n\n")[0].split("\n")
    return " ".join(lines).replace("|", "\\|")


def _text(namespace: str) -> Iterator[str]:
    module = module_of(namespace)
    yield f"# {_title(namespace)}\n\n{inspect.cleandoc(module.__doc__ or '')}\n"
    names = documented()[namespace]
    rows = [
        f"| {_link(name, where, namespace)} | {_summary(getattr(module, name))} |"
        for name, where in names.items()
    ]
    yield "\n".join(["| name | |", "| --- | --- |", *rows, ""])
    code = examples(namespace)
    for name in documented_here(namespace):
        yield f"::: estimatorkit.{_full(namespace, name)}"
        if namespace.endswith("layers") and name != "Layer":
            yield f"    options: {{filters: {_OF_EVERY_LAYER}}}"
        yield ""
        if name in code:
            yield f"```python\n{code[name]}\n```\n"
            if output := run_example(code[name]):
                yield f"```text\n{output}\n```\n"


@functools.cache
def reference_pages() -> list[ReferencePage]:
    """The pages, the top level first."""
    ordered = sorted(NAMESPACES, key=lambda each: (each != "", each))
    return [
        ReferencePage(_title(each), f"reference/{_stem(each)}.md", "\n".join(_text(each)))
        for each in ordered
    ]
