# %% fake_quant_with_min_max_args
tf.quantization.fake_quant_with_min_max_args([-7.0, -0.5, 0.2, 3.3], min=-1, max=6, num_bits=3)

# %% fake_quant_with_min_max_args_gradient
tf.quantization.fake_quant_with_min_max_args_gradient([1.0, 1.0, 1.0], [-7.0, 0.2, 3.3])

# %% fake_quant_with_min_max_vars
tf.quantization.fake_quant_with_min_max_vars([-7.0, -0.5, 0.2, 3.3], -1.0, 6.0, num_bits=3)

# %% fake_quant_with_min_max_vars_gradient
tf.quantization.fake_quant_with_min_max_vars_gradient([1.0, 2.0], [-7.0, 0.2], -1.0, 6.0)

# %% fake_quant_with_min_max_vars_per_channel
tf.quantization.fake_quant_with_min_max_vars_per_channel(
    [[-7.0, 0.2], [3.3, 3.3]], [-1.0, 0.0], [6.0, 3.5], num_bits=3
)

# %% fake_quant_with_min_max_vars_per_channel_gradient
tf.quantization.fake_quant_with_min_max_vars_per_channel_gradient(
    [[1.0, 2.0]], [[-7.0, 0.2]], [-1.0, 0.0], [6.0, 3.5]
)
