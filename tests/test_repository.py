"""Rules of the whole repository: import order, forbidden calls, the cost of importing."""

from __future__ import annotations

import ast
import graphlib
import importlib
import operator
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import estimatorkit
from estimatorkit.experiment.load import dump_experiment, load_experiment
from estimatorkit.lazy import stub_places

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "estimatorkit"
SOURCES = sorted(PACKAGE.rglob("*.py"))
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))

# A folder imports only from those before it. `compat` holds legacy names: nothing imports it.
ORDER = (
    *("core", "runtime/xla", "runtime/interpreter", "runtime", "runtime/steps", "storage"),
    *("ops/math", "ops/array", "ops/debug", "ops/variables", "ops/queues", "ops/linalg"),
    *("ops/text", "ops/files", "ops/tables", "ops/sparse", "ops/nn", "ops/parsing"),
    *("ops/control", "ops/image", "ops", "interop"),
    *("data", "distribute", "layers", "train", "keras", "estimator", "premade", "recommend"),
    "experiment",
    "compat",
)
FORBIDDEN_MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "joblib"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
UNSAFE_YAML = {
    "load",
    "load_all",
    "full_load",
    "full_load_all",
    "unsafe_load",
    "unsafe_load_all",
    "Loader",
    "FullLoader",
    "UnsafeLoader",
}
_LAZY = ("LazyFunctions", "import_module", "add_ops")
HEAVY = ("jax", "pandas", "sklearn", "tensorboard", "tqdm", "pydantic", "click", "yaml")


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def executed(tree: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a file that run, which those under `if TYPE_CHECKING` do not."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from executed(ast.Module(node.orelse, []))
            continue
        yield node
        yield from executed(node)


def imports(tree: ast.Module, path: Path) -> Iterator[tuple[int, str]]:
    """Yields line and absolute name of every module that a file imports, inside functions and
    lazily too: what `LazyFunctions`, `import_module` and `add_ops` name.
    """
    package = path.relative_to(ROOT).with_suffix("").parts
    for node in executed(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: -node.level]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(_LAZY):
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield node.lineno, argument.value


def listed(tree: ast.Module, path: Path) -> Iterator[str]:
    """Yields where the public names of a facade live, which its stub lists (see `attach`). A folder
    may list names of later ones: it does not use them. The package's own are not counted:
    `experiment` uses them as programs do.
    """
    if path == PACKAGE / "__init__.py":
        return
    calls = (node for node in executed(tree) if isinstance(node, ast.Call))
    if any(ast.unparse(call.func) == "attach" for call in calls):
        for place in stub_places(module_name(path), path.with_suffix(".pyi")).values():
            yield place.replace(":", ".")


def folder(module: str) -> str | None:
    """Returns the folder in ORDER that a module belongs to; None for others and the root."""
    parts = module.split(".")[1:]
    return next((found for n in (2, 1) if (found := "/".join(parts[:n])) in ORDER), None)


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def order_violations(source: str, path: Path) -> list[str]:
    """Returns the imports of a file that reach downwards."""
    own = folder(module_name(path))
    if own is None:
        return []
    allowed = ORDER[: ORDER.index(own) + 1]
    return [
        f"{relative(path)}:{line} imports {module}"
        for line, module in imports(ast.parse(source), path)
        if module.startswith("estimatorkit.") and (folder(module) or own) not in allowed
    ]


def unsafe_uses(source: str, path: Path) -> list[str]:
    """Returns what a file does that the package never does with data or names from outside."""
    tree = ast.parse(source)
    found = [
        (line, f"imports {module}")
        for line, module in imports(tree, path)
        if module.split(".")[0] in FORBIDDEN_MODULES
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "yaml" and node.attr in UNSAFE_YAML:
                found.append((node.lineno, f"uses yaml.{node.attr}"))
            if node.value.id == "os" and node.attr in {"system", "popen"}:
                found.append((node.lineno, f"uses os.{node.attr}"))
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
            found.append((node.lineno, f"calls {node.func.id}"))
        for keyword in node.keywords:
            if keyword.arg in {"allow_pickle", "shell"} and not (
                isinstance(keyword.value, ast.Constant) and keyword.value.value is False
            ):
                found.append((node.lineno, f"passes {keyword.arg}"))
    return [f"{relative(path)}:{line} {what}" for line, what in sorted(found)]


def starred_literals(source: str) -> list[int]:
    """Returns the lines of `f(*(a, b))` and `[*(a, b), c]`, which only pack lines."""
    if not re.search(r"[(\[{,]\s*\*[(\[]", source):  # parsing every file takes seconds
        return []
    found = []
    for node in ast.walk(ast.parse(source)):
        listed = node.args if isinstance(node, ast.Call) else getattr(node, "elts", ())
        for each in listed:
            if isinstance(each, ast.Starred) and isinstance(each.value, ast.Tuple | ast.List):
                found.append(each.lineno)
    return found


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("f(*(a, b), c)", 1),
        ("f(\n    *[a, b],\n    *(c, d),\n)", 2),
        ("[*(a, b), c], {*(a, b)}, (*[a], b)", 3),
        ("f(*a, *(x for x in y), *[x for x in y], a * (b, c)), (*a, *b)", 0),
    ],
)
def test_literals_check(source: str, count: int) -> None:
    assert len(starred_literals(source)) == count


def test_no_starred_literals() -> None:
    lines = [
        f"{relative(path)}:{line}"
        for path in SOURCES
        for line in starred_literals(path.read_text())
    ]
    assert not lines, "\n".join(lines)


@pytest.mark.slow
def test_folders_import_only_upwards() -> None:
    violations = [bad for path in SOURCES for bad in order_violations(path.read_text(), path)]
    assert not violations, "\n".join(violations)


def test_no_circular_imports() -> None:
    files = {module_name(path): path for path in SOURCES}
    graph: dict[str, set[str]] = {}
    for name, path in files.items():
        targets = graph[name] = set()
        tree = ast.parse(path.read_text())
        for target in (*(module for _, module in imports(tree, path)), *listed(tree, path)):
            if target.startswith("estimatorkit.compat") and "estimatorkit.compat" not in files:
                continue  # what is not there, the package does without
            while target and target not in files:
                target = target.rpartition(".")[0]
            targets.update({target} - {"", name})
    graphlib.TopologicalSorter(graph).prepare()  # CycleError names the files of a circle


@pytest.mark.slow
def test_no_pickle_eval_or_shell() -> None:
    uses = [bad for path in SOURCES for bad in unsafe_uses(path.read_text(), path)]
    assert not uses, "\n".join(uses)


@pytest.mark.parametrize(
    ("file", "source", "count"),
    [
        ("core/x.py", "from estimatorkit.data import csv", 1),
        ("core/x.py", "if TYPE_CHECKING:\n    from estimatorkit.data import csv", 0),
        ("ops/math/x.py", "from estimatorkit.ops.nn.nn import relu", 1),
        ("ops/nn/x.py", "from estimatorkit.ops.math import reduce", 0),
        ("core/x.py", "import estimatorkit.core.graph", 0),
        ("data/x.py", "def f():\n    from ..layers import feature_column", 1),
        ("train/x.py", "from estimatorkit import compat", 1),
        ("compat/x.py", "from estimatorkit.experiment import runner", 0),
        ("version.py", "from estimatorkit.compat import v1", 0),
    ],
)
def test_import_check(file: str, source: str, count: int) -> None:
    assert len(order_violations(source, PACKAGE / file)) == count


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from cloudpickle import loads",
        "eval('1')",
        "exec(text)",
        "yaml.load(text, Loader=L)",
        "class L(yaml.FullLoader): pass",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=flag)",
        "subprocess.run(line, shell=True)",
        "os.system(line)",
    ],
)
def test_safety_check(source: str) -> None:
    assert unsafe_uses(source, PACKAGE / "core/x.py")
    safe = "yaml.safe_load(t); np.load(p, allow_pickle=False); re.compile(p); graph.eval()"
    assert not unsafe_uses(safe, PACKAGE / "core/x.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("use", "heavy"),
    [
        ("", HEAVY),
        # scipy.special alone takes 200 ms; what an Estimator needs at first is 600 with JAX.
        ("estimatorkit.estimator.DNNClassifier; estimatorkit.Session", ("scipy", *HEAVY[1:4])),
    ],
)
def test_import_loads_nothing_heavy(use: str, heavy: tuple[str, ...]) -> None:
    code = (
        f"import sys; import estimatorkit; {use}\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert result.stdout.strip() == "[]"


def test_public_names_have_docstrings() -> None:
    # dtypes, the version and other plain values are documented where they are listed, protocol
    # buffers in their .proto files.
    public = {name: getattr(estimatorkit, name) for name in estimatorkit.__all__}
    values = {name: each for name, each in public.items() if not hasattr(each, "DESCRIPTOR")}
    without = [
        name
        for name, value in values.items()
        if (callable(value) or isinstance(value, types.ModuleType))
        and not (value.__doc__ or "").strip()
    ]
    assert values
    assert not without, f"public names without a docstring: {', '.join(without)}"


def test_folder_namespaces_are_their_folder() -> None:
    # Whatever imports a folder sets it as the package's attribute: `tf.layers` must mean the same
    # before and after.
    folders = [name for name in estimatorkit.__all__ if (PACKAGE / name).is_dir()]
    assert "layers" in folders
    for name in folders:
        assert getattr(estimatorkit, name).__name__ == f"estimatorkit.{name}"
    assert estimatorkit.layers.dense.__module__ == "estimatorkit.layers.functional"


@pytest.mark.parametrize("path", CONFIGS, ids=relative)
def test_configs_load_and_are_commented(path: Path, tmp_path: Path) -> None:
    experiment = load_experiment(path)
    again = tmp_path / path.name
    again.write_text(dump_experiment(experiment), encoding="utf-8")
    assert load_experiment(again) == experiment
    text = path.read_text(encoding="utf-8")
    assert f"estimatorkit run configs/{path.name}" in text
    assert len(text.splitlines()) <= 60


@pytest.mark.slow
def test_every_module_has_a_docstring() -> None:
    without = [
        relative(path)
        for path in SOURCES
        if path.stat().st_size and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert not without, f"modules without a docstring: {', '.join(without)}"


def test_architecture_page_names_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    named = re.findall(r"`((?:\w+\.)+\w+):([\w.]+)`", page)
    assert len(named) > 30
    for module, name in named:
        operator.attrgetter(name)(importlib.import_module(f"estimatorkit.{module}"))
    for path in re.findall(r"\b((?:\w+/)+\w+\.py)\b", page):
        assert (PACKAGE / path).is_file(), path


def test_reliability_page_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text("utf-8")
    assert [
        name for name in re.findall(r"`(tests/[^`]+)`", page) if not (ROOT / name).exists()
    ] == []
    numbers = re.findall(r"^\| T(\d+) \|", page, re.MULTILINE)
    assert sorted(map(int, numbers)) == [*range(1, len(numbers) + 1)]
