"""estimatorkit: the Estimator API on XLA.

TensorFlow 1's programming model (graphs, sessions, datasets, feature columns, premade and custom
estimators) on a small graph core that compiles to XLA through JAX. `import estimatorkit as tf` is
the way to start with an old script.

Names are imported when they are first used; `dir(estimatorkit)` lists them.
"""

from __future__ import annotations

from estimatorkit.lazy import attach, names
from estimatorkit.runtime.xla_flags import compile_without_unrolling
from estimatorkit.version import __version__ as __version__

compile_without_unrolling()

_CORE = "estimatorkit.core"
_NAMESPACES = """
bitwise linalg math random audio compat data debugging distribute estimator function feature_columns
graph_util gfile image initializers inspection io keras layers lookup losses metrics nn python_io
projector queue saved_model sets signal sklearn sparse strings summary train
"""
_PLACES: dict[str, str] = {
    **{name: f"estimatorkit.{name}" for name in _NAMESPACES.split()},
    "datasets": "estimatorkit.data.datasets",
    "errors": f"{_CORE}.errors",
    "feature_column": "estimatorkit.layers.feature_column",
    "nest": f"{_CORE}.nest",
    # Graphs and sessions
    **names(
        f"{_CORE}.graph",
        "Graph add_to_collection colocate_with container control_dependencies device",
        "get_collection get_collection_ref get_default_graph init_scope name_scope",
        "reset_default_graph set_random_seed",
    ),
    **names(f"{_CORE}.graph_keys", "GraphKeys"),
    **names(f"{_CORE}.tensor", "Operation Tensor"),
    **names(f"{_CORE}.default_session", "get_default_session"),
    # By way of `distribute`, so that targets of other processes can be opened.
    **names("estimatorkit.distribute", "InteractiveSession Session"),
    **names(f"{_CORE}.gradients", "RegisterGradient gradients NotDifferentiable=no_gradient"),
    **names(
        "estimatorkit.ops.control.custom_gradients", "custom_gradient grad_pass_through hessians"
    ),
    **names("estimatorkit.ops.control.defun", "recompute_grad"),
    **names("estimatorkit.ops.control.gradient_tape", "GradientTape UnconnectedGradients"),
    **names("estimatorkit.ops.control.control_flow", "case cond switch_case while_loop"),
    **names("estimatorkit.ops.control.higher_order", "foldl foldr map_fn scan vectorized_map"),
    **names("estimatorkit.ops.control.tensor_array", "TensorArray"),
    **names("estimatorkit.ops.control.jax_functions", "jax_function"),
    **names("estimatorkit.experiment.tuning.search", "tune"),
    **names(
        "estimatorkit.runtime.protos",
        "ConfigProto Event GPUOptions GraphDef GraphOptions HistogramProto MetaGraphDef NodeDef",
        "OptimizerOptions RunMetadata RunOptions SessionLog Summary SummaryMetadata",
    ),
    **names(f"{_CORE}.indexed_slices", "IndexedSlices IndexedSlicesSpec"),
    **names(
        f"{_CORE}.sparse_tensor",
        "SparseTensor SparseTensorValue convert_to_tensor_or_sparse_tensor",
    ),
    **names(f"{_CORE}.shapes", "TensorShape"),
    **names(
        f"{_CORE}.conversion", "constant convert_to_tensor register_tensor_conversion_function"
    ),
    **names(f"{_CORE}.registry", "get_static_value=constant_value"),
    **names(
        f"{_CORE}.dtypes",
        "DType as_dtype bfloat16 complex128 complex64 float16 float32 float64 int16 int32 int64",
        "int8 string uint16 uint32 uint64 uint8 bool=bool_",
    ),
    # Variables
    **names(
        f"{_CORE}.variables",
        "Variable",
    ),
    **names(
        "estimatorkit.ops.variables.variable_collections",
        "all_variables assert_variables_initialized assign assign_add assign_sub",
        "variable_creator_scope",
        "global_variables global_variables_initializer is_variable_initialized local_variables",
        "local_variables_initializer model_variables moving_average_variables",
        "report_uninitialized_variables tables_initializer trainable_variables",
        "variables_initializer initialize_all_tables=tables_initializer",
        "initialize_all_variables=global_variables_initializer",
        "initialize_local_variables=local_variables_initializer",
        "initialize_variables=variables_initializer",
    ),
    **names(
        "estimatorkit.ops.variables.variable_updates",
        "batch_scatter_update count_up_to scatter_add scatter_div scatter_max scatter_min",
        "scatter_mul scatter_nd_add scatter_nd_sub scatter_nd_update scatter_sub scatter_update",
    ),
    **names(
        "estimatorkit.ops.variables.variable_scope",
        "AUTO_REUSE VariableScope create_partitioned_variables get_local_variable get_variable",
        "get_variable_scope no_regularizer variable_op_scope variable_scope",
    ),
    **names(
        f"{_CORE}.variable_options",
        "VariableAggregation VariableSynchronization",
    ),
    **names(
        "estimatorkit.ops.variables.partitioned_variables",
        "PartitionedVariable fixed_size_partitioner min_max_variable_partitioner",
        "variable_axis_size_partitioner",
    ),
    **names(
        "estimatorkit.ops.variables.initializers",
        "constant_initializer=Constant orthogonal_initializer=Orthogonal",
        "uniform_unit_scaling_initializer=UniformUnitScaling",
        "glorot_normal_initializer=GlorotNormal glorot_uniform_initializer=GlorotUniform",
        "ones_initializer=Ones random_normal_initializer=RandomNormal",
        "random_uniform_initializer=RandomUniform truncated_normal_initializer=TruncatedNormal",
        "variance_scaling_initializer=VarianceScaling zeros_initializer=Zeros",
    ),
    # Ops
    **names(
        "estimatorkit.ops.math.elementwise",
        "abs acos add add_n asin atan atan2 cast ceil clip_by_value cos cosh div div_no_nan divide",
        "equal erf exp expm1 floor floordiv floormod greater greater_equal is_finite is_inf is_nan",
        "less less_equal lgamma log log1p logical_and logical_not logical_or logical_xor maximum",
        "minimum multiply negative not_equal pow realdiv reciprocal round rsqrt sigmoid sign sin",
        "sinh sqrt square squared_difference subtract tan tanh to_float to_int32 to_int64 truediv",
        "truncatediv truncatemod mod=floormod",
    ),
    **names(
        "estimatorkit.ops.math.reduce",
        "argmax argmin cumsum reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean",
        "reduce_min reduce_prod reduce_sum",
    ),
    **names(
        "estimatorkit.ops.array.array",
        "expand_dims rank reshape shape shape_n size squeeze transpose",
    ),
    **names(
        f"{_CORE}.builtin_ops",
        "group identity no_op placeholder placeholder_with_default stop_gradient tuple=tuple_",
    ),
    **names("estimatorkit.ops.array.joining", "concat split stack unstack"),
    **names("estimatorkit.ops.array.indexing", "gather newaxis one_hot where slice=slice_"),
    **names(
        "estimatorkit.ops.array.filling",
        "fill ones ones_like pad tile zeros zeros_like range=range_",
    ),
    **names("estimatorkit.ops.math.linalg", "matmul"),
    **names(
        "estimatorkit.ops.array.rearrange",
        "bitcast broadcast_to ensure_shape guarantee_const invert_permutation linspace meshgrid",
        "parallel_stack repeat reverse reverse_sequence roll saturate_cast sequence_mask",
        "lin_space=linspace",
    ),
    **names("estimatorkit.ops.array.windows", "strided_slice"),
    **names(
        "estimatorkit.ops.array.gather_nd",
        "batch_gather gather_nd scatter_nd tensor_scatter_nd_add tensor_scatter_nd_max",
        "tensor_scatter_nd_min tensor_scatter_nd_sub tensor_scatter_nd_update unravel_index",
    ),
    **names(
        "estimatorkit.ops.nn.space_blocks",
        "batch_to_space batch_to_space_nd depth_to_space space_to_batch",
        "required_space_to_batch_paddings space_to_batch_nd space_to_depth",
    ),
    **names(
        "estimatorkit.ops.array.selection",
        "argsort bincount boolean_mask count_nonzero dynamic_partition dynamic_stitch",
        "histogram_fixed_width histogram_fixed_width_bins searchsorted setdiff1d sort unique",
        "unique_with_counts",
    ),
    **names("estimatorkit.layers.metrics.confusion_matrix", "confusion_matrix"),
    **names(
        "estimatorkit.ops.array.segment",
        "segment_max segment_mean segment_min segment_prod segment_sum unsorted_segment_max",
        "unsorted_segment_mean unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n",
        "unsorted_segment_sum",
    ),
    **names(
        "estimatorkit.ops.math.special",
        "accumulate_n acosh angle asinh atanh betainc complex conj cumprod digamma erfc floor_div",
        "igamma igammac imag lbeta log_sigmoid polygamma real rint scalar_mul zeta",
    ),
    **names("estimatorkit.ops.array.random_draws", "random_crop random_gamma random_poisson"),
    **names(
        "estimatorkit.ops.linalg.matrices",
        "cholesky cholesky_solve matrix_determinant matrix_inverse matrix_solve matrix_solve_ls",
        "matrix_triangular_solve",
    ),
    **names(
        "estimatorkit.ops.linalg.decompositions", "qr self_adjoint_eig self_adjoint_eigvals svd"
    ),
    **names(
        "estimatorkit.ops.linalg.diagonals",
        "diag diag_part eye matrix_band_part matrix_diag matrix_diag_part matrix_set_diag",
        "matrix_transpose trace",
    ),
    **names("estimatorkit.ops.linalg.products", "cross einsum norm tensordot"),
    **names(
        "estimatorkit.ops.sparse.sparse",
        "sparse_placeholder sparse_tensor_to_dense sparse_to_dense",
    ),
    **names(
        "estimatorkit.ops.sparse.shapes",
        "sparse_reorder sparse_reset_shape sparse_reshape sparse_retain sparse_slice sparse_split",
        "sparse_transpose",
    ),
    **names(
        "estimatorkit.ops.sparse.joining",
        "sparse_concat sparse_fill_empty_rows sparse_mask sparse_merge",
    ),
    **names(
        "estimatorkit.ops.sparse.math",
        "sparse_add sparse_maximum sparse_minimum sparse_reduce_max sparse_reduce_max_sparse",
        "sparse_reduce_sum sparse_reduce_sum_sparse sparse_softmax sparse_to_indicator",
    ),
    **names("estimatorkit.ops.sparse.products", "sparse_matmul sparse_tensor_dense_matmul"),
    **names(
        "estimatorkit.ops.sparse.segments",
        "sparse_segment_mean sparse_segment_sqrt_n sparse_segment_sum",
    ),
    **names("estimatorkit.ops.sparse.sets", "edit_distance"),
    **names(
        "estimatorkit.ops.math.random",
        "multinomial random_normal random_shuffle random_uniform truncated_normal",
    ),
    **names(
        "estimatorkit.ops.debug.debug",
        "Assert Print add_check_numerics_ops check_numerics timestamp verify_tensor_all_finite",
        "print=print_",
    ),
    **names("estimatorkit.ops.debug.py_func", "numpy_function py_func py_function"),
    **names(
        "estimatorkit.ops.debug.checks",
        "assert_equal assert_greater assert_greater_equal assert_integer assert_less",
        "assert_less_equal assert_near assert_negative assert_non_negative assert_non_positive",
        "assert_none_equal assert_positive assert_proper_iterable assert_rank assert_rank_at_least",
        "assert_rank_in assert_same_float_dtype assert_scalar assert_type is_non_decreasing",
        "is_numeric_tensor is_strictly_increasing is_tensor",
    ),
    **names(
        "estimatorkit.ops.queues.readers",
        "FixedLengthRecordReader IdentityReader ReaderBase TFRecordReader TextLineReader",
        "WholeFileReader",
    ),
    **names("estimatorkit.ops.queues.queues", "QueueBase"),
    **names("estimatorkit.ops.control.critical_section", "CriticalSection"),
    **names(
        "estimatorkit.ops.queues.accumulators",
        "ConditionalAccumulator SparseConditionalAccumulator",
    ),
    **names(
        "estimatorkit.ops.queues.queue_kinds",
        "FIFOQueue PaddingFIFOQueue PriorityQueue RandomShuffleQueue StagingArea",
    ),
    # Strings
    **names(
        "estimatorkit.ops.text.strings",
        "decode_base64 encode_base64 regex_replace string_strip substr",
    ),
    **names(
        "estimatorkit.ops.text.string_numbers",
        "as_string string_to_hash_bucket string_to_hash_bucket_fast string_to_hash_bucket_strong",
        "string_to_number",
    ),
    **names("estimatorkit.ops.text.string_pieces", "reduce_join string_join string_split"),
    **names("estimatorkit.ops.text.csv_records", "decode_csv"),
    **names(
        "estimatorkit.ops.text.decoding",
        "decode_json_example decode_raw make_ndarray make_tensor_proto parse_tensor",
        "serialize_tensor",
    ),
    **names("estimatorkit.ops.files.files", "matching_files read_file write_file"),
    **names(
        "estimatorkit.ops.parsing.parsing",
        "FixedLenFeature FixedLenSequenceFeature SparseFeature VarLenFeature parse_example",
        "parse_single_example parse_single_sequence_example",
    ),
    **names(
        "estimatorkit.train.optimizers.clip",
        "clip_by_average_norm clip_by_global_norm clip_by_norm global_norm",
    ),
    **names("estimatorkit.interop.graphdef", "import_graph_def"),
    # Data
    **names("estimatorkit.data.dataset", "Dataset"),
    **names("estimatorkit.data.spec", "SparseTensorSpec TensorSpec"),
    **names("estimatorkit.data.inputs", "numpy_input_fn pandas_input_fn"),
    **names("estimatorkit.layers.feature_column", "numeric_column"),
    # Estimators
    **names("estimatorkit.estimator.estimator", "Estimator"),
    **names("estimatorkit.estimator.spec", "EstimatorSpec ModeKeys"),
    **names("estimatorkit.estimator.run_config", "RunConfig"),
    **names("estimatorkit.estimator.serving.predictor", "load_predictor"),
    **names("estimatorkit.estimator.train_spec", "EvalSpec TrainSpec"),
    **names("estimatorkit.estimator.training_and_evaluation", "train_and_evaluate"),
    **names("estimatorkit.premade.dnn", "DNNClassifier DNNRegressor"),
    **names("estimatorkit.premade.linear", "LinearClassifier LinearRegressor"),
    **names("estimatorkit.premade.baseline", "BaselineClassifier BaselineRegressor"),
    **names("estimatorkit.premade.classification_heads", "BinaryClassHead MultiClassHead"),
    **names("estimatorkit.premade.regression_head", "RegressionHead"),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
