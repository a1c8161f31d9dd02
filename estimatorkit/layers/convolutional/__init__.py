"""Layers that convolve, pool, crop and pad."""
