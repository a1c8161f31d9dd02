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
from estimatorkit.compat.names.keras.backend import *

eval = eval_
