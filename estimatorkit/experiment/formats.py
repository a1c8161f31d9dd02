"""`data.formats`: how cells are written, by column; training, exports and servers read them so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from estimatorkit.experiment.sections import Model, Switch, Text, short

if TYPE_CHECKING:
    from estimatorkit.data.cell_formats import CellFormat


class Format(Model):
    """How the cells of a column are written (see `CellFormat`)."""

    type: Annotated[
        Literal["number", "date", "boolean", "word", "trimmed", "text"],
        Field(description="trimmed: words whose case counts; text: cells stay as they are"),
    ]
    decimal: Annotated[
        Literal[".", ","], Field(description="of numbers; the other one stands between thousands")
    ] = "."
    units: Annotated[
        tuple[Text, ...], Field(description="what may stand beside numbers: [$, USD], [kg], [%]")
    ] = ()
    day_first: Annotated[Switch, Field(description="is 01/02/2024 in February?")] = False

    @property
    def cells(self) -> CellFormat:
        """What reads them."""
        from estimatorkit.data.cell_formats import CellFormat

        assert self.type != "text"  # noqa: S101 (`parsers` leaves these out)
        return CellFormat(self.type, self.decimal, self.units, self.day_first)


Formats = Annotated[
    dict[
        Text,
        Annotated[Format, BeforeValidator(short("type"), json_schema_input_type=str | Format)],
    ],
    Field(description='how cells are written: {price: {type: number, decimal: ",", units: [EUR]}}'),
]


def parsers(formats: Mapping[str, Format] | None) -> dict[str, CellFormat]:
    """What reads each column that does not stay as it is."""
    return {name: each.cells for name, each in (formats or {}).items() if each.type != "text"}


def setting(made: CellFormat) -> Any:
    """A format as the value in `data.formats`."""
    given: dict[str, Any] = {"type": made.kind}
    if made.decimal != ".":
        given["decimal"] = made.decimal
    if made.units:
        given["units"] = list(made.units)
    if made.day_first:
        given["day_first"] = True
    return made.kind if len(given) == 1 else given
