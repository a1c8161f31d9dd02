from estimatorkit.ops.math.elementwise import (
    abs as abs, cos as cos, equal as equal, exp as exp, greater as greater,
    greater_equal as greater_equal, less as less, less_equal as less_equal, log as log,
    maximum as maximum, minimum as minimum, not_equal as not_equal, pow as pow, round as round,
    sigmoid as sigmoid, sign as sign, sin as sin, square as square, tanh as tanh,
)
from estimatorkit.ops.nn.nn import softplus as softplus, softsign as softsign
from estimatorkit.layers.activations import elu as elu, hard_sigmoid as hard_sigmoid
from estimatorkit.core.graph import name_scope as name_scope
from estimatorkit.layers.engine.call_record import (
    learning_phase as learning_phase, set_learning_phase as set_learning_phase,
)
from estimatorkit.layers.engine.configured import (
    image_data_format as image_data_format, set_image_data_format as set_image_data_format,
)
from estimatorkit.layers.engine.sessions import set_session as set_session
from estimatorkit.keras.backend_state import (
    backend as backend, batch_get_value as batch_get_value, batch_set_value as batch_set_value,
    clear_session as clear_session, constant as constant, epsilon as epsilon, eval_, eye as eye,
    floatx as floatx, foldl as foldl, foldr as foldr, function as function,
    get_session as get_session, get_uid as get_uid, get_value as get_value, gradients as gradients,
    in_test_phase as in_test_phase, in_train_phase as in_train_phase,
    learning_phase_scope as learning_phase_scope,
    manual_variable_initialization as manual_variable_initialization, map_fn as map_fn,
    moving_average_update as moving_average_update, ones as ones, placeholder as placeholder,
    random_normal_variable as random_normal_variable,
    random_uniform_variable as random_uniform_variable, reset_uids as reset_uids,
    set_epsilon as set_epsilon, set_floatx as set_floatx, set_value as set_value,
    stop_gradient as stop_gradient, switch as switch, update as update, update_add as update_add,
    update_sub as update_sub, variable as variable, zeros as zeros,
)
from estimatorkit.keras.backend_math import (
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
from estimatorkit.keras.backend_images import (
    conv1d as conv1d, conv2d as conv2d, conv2d_transpose as conv2d_transpose, conv3d as conv3d,
    depthwise_conv2d as depthwise_conv2d, local_conv1d as local_conv1d,
    local_conv2d as local_conv2d, pool2d as pool2d, pool3d as pool3d,
    resize_images as resize_images, resize_volumes as resize_volumes,
    separable_conv2d as separable_conv2d, spatial_2d_padding as spatial_2d_padding,
    spatial_3d_padding as spatial_3d_padding, temporal_padding as temporal_padding,
)
from estimatorkit.keras.backend_sequences import (
    ctc_batch_cost as ctc_batch_cost, ctc_decode as ctc_decode,
    ctc_label_dense_to_sparse as ctc_label_dense_to_sparse, rnn as rnn,
)

eval = eval_
all = all_
any = any_
max = max_
min = min_
sum = sum_
