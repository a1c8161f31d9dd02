"""Analyses TensorFlow 1 scripts for migration: findings with their lines, and new imports.

`examine` reads a script without running it: it resolves TensorFlow's names in the `ast`, through
`import ... as`, `from ... import` and `slim = tf.contrib.slim`, and looks each up in the module
tree of `estimatorkit.compat.v1` and in the table of differences (`behaviours`). `Examined.migrated`
is the script with only TensorFlow's imports changed, byte for byte. A migrated script can be
examined again.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Literal

from estimatorkit.compat import numpy_removals
from estimatorkit.compat.behaviours import DIFFERENT, EAGER, REFUSED
from estimatorkit.compat.modules import ROOT

Kind = Literal["syntax", "unsupported", "different", "import"]

_TENSORFLOW, _ESTIMATOR = "tensorflow", "tensorflow_estimator"
_NUMPY = "numpy"
_HERE, _, _V1 = ROOT.partition(".")

# Packages that scripts import along with TensorFlow.
_OTHERS: dict[str, str] = {
    "tensorflow_hub": "not part of estimatorkit; load the model's weights by jax_function",
    "tensorflow_probability": "not part of estimatorkit; use random_normal, multinomial, lgamma, "
    "or a JAX library through jax_function",
    "tensorflow_datasets": "not part of estimatorkit; use data.Dataset.from_generator, or datasets",
    "tensorflow_addons": "not part of estimatorkit",
    "tensorflow_transform": "not part of estimatorkit; use feature columns with normalizers",
    "tensorflow_serving": "use `estimatorkit serve`, which speaks TensorFlow Serving's REST",
    "tf_slim": "use contrib.slim of estimatorkit.compat.v1",
    "horovod": "not part of estimatorkit; one process uses all its devices",
    "tensor2tensor": "not part of estimatorkit",
}


# Packages that were part of TensorFlow.
_BROUGHT: dict[str, str] = {
    name: f"a package of its own, which TensorFlow brought along: pip install {name}"
    for name in ("six", "mock", "termcolor", "wrapt")
}


@dataclass(frozen=True)
class Finding:
    """A finding in a script.

    Attributes:
        kind: 'syntax' (unreadable), 'unsupported', 'different', or 'import' (to change).
        line: 1-based.
        name: TensorFlow's name, such as 'tf.contrib.crf'.
        text: the message.
    """

    kind: Kind
    line: int
    name: str
    text: str


@dataclass(frozen=True)
class Examined:
    """The result of `examine`.

    Attributes:
        findings: by line.
        source: the original bytes.
        migrated: with its imports changed.
    """

    findings: tuple[Finding, ...]
    source: bytes
    migrated: bytes

    @property
    def is_supported(self) -> bool:
        """Whether everything it uses is supported."""
        return not any(each.kind in ("syntax", "unsupported") for each in self.findings)

    @property
    def is_eager(self) -> bool:
        """Whether it is written for TensorFlow 2's eager execution."""
        return any(each.name in EAGER for each in self.findings)


@dataclass(frozen=True)
class _Edit:
    """A replacement of bytes of one line."""

    line: int
    start: int
    end: int
    text: str


def examine(source: bytes, name: str = "<script>") -> Examined:
    """Analyses a script without running it.

    Args:
        source: the file's bytes, in the encoding that its first lines declare.
        name: the file's name, for messages.
    """
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(source).readline)[0]
        text = source.decode(encoding)
        tree = ast.parse(text, name)
    except (SyntaxError, ValueError) as error:
        return Examined((_syntax_finding(error, source),), source, source)
    script = _Script(tree)
    lines = text.encode().splitlines(keepends=True)  # ast counts bytes of UTF-8
    findings, edits = [*script.of_imports(), *script.of_names(), *script.of_eager_execution()], []
    for statement, edit in script.edits(lines):
        if edit is None:
            told = "is written so that it must be changed by hand"
            findings.append(Finding("unsupported", statement.lineno, "import", told))
        else:
            edits.append(edit)
            shown = [
                each[edit.line - 1].decode().strip() for each in (lines, _apply(lines, [edit]))
            ]
            findings.append(Finding("import", edit.line, *shown))
    findings.sort(key=lambda each: (each.line, each.kind, each.name))
    migrated = b"".join(_apply(lines, edits)).decode().encode(encoding)
    return Examined(tuple(findings), source, migrated if edits else source)


def _syntax_finding(error: SyntaxError | ValueError, source: bytes) -> Finding:
    if not isinstance(error, SyntaxError):  # null bytes
        return Finding("syntax", 1, "", f"this is no Python source: {error}")
    line = error.lineno or 1
    lines = source.splitlines()
    text = lines[line - 1].strip() if line <= len(lines) else b""
    hint = ""
    if text.startswith((b"%", b"!")):
        hint = "; commands of a notebook need a # before them"
    elif re.match(rb"(print|exec)\b(?!\s*\()", text) or re.search(rb"except .+, \w+:", text):
        hint = "; this is Python 2: run 2to3 on it first"
    elif text.startswith((b"{", b'"cells"')):
        hint = "; export a notebook first: jupyter nbconvert --to script"
    return Finding("syntax", line, "", f"{error.msg}: {text.decode(errors='replace')[:60]}{hint}")


# -- names


@cache
def look_up(name: str) -> tuple[bool, str | None]:
    """Looks up a dotted name below `tf`.

    Only the tables of `estimatorkit.compat.v1` and modules of this package are searched; attributes
    of other objects (`Session.run`) are not checked.

    Returns:
        Whether it is a module, and the problem with it: None if it exists.
    """
    from estimatorkit.compat import v1

    found: object = v1
    for part in name.split(".") if name else ():
        if not isinstance(found, ModuleType):
            return False, None
        try:
            found = getattr(found, part)
        except (AttributeError, ImportError) as error:
            return False, str(error).partition(": ")[2] or str(error)
    return isinstance(found, ModuleType), None


class _Script:
    """Resolves the TensorFlow names of a script."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._nodes = list(ast.walk(tree))
        self._imports = [each for each in self._nodes if isinstance(each, ast.Import)]
        self._froms = [
            each
            for each in self._nodes
            if isinstance(each, ast.ImportFrom) and not each.level and each.module
        ]
        self._numpy = dict(self._numpy_names())
        self._bound: dict[str, str] = {}
        for statement in self._imports:
            for alias in statement.names:
                below = _below(alias.name)
                if below is not None:
                    root = alias.name.partition(".")[0]
                    self._bound[alias.asname or root] = below if alias.asname else ""
        for node in self._froms:
            below = _below(node.module or "")
            for alias in node.names if below is not None else ():
                if alias.name != "*":
                    self._bound[alias.asname or alias.name] = _joined(below or "", alias.name)
        self._assigned = set(self._modules_by_assignment())

    def _numpy_names(self) -> Iterator[tuple[str, str]]:
        """The names bound by imports of NumPy, with their dotted names below `numpy`."""
        for statement in self._imports:
            for alias in statement.names:
                below = _below(alias.name, (_NUMPY,))
                if below is not None:
                    yield alias.asname or _NUMPY, below if alias.asname else ""
        for node in self._froms:
            below = _below(node.module or "", (_NUMPY,))
            for alias in node.names if below is not None else ():
                yield alias.asname or alias.name, _joined(below or "", alias.name)

    def _modules_by_assignment(self) -> Iterator[str]:
        """Binds names that are only ever assigned a module: `slim = tf.contrib.slim`."""
        assigned: dict[str, list[ast.Assign]] = {}
        for node in self._nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        assigned.setdefault(target.id, []).append(node)
        for name, nodes in assigned.items():
            path = self._path(nodes[0].value) if len(nodes) == 1 else None
            if path and look_up(path)[0]:
                self._bound[name] = path
                yield name

    def _path(self, node: ast.AST) -> str | None:
        """The dotted name below `tf` of an expression, or None."""
        path = _dotted(node, self._bound)
        while path and (path == _V1 or path.startswith(f"{_V1}.")):
            path = path.removeprefix(_V1).removeprefix(".")
        return path

    def of_imports(self) -> Iterator[Finding]:
        """Findings for imported modules and names that do not exist."""
        for statement in self._imports:
            for alias in statement.names:
                yield from _of_module(statement.lineno, alias.name)
        for node in self._froms:
            below = _below(node.module or "")
            if below is None:
                yield from _of_module(node.lineno, node.module or "")
                package = _below(node.module or "", (_NUMPY,))
                for alias in node.names if package is not None else ():
                    if alias.name != "*":
                        yield from _of_numpy(node.lineno, _joined(package or "", alias.name))
                continue
            for alias in node.names:
                path = below if alias.name == "*" else _joined(below, alias.name)
                yield from _of_path(node.lineno, path.removeprefix(_V1).removeprefix("."))

    def of_names(self) -> Iterator[Finding]:
        """Findings for used names that do not exist or differ; only for the longest names."""
        inner = {id(node.value) for node in self._nodes if isinstance(node, ast.Attribute)}
        for node, local in self._with_local_names(self._tree, frozenset()):
            if id(node) in inner or not isinstance(node, ast.Attribute | ast.Name):
                continue
            if _base(node) in local:
                continue
            line = node.end_lineno or node.lineno  # that of the last part
            if path := self._path(node):
                yield from _of_path(line, path, only_different=isinstance(node, ast.Name))
            elif path := _dotted(node, self._numpy):
                yield from _of_numpy(line, path)
        for call in self._nodes:
            if isinstance(call, ast.Call) and (path := _dotted(call.func, self._numpy)):
                given = {
                    each.arg: each.value.value if isinstance(each.value, ast.Constant) else None
                    for each in call.keywords
                    if each.arg is not None
                }
                if told := numpy_removals.argument_problem(path, given):
                    yield Finding("unsupported", call.lineno, f"np.{path}", told)

    def of_eager_execution(self) -> Iterator[Finding]:
        """Findings for `@tf.function`, and for `tensor.numpy()` unless PyTorch may be meant."""
        decorators = [
            each
            for node in self._nodes
            if isinstance(node, ast.FunctionDef)
            for each in node.decorator_list
        ]
        calls = [node for node in self._nodes if isinstance(node, ast.Call)]
        used = {id(each): each for each in [*decorators, *(call.func for call in calls)]}
        for node in used.values():
            if self._path(node) == "function":
                yield Finding("unsupported", node.lineno, "tf.function", EAGER["tf.function"])
        imported = {alias.name for statement in self._imports for alias in statement.names}
        imported |= {node.module or "" for node in self._froms}
        if not self._bound or any(_below(each, ("torch",)) is not None for each in imported):
            return
        for call in calls:
            match call:
                case ast.Call(ast.Attribute(attr="numpy"), [], []):
                    line = call.end_lineno or call.lineno
                    yield Finding("unsupported", line, "numpy()", EAGER["numpy()"])

    def _with_local_names(
        self, node: ast.AST, local: frozenset[str]
    ) -> Iterator[tuple[ast.AST, frozenset[str]]]:
        """The nodes below one, each with the names local to its function."""
        for child in ast.iter_child_nodes(node):
            inside = local
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                inside = local | self._names_of(child)
            yield child, inside
            yield from self._with_local_names(child, inside)

    def _names_of(self, function: ast.AST) -> frozenset[str]:
        names = [each.arg for each in ast.walk(function) if isinstance(each, ast.arg)]
        stored = {
            each.id
            for each in ast.walk(function)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        }
        return frozenset({*names, *(stored - self._assigned)})

    def edits(self, lines: list[bytes]) -> Iterator[tuple[ast.stmt, _Edit | None]]:
        """The changes of TensorFlow's imports; None for a statement in an unsupported form."""
        for statement in self._imports:
            for alias in statement.names:
                below = _below(alias.name, (_TENSORFLOW, _ESTIMATOR))
                if below is None:
                    continue
                target = _target(below) if alias.asname else ROOT
                text = f"{target} as {alias.asname or alias.name.partition('.')[0]}"
                end = alias.end_col_offset if alias.lineno == alias.end_lineno else None
                yield (
                    statement,
                    None if end is None else _Edit(alias.lineno, alias.col_offset, end, text),
                )
        for node in self._froms:
            below = _below(node.module or "", (_TENSORFLOW, _ESTIMATOR))
            if below is None:
                continue
            only_v1 = below == "compat" and [alias.name for alias in node.names] == ["v1"]
            target = ROOT.rpartition(".")[0] if only_v1 else _target(below)
            after = lines[node.lineno - 1][node.col_offset :]
            found = re.match(rb"from[ \t]+([\w.]+)(?=\s)", after)
            if found is None or found[1].decode() != node.module:
                yield node, None
            else:
                start = node.col_offset + found.start(1)
                yield node, _Edit(node.lineno, start, start + len(found[1]), target)


def _dotted(node: ast.AST, bound: Mapping[str, str]) -> str | None:
    """The dotted name of an expression, resolving its first name, or None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in bound:
        return None
    return _joined(bound[node.id], ".".join(reversed(parts)))


def _base(node: ast.AST) -> str:
    """The root name of a chain of attributes: `a` of `a.b.c`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _below(module: str, roots: tuple[str, ...] = (_TENSORFLOW, _ESTIMATOR, _HERE)) -> str | None:
    """The part of a module's name after `tensorflow.` (or this package, in a migrated script), or
    None.
    """
    root, _, below = module.partition(".")
    return below if root in roots else None


def _joined(one: str, other: str) -> str:
    return f"{one}.{other}" if one and other else one or other


def _target(below: str) -> str:
    """The module of this package for a module below `tensorflow`."""
    return _joined(ROOT, below.removeprefix(_V1).removeprefix("."))


def _of_module(line: int, module: str) -> Iterator[Finding]:
    below = _below(module)
    if below is not None:
        yield from _of_path(line, below.removeprefix(_V1).removeprefix("."))
        return
    package = module.partition(".")[0]
    if package in _OTHERS:
        yield Finding("unsupported", line, module, _OTHERS[package])
    elif package in _BROUGHT:
        yield Finding("different", line, package, _BROUGHT[package])


def _of_numpy(line: int, path: str) -> Iterator[Finding]:
    found = numpy_removals.problem(path)
    if found is not None:
        text, is_gone = found
        yield Finding("unsupported" if is_gone else "different", line, f"np.{path}", text)


def _of_path(line: int, path: str, only_different: bool = False) -> Iterator[Finding]:
    if not path:
        return
    problem = None if only_different else look_up(path)[1]
    if problem is not None:
        yield Finding("unsupported", line, f"tf.{path}", problem)
        return
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        name = ".".join(parts[:count])
        if name in REFUSED:
            yield Finding("unsupported", line, f"tf.{name}", REFUSED[name])
            return
        if name in DIFFERENT:
            yield Finding("different", line, f"tf.{name}", DIFFERENT[name])
            return


# -- edits


def _apply(lines: list[bytes], edits: list[_Edit]) -> list[bytes]:
    """Applies edits to lines, last first within each line so that offsets stay valid."""
    lines = list(lines)
    for edit in sorted(edits, key=lambda each: (each.line, each.start), reverse=True):
        line = lines[edit.line - 1]
        lines[edit.line - 1] = line[: edit.start] + edit.text.encode() + line[edit.end :]
    return lines
