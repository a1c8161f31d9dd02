"""Losses, as `tf.losses`: one number from labels, predictions and weights, put into the collection
LOSSES.

`reduction` holds the shared parts; `distances` and `classification` hold them by kind; `collected`
looks them up again.
"""

from __future__ import annotations

from estimatorkit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
