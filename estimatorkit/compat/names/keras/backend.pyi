from estimatorkit.compat.keras.backend_math import (
    all_, any_, arange as arange, argmax as argmax, argmin as argmin, batch_dot as batch_dot,
    batch_flatten as batch_flatten, batch_normalization as batch_normalization,
    bias_add as bias_add, binary_crossentropy as binary_crossentropy,
    binary_focal_crossentropy as binary_focal_crossentropy, cast as cast,
    cast_to_floatx as cast_to_floatx, categorical_crossentropy as categorical_crossentropy,
    categorical_focal_crossentropy as categorical_focal_crossentropy, clip as clip,
    concatenate as concatenate, count_params as count_params, cumprod as cumprod, cumsum as cumsum,
    dot as dot, dropout as dropout, dtype as dtype, expand_dims as expand_dims, flatten as flatten,
    gather as gather, in_top_k as in_top_k, int_shape as int_shape,
    is_keras_tensor as is_keras_tensor, is_sparse as is_sparse, l2_normalize as l2_normalize, max_,
    mean as mean, min_, ndim as ndim, normalize_batch_in_training as normalize_batch_in_training,
    one_hot as one_hot, ones_like as ones_like, permute_dimensions as permute_dimensions,
    print_tensor as print_tensor, prod as prod, random_bernoulli as random_bernoulli,
    random_binomial as random_binomial, random_normal as random_normal,
    random_uniform as random_uniform, relu as relu, repeat as repeat,
    repeat_elements as repeat_elements, reshape as reshape, reverse as reverse, shape as shape,
    softmax as softmax, sparse_categorical_crossentropy as sparse_categorical_crossentropy,
    sqrt as sqrt, squeeze as squeeze, stack as stack, std as std, sum_, tile as tile,
    to_dense as to_dense, transpose as transpose, truncated_normal as truncated_normal, var as var,
    zeros_like as zeros_like,
)
from estimatorkit.compat.keras.backend_images import (
    conv1d as conv1d, conv2d as conv2d, conv2d_transpose as conv2d_transpose, conv3d as conv3d,
    depthwise_conv2d as depthwise_conv2d, local_conv1d as local_conv1d,
    local_conv2d as local_conv2d, pool2d as pool2d, pool3d as pool3d,
    resize_images as resize_images, resize_volumes as resize_volumes,
    separable_conv2d as separable_conv2d, spatial_2d_padding as spatial_2d_padding,
    spatial_3d_padding as spatial_3d_padding, temporal_padding as temporal_padding,
)
from estimatorkit.compat.keras.backend_sequences import (
    ctc_batch_cost as ctc_batch_cost, ctc_decode as ctc_decode,
    ctc_label_dense_to_sparse as ctc_label_dense_to_sparse, rnn as rnn,
)
all = all_
any = any_
max = max_
min = min_
sum = sum_
