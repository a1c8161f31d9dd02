"""Convolution, pooling, cropping, padding and upsampling layers."""
