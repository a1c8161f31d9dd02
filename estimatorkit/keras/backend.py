"""`tf.keras.backend`: the functions of which old layers, losses and models are made.

A table: most are the package's own operations, the others are in `backend_*`.
"""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_OPS = "estimatorkit.ops"
_KERAS = "estimatorkit.keras.backend"

_PLACES = {
    **names(
        f"{_OPS}.math.elementwise",
        "abs cos equal exp greater greater_equal less less_equal log maximum minimum not_equal pow",
        "round sigmoid sign sin square tanh",
    ),
    **names(f"{_OPS}.nn.nn", "softplus softsign"),
    **names("estimatorkit.layers.activations", "elu hard_sigmoid"),
    **names("estimatorkit.core.graph", "name_scope"),
    **names("estimatorkit.layers.engine.call_record", "learning_phase set_learning_phase"),
    **names("estimatorkit.layers.engine.configured", "image_data_format set_image_data_format"),
    **names("estimatorkit.layers.engine.sessions", "set_session"),
    **names(
        f"{_KERAS}_state",
        "backend batch_get_value batch_set_value clear_session constant epsilon eye floatx foldl",
        "foldr function get_session get_uid get_value gradients in_test_phase in_train_phase",
        "learning_phase_scope map_fn manual_variable_initialization moving_average_update ones",
        "placeholder random_normal_variable random_uniform_variable reset_uids set_epsilon",
        "set_floatx set_value stop_gradient switch update update_add update_sub variable zeros",
        "eval=eval_",
    ),
    **names(
        f"{_KERAS}_math",
        "arange argmax argmin batch_dot batch_flatten batch_normalization bias_add",
        "binary_crossentropy binary_focal_crossentropy cast cast_to_floatx",
        "categorical_crossentropy categorical_focal_crossentropy clip concatenate count_params",
        "cumprod cumsum dot dropout dtype expand_dims flatten gather in_top_k int_shape",
        "is_keras_tensor is_sparse l2_normalize mean ndim normalize_batch_in_training one_hot",
        "ones_like permute_dimensions print_tensor prod random_bernoulli random_binomial",
        "random_normal random_uniform relu repeat repeat_elements reshape reverse shape softmax",
        "sqrt squeeze stack sparse_categorical_crossentropy std tile to_dense transpose",
        "truncated_normal var zeros_like all=all_ any=any_ max=max_ min=min_ sum=sum_",
    ),
    **names(
        f"{_KERAS}_images",
        "conv1d conv2d conv2d_transpose conv3d depthwise_conv2d local_conv1d local_conv2d pool2d",
        "pool3d resize_images resize_volumes separable_conv2d spatial_2d_padding",
        "spatial_3d_padding temporal_padding",
    ),
    **names(f"{_KERAS}_sequences", "ctc_batch_cost ctc_decode ctc_label_dense_to_sparse rnn"),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
