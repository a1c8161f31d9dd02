"""`AddLoss` and `AddMetric`: layers that hold a functional model's own losses and metrics.

`model.add_loss(tensor)` makes one of them a part of the model's network, so that the tensor is
computed again, and added, each time the model is called: on batches, in another model, in a copy.
Names and configs are those of Keras's files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimatorkit.layers.engine.base import Layer


class AddLoss(Layer):
    """Adds its inputs to the losses, and returns them.

    Args:
        unconditional: whether the loss does not depend on the inputs of the model; has no effect.
        kwargs: as for `Layer`.
    """

    def __init__(self, unconditional: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.unconditional = unconditional

    def call(self, inputs: Any) -> Any:
        """The inputs."""
        self.add_loss(inputs)
        return inputs

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "unconditional": self.unconditional}


class AddMetric(Layer):
    """Adds its inputs to the metrics, and returns them.

    Args:
        aggregation: 'mean', or None if there is a `metric`.
        metric_name: what the metric is called.
        metric: the `Metric`, or its config, that is called on the inputs; a mean by default.
        kwargs: as for `Layer`.
    """

    def __init__(
        self,
        aggregation: str | None = "mean",
        metric_name: str | None = None,
        metric: Any = None,
        **kwargs: Any,
    ) -> None:
        from estimatorkit.keras import metrics

        super().__init__(**kwargs)
        self.aggregation = aggregation
        self.metric_name = metric_name
        self._metric = metrics.deserialize(metric) if isinstance(metric, Mapping) else metric

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Updates the metric, also with any further arguments, and returns the inputs."""
        if self._metric is None:
            self.add_metric(inputs, name=self.metric_name)
        else:
            self.add_metric(self._metric(inputs, *args, **kwargs))
        return inputs

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        from estimatorkit.keras import metrics

        config = {"aggregation": self.aggregation, "metric_name": self.metric_name}
        if self._metric is not None:
            config["metric"] = metrics.serialize(self._metric)
        return {**super().get_config(), **config}


__all__ = ["AddLoss", "AddMetric"]
