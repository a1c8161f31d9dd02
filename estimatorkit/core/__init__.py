"""The graph core: graph, tensors, op registry, conversion, functions, gradients, variables."""
