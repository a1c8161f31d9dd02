"""The graph core: graph, op registry and ops, gradients, variables, planning, execution,
checkpoints.
"""
