"""What becomes of a TensorFlow 1 script here: findings with their lines, and new imports.

`examine` reads a script without running it: `ast` tells which names are TensorFlow's, through
`import ... as`, `from ... import` and `slim = tf.contrib.slim`; each is then looked up in the tree
of `estimatorkit.compat.v1`, and in the table of what behaves differently (`behaviours`).
`Examined.migrated` is the same script with TensorFlow's imports changed and every other byte as it
was. Names of a migrated script are looked at as before; there is nothing left to change in it.
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
from estimatorkit.compat.behaviours import DIFFERENT, REFUSED
from estimatorkit.compat.modules import ROOT

Kind = Literal["syntax", "unsupported", "different", "import"]

_TENSORFLOW, _ESTIMATOR = "tensorflow", "tensorflow_estimator"
_NUMPY = "numpy"
_HERE, _, _V1 = ROOT.partition(".")

# Packages beside TensorFlow that scripts import with it.
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


# Packages that came with TensorFlow.
_BROUGHT: dict[str, str] = {
    name: f"a package of its own, which TensorFlow brought along: pip install {name}"
    for name in ("six", "mock", "termcolor", "wrapt")
}


@dataclass(frozen=True)
class Finding:
    """Something to know about a script.

    Attributes:
        kind: 'syntax' (it cannot be read), 'unsupported', 'different', or 'import' (to change).
        line: from 1.
        name: TensorFlow's name, such as 'tf.contrib.crf'.
        text: what to say of it.
    """

    kind: Kind
    line: int
    name: str
    text: str


@dataclass(frozen=True)
class Examined:
    """A script that was looked at.

    Attributes:
        findings: by line.
        source: as it is.
        migrated: with its imports changed.
    """

    findings: tuple[Finding, ...]
    source: bytes
    migrated: bytes

    @property
    def is_supported(self) -> bool:
        """Whether all that it uses is there."""
        return not any(each.kind in ("syntax", "unsupported") for each in self.findings)


@dataclass(frozen=True)
class _Edit:
    """Bytes of one line to be replaced."""

    line: int
    start: int
    end: int
    text: str


def examine(source: bytes, name: str = "<script>") -> Examined:
    """Looks at a script; nothing of it is run.

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
    findings, edits = [*script.of_imports(), *script.of_names()], []
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
    """What a dotted name below `tf` is here.

    Names are looked for in the tables of `estimatorkit.compat.v1` and in modules of this package
    only; below something that is no module (`Session.run`) it is not looked further.

    Returns:
        Whether it is a module, and what is wrong with it: None if it is there.
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
    """The TensorFlow names of a script."""

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
        """The names that imports give to NumPy's, with their dotted names below `numpy`."""
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
        """`slim = tf.contrib.slim`: binds names that are given a module, and nothing else."""
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
        """The dotted name below `tf` that an expression is, or None."""
        path = _dotted(node, self._bound)
        while path and (path == _V1 or path.startswith(f"{_V1}.")):
            path = path.removeprefix(_V1).removeprefix(".")
        return path

    def of_imports(self) -> Iterator[Finding]:
        """What imported modules and names are not there."""
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
        """What is used that is not there, or differs; the longest names only."""
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

    def _with_local_names(
        self, node: ast.AST, local: frozenset[str]
    ) -> Iterator[tuple[ast.AST, frozenset[str]]]:
        """The nodes below one, with the names that are a function's own there."""
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
        """The changes of TensorFlow's imports; None if one is written too oddly."""
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
    """The dotted name that an expression is, by what its first name is bound to; or None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in bound:
        return None
    return _joined(bound[node.id], ".".join(reversed(parts)))


def _base(node: ast.AST) -> str:
    """The name that a chain of attributes begins with."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _below(module: str, roots: tuple[str, ...] = (_TENSORFLOW, _ESTIMATOR, _HERE)) -> str | None:
    """What follows `tensorflow.` (or, in a migrated script, this package) in a module's name.

    Returns:
        The rest, None for other modules.
    """
    root, _, below = module.partition(".")
    return below if root in roots else None


def _joined(one: str, other: str) -> str:
    return f"{one}.{other}" if one and other else one or other


def _target(below: str) -> str:
    """The module here for one below `tensorflow`."""
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
    """The lines with the edits made, the last of a line first: offsets before it stay true."""
    lines = list(lines)
    for edit in sorted(edits, key=lambda each: (each.line, each.start), reverse=True):
        line = lines[edit.line - 1]
        lines[edit.line - 1] = line[: edit.start] + edit.text.encode() + line[edit.end :]
    return lines
