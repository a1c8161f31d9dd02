"""Training: optimizers, hooks, saving, the global step, and the loop that runs many steps in one call."""
