"""YAML documents with source locations.

A document is PyYAML's node tree, whose marks keep file, line and column. `parse` reads text and
rejects tags, duplicate keys, self-reference and exponential aliases; `override` replaces one value
(`a.b=value`); `to_data` converts a node to plain Python values; `step` returns a child; `dump`
writes values.

Plain scalars follow YAML 1.2: `no` is text, `1e-3` is a number, `2024-01-31` is text.
"""

from __future__ import annotations

import difflib
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from estimatorkit.core.errors import explain, other_form
from estimatorkit.experiment.errors import ConfigurationError

MAX_BYTES = 1_000_000  # experiments are short; larger files are a mistake
MAX_NODES = 20_000  # counted with aliases expanded: nine levels of nine aliases are 387 million

Path = tuple[str | int, ...]

OVERRIDE = "--set"

_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = {_TAG + kind for kind in ("map", "seq", "str", "int", "float", "bool", "null")}
_MERGE_TAG = _TAG + "merge"

_RESOLVERS: tuple[tuple[str, str, str], ...] = (
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9_]*)|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("merge", r"<<", "<"),
)


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with YAML 1.2's plain scalars."""

    yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012 (filled just below)


class _Dumper(yaml.SafeDumper):
    """PyYAML's safe dumper: quotes text that YAML 1.1 or 1.2 would not read as text; keeps short
    values on one line.
    """

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_mapping(
        self, tag: str, mapping: Any, flow_style: bool | None = None
    ) -> yaml.MappingNode:
        nested = any(isinstance(value, dict) for value in mapping.values())
        on_one_line = not nested and len(str(mapping)) <= 88
        return super().represent_mapping(tag, mapping, on_one_line)


for _kind, _pattern, _first in _RESOLVERS:
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(_TAG + _kind, re.compile(rf"^(?:{_pattern})$"), list(_first))
_Loader.yaml_implicit_resolvers.setdefault("", []).append((_TAG + "null", re.compile(r"^$")))


def where(node: yaml.Node) -> str:
    """`file:line:column` of a node, or the override that set it."""
    return _where(node.start_mark)


def _where(mark: Any) -> str:
    if mark is None:
        return "?"
    if mark.name.startswith(OVERRIDE):
        return str(mark.name)
    return f"{mark.name}:{mark.line + 1}:{mark.column + 1}"


def dotted(path: Sequence[str | int]) -> str:
    """A path as `a.b.0.c`."""
    return ".".join(str(part) for part in path)


def read_text(path: pathlib.Path) -> str:
    """Reads a file of YAML, or its beginning, which `parse` refuses, if it is too large.

    Raises:
        ConfigurationError: it is not UTF-8.
    """
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)  # it may be endless
    try:
        return data.decode("utf-8-sig", "replace" if len(data) > MAX_BYTES else "strict")
    except UnicodeDecodeError as error:
        raise ConfigurationError.explained(
            f"{path}: is not UTF-8 text (byte {error.start})",
            expected="a YAML file in UTF-8",
        ) from None


def parse(text: str, name: str) -> yaml.Node:
    """Parses YAML into a validated node tree.

    Args:
        text: one YAML document.
        name: the file's name, for messages.

    Raises:
        ConfigurationError: the text is not YAML, is empty, or uses a rejected feature.
    """
    if len(text.encode()) > MAX_BYTES:
        raise ConfigurationError.explained(
            f"{name}: the file is too large for a configuration",
            expected=f"at most {MAX_BYTES:,} bytes",
            received="more",
            hint="is it a data file? Data belongs in a CSV file that the configuration names.",
        )
    node = _compose(text, name)
    if node is None:
        raise ConfigurationError.explained(
            f"{name}: the file is empty",
            expected="a mapping with the keys name, data, features, estimator, train, ...",
            hint="start from configs/iris_dnn.yaml.",
        )
    _check(node)
    return node


def _compose(text: str, name: str) -> yaml.Node | None:
    try:
        loader = _Loader(text)
        loader.name = name
        return loader.get_single_node()
    except RecursionError:
        raise ConfigurationError(f"{name}: values are nested too deeply.") from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, error.position - before.rfind("\n")
        raise ConfigurationError.explained(
            f"{name}:{line}:{column}: not valid YAML: a character that cannot be printed",
            received=f"U+{ord(text[error.position]):04X}",
            hint="delete it.",
        ) from None
    except yaml.MarkedYAMLError as error:
        raise ConfigurationError(_syntax_problem(error, text, name)) from None


def _syntax_problem(error: yaml.MarkedYAMLError, text: str, name: str) -> str:
    context, problem = error.context or "", error.problem or ""
    mark, opened = error.problem_mark or error.context_mark, error.context_mark
    if opened is not None and ("flow" in context or "quoted" in context):
        hint = f"what opens at line {opened.line + 1}, column {opened.column + 1} is not closed."
    else:
        hints = (hint for word, hint in _SYNTAX_HINTS.items() if word in context + problem)
        hint = next(hints, "")
    lines = text.splitlines()
    line = lines[mark.line].strip() if mark is not None and mark.line < len(lines) else ""
    return explain(
        f"{_where(mark)}: not valid YAML: {problem}",
        received=line or None,
        hint=hint if hint and not name.startswith(OVERRIDE) else None,
    )


_SYNTAX_HINTS = {
    "'\\t'": "indent with spaces; YAML does not allow tabs.",
    "undefined alias": "text that begins with * needs quotes; an alias (*a) needs an anchor (&a).",
    "mapping values": "is there a colon on the line above, and is the indentation right?",
    "single document": "one experiment a file: remove '---' between documents.",
    "could not find expected ':'": "a key needs a colon and a space after it.",
    "block": "is the indentation right? The keys of a section stand in one column.",
}


def children(node: yaml.Node) -> Iterator[yaml.Node]:
    """Yields the keys and values of a mapping, or the items of a sequence."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _check(root: yaml.Node) -> None:
    """Rejects tags, duplicate keys, cycles and exponential aliases, in one traversal."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def size(node: yaml.Node) -> int:
        if id(node) in sizes:
            return sizes[id(node)]
        if id(node) in open_nodes:
            raise ConfigurationError(f"{where(node)}: an alias refers to itself.")
        _check_tag(node)
        _check_scalar(node)
        _check_keys(node)
        open_nodes.add(id(node))
        total = 1 + sum(size(child) for child in children(node))
        open_nodes.discard(id(node))
        if total > MAX_NODES:
            raise ConfigurationError.explained(
                f"{where(node)}: too many values once aliases are expanded",
                expected=f"at most {MAX_NODES:,}",
                hint="write the values out instead of repeating aliases (*name).",
            )
        sizes[id(node)] = total
        return total

    size(root)


def _check_tag(node: yaml.Node) -> None:
    if node.tag in _PLAIN_TAGS or node.tag == _MERGE_TAG:
        return
    tag = "!!" + node.tag.removeprefix(_TAG) if node.tag.startswith(_TAG) else node.tag
    raise ConfigurationError.explained(
        f"{where(node)}: the YAML tag {tag} is refused",
        expected="plain values: text, numbers, true, false, null, lists and mappings",
        hint="a configuration never makes Python objects; remove the tag.",
    )


def _check_scalar(node: yaml.Node) -> None:
    """Rejects invalid scalars: `!!int ten`, or an integer of thousands of digits."""
    if isinstance(node, yaml.ScalarNode) and node.tag != _MERGE_TAG:
        loader = _Loader("")
        try:
            loader.construct_document(node)
        except (ValueError, KeyError, yaml.YAMLError):
            kind = _KINDS.get(node.tag.removeprefix(_TAG), "a value")
            raise ConfigurationError.explained(
                f"{where(node)}: this cannot be read as {kind}", received=shorten(node.value)
            ) from None
        finally:
            loader.dispose()


def _check_keys(node: yaml.Node) -> None:
    if not isinstance(node, yaml.MappingNode):
        return
    seen: dict[str, yaml.Node] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag not in (_TAG + "str", _MERGE_TAG):
            raise ConfigurationError.explained(
                f"{where(key)}: this cannot be a key",
                expected="a word before the colon",
                received=describe(key),
            )
        if key.value in seen:
            first, again = seen[key.value].start_mark.line + 1, key.start_mark.line + 1
            raise ConfigurationError.explained(
                f"{where(key)}: the key {key.value!r} is given twice",
                received=f"first on line {first}, again on line {again}",
                hint="keep one of the two.",
            )
        seen[key.value] = key


def entries(node: yaml.MappingNode) -> dict[str, yaml.Node]:
    """A mapping's values by key; its own keys override merged ones (`<<: *base`)."""
    own: dict[str, yaml.Node] = {}
    merged: dict[str, yaml.Node] = {}
    for key, value in node.value:
        if key.tag != _MERGE_TAG:
            own[key.value] = value
            continue
        for base in value.value if isinstance(value, yaml.SequenceNode) else [value]:
            if isinstance(base, yaml.MappingNode):
                for name, inherited in entries(base).items():
                    merged.setdefault(name, inherited)
    return {**merged, **own}


def key_node(node: yaml.Node, name: str) -> yaml.Node | None:
    """The key node of a mapping's own key, or None."""
    if isinstance(node, yaml.MappingNode):
        for key, _ in node.value:
            if key.value == name:
                return key  # type: ignore[no-any-return]
    return None


def step(node: yaml.Node, part: str | int) -> yaml.Node | None:
    """The child of a node at a key or index, or None."""
    if isinstance(node, yaml.MappingNode):
        return entries(node).get(str(part))
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part]  # type: ignore[no-any-return]
    return None


def to_data(node: yaml.Node) -> Any:
    """Converts a node to dicts, lists, str, int, float, bool and None.

    Raises:
        ConfigurationError: a merge key (`<<`) has a value that is not a mapping.
    """
    loader = _Loader("")
    try:
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        raise ConfigurationError(
            f"{_where(error.problem_mark)}: not valid YAML: {error.problem}."
        ) from None
    finally:
        loader.dispose()


def override(root: yaml.Node, text: str) -> yaml.Node:
    """Returns a copy of `root` with one value replaced or added.

    Args:
        root: a mapping node.
        text: `a.b=value`; the path's parts are keys or list indices, the value is YAML.

    Raises:
        ConfigurationError: there is no `=`, the value is not YAML, or the path leads through
            something that is neither a mapping nor a list.
    """
    path, equals, value = text.partition("=")
    parts = path.strip().split(".")
    if not equals or not all(parts):
        raise ConfigurationError.explained(
            f"{OVERRIDE} {text}: this is not an override",
            expected="key=value with a dotted key, for example train.steps=200",
        )
    origin = f"{OVERRIDE} {text}"
    node = _compose(value, origin)
    if node is None:
        node = _compose("null", origin)
    assert node is not None  # noqa: S101 ("null" composes to a node)
    _check(node)
    return _replace(root, parts, node, origin, ())


def _replace(
    node: yaml.Node, parts: list[str], value: yaml.Node, origin: str, done: Path
) -> yaml.Node:
    """Copies only the nodes along the path, so that aliases elsewhere are unaffected."""
    if not parts:
        return value
    part, rest = parts[0], parts[1:]
    if isinstance(node, yaml.SequenceNode):
        if not part.isdecimal() or int(part) >= len(node.value):
            raise ConfigurationError.explained(
                f"{origin}: {dotted(done)} is a list and has no {part!r}",
                expected=f"an index from 0 to {len(node.value) - 1}",
                received=part,
            )
        items = list(node.value)
        items[int(part)] = _replace(items[int(part)], rest, value, origin, (*done, int(part)))
        return yaml.SequenceNode(node.tag, items, node.start_mark, node.end_mark)
    if isinstance(node, yaml.ScalarNode) and done and _may_have_keys(node):
        node = yaml.MappingNode(_TAG + "map", [], value.start_mark, value.end_mark)
    if not isinstance(node, yaml.MappingNode):
        raise ConfigurationError.explained(
            f"{origin}: {dotted(done)} has no keys of its own",
            expected="a path to a key of the configuration",
            received=f"{dotted(done)} is {describe(node)}",
        )
    known = entries(node)
    pairs = [(key, old) for key, old in node.value if key.value != part]
    if part in known:
        child = known[part]
    else:
        child = yaml.MappingNode(_TAG + "map", [], value.start_mark, value.end_mark)
    new = _replace(child, rest, value, origin, (*done, part))
    key = yaml.ScalarNode(_TAG + "str", part, value.start_mark, value.end_mark)
    return yaml.MappingNode(node.tag, [*pairs, (key, new)], node.start_mark, node.end_mark)


def _may_have_keys(node: yaml.ScalarNode) -> bool:
    """Whether a value stands for a mapping without keys: null, and true as in `infer: true`."""
    return node.tag == _TAG + "null" or (node.tag == _TAG + "bool" and node.value.lower() == "true")


_KINDS = {
    "map": "a mapping",
    "seq": "a list",
    "str": "text",
    "int": "an integer",
    "float": "a number",
    "bool": "a boolean",
}


def describe(node: yaml.Node) -> str:
    """The source text of a value, shortened, with its type: `ten (text)`."""
    kind = node.tag.removeprefix(_TAG)
    if kind == "null":
        return "null (nothing)"
    if isinstance(node, yaml.ScalarNode):
        shown = repr(node.value) if kind == "str" else node.value
    else:
        shown = dump(to_data(node), flow=True)
    return f"{shorten(shown)} ({_KINDS.get(kind, kind)})"


def shorten(text: str) -> str:
    """Truncates text to 60 characters."""
    return text if len(text) <= 60 else text[:57] + "..."


def dump(data: Any, *, flow: bool = False) -> str:
    """Formats plain values as YAML, preserving the order of keys; `flow` on one line."""
    text = yaml.dump(
        data,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=True if flow else None,
        width=2**31 if flow else 100,
    )
    return text.removesuffix("...\n").strip() if flow else text


_SYNONYMS = {
    "lr": "learning_rate",
    "bs": "batch_size",
    "batch": "batch_size",
    "dropout_rate": "dropout",
    "eval": "evaluate",
    "layers": "hidden_units",
    "num_classes": "n_classes",
    "classes": "n_classes",
    "target": "label",
    "test": "evaluate",
    "units": "hidden_units",
    "valid": "evaluate",
    "validation": "evaluate",
    "validation_split": "holdout",
    "test_size": "holdout",
}
"""Names that other libraries have for keys."""


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known word closest to `word`, ignoring case, or what other libraries call so; or None."""
    if _SYNONYMS.get(word.lower()) in known:
        return _SYNONYMS[word.lower()]
    lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), list(lower), n=1, cutoff=0.6)
    return lower[near[0]] if near else None


def suggestion(word: str, known: Sequence[str]) -> str | None:
    """The hint for an unknown word, or None."""
    near = nearest(word, known)
    return other_form(word, known) or (f"did you mean {near!r}?" if near else None)
