"""`WarmStartSettings`: initializing a new model's variables from another model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.logger import logger
from estimatorkit.ops.variables.variable_collections import global_variables
from estimatorkit.train.global_steps import get_global_step
from estimatorkit.train.saving.initializing import starts_from_checkpoint, warm_start
from estimatorkit.train.sessions.scaffold import Scaffold


class WarmStartSettings(NamedTuple):
    """How to initialize variables from another model (`tf.estimator.WarmStartSettings`).

    Attributes:
        ckpt_to_initialize_from: a checkpoint, a model folder, or the folder of an exported model.
        vars_to_warm_start: a regular expression for names of trainable variables (all by default);
            a list of expressions for names of any variables, or of variables; None for only those
            of `var_name_to_vocab_info`.
        var_name_to_vocab_info: by variable name, a `VocabInfo` that describes how the vocabulary of
            a variable with a row (or column) per word has changed.
        var_name_to_prev_var_name: the names in the checkpoint, if different.
    """

    ckpt_to_initialize_from: Any
    vars_to_warm_start: Any = ".*"
    var_name_to_vocab_info: Mapping[str, Any] | None = None
    var_name_to_prev_var_name: Mapping[str, str] | None = None

    def apply(self) -> None:
        """Applies the settings to the variables of the default graph."""
        logger.info("Warm-starting with WarmStartSettings: %s", self)
        warm_start(
            self.ckpt_to_initialize_from,
            self.vars_to_warm_start,
            self.var_name_to_vocab_info,
            self.var_name_to_prev_var_name,
        )


def as_warm_start(value: Any) -> WarmStartSettings | None:
    """Converts the argument `warm_start_from` of an estimator.

    Args:
        value: a path, `WarmStartSettings`, or None.

    Raises:
        ValueError: it is none of these, or there is no checkpoint.
    """
    if value is None or isinstance(value, WarmStartSettings):
        settings = value
    elif isinstance(value, (str, bytes, os.PathLike)):
        settings = WarmStartSettings(os.fsdecode(value))
    else:
        raise value_error(
            "warm_start_from must be a string or a WarmStartSettings",
            received=f"{type(value).__name__}: {value!r}"[:200],
        )
    if settings is None:
        return None
    path = settings.ckpt_to_initialize_from
    if not path:
        raise ValueError("`ckpt_to_initialize_from` MUST be set in WarmStartSettings")
    text = os.fsdecode(path)
    exported = os.path.join(text, "variables", "variables")
    if os.path.exists(os.path.join(text, "saved_model.pb")) and os.path.exists(f"{exported}.index"):
        text = exported
    return settings._replace(ckpt_to_initialize_from=text)


def apply_first_values(
    settings: WarmStartSettings | None, scaffold: Scaffold, model_dir: str
) -> None:
    """Initializes the model of the default graph, which has no checkpoint, with useful values.

    They come from `settings`, or else from the model: by `init_from_checkpoint`, or its scaffold's
    `init_op` or `init_fn`. A model without variables needs none.

    Args:
        settings: the estimator's `warm_start_from`, or None.
        scaffold: the model's scaffold.
        model_dir: the estimator's folder, for the message.

    Raises:
        ValueError: all variables would only have their initializers' values.
    """
    if settings is not None:
        settings.apply()
        return
    step = get_global_step()
    needs_none = all(variable is step for variable in global_variables())
    if needs_none or scaffold.init_op is not None or scaffold.init_fn is not None:
        return
    if not starts_from_checkpoint(get_default_graph()):
        raise not_trained(model_dir)


def not_trained(model_dir: str) -> ValueError:
    """The error for a model with neither a checkpoint nor other useful values."""
    return value_error(
        f"Could not find trained model in model_dir: {model_dir}",
        expected="a checkpoint, or initial values from one (warm_start_from, "
        "train.init_from_checkpoint in the model_fn, a scaffold's init_fn)",
        received="neither",
        hint="call train() first, or use the model_dir of an earlier training",
    )


__all__ = ["WarmStartSettings", "apply_first_values", "as_warm_start", "not_trained"]
