"""Hooks that send losses and evaluations to trackers: `MLflowHook` and `WandbHook`."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import numpy as np

from estimatorkit.core.errors import explain
from estimatorkit.estimator.evaluation.continuous_evaluation import (
    EvaluationHook,
    FinishedEvaluation,
)
from estimatorkit.train.hooks.hooks import FinishedSteps


class TrackerHook(EvaluationHook, abc.ABC):
    """Sends the mean loss of every `every_n_steps` steps as 'loss', and evaluations as 'eval/...'.

    Args:
        name: the run's name.
        settings: the run's hyperparameters by name.
        every_n_steps: the number of steps over which a loss is averaged, at least 1.
    """

    def __init__(
        self, name: str, settings: Mapping[str, Any] | None = None, every_n_steps: int = 100
    ) -> None:
        self.name = name
        self.settings = dict(settings or {})
        self._every = every_n_steps
        self._losses: list[float] = []
        self._is_open = False

    @abc.abstractmethod
    def open(self) -> None:
        """Starts the run."""

    @abc.abstractmethod
    def log(self, values: Mapping[str, float], step: int) -> None:
        """Sends values of a global step."""

    @abc.abstractmethod
    def close(self) -> None:
        """Ends the run."""

    def begin(self) -> None:
        """Starts the run, unless it has begun."""
        if not self._is_open:
            self.open()
            self._is_open = True

    def after_steps(self, steps: FinishedSteps) -> None:
        """Sends the mean loss if due."""
        self._losses.extend(np.ravel(steps.losses).tolist())
        if len(self._losses) >= self._every:
            self.log({"loss": float(np.mean(self._losses))}, int(steps.last))
            self._losses.clear()

    def after_evaluation(self, evaluation: FinishedEvaluation) -> None:
        """Sends the metrics that are numbers."""
        self.begin()
        values = {
            f"{evaluation.label}/{key}": float(value)
            for key, value in evaluation.metrics.items()
            if key != "global_step" and np.ndim(value) == 0
        }
        self.log(values, evaluation.step)

    def best_checkpoint(self) -> None:
        """Ends the run after the last evaluation."""
        if self._is_open:
            self.close()
            self._is_open = False


class MLflowHook(TrackerHook):
    """Sends losses and evaluations to MLflow (the extra `mlflow`); for `TrainSpec.hooks`.

    MLflow's own settings, such as MLFLOW_TRACKING_URI, determine the server or folder.

    Args:
        name: the run's name.
        settings: the run's parameters by name.
        every_n_steps: the number of steps over which a loss is averaged, at least 1.
        experiment: the experiment that the run belongs to; created if missing.

    Raises:
        ImportError: MLflow is not installed.
    """

    def __init__(
        self,
        name: str,
        settings: Mapping[str, Any] | None = None,
        every_n_steps: int = 100,
        experiment: str = "estimatorkit",
    ) -> None:
        super().__init__(name, settings, every_n_steps)
        try:
            from mlflow import MlflowClient
        except ImportError as error:
            raise ImportError(
                explain("MLflow is not installed", hint="pip install 'estimatorkit[mlflow]'")
            ) from error
        self._client: Any = MlflowClient()
        self._experiment = experiment
        self._run = ""

    def open(self) -> None:
        """Starts the run, with its parameters."""
        found = self._client.get_experiment_by_name(self._experiment)
        number = (
            self._client.create_experiment(self._experiment)
            if found is None
            else found.experiment_id
        )
        self._run = self._client.create_run(number, run_name=self.name).info.run_id
        for key, value in self.settings.items():
            self._client.log_param(self._run, key, value)

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Sends values of a global step."""
        for key, value in values.items():
            self._client.log_metric(self._run, key, value, step=step)

    def close(self) -> None:
        """Ends the run."""
        self._client.set_terminated(self._run)


class WandbHook(TrackerHook):
    """Sends losses and evaluations to Weights & Biases (the package `wandb`); for
    `TrainSpec.hooks`.

    Args:
        name: the run's name.
        settings: the run's config by name.
        every_n_steps: the number of steps over which a loss is averaged, at least 1.
        project: the project that the run belongs to.

    Raises:
        ImportError: wandb is not installed.
    """

    def __init__(
        self,
        name: str,
        settings: Mapping[str, Any] | None = None,
        every_n_steps: int = 100,
        project: str = "estimatorkit",
    ) -> None:
        super().__init__(name, settings, every_n_steps)
        try:
            import wandb
        except ImportError as error:
            raise ImportError(
                explain("wandb is not installed", hint="pip install wandb")
            ) from error
        self._wandb: Any = wandb
        self._project = project
        self._run: Any = None

    def open(self) -> None:
        """Starts the run, with its config."""
        self._run = self._wandb.init(project=self._project, name=self.name, config=self.settings)

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Sends values of a global step."""
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        """Ends the run."""
        self._run.finish()
