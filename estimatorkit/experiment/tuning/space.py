"""Search spaces as data: `Dimension`, the values that one setting may take."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from estimatorkit.experiment.sections import Number, OneKey, Positive, Whole, wrong


class Dimension(OneKey):
    """The values that one setting may take: a choice of any values, or a range, ends included.

    Floats are rounded to four significant digits.
    """

    example: ClassVar[str] = "{log_uniform: [0.001, 0.1]}"

    choice: Annotated[
        tuple[Any, ...] | None, Field(min_length=1, description="values, lists among them")
    ] = None
    uniform: Annotated[tuple[Number, Number] | None, Field(description="[lowest, highest]")] = None
    log_uniform: Annotated[
        tuple[Positive, Positive] | None,
        Field(description="[lowest, highest], each power of ten as likely as another"),
    ] = None
    int: Annotated[tuple[Whole, Whole] | None, Field(description="[lowest, highest]")] = None

    @model_validator(mode="after")
    def _ends_in_order(self) -> Self:
        if self.kind != "choice" and self.value[0] > self.value[1]:
            raise wrong(
                "has its lowest value last", at=(self.kind,), expected=f"{list(self.value)[::-1]}"
            )
        return self

    def values(self) -> tuple[Any, ...] | None:
        """All settings; None if there is a range of floats."""
        if self.kind == "choice":
            return tuple({json.dumps(each): each for each in self.value}.values())
        return tuple(range(self.value[0], self.value[1] + 1)) if self.kind == "int" else None

    def distribution(self) -> Any:
        """The distribution of Optuna; choices are JSON texts."""
        from optuna import distributions

        if self.kind == "choice":
            return distributions.CategoricalDistribution([json.dumps(each) for each in self.value])
        if self.kind == "int":
            return distributions.IntDistribution(*self.value)
        low, high = self.value
        return distributions.FloatDistribution(low, high, log=self.kind == "log_uniform")

    def setting(self, parameter: Any) -> Any:
        """The setting of a value that was drawn from the distribution."""
        if self.kind == "choice":
            return json.loads(parameter)
        return parameter if self.kind == "int" else float(f"{parameter:.4g}")

    def parameter(self, setting: Any) -> Any:
        """The value of the distribution that gives a setting; None if none does."""
        if self.kind == "choice":
            text = json.dumps(setting)
            return text if text in map(json.dumps, self.value) else None
        if not isinstance(setting, int | float) or isinstance(setting, bool):
            return None
        return setting if self.value[0] <= setting <= self.value[1] else None
