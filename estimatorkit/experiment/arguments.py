"""Sections that are the arguments of a public function: their keys are read from its signature.

`Arguments` adds a field for each argument whose annotation YAML can express, so a new keyword is a
setting at once. `types` holds what an annotation does not say, and None for what is no setting;
fields that a class declares itself are kept. `Kinds` is a choice among such sections by the key
`type`; each is derived when a configuration first has it.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import core_schema

from estimatorkit.experiment.sections import (
    Count,
    Model,
    NotNegative,
    Switch,
    Text,
    name_or_type,
)
from estimatorkit.experiment.signatures import COMPUTED, REQUIRED, Argument, signature
from estimatorkit.lazy import fetch

_SCALARS: dict[str, Any] = {"bool": Switch, "float": NotNegative, "int": Count, "str": Text}
_TUPLES: dict[str, Any] = {
    "float": tuple[NotNegative, ...],
    "int": tuple[Count, ...],
    "str": tuple[Text, ...],
}
_AnyCount = Annotated[int, Field(strict=True, ge=0)]


class Arguments(Model):
    """The base class; a class with a `place` of its own gets the fields of that function.

    Attributes:
        place: the function, by its public name as 'module:name', below `estimatorkit`.
        renamed: arguments by the keys that stand for them, where the names differ.
        types: by argument's name, or the end of it after '_', the type of the setting.
    """

    place: ClassVar[str] = ""
    renamed: ClassVar[Mapping[str, str]] = {}
    types: ClassVar[Mapping[str, Any]] = {}
    related: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "place" not in vars(cls):
            return
        found = signature(cls.place, cls.related)
        cls.__doc__ = cls.__doc__ or found.summary
        keys = {argument: key for key, argument in cls.renamed.items()}
        own = inspect.get_annotations(cls)
        inherited = {key for each in cls.__mro__[1:] for key in getattr(each, "model_fields", ())}
        fields: dict[str, Any] = {}
        for name, argument in found.arguments.items():
            key = keys.get(name, name)
            if key in own:
                fields[key] = own[key]
            elif key not in inherited:
                kind = _type_of(name, argument, cls.types)
                if kind is not None:
                    fields[key] = _described(kind, argument.text)
                    if argument.default is not REQUIRED:
                        setattr(cls, key, argument.default)
        cls.__annotations__ = fields | own

    @classmethod
    def function(cls) -> Any:
        """What the section holds the arguments of."""
        return fetch(f"estimatorkit.{cls.place}")


def _described(kind: Any, text: str) -> Any:
    """A type, with a description if it has none of its own."""
    notes = getattr(kind, "__metadata__", ())
    if not text or any(getattr(each, "description", None) for each in notes):
        return kind
    return Annotated[kind, Field(description=text)]


def _type_of(name: str, argument: Argument, types: Mapping[str, Any]) -> Any:
    """The type of a setting; None if the argument is none."""
    if argument.default is COMPUTED:
        return None
    for key, kind in types.items():
        if name == key or name.endswith(f"_{key}"):
            return kind
    return _expressed(argument.annotation, argument.default)


def _expressed(annotation: ast.expr, default: Any) -> Any:
    """An annotation as the type of a YAML value; None if YAML cannot express it."""
    match annotation:
        case ast.Name("Any") if type(default).__name__ in _SCALARS:
            return _SCALARS[type(default).__name__]
        case ast.Name("int") if default == 0:
            return _AnyCount
        case ast.Name(name):
            return _SCALARS.get(name)
        case ast.BinOp(left, ast.BitOr(), ast.Constant(None)):
            kind = _expressed(left, default)
            return None if kind is None else kind | None
        case ast.Subscript(ast.Name(name), ast.Name(item)) if name in ("Iterable", "Sequence"):
            kind = _TUPLES.get(item)
            return kind if kind is None or default == () else Annotated[kind, Field(min_length=1)]
        case ast.Subscript(ast.Name("Literal")):
            return Literal[ast.literal_eval(annotation.slice)]
    return None


class Kinds:
    """A section whose key `type` says what it is; in `Annotated`, the type of a field.

    Args:
        base: the base class of all.
        places: by `type`, the place of the function, or a base class beside it: `(place, Base)`.
        plain: a value in place of a mapping, as (how messages call it, its type).
    """

    def __init__(
        self,
        base: type[Arguments],
        places: Mapping[str, str | tuple[str, *tuple[type[Model], ...]]],
        plain: tuple[str, Any] | None = None,
    ) -> None:
        self._base = base
        self._rows = {
            name: (row, ()) if isinstance(row, str) else (row[0], row[1:])
            for name, row in places.items()
        }
        self._plain = plain
        self._related = tuple(place for place, _ in self._rows.values() if place)
        self._made: dict[str, type[Model]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __getitem__(self, name: str) -> type[Model]:
        """The section of a `type`."""
        if name not in self._made:
            place, bases = self._rows[name]
            space: dict[str, Any] = {
                "__module__": __name__,
                "__annotations__": {"type": Literal[name]},
                "type": name,
                "related": self._related,
            }
            if place:
                space["place"] = place
            elif bases:
                space["__doc__"] = bases[0].__doc__
            metaclass: Any = type(self._base)
            self._made[name] = metaclass(name, (*bases, self._base), space)
        return self._made[name]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        choices = {name: self._choice(name) for name in self._rows}
        if self._plain is None:
            return core_schema.tagged_union_schema(choices, "type")
        called, kind = self._plain
        choices[called] = handler.generate_schema(kind)
        return core_schema.tagged_union_schema(choices, lambda value: name_or_type(value, called))

    def _choice(self, name: str) -> core_schema.CoreSchema:
        """Validates a section; its model is derived by the first value or JSON schema."""

        def validated(value: Any, info: ValidationInfo) -> Model:
            return self[name].model_validate(value, context=info.context)

        def described(_: Any, handler: GetJsonSchemaHandler) -> Any:
            found: Any = self[name].__pydantic_core_schema__
            others = found.get("definitions", ())
            found = found["schema"] if others else found
            if found["type"] != "definition-ref":  # so that the JSON schema has it once
                own = core_schema.definition_reference_schema(f"{__name__}.{name}:{id(self)}")
                found, others = own, [*others, {**found, "ref": own["schema_ref"]}]
            return handler(core_schema.definitions_schema(found, list(others)))

        return core_schema.with_info_plain_validator_function(
            validated, metadata={"pydantic_js_annotation_functions": [described]}
        )
