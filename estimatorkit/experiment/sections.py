"""Common parts of an experiment's sections: base class, value types, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

Text = Annotated[str, Field(min_length=1)]
Whole = Annotated[int, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=1)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Positive = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0)]
NotNegative = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0)]
Share = Annotated[float, Field(strict=True, gt=0, lt=1)]
Switch = Annotated[bool, Field(strict=True)]
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


def _as_list(value: Any) -> Any:
    return (value,) if isinstance(value, str | Path) else value


Texts = Annotated[
    tuple[Text, ...],
    BeforeValidator(_as_list, json_schema_input_type=str | tuple[str, ...]),
    Field(min_length=1),
]


def _beside_the_file(path: Any, info: ValidationInfo) -> Any:
    folder = (info.context or {}).get("folder")
    if not folder or not isinstance(path, str) or not path or "://" in path:
        return path
    return str(Path(folder) / Path(path).expanduser())


FileName = Annotated[Text, BeforeValidator(_beside_the_file, json_schema_input_type=str)]
FileNames = Annotated[
    tuple[FileName, ...],
    BeforeValidator(_as_list, json_schema_input_type=str | tuple[str, ...]),
    Field(min_length=1),
]


class Model(BaseModel):
    """The base class of sections: frozen, and unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def wrong(
    problem: str, *, expected: str, at: tuple[str | int, ...] = (), hint: str | None = None
) -> PydanticCustomError:
    """An error that involves several keys, in the parts that `load` formats; `at`: a path below the
    model.
    """
    parts = {"problem": problem, "expected": expected, "at": at, "hint": hint}
    return PydanticCustomError("experiment", "{at} {problem}", parts)


class OneKey(Model):
    """The base class of sections in which exactly one key is given; `example` shows one."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})
    example: ClassVar[str] = ""

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        given = [key for key, value in self if value is not None]
        if len(given) != 1:
            raise wrong(
                f"gives {len(given)} keys",
                expected=f"one of {', '.join(type(self).model_fields)}, as in {self.example}",
            )
        return self

    @property
    def kind(self) -> str:
        """The key."""
        return next(key for key, value in self if value is not None)

    @property
    def value(self) -> Any:
        """Its value."""
        return getattr(self, self.kind)

    @model_serializer(mode="wrap")
    def _only_the_kind(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if value is not None}


def short(key: str) -> Callable[[Any], Any]:
    """The validator of a section with a short form: text as the value of one key."""
    return lambda value: {key: value} if isinstance(value, str) else value


def name_or_type(value: Any, short_form: str = "a name") -> str | None:
    """Distinguishes a union's short form from its long form (a mapping with `type`)."""
    if isinstance(value, dict):
        kind = value.get("type")
        return kind if isinstance(kind, str) else None
    return getattr(value, "type", short_form)


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of a document by dotted name; a list is a leaf, and an absent value no setting."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from leaves(each, f"{name}.{key}" if name else str(key))
    elif value is not None:
        yield name, value
