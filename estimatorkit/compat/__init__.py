"""Legacy names: `compat.v1` is TensorFlow 1's module tree."""
