"""`WarmStartSettings`: where a new model's variables get their first values from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from estimatorkit.core.errors import explain
from estimatorkit.core.log import logger
from estimatorkit.train.initializing import warm_start


class WarmStartSettings(NamedTuple):
    """How variables start with values of another model (`tf.estimator.WarmStartSettings`).

    Attributes:
        ckpt_to_initialize_from: a checkpoint, a model folder, or the folder of an exported model.
        vars_to_warm_start: a regular expression for names of trainable variables (all by default);
            a list of expressions for names of all variables, or of variables; None for none but
            those of `var_name_to_vocab_info`.
        var_name_to_vocab_info: for variables with a row (or column) a word, how the vocabulary has
            changed: a `VocabInfo` by name.
        var_name_to_prev_var_name: the names in the checkpoint, where they are others.
    """

    ckpt_to_initialize_from: Any
    vars_to_warm_start: Any = ".*"
    var_name_to_vocab_info: Mapping[str, Any] | None = None
    var_name_to_prev_var_name: Mapping[str, str] | None = None

    def apply(self) -> None:
        """Lets the variables of the default graph start so."""
        logger.info("Warm-starting with WarmStartSettings: %s", self)
        warm_start(
            self.ckpt_to_initialize_from,
            self.vars_to_warm_start,
            self.var_name_to_vocab_info,
            self.var_name_to_prev_var_name,
        )


def as_warm_start(value: Any) -> WarmStartSettings | None:
    """What the argument `warm_start_from` of an estimator means.

    Args:
        value: a path, `WarmStartSettings`, or None.

    Raises:
        ValueError: it is none of these, or names no checkpoint.
    """
    if value is None or isinstance(value, WarmStartSettings):
        settings = value
    elif isinstance(value, (str, bytes, os.PathLike)):
        settings = WarmStartSettings(os.fsdecode(value))
    else:
        raise ValueError(
            explain(
                "warm_start_from must be a string or a WarmStartSettings",
                received=f"{type(value).__name__}: {value!r}"[:200],
            )
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


__all__ = ["WarmStartSettings", "as_warm_start"]
