"""`ModelFiles`: methods of a model for saving, configs and summaries.

They call modules that build on `Model`, by ports (see `core.ports`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from estimatorkit.lazy import Port

if TYPE_CHECKING:
    from estimatorkit.keras.engine import model_config, model_summary, saving
else:
    model_config = Port("model_config")
    model_summary = Port("model_summary")
    saving = Port("model_saving")


class ModelFiles:
    """Mixin of `Model`: saving, configs and summaries."""

    def save_weights(
        self,
        filepath: str | os.PathLike[str],
        overwrite: bool = True,
        save_format: Any = None,
        **kwargs: Any,
    ) -> None:
        """Writes the weights; see `keras.engine.saving.save_weights`."""
        saving.save_weights(self, filepath, overwrite, save_format, **kwargs)

    def load_weights(
        self,
        filepath: str | os.PathLike[str],
        by_name: bool = False,
        skip_mismatch: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Reads the weights; see `keras.engine.saving.load_weights`."""
        return saving.load_weights(self, filepath, by_name, skip_mismatch, **kwargs)

    def save(
        self,
        filepath: str | os.PathLike[str],
        overwrite: bool = True,
        include_optimizer: bool = True,
        save_format: Any = None,
        **kwargs: Any,
    ) -> None:
        """Writes the model, without code; see `keras.engine.saving.save_model`."""
        saving.save_model(self, filepath, overwrite, include_optimizer, save_format, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """The layers and how they are connected; see `keras.engine.model_config`."""
        return model_config.config_of(self)

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """The model that `get_config` described, with new weights."""
        return model_config.model_of(cls, config, custom_objects)

    def to_json(self, **kwargs: Any) -> str:
        """The architecture as JSON, for `keras.models.model_from_json`."""
        return model_config.to_json(self, **kwargs)

    def to_yaml(self, **kwargs: Any) -> str:
        """The architecture as YAML, for `keras.models.model_from_yaml`."""
        return model_config.to_yaml(self, **kwargs)

    def summary(
        self,
        line_length: int | None = None,
        positions: Any = None,
        print_fn: Any = None,
        expand_nested: bool = False,
        show_trainable: bool = False,
        layer_range: Any = None,
    ) -> None:
        """Prints the layers, their output shapes and numbers of parameters."""
        model_summary.summary(
            self, line_length, positions, print_fn, expand_nested, show_trainable, layer_range
        )


__all__ = ["ModelFiles"]
