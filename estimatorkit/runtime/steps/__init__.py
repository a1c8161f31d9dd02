"""Ways to run a plan many times: vectorized over rows, and looped over the steps of a block."""
