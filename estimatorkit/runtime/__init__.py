"""Running graphs: optimization, planning, lowering to XLA, execution, sessions."""
