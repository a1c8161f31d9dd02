from estimatorkit.version import __version__ as __version__
from . import (
    audio as audio, bitwise as bitwise, compat as compat, data as data, debugging as debugging,
    distribute as distribute, estimator as estimator, feature_columns as feature_columns,
    function as function, gfile as gfile, graph_util as graph_util, image as image,
    initializers as initializers, inspection as inspection, io as io, keras as keras,
    layers as layers, linalg as linalg, lookup as lookup, losses as losses, math as math,
    metrics as metrics, nn as nn, projector as projector, python_io as python_io,
    queue as queue,
    random as random, saved_model as saved_model, sets as sets, signal as signal,
    sklearn as sklearn, sparse as sparse, strings as strings, summary as summary, train as train,
)
from estimatorkit.data import datasets as datasets
from estimatorkit.core import errors as errors, nest as nest
from estimatorkit.layers import feature_column as feature_column
from estimatorkit.core.graph import (
    add_to_collection as add_to_collection, colocate_with as colocate_with, container as container,
    control_dependencies as control_dependencies, device as device,
    get_collection as get_collection, get_collection_ref as get_collection_ref,
    get_default_graph as get_default_graph, Graph as Graph, init_scope as init_scope,
    name_scope as name_scope, reset_default_graph as reset_default_graph,
    set_random_seed as set_random_seed,
)
from estimatorkit.core.graph_keys import GraphKeys as GraphKeys
from estimatorkit.core.tensor import Operation as Operation, Tensor as Tensor
from estimatorkit.core.default_session import get_default_session as get_default_session
from estimatorkit.distribute import InteractiveSession as InteractiveSession, Session as Session
from estimatorkit.core.gradients import (
    gradients as gradients, no_gradient, RegisterGradient as RegisterGradient,
)
from estimatorkit.ops.control.custom_gradients import (
    custom_gradient as custom_gradient, grad_pass_through as grad_pass_through,
    hessians as hessians,
)
from estimatorkit.ops.control.control_flow import (
    case as case, cond as cond, switch_case as switch_case, while_loop as while_loop,
)
from estimatorkit.ops.control.higher_order import (
    foldl as foldl, foldr as foldr, map_fn as map_fn, scan as scan,
    vectorized_map as vectorized_map,
)
from estimatorkit.ops.control.tensor_array import TensorArray as TensorArray
from estimatorkit.ops.control.jax_functions import jax_function as jax_function
from estimatorkit.experiment.report_html import write_report as write_report
from estimatorkit.experiment.tuning.search import tune as tune
from estimatorkit.interop.protos import (
    ConfigProto as ConfigProto, Event as Event, GPUOptions as GPUOptions, GraphDef as GraphDef,
    GraphOptions as GraphOptions, HistogramProto as HistogramProto, MetaGraphDef as MetaGraphDef,
    NodeDef as NodeDef, OptimizerOptions as OptimizerOptions, RunMetadata as RunMetadata,
    RunOptions as RunOptions, SessionLog as SessionLog, Summary as Summary,
    SummaryMetadata as SummaryMetadata,
)
from estimatorkit.core.indexed_slices import IndexedSlices as IndexedSlices
from estimatorkit.data.spec import IndexedSlicesSpec as IndexedSlicesSpec
from estimatorkit.core.sparse_tensor import (
    SparseTensor as SparseTensor, SparseTensorValue as SparseTensorValue,
)
from estimatorkit.ops.sparse.sparse import (
    convert_to_tensor_or_sparse_tensor as convert_to_tensor_or_sparse_tensor,
)
from estimatorkit.core.shapes import TensorShape as TensorShape
from estimatorkit.core.conversion import (
    constant as constant, convert_to_tensor as convert_to_tensor,
    register_tensor_conversion_function as register_tensor_conversion_function,
)
from estimatorkit.core.registry import fixed_value
from estimatorkit.core.dtypes import (
    as_dtype as as_dtype, bfloat16 as bfloat16, bool_, complex128 as complex128,
    complex64 as complex64, DType as DType, float16 as float16, float32 as float32,
    float64 as float64, int16 as int16, int32 as int32, int64 as int64, int8 as int8,
    string as string, uint16 as uint16, uint32 as uint32, uint64 as uint64, uint8 as uint8,
)
from estimatorkit.core.variables import Variable as Variable
from estimatorkit.ops.variables.variable_collections import (
    all_variables as all_variables, assert_variables_initialized as assert_variables_initialized,
    assign as assign, assign_add as assign_add, assign_sub as assign_sub,
    global_variables as global_variables,
    global_variables_initializer as global_variables_initializer,
    is_variable_initialized as is_variable_initialized, local_variables as local_variables,
    local_variables_initializer as local_variables_initializer, model_variables as model_variables,
    moving_average_variables as moving_average_variables,
    report_uninitialized_variables as report_uninitialized_variables,
    tables_initializer as tables_initializer, trainable_variables as trainable_variables,
    variable_creator_scope as variable_creator_scope,
    variables_initializer as variables_initializer,
)
from estimatorkit.ops.variables.variable_updates import (
    batch_scatter_update as batch_scatter_update, count_up_to as count_up_to,
    scatter_add as scatter_add, scatter_div as scatter_div, scatter_max as scatter_max,
    scatter_min as scatter_min, scatter_mul as scatter_mul, scatter_nd_add as scatter_nd_add,
    scatter_nd_sub as scatter_nd_sub, scatter_nd_update as scatter_nd_update,
    scatter_sub as scatter_sub, scatter_update as scatter_update,
)
from estimatorkit.ops.variables.variable_scope import (
    AUTO_REUSE as AUTO_REUSE, create_partitioned_variables as create_partitioned_variables,
    get_local_variable as get_local_variable, get_variable as get_variable,
    get_variable_scope as get_variable_scope, no_regularizer as no_regularizer,
    variable_op_scope as variable_op_scope, variable_scope as variable_scope,
    VariableScope as VariableScope,
)
from estimatorkit.core.variable_options import (
    VariableAggregation as VariableAggregation, VariableSynchronization as VariableSynchronization,
)
from estimatorkit.ops.variables.partitioned_variables import (
    fixed_size_partitioner as fixed_size_partitioner,
    min_max_variable_partitioner as min_max_variable_partitioner,
    PartitionedVariable as PartitionedVariable,
    variable_axis_size_partitioner as variable_axis_size_partitioner,
)
from estimatorkit.ops.variables.initializers import (
    Constant, GlorotNormal, GlorotUniform, Ones, Orthogonal, RandomNormal, RandomUniform,
    TruncatedNormal, UniformUnitScaling, VarianceScaling, Zeros,
)
from estimatorkit.ops.math.elementwise import (
    abs as abs, acos as acos, add as add, add_n as add_n, asin as asin, atan as atan,
    atan2 as atan2, cast as cast, ceil as ceil, clip_by_value as clip_by_value, cos as cos,
    cosh as cosh, div as div, div_no_nan as div_no_nan, divide as divide, equal as equal,
    erf as erf, exp as exp, expm1 as expm1, floor as floor, floordiv as floordiv,
    floormod as floormod, greater as greater, greater_equal as greater_equal,
    is_finite as is_finite, is_inf as is_inf, is_nan as is_nan, less as less,
    less_equal as less_equal, lgamma as lgamma, log as log, log1p as log1p,
    logical_and as logical_and, logical_not as logical_not, logical_or as logical_or,
    logical_xor as logical_xor, maximum as maximum, minimum as minimum, multiply as multiply,
    negative as negative, not_equal as not_equal, pow as pow, realdiv as realdiv,
    reciprocal as reciprocal, round as round, rsqrt as rsqrt, sigmoid as sigmoid, sign as sign,
    sin as sin, sinh as sinh, sqrt as sqrt, square as square,
    squared_difference as squared_difference, subtract as subtract, tan as tan, tanh as tanh,
    to_float as to_float, to_int32 as to_int32, to_int64 as to_int64, truediv as truediv,
    truncatediv as truncatediv, truncatemod as truncatemod,
)
from estimatorkit.ops.math.reduce import (
    argmax as argmax, argmin as argmin, cumsum as cumsum, reduce_all as reduce_all,
    reduce_any as reduce_any, reduce_logsumexp as reduce_logsumexp, reduce_max as reduce_max,
    reduce_mean as reduce_mean, reduce_min as reduce_min, reduce_prod as reduce_prod,
    reduce_sum as reduce_sum,
)
from estimatorkit.ops.array.array import (
    expand_dims as expand_dims, rank as rank, reshape as reshape, shape as shape,
    shape_n as shape_n, size as size, squeeze as squeeze, transpose as transpose,
)
from estimatorkit.core.builtin_ops import (
    group as group, identity as identity, no_op as no_op, placeholder as placeholder,
)
from estimatorkit.ops.array.array import (
    placeholder_with_default as placeholder_with_default, stop_gradient as stop_gradient,
)
from estimatorkit.ops.control.control_flow import tuple_
from estimatorkit.ops.array.joining import (
    concat as concat, split as split, stack as stack, unstack as unstack,
)
from estimatorkit.ops.array.indexing import (
    gather as gather, newaxis as newaxis, one_hot as one_hot, slice_, where as where,
)
from estimatorkit.ops.array.filling import (
    fill as fill, ones as ones, ones_like as ones_like, pad as pad, range_, tile as tile,
    zeros as zeros, zeros_like as zeros_like,
)
from estimatorkit.ops.math.linalg import matmul as matmul
from estimatorkit.ops.array.rearrange import (
    bitcast as bitcast, broadcast_to as broadcast_to, ensure_shape as ensure_shape,
    guarantee_const as guarantee_const, invert_permutation as invert_permutation,
    linspace as linspace, meshgrid as meshgrid, parallel_stack as parallel_stack, repeat as repeat,
    reverse as reverse, reverse_sequence as reverse_sequence, roll as roll,
    saturate_cast as saturate_cast, sequence_mask as sequence_mask,
)
from estimatorkit.ops.array.gather_nd import (
    batch_gather as batch_gather, gather_nd as gather_nd, scatter_nd as scatter_nd,
    tensor_scatter_nd_add as tensor_scatter_nd_add, tensor_scatter_nd_max as tensor_scatter_nd_max,
    tensor_scatter_nd_min as tensor_scatter_nd_min, tensor_scatter_nd_sub as tensor_scatter_nd_sub,
    tensor_scatter_nd_update as tensor_scatter_nd_update, unravel_index as unravel_index,
)
from estimatorkit.ops.nn.space_blocks import (
    batch_to_space as batch_to_space, batch_to_space_nd as batch_to_space_nd,
    depth_to_space as depth_to_space,
    required_space_to_batch_paddings as required_space_to_batch_paddings,
    space_to_batch as space_to_batch, space_to_batch_nd as space_to_batch_nd,
    space_to_depth as space_to_depth,
)
from estimatorkit.ops.array.selection import (
    argsort as argsort, bincount as bincount, boolean_mask as boolean_mask,
    count_nonzero as count_nonzero, dynamic_partition as dynamic_partition,
    dynamic_stitch as dynamic_stitch, histogram_fixed_width as histogram_fixed_width,
    histogram_fixed_width_bins as histogram_fixed_width_bins, searchsorted as searchsorted,
    setdiff1d as setdiff1d, sort as sort, unique as unique,
    unique_with_counts as unique_with_counts,
)
from estimatorkit.layers.metrics.confusion_matrix import confusion_matrix as confusion_matrix
from estimatorkit.ops.array.segment import (
    segment_max as segment_max, segment_mean as segment_mean, segment_min as segment_min,
    segment_prod as segment_prod, segment_sum as segment_sum,
    unsorted_segment_max as unsorted_segment_max, unsorted_segment_mean as unsorted_segment_mean,
    unsorted_segment_min as unsorted_segment_min, unsorted_segment_prod as unsorted_segment_prod,
    unsorted_segment_sqrt_n as unsorted_segment_sqrt_n,
    unsorted_segment_sum as unsorted_segment_sum,
)
from estimatorkit.ops.math.special import (
    accumulate_n as accumulate_n, acosh as acosh, angle as angle, asinh as asinh, atanh as atanh,
    betainc as betainc, complex as complex, conj as conj, cumprod as cumprod, digamma as digamma,
    erfc as erfc, floor_div as floor_div, igamma as igamma, igammac as igammac, imag as imag,
    lbeta as lbeta, log_sigmoid as log_sigmoid, polygamma as polygamma, real as real, rint as rint,
    scalar_mul as scalar_mul, zeta as zeta,
)
from estimatorkit.ops.array.random_draws import (
    random_crop as random_crop, random_gamma as random_gamma, random_poisson as random_poisson,
)
from estimatorkit.ops.linalg.matrices import (
    cholesky as cholesky, cholesky_solve as cholesky_solve,
    matrix_determinant as matrix_determinant, matrix_inverse as matrix_inverse,
    matrix_solve as matrix_solve, matrix_solve_ls as matrix_solve_ls,
    matrix_triangular_solve as matrix_triangular_solve,
)
from estimatorkit.ops.linalg.decompositions import (
    qr as qr, self_adjoint_eig as self_adjoint_eig, self_adjoint_eigvals as self_adjoint_eigvals,
    svd as svd,
)
from estimatorkit.ops.linalg.diagonals import (
    diag as diag, diag_part as diag_part, eye as eye, matrix_band_part as matrix_band_part,
    matrix_diag as matrix_diag, matrix_diag_part as matrix_diag_part,
    matrix_set_diag as matrix_set_diag, matrix_transpose as matrix_transpose, trace as trace,
)
from estimatorkit.ops.linalg.products import (
    cross as cross, einsum as einsum, norm as norm, tensordot as tensordot,
)
from estimatorkit.ops.sparse.sparse import (
    sparse_placeholder as sparse_placeholder, sparse_tensor_to_dense as sparse_tensor_to_dense,
    sparse_to_dense as sparse_to_dense,
)
from estimatorkit.ops.sparse.shapes import (
    sparse_reorder as sparse_reorder, sparse_reset_shape as sparse_reset_shape,
    sparse_reshape as sparse_reshape, sparse_retain as sparse_retain, sparse_slice as sparse_slice,
    sparse_split as sparse_split, sparse_transpose as sparse_transpose,
)
from estimatorkit.ops.sparse.joining import (
    sparse_concat as sparse_concat, sparse_fill_empty_rows as sparse_fill_empty_rows,
    sparse_mask as sparse_mask, sparse_merge as sparse_merge,
)
from estimatorkit.ops.math.random import (
    multinomial as multinomial, random_normal as random_normal, random_shuffle as random_shuffle,
    random_uniform as random_uniform, truncated_normal as truncated_normal,
)
from estimatorkit.ops.debug.debug import (
    add_check_numerics_ops as add_check_numerics_ops, Assert as Assert,
    check_numerics as check_numerics, Print as Print, print_, timestamp as timestamp,
    verify_tensor_all_finite as verify_tensor_all_finite,
)
from estimatorkit.ops.debug.py_func import (
    numpy_function as numpy_function, py_func as py_func, py_function as py_function,
)
from estimatorkit.ops.debug.checks import (
    assert_equal as assert_equal, assert_greater as assert_greater,
    assert_greater_equal as assert_greater_equal, assert_integer as assert_integer,
    assert_less as assert_less, assert_less_equal as assert_less_equal, assert_near as assert_near,
    assert_negative as assert_negative, assert_non_negative as assert_non_negative,
    assert_non_positive as assert_non_positive, assert_none_equal as assert_none_equal,
    assert_positive as assert_positive, assert_proper_iterable as assert_proper_iterable,
    assert_rank as assert_rank, assert_rank_at_least as assert_rank_at_least,
    assert_rank_in as assert_rank_in, assert_same_float_dtype as assert_same_float_dtype,
    assert_scalar as assert_scalar, assert_type as assert_type,
    is_non_decreasing as is_non_decreasing, is_numeric_tensor as is_numeric_tensor,
    is_strictly_increasing as is_strictly_increasing, is_tensor as is_tensor,
)
from estimatorkit.ops.queues.readers import (
    FixedLengthRecordReader as FixedLengthRecordReader, IdentityReader as IdentityReader,
    ReaderBase as ReaderBase, TextLineReader as TextLineReader, TFRecordReader as TFRecordReader,
    WholeFileReader as WholeFileReader,
)
from estimatorkit.ops.queues.queues import QueueBase as QueueBase
from estimatorkit.ops.text.strings import (
    decode_base64 as decode_base64, encode_base64 as encode_base64, regex_replace as regex_replace,
    string_strip as string_strip, substr as substr,
)
from estimatorkit.ops.text.string_numbers import (
    as_string as as_string, string_to_hash_bucket as string_to_hash_bucket,
    string_to_hash_bucket_fast as string_to_hash_bucket_fast,
    string_to_hash_bucket_strong as string_to_hash_bucket_strong,
    string_to_number as string_to_number,
)
from estimatorkit.ops.text.string_pieces import (
    reduce_join as reduce_join, string_join as string_join, string_split as string_split,
)
from estimatorkit.ops.text.csv_records import decode_csv as decode_csv
from estimatorkit.ops.text.decoding import (
    decode_json_example as decode_json_example, decode_raw as decode_raw,
    make_ndarray as make_ndarray, make_tensor_proto as make_tensor_proto,
    parse_tensor as parse_tensor, serialize_tensor as serialize_tensor,
)
from estimatorkit.ops.files.files import (
    matching_files as matching_files, read_file as read_file, write_file as write_file,
)
from estimatorkit.ops.parsing.parsing import (
    FixedLenFeature as FixedLenFeature, FixedLenSequenceFeature as FixedLenSequenceFeature,
    parse_example as parse_example, parse_single_example as parse_single_example,
    parse_single_sequence_example as parse_single_sequence_example, SparseFeature as SparseFeature,
    VarLenFeature as VarLenFeature,
)
from estimatorkit.train.optimizers.clip import (
    clip_by_average_norm as clip_by_average_norm, clip_by_global_norm as clip_by_global_norm,
    clip_by_norm as clip_by_norm, global_norm as global_norm,
)
from estimatorkit.interop.graphdef import import_graph_def as import_graph_def
from estimatorkit.data.dataset import Dataset as Dataset
from estimatorkit.data.spec import SparseTensorSpec as SparseTensorSpec, TensorSpec as TensorSpec
from estimatorkit.data.inputs import (
    numpy_input_fn as numpy_input_fn, pandas_input_fn as pandas_input_fn,
)
from estimatorkit.layers.feature_column.numeric import numeric_column as numeric_column
from estimatorkit.estimator.estimator import Estimator as Estimator
from estimatorkit.estimator.spec import EstimatorSpec as EstimatorSpec, ModeKeys as ModeKeys
from estimatorkit.estimator.run_config import RunConfig as RunConfig
from estimatorkit.estimator.serving.predictor import load_predictor as load_predictor
from estimatorkit.estimator.train_spec import EvalSpec as EvalSpec, TrainSpec as TrainSpec
from estimatorkit.estimator.training_and_evaluation import train_and_evaluate as train_and_evaluate
from estimatorkit.premade.dnn import DNNClassifier as DNNClassifier, DNNRegressor as DNNRegressor
from estimatorkit.premade.linear import (
    LinearClassifier as LinearClassifier, LinearRegressor as LinearRegressor,
)
from estimatorkit.premade.baseline import (
    BaselineClassifier as BaselineClassifier, BaselineRegressor as BaselineRegressor,
)
from estimatorkit.premade.classification_heads import (
    BinaryClassHead as BinaryClassHead, MultiClassHead as MultiClassHead,
)
from estimatorkit.premade.regression_head import RegressionHead as RegressionHead
from estimatorkit.ops.queues.queue_kinds import (
    FIFOQueue as FIFOQueue, PaddingFIFOQueue as PaddingFIFOQueue, PriorityQueue as PriorityQueue,
    RandomShuffleQueue as RandomShuffleQueue, StagingArea as StagingArea,
)
from estimatorkit.compat.names.toplevel import *

NotDifferentiable = no_gradient
bool = bool_
get_static_value = fixed_value
initialize_all_tables = tables_initializer
initialize_all_variables = global_variables_initializer
initialize_local_variables = local_variables_initializer
initialize_variables = variables_initializer
constant_initializer = Constant
glorot_normal_initializer = GlorotNormal
glorot_uniform_initializer = GlorotUniform
ones_initializer = Ones
orthogonal_initializer = Orthogonal
random_normal_initializer = RandomNormal
random_uniform_initializer = RandomUniform
truncated_normal_initializer = TruncatedNormal
uniform_unit_scaling_initializer = UniformUnitScaling
variance_scaling_initializer = VarianceScaling
zeros_initializer = Zeros
mod = floormod
tuple = tuple_
slice = slice_
range = range_
lin_space = linspace
print = print_
