"""Ways to run a plan many times: over the rows of columns, over the steps of a block, in parts."""
