"""The graph core: graph, tensors, op registry, conversion, function graphs, gradients, variables."""
