"""Loads YAML files as `Experiment`s, with errors that say where and why.

`load_experiment` is the entry point. All problems that pydantic finds are reported, each at its
line and column of the file or at the `--set` that caused it. Paths in the file are relative to its
folder and become absolute; `model_dir` is relative to the working directory, as in TensorFlow.
"""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from estimatorkit.core.errors import explain
from estimatorkit.experiment import document
from estimatorkit.experiment.arguments import Kinds
from estimatorkit.experiment.errors import ConfigurationError
from estimatorkit.experiment.schema import Experiment

_Kind = TypeVar("_Kind", bound=BaseModel)

MAX_PROBLEMS = 10  # further errors probably follow from these


def load_experiment(path: str | Path, overrides: Sequence[str] = ()) -> Experiment:
    """Loads an experiment.

    Args:
        path: the YAML file.
        overrides: `a.b=value` each, applied in order before validation; values are YAML.

    Raises:
        ConfigurationError: the file is missing or is not a valid experiment; the message has one
            paragraph per problem.
    """
    path = Path(path)
    root = mapping(path, "name, data, features, estimator, train, ...")
    for text in overrides:
        root = document.override(root, text)
    experiment = _validated(root, path)
    if "{" in experiment.name:
        root = document.override(root, f"name={_filled_in(root, experiment)}")
        experiment = _validated(root, path)
    return experiment


def mapping(path: Path, keys: str) -> yaml.Node:
    """The document of a YAML file.

    Args:
        keys: that are expected, for the message.

    Raises:
        ConfigurationError: the file is missing, is not YAML, or holds no mapping.
    """
    root = document.parse(_read(path), str(path))
    if not isinstance(root, yaml.MappingNode):
        raise ConfigurationError.explained(
            f"{document.where(root)}: the file does not hold a mapping",
            expected=f"keys with values: {keys}",
            received=document.describe(root),
        )
    return root


def _validated(root: yaml.Node, path: Path) -> Experiment:
    return validated(root, path, Experiment)


def validated(root: yaml.Node, path: Path, kind: type[_Kind]) -> _Kind:
    """A document as a model.

    Args:
        path: of the file, to whose folder paths are relative.
        kind: the model.

    Raises:
        ConfigurationError: see `load_experiment`.
    """
    try:
        return kind.model_validate(
            document.to_data(root), context={"folder": path.parent.resolve()}
        )
    except ValidationError as error:
        raise ConfigurationError(_Wording(root, kind).text(error)) from None


def _filled_in(root: yaml.Node, experiment: Experiment) -> str:
    """The name, with the values of the settings that it refers to."""
    settings = experiment.model_dump(mode="json")

    def value(match: re.Match[str]) -> str:
        found: Any = settings
        for part in match[1].split("."):
            found = found.get(part) if isinstance(found, dict) else None
        parts = found if isinstance(found, list) else [found]
        if not parts or any(isinstance(part, dict | list | None) for part in parts):
            raise ConfigurationError.explained(
                f"{document.where(document.step(root, 'name') or root)}: name refers to "
                f"{match[0]}, which is not set to a value",
                expected="a setting by its dotted name, such as {train.batch_size}",
            )
        return re.sub(r"[^A-Za-z0-9._-]", "-", "x".join(map(str, parts)))

    return re.sub(r"\{([^{}]*)\}", value, experiment.name)


def dump_experiment(experiment: Experiment) -> str:
    """The YAML, with defaults filled in, that loads to the same value."""
    return document.dump(experiment.model_dump(mode="json"))


def _read(path: Path) -> str:
    if path.is_dir():
        raise ConfigurationError.explained(
            f"{path}: is a directory",
            expected="a YAML file",
            hint=_list(sorted(str(near) for near in path.glob("*.y*ml"))),
        )
    if not path.exists():
        raise ConfigurationError.explained(f"{path}: no such file", hint=_nearby(path))
    return document.read_text(path)


def _nearby(path: Path) -> str | None:
    """Existing files with names similar to a missing one, in its folder and in ./configs."""
    candidates = {
        str(near): near.name
        for folder in (path.parent, Path("configs"))
        if folder.is_dir()
        for near in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")])
    }
    names = difflib.get_close_matches(path.name, list(candidates.values()), n=1, cutoff=0.6)
    near = [shown for shown, name in candidates.items() if name in names]
    if near:
        return f"did you mean {near[0]!r}?"
    if candidates:
        return _list(candidates)
    return None


def _list(paths: Iterable[str]) -> str | None:
    shown = list(paths)[:5]
    return f"there is {', '.join(shown)}." if shown else None


# ------------------------------------------------------------------------------------------- errors

_EXPECTED = {
    "bool_type": "true or false",
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than": "a number > {gt}",
    "greater_than_equal": "a number >= {ge}",
    "int_from_float": "an integer",
    "int_type": "an integer",
    "less_than": "a number < {lt}",
    "less_than_equal": "a number <= {le}",
    "path_type": "a file name",
    "string_pattern_mismatch": "letters, digits, '.', '_' and '-', a letter or digit first",
    "string_too_short": "text that is not empty",
    "string_type": "text",
    "too_short": "a list of at least {min_length}",
    "tuple_type": "a list",
}

Location = tuple[str | int, ...]


class _Wording:
    """Describes what is wrong with a document.

    Args:
        root: the document.
        kind: the model that it should be of.
    """

    def __init__(self, root: yaml.Node, kind: type[BaseModel]) -> None:
        self._root = root
        self._kind = kind

    def text(self, error: ValidationError) -> str:
        """Formats each of pydantic's errors once: a misspelt key is not missing, too."""
        details = error.errors(include_url=False)
        misspelt: set[Location] = set()
        for problem in details:
            if problem["type"] == "extra_forbidden":
                *section, key = problem["loc"]
                near = document.nearest(str(key), list(self._fields(section)))
                misspelt.add((*section, near or ""))
        texts = [
            self._problem(problem)
            for problem in details
            if problem["type"] != "missing" or problem["loc"] not in misspelt
        ]
        if len(texts) > MAX_PROBLEMS:
            texts[MAX_PROBLEMS:] = [f"... and {len(texts) - MAX_PROBLEMS} more."]
        return "\n".join(texts)

    def _problem(self, details: Mapping[str, Any]) -> str:
        """Formats one of pydantic's errors."""
        kind, loc = str(details["type"]), details["loc"]
        context = details.get("ctx", {})
        if kind == "missing":
            return self._missing(loc)
        if kind == "union_tag_not_found":
            return self._missing((*loc, "type"))
        if kind == "union_tag_invalid":
            loc = (*loc, "type")
        if kind == "experiment":
            loc = (*loc, *context["at"])
        parent, node, path = _walk(self._root, loc)
        name = document.dotted(path)
        if kind == "extra_forbidden":
            known = list(self._fields(loc[:-1]))
            at = document.key_node(parent, str(path[-1])) or node
            return explain(
                f"{document.where(at)}: unknown key {name}",
                expected=f"one of {', '.join(known)}",
                received=path[-1],
                hint=document.suggestion(str(path[-1]), known),
            )
        if kind == "experiment":
            return explain(
                f"{document.where(node)}: {name} {context['problem']}",
                expected=context["expected"],
                hint=context["hint"],
            )
        expected, hint = self._expected(kind, loc, context, node, str(details["msg"]))
        return explain(
            f"{document.where(node)}: {name} has a wrong value",
            expected=expected,
            received=document.describe(node),
            hint=hint,
        )

    def _missing(self, loc: Location) -> str:
        _, node, path = _walk(self._root, loc[:-1])
        field = self._fields(loc[:-1]).get(str(loc[-1]))
        expected = field.description if field else None
        if loc[-1] == "type":
            expected = f"one of {', '.join(self._types(loc[:-1]))}"
        return explain(
            f"{document.where(node)}: the key {document.dotted((*path, loc[-1]))} is missing",
            expected=expected,
        )

    def _expected(
        self, kind: str, loc: Location, context: Mapping[str, Any], node: yaml.Node, message: str
    ) -> tuple[str, str | None]:
        """The expectation at a location, and a hint."""
        choices: list[str] = []
        if kind == "union_tag_invalid":
            choices = self._types(loc[:-1])
        if kind == "literal_error":
            choices = re.findall(r"'([^']*)'", context["expected"])
        if choices:
            return f"one of {', '.join(choices)}", document.suggestion(str(node.value), choices)
        if kind in ("model_type", "model_attributes_type", "dict_type"):
            types = self._types(loc)
            keys = f"type: {' or '.join(types)}" if types else ", ".join(self._fields(loc))
            return f"a mapping with {keys}", None
        scalar = isinstance(node, yaml.ScalarNode) and not node.tag.endswith(":null")
        hint = None
        if kind == "string_type" and scalar:
            hint = f'text that looks like something else needs quotes: "{node.value}".'
        if kind == "tuple_type" and scalar:
            hint = f"a list of one is written [{node.value}]."
        return _EXPECTED.get(kind, message).format(**context), hint

    def _models(self, loc: Iterable[str | int]) -> list[type[BaseModel]]:
        """The possible models of a value at a location, by fields, items and union tags."""
        models: list[type[BaseModel]] = [self._kind]
        for part in loc:
            fields = [
                model.model_fields[str(part)] for model in models if part in model.model_fields
            ]
            if fields:
                models = [
                    model
                    for field in fields
                    for each in (field.annotation, *field.metadata)
                    for model in _models_in(each)
                ]
            elif isinstance(part, str):
                models = [each for each in models if part in (_type(each), each.__name__)] or models
        return models

    def _types(self, loc: Iterable[str | int]) -> list[str]:
        return [name for name in map(_type, self._models(loc)) if name is not None]

    def _fields(self, loc: Iterable[str | int]) -> dict[str, FieldInfo]:
        """The possible fields of a mapping at a location."""
        return {
            name: field for model in self._models(loc) for name, field in model.model_fields.items()
        }


def _walk(root: yaml.Node, loc: Location) -> tuple[yaml.Node, yaml.Node, Location]:
    """Follows pydantic's location through the document.

    Returns:
        The last node but one, the last node, and the path to it. Parts of `loc` that are not in the
        document are skipped: union tags, and keys omitted by short forms.
    """
    parent = node = root
    path: list[str | int] = []
    for part in loc:
        child = document.step(node, part)
        if child is not None:
            parent, node = node, child
            path.append(part)
    return parent, node, tuple(path)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    if is_model and _type(annotation) is not PydanticUndefined:  # not the base class of `Kinds`
        yield annotation
    if isinstance(annotation, Kinds):
        yield from map(annotation.__getitem__, annotation)
    for argument in typing.get_args(annotation):
        yield from _models_in(argument)


def _type(model: type[BaseModel]) -> Any:
    return model.model_fields["type"].default if "type" in model.model_fields else None
