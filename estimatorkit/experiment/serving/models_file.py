"""A YAML file with the models of a server.

```yaml
models:
  - directory: exports/census                   # named after its folder
  - {name: prices, directory: exports/housing, labels: {stable: 3, canary: 4}}
```
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from estimatorkit.experiment.load import mapping, validated
from estimatorkit.experiment.sections import FileName, Model, Word, wrong
from estimatorkit.experiment.serving.model_store import ModelStore

_Version = Annotated[int, Field(strict=True, ge=0)]


class ServedModel(Model):
    """A model and its versions."""

    directory: Annotated[FileName, Field(description="the folder of the exports, or one export")]
    name: Annotated[Word | None, Field(description="in requests; null: the folder's")] = None
    labels: Annotated[
        dict[Word, _Version] | None, Field(description="versions by label: {canary: 4}")
    ] = None

    @property
    def shown(self) -> str:
        """The model's name in requests."""
        return self.name or Path(self.directory).resolve().name


class ServedModels(Model):
    """The models of a server."""

    models: Annotated[tuple[ServedModel, ...], Field(min_length=1, description="a list of models")]

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        for name, count in Counter(each.shown for each in self.models).items():
            if count > 1:
                raise wrong(
                    f"has {count} models called {name!r}",
                    at=("models",),
                    expected="a name of its own for each",
                    hint="add name: to one of them.",
                )
        return self


def open_models(path: str | Path, warm_up: int = 0) -> list[ModelStore]:
    """Loads the models of a file.

    Raises:
        ConfigurationError: the file is missing or invalid.
        OpError: a model cannot be loaded.
    """
    path = Path(path)
    given = validated(mapping(path, "models"), path, ServedModels)
    return [
        ModelStore(Path(each.directory), each.name, each.labels, warm_up) for each in given.models
    ]


__all__ = ["ServedModel", "ServedModels", "open_models"]
