"""Sequence-to-sequence models: decoders, helpers, attention and beam search of `contrib.seq2seq`;
`legacy_decoders`, `legacy_attention` and `legacy_losses` are `contrib.legacy_seq2seq`.
"""

from __future__ import annotations
