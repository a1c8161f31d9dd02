"""Ops of neural networks: activations, convolutions, pooling, losses, sampling."""
