"""`tf.nn`: neural network operations."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_OPS = "estimatorkit.ops"

_PLACES = {
    "rnn_cell": "estimatorkit.layers.recurrent.rnn_cell",
    **names(
        f"{_OPS}.nn.nn",
        "batch_normalization bias_add dropout elu l2_loss l2_normalize leaky_relu log_softmax",
        "moments relu relu6 selu sigmoid_cross_entropy_with_logits softmax",
        "softmax_cross_entropy_with_logits softmax_cross_entropy_with_logits_v2 softplus softsign",
        "sparse_softmax_cross_entropy_with_logits",
    ),
    **names(f"{_OPS}.math.elementwise", "sigmoid tanh"),
    **names(
        f"{_OPS}.nn.convolution_functions",
        "atrous_conv2d conv1d conv2d conv3d convolution depthwise_conv2d depthwise_conv2d_native",
        "separable_conv2d",
    ),
    **names(
        f"{_OPS}.nn.transposed_convolution",
        "atrous_conv2d_transpose conv1d_transpose conv2d_backprop_filter",
        "depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_input conv2d_backprop_input",
        "conv2d_transpose conv3d_backprop_filter_v2 conv3d_transpose conv_transpose",
        "conv3d_backprop_filter=conv3d_backprop_filter_v2",
        "depthwise_conv2d_native_backprop_filter=depthwise_conv2d_backprop_filter",
        "depthwise_conv2d_native_backprop_input=depthwise_conv2d_backprop_input",
    ),
    **names(
        f"{_OPS}.nn.pooling",
        "avg_pool avg_pool1d avg_pool2d avg_pool3d avg_pool_v2 max_pool max_pool1d max_pool2d",
        "max_pool3d max_pool_v2 max_pool_with_argmax pool",
    ),
    **names(f"{_OPS}.nn.fractional_pooling", "fractional_avg_pool fractional_max_pool"),
    **names(f"{_OPS}.nn.morphology", "dilation2d erosion2d"),
    **names(
        f"{_OPS}.nn.normalization",
        "batch_norm_with_global_normalization fused_batch_norm lrn normalize_moments",
        "sufficient_statistics weighted_moments zero_fraction local_response_normalization=lrn",
    ),
    **names(
        f"{_OPS}.nn.activations",
        "compute_average_loss crelu log_poisson_loss relu_layer scale_regularization_loss swish",
        "weighted_cross_entropy_with_logits xw_plus_b silu=swish",
    ),
    **names(f"{_OPS}.nn.space_blocks", "depth_to_space space_to_batch space_to_depth"),
    **names(f"{_OPS}.array.ranking", "in_top_k nth_element top_k"),
    **names(
        f"{_OPS}.nn.embedding",
        "embedding_lookup embedding_lookup_sparse safe_embedding_lookup_sparse",
    ),
    **names(
        f"{_OPS}.nn.candidates",
        "all_candidate_sampler compute_accidental_hits fixed_unigram_candidate_sampler",
        "log_uniform_candidate_sampler nce_loss sampled_softmax_loss uniform_candidate_sampler",
    ),
    **names(f"{_OPS}.nn.learned_candidates", "learned_unigram_candidate_sampler"),
    **names(f"{_OPS}.nn.ctc", "collapse_repeated ctc_loss ctc_loss_v2 ctc_unique_labels"),
    **names(
        f"{_OPS}.nn.ctc_decoders",
        "ctc_beam_search_decoder ctc_beam_search_decoder_v2 ctc_greedy_decoder",
    ),
    **names(
        "estimatorkit.layers.recurrent.rnn",
        "bidirectional_dynamic_rnn dynamic_rnn raw_rnn static_bidirectional_rnn static_rnn",
        "static_state_saving_rnn",
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
