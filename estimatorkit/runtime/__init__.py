"""Running graphs: optimizing, planning, lowering to XLA, executing; sessions."""
