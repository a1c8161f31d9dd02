from estimatorkit.ops.nn.nn import (
    batch_normalization as batch_normalization, bias_add as bias_add, dropout as dropout,
    elu as elu, l2_loss as l2_loss, l2_normalize as l2_normalize, leaky_relu as leaky_relu,
    log_softmax as log_softmax, moments as moments, relu as relu, relu6 as relu6, selu as selu,
    sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits, softmax as softmax,
    softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2 as softmax_cross_entropy_with_logits_v2,
    softplus as softplus, softsign as softsign,
    sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
)
from estimatorkit.ops.math.elementwise import sigmoid as sigmoid, tanh as tanh
from estimatorkit.ops.nn.convolution_functions import (
    atrous_conv2d as atrous_conv2d, conv1d as conv1d, conv2d as conv2d, conv3d as conv3d,
    convolution as convolution, depthwise_conv2d as depthwise_conv2d,
    depthwise_conv2d_native as depthwise_conv2d_native, separable_conv2d as separable_conv2d,
)
from estimatorkit.ops.nn.transposed_convolution import (
    atrous_conv2d_transpose as atrous_conv2d_transpose, conv1d_transpose as conv1d_transpose,
    conv2d_backprop_filter as conv2d_backprop_filter,
    conv2d_backprop_input as conv2d_backprop_input, conv2d_transpose as conv2d_transpose,
    conv3d_backprop_filter_v2 as conv3d_backprop_filter_v2, conv3d_transpose as conv3d_transpose,
    conv_transpose as conv_transpose,
    depthwise_conv2d_backprop_filter as depthwise_conv2d_backprop_filter,
    depthwise_conv2d_backprop_input as depthwise_conv2d_backprop_input,
)
from estimatorkit.ops.nn.pooling import (
    avg_pool as avg_pool, avg_pool1d as avg_pool1d, avg_pool2d as avg_pool2d,
    avg_pool3d as avg_pool3d, avg_pool_v2 as avg_pool_v2, max_pool as max_pool,
    max_pool1d as max_pool1d, max_pool2d as max_pool2d, max_pool3d as max_pool3d,
    max_pool_v2 as max_pool_v2, max_pool_with_argmax as max_pool_with_argmax, pool as pool,
)
from estimatorkit.ops.nn.normalization import (
    batch_norm_with_global_normalization as batch_norm_with_global_normalization,
    fused_batch_norm as fused_batch_norm, lrn as lrn, normalize_moments as normalize_moments,
    sufficient_statistics as sufficient_statistics, weighted_moments as weighted_moments,
    zero_fraction as zero_fraction,
)
from estimatorkit.ops.nn.activations import (
    compute_average_loss as compute_average_loss, crelu as crelu,
    log_poisson_loss as log_poisson_loss, relu_layer as relu_layer,
    scale_regularization_loss as scale_regularization_loss, swish as swish,
    weighted_cross_entropy_with_logits as weighted_cross_entropy_with_logits,
    xw_plus_b as xw_plus_b,
)
from estimatorkit.ops.nn.space_blocks import (
    depth_to_space as depth_to_space, space_to_batch as space_to_batch,
    space_to_depth as space_to_depth,
)
from estimatorkit.ops.array.ranking import (
    in_top_k as in_top_k, nth_element as nth_element, top_k as top_k,
)
from estimatorkit.ops.nn.embedding import (
    embedding_lookup as embedding_lookup, embedding_lookup_sparse as embedding_lookup_sparse,
    safe_embedding_lookup_sparse as safe_embedding_lookup_sparse,
)
from estimatorkit.compat.names.nn import *

conv3d_backprop_filter = conv3d_backprop_filter_v2
depthwise_conv2d_native_backprop_filter = depthwise_conv2d_backprop_filter
depthwise_conv2d_native_backprop_input = depthwise_conv2d_backprop_input
local_response_normalization = lrn
silu = swish
