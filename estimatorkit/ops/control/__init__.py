"""Control flow, functions, custom gradients, and collectives."""
