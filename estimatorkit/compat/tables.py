"""TensorFlow 1's modules: what stands behind each, and the names that only old programs use.

A row is a module below `tf`; see `modules.Table`. Most private modules (`python.framework.ops`)
have everything that the top level has.
"""

from __future__ import annotations

from estimatorkit.compat.modules import ROOT, Table
from estimatorkit.lazy import names

_CORE = "estimatorkit.core"
_EVERYTHING = (ROOT,)
_PRIVATE = "estimatorkit.compat.private.private_functions"

TOP = Table(
    behind=("estimatorkit",),
    names={
        "arg_max": "estimatorkit.ops.math.reduce:argmax",
        "arg_min": "estimatorkit.ops.math.reduce:argmin",
        "mul": "estimatorkit.ops.math.elementwise:multiply",
        "neg": "estimatorkit.ops.math.elementwise:negative",
        "sub": "estimatorkit.ops.math.elementwise:subtract",
        "pack": "estimatorkit.ops.array.joining:stack",
        "unpack": "estimatorkit.ops.array.joining:unstack",
        "concat_v2": "estimatorkit.ops.array.joining:concat",
        "select": "estimatorkit.ops.array.indexing:where",
        "float32_ref": f"{_CORE}.dtypes:float32",
        "resource": f"{_CORE}.dtypes:resource",
        "variant": f"{_CORE}.dtypes:variant",
        "matrix_square_root": "estimatorkit.ops.linalg.matrix_functions:sqrtm",
        "extract_image_patches": "estimatorkit.ops.image.patches:extract_image_patches",
        "get_logger": "estimatorkit.compat.logging:get_logger",
        "tensor_scatter_add": "estimatorkit.ops.array.gather_nd:tensor_scatter_nd_add",
        "tensor_scatter_sub": "estimatorkit.ops.array.gather_nd:tensor_scatter_nd_sub",
        "tensor_scatter_update": "estimatorkit.ops.array.gather_nd:tensor_scatter_nd_update",
        "to_bfloat16": "estimatorkit.ops.math.elementwise:to_bfloat16",
        "double": f"{_CORE}.dtypes:float64",
        "half": f"{_CORE}.dtypes:float16",
        "DeviceSpec": f"{_CORE}.devices:DeviceSpec",
        "OpError": f"{_CORE}.errors:OpError",
        "NoGradient": f"{_CORE}.gradients:no_gradient",
        "NotDifferentiable": f"{_CORE}.gradients:no_gradient",
        "scalar_summary": "estimatorkit.compat.summaries:scalar_summary",
        "histogram_summary": "estimatorkit.compat.summaries:histogram_summary",
        "image_summary": "estimatorkit.compat.summaries:image_summary",
        "audio_summary": "estimatorkit.compat.summaries:audio_summary",
        "merge_summary": "estimatorkit.ops.files.summary:merge",
        "merge_all_summaries": "estimatorkit.ops.files.summary:merge_all",
        **names(
            "estimatorkit.compat.switches",
            *("compat_eager_only", "disable_control_flow_v2", "disable_eager_execution"),
            *("disable_resource_variables", "disable_tensor_equality", "disable_v2_behavior"),
            *("disable_v2_tensorshape", "enable_control_flow_v2", "enable_eager_execution"),
            *("enable_resource_variables", "executing_eagerly", "resource_variables_enabled"),
        ),
        **names(
            "estimatorkit.compat.private.shapes",
            "Dimension",
            "TensorShape",
            "dimension_at_index",
            "dimension_value",
        ),
        **names(
            "estimatorkit.compat.small_functions",
            *("AggregationMethod", "add_to_collections"),
            *("get_seed", "identity_n", "make_template"),
            "to_complex128",
            *("to_complex64", "to_double"),
        ),
        **names(
            "estimatorkit.ops.debug.shape_matching",
            "broadcast_dynamic_shape",
            "broadcast_static_shape",
        ),
        **names(
            "estimatorkit.ops.variables.session_tensors",
            *("delete_session_tensor", "get_session_handle", "get_session_tensor"),
        ),
        **names("estimatorkit.signal", *("fft", "fft2d", "fft3d", "ifft", "ifft2d", "ifft3d")),
        "no_gradient": f"{_CORE}.gradients:no_gradient",
        "reverse_v2": "estimatorkit:reverse",
        "where_v2": "estimatorkit.ops.array.indexing:where",
        **names("estimatorkit.compat.private.tensor_protos", "make_ndarray", "make_tensor_proto"),
    },
    instead={
        "Session2": "use Session",
        "enable_v2_behavior": "programs here are graphs with sessions, as in TensorFlow 1",
        "load_op_library": "write the operation in JAX: estimatorkit.jax_function",
    },
)

_CONTRIB_LEARN = tuple(
    f"estimatorkit.compat.contrib.learn{part}" for part in ("_estimators", "_premade", "")
)
_ARG_SCOPE = names(
    "estimatorkit.compat.arg_scope",
    *("add_arg_scope", "arg_scope", "arg_scope_func_key", "arg_scoped_arguments"),
    *("current_arg_scope", "has_arg_scope"),
)
_CONTRIB_LAYERS = (
    "estimatorkit.compat.contrib.layers",
    "estimatorkit.compat.contrib.layer_functions",
    "estimatorkit.compat.contrib.encoders",
    "estimatorkit.compat.contrib.normalization",
    "estimatorkit.compat.contrib.optimize_loss",
)
_DISTRIBUTIONS = "estimatorkit.layers.distributions"
_FEATURE_COLUMN = "estimatorkit.layers.feature_column"
# Where Keras's modules are found.
_KERAS = ("", "python.", "contrib.", "contrib.keras.python.")
_CELLS = "estimatorkit.layers.recurrent.rnn_cell"
_RNN = "estimatorkit.layers.recurrent.rnn"
_LINEAR = names(
    "estimatorkit.layers.recurrent.rnn_linear",
    **{"_linear": "linear_of", "_Linear": "Linear"},
    **{"_WEIGHTS_VARIABLE_NAME": "KERNEL", "_BIAS_VARIABLE_NAME": "BIAS"},
)
_TIME = names(
    "estimatorkit.layers.recurrent.rnn_fused", _transpose_batch_time="transpose_batch_time"
)
_MORE_CELLS = tuple(
    f"estimatorkit.layers.recurrent.{each}"
    for each in ("rnn_cell_variants", "rnn_cell_block", "rnn_fused")
)
_SEQ2SEQ = "estimatorkit.layers.seq2seq"
_SEQ2SEQ_FILES = (
    *("attention_wrapper", "attention", "monotonic_attention", "beam_search", "beam_search_step"),
    *("decoder", "helper", "inference_helper", "losses"),
)
_GATHER_TREE = names("estimatorkit.ops.control.decoded_steps", "gather_tree")
_DEALING = "estimatorkit.distribute.device_setter"

_VARIANTS = "estimatorkit.compat.private.operation_variants"
# Functions that version 2 knows by other keywords only.
_SAME_IN_NN = (
    *("batch_norm_with_global_normalization", "conv2d", "conv2d_transpose", "conv3d"),
    *("convolution", "depthwise_conv2d", "dilation2d", "erosion2d", "fractional_avg_pool"),
    *("fractional_max_pool", "l2_normalize", "log_softmax", "max_pool_with_argmax"),
    *("separable_conv2d", "softmax", "sufficient_statistics"),
)
_STATELESS = "estimatorkit.ops.array.stateless_random"
_SEEDS = names(
    _STATELESS,
    *("stateless_fold_in", "stateless_shuffle", "stateless_split"),
    fold_in="stateless_fold_in",
    split="stateless_split",
)

_COLUMNS = {
    name: f"{_FEATURE_COLUMN}.{place}"
    for name, place in {
        "BucketizedColumn": "numeric:BucketizedColumn",
        "CategoricalColumn": "columns:CategoricalColumn",
        "CrossedColumn": "crossed:CrossedColumn",
        "DenseColumn": "columns:DenseColumn",
        "EmbeddingColumn": "embedding:EmbeddingColumn",
        "FeatureColumn": "columns:FeatureColumn",
        "HashedCategoricalColumn": "categorical:HashedColumn",
        "IdentityCategoricalColumn": "categorical:IdentityColumn",
        "IndicatorColumn": "indicator:IndicatorColumn",
        "NumericColumn": "numeric:NumericColumn",
        "SequenceCategoricalColumn": "sequence:SequenceCategoricalColumn",
        "SequenceDenseColumn": "columns:SequenceDenseColumn",
        "SequenceNumericColumn": "sequence:SequenceNumericColumn",
        "SharedEmbeddingColumn": "embedding:SharedEmbeddingColumn",
        "VocabularyFileCategoricalColumn": "vocabulary:VocabularyFileColumn",
        "VocabularyListCategoricalColumn": "vocabulary:VocabularyListColumn",
        "WeightedCategoricalColumn": "categorical:WeightedColumn",
    }.items()
}

MODULES: dict[str, Table] = {
    # -- public modules
    **{
        name: Table(behind=(f"estimatorkit.{name}",))
        for name in (
            *("audio", "bitwise", "data", "debugging", "function", "graph_util"),
            *("image", "initializers", "io", "layers", "linalg", "lookup", "math", "python_io"),
            *("queue", "random", "saved_model", "sets", "signal", "sparse", "strings"),
        )
    },
    "datasets": Table(behind=("estimatorkit.data.datasets",)),
    "estimator": Table(behind=("estimatorkit.compat.estimators", "estimatorkit.estimator")),
    "errors": Table(behind=(f"{_CORE}.errors",)),
    "estimator.experimental": Table(behind=("estimatorkit.estimator.experimental",)),
    "estimator.export": Table(behind=("estimatorkit.estimator.export",)),
    "feature_column": Table(behind=("estimatorkit.layers.feature_column",)),
    "losses": Table(behind=("estimatorkit.losses",)),
    "metrics": Table(behind=("estimatorkit.metrics",)),
    "nest": Table(behind=(f"{_CORE}.nest",)),
    "nn": Table(behind=("estimatorkit.nn", _RNN)),
    "nn.rnn_cell": Table(behind=(_CELLS,)),
    "train": Table(
        behind=("estimatorkit.train",),
        names={
            "SummaryWriter": "estimatorkit.interop.summary_writer:FileWriter",
            "SummaryWriterCache": "estimatorkit.interop.summary_writer:FileWriterCache",
            **names("tensorboard.compat.proto.cluster_pb2", "ClusterDef", "JobDef"),
        },
    ),
    "summary": Table(
        behind=("estimatorkit.summary",),
        names={"SummaryWriter": "estimatorkit.interop.summary_writer:FileWriter"},
    ),
    "spectral": Table(behind=("estimatorkit.signal",)),
    "manip": Table(behind=("estimatorkit",)),
    "dtypes": Table(behind=(f"{_CORE}.dtypes", "estimatorkit")),
    "gfile": Table(behind=("estimatorkit.gfile",)),
    "io.gfile": Table(behind=("estimatorkit.gfile",)),
    "app": Table(
        names={"run": "estimatorkit.compat.app:run", "flags": f"{ROOT}.flags"},
    ),
    "flags": Table(behind=("estimatorkit.compat.flags", "absl.flags")),
    "logging": Table(behind=("estimatorkit.compat.logging",)),
    "compat": Table(behind=("estimatorkit.compat.text",), names={"v1": ROOT}),
    "sysconfig": Table(instead={"get_include": "there is no native code to compile against"}),
    "resource_loader": Table(behind=("estimatorkit.compat.resources",)),
    "test": Table(behind=("estimatorkit.compat.testing.test_case",)),
    "version": Table(
        names={"VERSION": f"{ROOT}:VERSION", "GIT_VERSION": f"{ROOT}:GIT_VERSION"},
    ),
    "examples.tutorials.mnist.mnist": Table(behind=("estimatorkit.compat.mnist_model",)),
    "examples.tutorials.mnist.input_data": Table(behind=("estimatorkit.compat.mnist_input_data",)),
    # -- keras
    **{
        f"{top}keras": Table(
            behind=("estimatorkit.keras",),
            names={"__version__": "estimatorkit.compat.v1:KERAS_VERSION"},
        )
        for top in _KERAS
    },
    "keras.experimental": Table(
        names={
            **names("estimatorkit.layers.feature_column", "SequenceFeatures"),
            **names("estimatorkit.keras.engine.premade_models", "LinearModel", "WideDeepModel"),
            **names(
                "estimatorkit.keras.optimizers.schedules", "CosineDecay", "CosineDecayRestarts"
            ),
        }
    ),
    **{
        f"{top}keras.{name}": Table(behind=(f"estimatorkit.keras.{name}",))
        for top in _KERAS
        for name in (
            *("backend", "callbacks", "datasets", "datasets.fashion_mnist", "datasets.mnist"),
            *("estimator", "losses", "metrics", "mixed_precision", "mixed_precision.experimental"),
            *("models", "optimizers", "optimizers.legacy", "optimizers.schedules"),
            *("preprocessing", "preprocessing.image", "preprocessing.sequence"),
            *("preprocessing.text", "utils", "wrappers", "wrappers.scikit_learn"),
        )
    },
    **{
        f"{top}keras.layers": Table(
            behind=("estimatorkit.keras.layers",),
            names=names(
                "estimatorkit.layers.recurrent.recurrent_v1", "GRU", "GRUCell", "LSTM", "LSTMCell"
            ),
        )
        for top in _KERAS
    },
    **{
        f"{top}keras.{name}": Table(behind=(f"estimatorkit.layers.{name}",))
        for top in _KERAS
        for name in ("activations", "constraints", "initializers", "regularizers")
    },
    "contrib.opt": Table(
        behind=("estimatorkit.train.optimizers.contrib_optimizers",),
        names={
            **names(
                "estimatorkit.train.optimizers.moving_average_optimizer", "MovingAverageOptimizer"
            ),
            **names(
                "estimatorkit.train.optimizers.multitask_optimizer",
                *("MultitaskOptimizerWrapper", "clip_gradients_by_global_norm"),
            ),
            **names(
                "estimatorkit.train.optimizers.external_optimizer",
                *("ExternalOptimizerInterface", "ScipyOptimizerInterface"),
            ),
        },
        instead={
            "ShampooOptimizer": "use train.OptaxOptimizer",
            "GGTOptimizer": "use train.OptaxOptimizer",
        },
    ),
    "contrib.factorization": Table(
        behind=("estimatorkit.compat.contrib.factorization",),
        instead={
            "GMM": "use scikit-learn's GaussianMixture",
            "KMeans": "use KMeansClustering, or scikit-learn's KMeans",
            "WALSMatrixFactorization": "train two embedding tables on the known entries",
        },
    ),
    "contrib.mixed_precision": Table(behind=("estimatorkit.compat.mixed_precision",)),
    "python.keras.optimizer_v2.rmsprop": Table(
        names={"RMSProp": "estimatorkit.keras.optimizers:RMSprop"}
    ),
    "python.keras.optimizer_v2.optimizer_v2": Table(
        names={"OptimizerV2": "estimatorkit.keras.optimizers.optimizer:Optimizer"}
    ),
    "train.experimental": Table(behind=("estimatorkit.train.experimental",)),
    "distributions": Table(behind=(_DISTRIBUTIONS,)),
    "contrib.distributions": Table(
        behind=(_DISTRIBUTIONS, f"{_DISTRIBUTIONS}.continuous", f"{_DISTRIBUTIONS}.divergence"),
        names=names(
            "estimatorkit.compat.contrib.distributions",
            *("Independent", "MultivariateNormalDiag", "OneHotCategorical"),
        ),
    ),
    **{
        name: Table(
            behind=tuple(f"{_DISTRIBUTIONS}{each}" for each in ("", ".continuous", ".divergence")),
            names=names(f"{_DISTRIBUTIONS}.divergence", _registered_kl="registered_kl"),
        )
        for name in (
            *(
                f"python.ops.distributions{each}"
                for each in (
                    *("", ".bernoulli", ".beta", ".categorical", ".dirichlet", ".distribution"),
                    *(".dirichlet_multinomial", ".distributions", ".exponential", ".gamma"),
                    *(".kullback_leibler", ".laplace", ".multinomial", ".normal", ".student_t"),
                    ".uniform",
                )
            ),
        )
    },
    # -- contrib
    "contrib.feature_column": Table(behind=("estimatorkit.layers.feature_column",)),
    "distribute": Table(
        behind=("estimatorkit.distribute",),
        names=names(
            "estimatorkit.compat.contrib.distribute",
            *("CrossDeviceOps", "HierarchicalCopyAllReduce", "NcclAllReduce"),
            *("ReductionToOneDevice", "TPUStrategy"),
        ),
    ),
    "distribute.experimental": Table(
        behind=("estimatorkit.distribute.experimental",),
        names=names("estimatorkit.compat.contrib.distribute", "TPUStrategy"),
    ),
    "contrib.distribute": Table(
        behind=("estimatorkit.compat.contrib.distribute", "estimatorkit.distribute"),
        names={
            "ParameterServerStrategy": (
                "estimatorkit.distribute.replicas.strategies:ParameterServerStrategy"
            ),
            "CollectiveAllReduceStrategy": (
                "estimatorkit.distribute.replicas.multi_worker:MultiWorkerMirroredStrategy"
            ),
        },
    ),
    **{
        f"contrib.{package}{private}": Table(
            behind=(f"estimatorkit.compat.contrib.{package}",), names=more, instead=absent
        )
        for package, modules, more, absent in (
            (
                "cudnn_rnn",
                (".python.layers.cudnn_rnn", ".python.ops.cudnn_rnn_ops"),
                names(
                    "estimatorkit.compat.contrib.cudnn_rnn",
                    *("CUDNN_INPUT_AUTO_MODE", "CUDNN_INPUT_LINEAR_MODE", "CUDNN_INPUT_SKIP_MODE"),
                    *("CUDNN_RNN_BIDIRECTION", "CUDNN_RNN_UNIDIRECTION"),
                ),
                dict.fromkeys(
                    ("CudnnLSTMSaveable", "CudnnGRUSaveable"),
                    "a Saver writes and reads the variables of the compatible cells",
                ),
            ),
            (
                "image",
                (".python.ops.image_ops",),
                {},
                {
                    **dict.fromkeys(
                        ("bipartite_match", "connected_components", "interpolate_spline"),
                        "use SciPy: linear_sum_assignment, ndimage.label, interpolate",
                    ),
                    **dict.fromkeys(
                        ("dense_image_warp", "sparse_image_warp"), "use gather_nd on the images"
                    ),
                    **dict.fromkeys(
                        ("adjust_hsv_in_yiq", "random_hsv_in_yiq"),
                        "use image.adjust_hue, adjust_saturation and their random forms",
                    ),
                },
            ),
        )
        for private in ("", *modules)
    },
    "contrib.crf": Table(behind=("estimatorkit.compat.contrib.crf",)),
    "contrib.framework": Table(
        behind=(
            *("estimatorkit.compat.contrib.variables", "estimatorkit.compat.contrib.tensor_util"),
            *("estimatorkit.train", "estimatorkit"),
        ),
        names={
            **names(f"{_CORE}.variables", "global_variables", "local_variables", "model_variables"),
            **_ARG_SCOPE,
            "nest": f"{_CORE}.nest",
            "smart_cond": "estimatorkit.ops.control.control_flow:smart_cond",
            "smart_constant_value": "estimatorkit.ops.control.control_flow:constant_bool",
        },
    ),
    "contrib.framework.python.ops.audio_ops": Table(
        behind=("estimatorkit.audio", "estimatorkit.ops.text.audio_features")
    ),
    "contrib.framework.nest": Table(behind=(f"{_CORE}.nest",)),
    "contrib.layers": Table(
        behind=(*_CONTRIB_LAYERS, "estimatorkit.compat.contrib.columns"),
        names={
            "safe_embedding_lookup_sparse": (
                "estimatorkit.ops.nn.embedding:safe_embedding_lookup_sparse"
            ),
            "feature_column": "estimatorkit.compat.contrib.columns",
        },
    ),
    "contrib.data": Table(
        behind=(
            "estimatorkit.data.experimental",
            "estimatorkit.compat.contrib.data",
            "estimatorkit.data",
        )
    ),
    "data.experimental": Table(
        behind=("estimatorkit.data.experimental",),
        names=names(
            "estimatorkit.compat.contrib.data",
            *("CheckpointInputPipelineHook", "make_saveable_from_iterator"),
        ),
        instead={
            "dense_to_ragged_batch": "use padded_batch or dense_to_sparse_batch",
            "service": "data is divided among workers by Dataset.shard",
        },
    ),
    "contrib.lookup": Table(
        behind=("estimatorkit.lookup", "estimatorkit"),
        names={
            "MutableDenseHashTable": "estimatorkit.lookup:DenseHashTable",
            **names(
                "estimatorkit.compat.contrib.lookup",
                *("index_table_from_tensor", "index_to_string"),
                *("index_to_string_table_from_tensor", "string_to_index"),
                *("string_to_index_table_from_file", "string_to_index_table_from_tensor"),
            ),
        },
    ),
    "contrib.losses": Table(
        behind=("estimatorkit.compat.contrib.losses", "estimatorkit.layers.losses")
    ),
    **{
        f"contrib.losses.{name}": Table(
            behind=("estimatorkit.layers.losses.metric_learning",),
            instead=dict.fromkeys(
                ("cluster_loss", "npairs_loss_multilabel"),
                "use triplet_semihard_loss or npairs_loss",
            ),
        )
        for name in (
            *("metric_learning", "python.metric_learning"),
            "python.metric_learning.metric_loss_ops",
        )
    },
    "contrib.slim.losses": Table(
        behind=("estimatorkit.compat.contrib.losses", "estimatorkit.layers.losses")
    ),
    **{
        name: Table(
            behind=("estimatorkit.compat.contrib.metrics",),
            names={
                "confusion_matrix": "estimatorkit:confusion_matrix",
                **names(
                    "estimatorkit.sets",
                    *("set_difference", "set_intersection", "set_size", "set_union"),
                ),
            },
            instead={
                "streaming_concat": "collect what session.run gives",
                "streaming_curve_points": "use metrics.precision_at_thresholds",
                "streaming_pearson_correlation": "use scikit-learn on what session.run gives",
                "streaming_covariance": "use numpy.cov on what session.run gives",
                "cohen_kappa": "use sklearn.metrics.cohen_kappa_score on predictions",
            },
        )
        for name in ("contrib.metrics", "contrib.slim.metrics")
    },
    "contrib.predictor": Table(behind=("estimatorkit.compat.predictor",)),
    "contrib.estimator": Table(
        behind=("estimatorkit.estimator.experimental",),
        names={
            **names("estimatorkit.estimator.extenders", "add_metrics", "forward_features"),
            **names("estimatorkit.estimator.evaluation.evaluation_records", "read_eval_metrics"),
            **names(
                "estimatorkit.compat.contrib.export",
                *("export_all_saved_models", "export_saved_model_for_mode"),
            ),
            **names(
                "estimatorkit.estimator.serving.serving_inputs",
                "build_supervised_input_receiver_fn_from_input_fn",
            ),
            **names(
                "estimatorkit.compat.heads",
                *("binary_classification_head", "logistic_regression_head", "multi_class_head"),
                *("multi_head", "multi_label_head", "poisson_regression_head", "regression_head"),
            ),
            **names(
                "estimatorkit.compat.estimators",
                *("BaselineEstimator", "DNNEstimator", "DNNLinearCombinedEstimator"),
                "LinearEstimator",
            ),
        },
    ),
    **{
        f"contrib.learn{name}": Table(
            behind=_CONTRIB_LEARN,
            instead={"monitors": "use hooks: train.SessionRunHook, and train_and_evaluate"},
        )
        for name in (
            *("", ".python.learn", ".estimators", ".experiment", ".python.learn.estimators"),
            *(".python.learn.estimators.model_fn", ".python.learn.experiment"),
            *(".python.learn.metric_spec", ".python.learn.estimators.estimator"),
            *(".python.learn.estimators.run_config", ".python.learn.estimators.dnn"),
        )
    },
    **{
        f"contrib.learn.{name}": Table(behind=("estimatorkit.compat.vocabulary_processor",))
        for name in ("preprocessing", "python.learn.preprocessing", "preprocessing.text")
    },
    **{
        f"contrib.learn.{name}datasets.mnist": Table(
            behind=("estimatorkit.compat.mnist_input_data",)
        )
        for name in ("", "python.learn.")
    },
    **{
        f"contrib.learn.{name}": Table(names={"run": "estimatorkit.compat.contrib.learn:run"})
        for name in ("learn_runner", "python.learn.learn_runner")
    },
    **{
        f"contrib.learn.{name}": Table(
            names=names(
                "estimatorkit.compat.contrib.learn", *("InputFnOps", "make_export_strategy")
            )
        )
        for name in (
            *("utils", "utils.saved_model_export_utils", "utils.input_fn_utils"),
            *("python.learn.utils", "python.learn.utils.saved_model_export_utils"),
            "python.learn.utils.input_fn_utils",
        )
    },
    **{
        f"contrib.learn.{name}": Table(behind=("estimatorkit.data.inputs",))
        for name in (
            *("io", "io.numpy_io", "io.pandas_io", "python.learn.learn_io"),
            *("python.learn.learn_io.numpy_io", "python.learn.learn_io.pandas_io"),
        )
    },
    "contrib.seq2seq": Table(
        behind=tuple(f"{_SEQ2SEQ}.{each}" for each in _SEQ2SEQ_FILES),
        names=_GATHER_TREE,
        instead={"sampled_sequence_loss": "use sequence_loss and nn.sampled_softmax_loss"},
    ),
    **{
        f"contrib.seq2seq.python.ops.{name}": Table(
            behind=tuple(f"{_SEQ2SEQ}.{each}" for each in behind), names=private
        )
        for name, behind, private in (
            (
                "attention_wrapper",
                ("attention_wrapper", "attention", "monotonic_attention"),
                {
                    "_BaseAttentionMechanism": f"{_SEQ2SEQ}.attention:BaseAttentionMechanism",
                    "_compute_attention": f"{_SEQ2SEQ}.attention_wrapper:compute_attention",
                },
            ),
            ("basic_decoder", ("decoder",), {}),
            (
                "beam_search_decoder",
                ("beam_search", "beam_search_step"),
                {
                    "_beam_search_step": f"{_SEQ2SEQ}.beam_search_step:beam_search_step",
                    "_get_scores": f"{_SEQ2SEQ}.beam_search_step:scores_of",
                    "_mask_probs": f"{_SEQ2SEQ}.beam_search_step:mask_finished",
                },
            ),
            ("beam_search_ops", (), _GATHER_TREE),
            ("decoder", ("decoder",), _TIME),
            ("helper", ("helper", "inference_helper"), {}),
            ("loss", ("losses",), {}),
        )
    },
    **{
        f"contrib.legacy_seq2seq{name}": Table(
            behind=tuple(
                f"{_SEQ2SEQ}.legacy_{part}" for part in ("decoders", "attention", "losses")
            )
        )
        for name in ("", ".python.ops.seq2seq")
    },
    "contrib.rnn": Table(
        behind=(_CELLS, _RNN, *_MORE_CELLS),
        instead=dict.fromkeys(
            (
                *("TimeFreqLSTMCell", "GridLSTMCell", "BidirectionalGridLSTMCell", "GLSTMCell"),
                *("IntersectionRNNCell", "PhasedLSTMCell", "ConvLSTMCell", "Conv1DLSTMCell"),
                *("Conv2DLSTMCell", "Conv3DLSTMCell", "SRUCell", "IndRNNCell", "IndyGRUCell"),
                *("IndyLSTMCell", "CompiledWrapper", "NTMCell", "LayerNormLSTMCell"),
            ),
            "write its step as a subclass of nn.rnn_cell.RNNCell",
        ),
    ),
    **{
        f"contrib.rnn.python.ops.{name}": Table(behind=behind, names=_LINEAR)
        for name, behind in (
            ("fused_rnn_cell", (_MORE_CELLS[-1],)),
            ("gru_ops", (_MORE_CELLS[1],)),
            ("lstm_ops", _MORE_CELLS[1:]),
            ("rnn", (_MORE_CELLS[-1],)),
            ("rnn_cell", _MORE_CELLS[:1]),
        )
    },
    "contrib.rnn.python.ops.core_rnn_cell": Table(behind=(_CELLS,), names=_LINEAR),
    "contrib.staging": Table(
        names={"StagingArea": "estimatorkit.ops.queues.queue_kinds:StagingArea"}
    ),
    "contrib.summary": Table(behind=("estimatorkit.compat.contrib.summary",)),
    "contrib.signal": Table(behind=("estimatorkit.signal",)),
    "contrib.tensorboard.plugins.projector": Table(behind=("estimatorkit.projector",)),
    "contrib.training": Table(
        behind=(
            "estimatorkit.compat.contrib.training",
            "estimatorkit.compat.contrib.batching",
        ),
        names={
            **names("estimatorkit.compat.hparams", "HParams", "parse_values"),
            **names(
                "estimatorkit.storage.checkpoint_reader",
                "checkpoints_iterator",
                "wait_for_new_checkpoint",
            ),
            "GreedyLoadBalancingStrategy": f"{_DEALING}:GreedyLoadBalancingStrategy",
            "RandomStrategy": f"{_DEALING}:RandomStrategy",
            "byte_size_load_fn": f"{_DEALING}:byte_size_load_fn",
        },
        instead=dict.fromkeys(
            ("batch_sequences_with_states", "SequenceQueueingStateSaver"),
            "cut sequences with Dataset.window, and feed back the final state of dynamic_rnn",
        ),
    ),
    **{
        f"contrib.training.python.training.{name}": Table(
            names=names("estimatorkit.compat.hparams", "HParamDef", "HParams", "parse_values")
        )
        for name in ("hparam", "hparam_pb2")
    },
    "contrib.util": Table(
        names={
            "make_tensor_proto": "estimatorkit.compat.private.tensor_protos:make_tensor_proto",
            "make_ndarray": "estimatorkit.compat.private.tensor_protos:make_ndarray",
            "constant_value": f"{_CORE}.registry:constant_value",
        }
    ),
    "contrib.eager": Table(
        instead={
            "enable_eager_execution": "programs here are graphs with sessions, as in TensorFlow 1"
        }
    ),
    "contrib.deprecated": Table(
        behind=("estimatorkit.compat.summaries",),
        names={
            "merge_summary": "estimatorkit.ops.files.summary:merge",
            "merge_all_summaries": "estimatorkit.ops.files.summary:merge_all",
        },
    ),
    "contrib.slim": Table(
        behind=(*_CONTRIB_LAYERS, "estimatorkit.compat.contrib.variables"),
        names={
            **_ARG_SCOPE,
            **names(
                "estimatorkit.train.global_steps",
                *("create_global_step", "get_global_step", "get_or_create_global_step"),
            ),
        },
    ),
    **{
        f"contrib.{name}": Table(behind=("estimatorkit.compat.contrib.layer_utils",))
        for name in (
            *("layers.utils", "layers.python.layers.utils", "slim.utils"),
            "slim.python.slim.utils",
        )
    },
    **{
        f"contrib.slim.{top}nets.{name}": Table(
            behind=(f"estimatorkit.compat.contrib.{'resnets' if 'resnet' in name else 'nets'}",),
            names=names("estimatorkit.compat.contrib.resnets", bottleneck=f"bottleneck_{name[-2:]}")
            if name in ("resnet_v1", "resnet_v2")
            else {},
        )
        for top in ("", "python.slim.")
        for name in ("alexnet", "overfeat", "resnet_utils", "resnet_v1", "resnet_v2", "vgg")
    },
    **{
        f"contrib.slim.{folder}{module}": Table(
            behind=(f"estimatorkit.compat.contrib.slim_{home}",)
        )
        for home, modules in {
            "data": ("prefetch_queue",),
            "decoder": ("data_decoder", "tfexample_decoder"),
            "reading": ("data_provider", "dataset", "dataset_data_provider", "parallel_reader"),
        }.items()
        for module in modules
        for folder in ("", "python.slim.data.")
    },
    **{
        f"contrib.slim.{folder}{module}": Table(
            behind=("estimatorkit.compat.contrib.slim_reading",)
        )
        for module in ("model_analyzer", "queues")
        for folder in ("", "python.slim.")
    },
    "contrib.slim.layers": Table(behind=_CONTRIB_LAYERS, names=_ARG_SCOPE),
    "contrib.slim.learning": Table(behind=("estimatorkit.compat.contrib.slim_learning",)),
    "contrib.slim.evaluation": Table(behind=("estimatorkit.compat.contrib.slim_evaluation",)),
    **{
        name: Table(behind=("estimatorkit.compat.tpu",))
        for name in (
            *("contrib.tpu", "estimator.tpu", "contrib.tpu.python.tpu.tpu_config"),
            *("contrib.tpu.python.tpu.tpu_estimator", "contrib.tpu.python.tpu.tpu_optimizer"),
        )
    },
    "tpu": Table(names=names("estimatorkit.compat.tpu", "CrossShardOptimizer")),
    # -- private modules: `private_modules` finds most names
    "python": Table(behind=_EVERYTHING),
    "profiler": Table(behind=("estimatorkit.compat.profiler",)),
    **{
        f"{name}.model_analyzer": Table(behind=("estimatorkit.compat.profiler",))
        for name in ("contrib.tfprof", "python.profiler")
    },
    "python.profiler.option_builder": Table(behind=("estimatorkit.compat.profiler",)),
    **{
        name: Table(
            behind=("estimatorkit.compat.private.layer_utils",),
            names=names(
                "estimatorkit.ops.control.control_flow",
                "smart_cond",
                constant_value="constant_bool",
            ),
        )
        for name in ("python.layers.utils", "python.keras.utils.conv_utils")
    },
    "python.framework.smart_cond": Table(
        names=names(
            "estimatorkit.ops.control.control_flow",
            "smart_cond",
            smart_constant_value="constant_bool",
        )
    ),
    "python.debug": Table(
        instead={
            "LocalCLIDebugWrapperSession": "add_check_numerics_ops and Print show values as they "
            "are computed; session.plan(fetches).describe() shows what runs",
        }
    ),
    "python.saved_model.loader_impl": Table(
        names=names(
            "estimatorkit.train.saving.saved_model_files",
            **dict.fromkeys(("parse_saved_model", "_parse_saved_model"), "read_saved_model"),
        )
    ),
    **{
        f"python.saved_model.{module}": Table(
            names=names(
                "estimatorkit.train.saving.saved_model_files", get_variables_path="variables_path"
            )
        )
        for module in ("utils_impl", "path_helpers")
    },
    "python.tools.freeze_graph": Table(
        names={"freeze_graph": "estimatorkit.compat.private.tools:freeze_graph"}
    ),
    "python.tools.strip_unused_lib": Table(
        names=names("estimatorkit.compat.private.tools", "strip_unused")
    ),
    "python.tools.optimize_for_inference_lib": Table(
        names=names("estimatorkit.compat.private.tools", "optimize_for_inference")
    ),
    "python.tools.inspect_checkpoint": Table(
        names={
            "print_tensors_in_checkpoint_file": (
                "estimatorkit.compat.private.tools:print_tensors_in_checkpoint_file"
            )
        }
    ),
    **{
        f"saved_model.{name}": Table(behind=(f"estimatorkit.train.saving.{module}",))
        for name, module in (
            ("builder", "saved_model_builder"),
            ("constants", "saved_model_constants"),
            ("loader", "saved_model_loader"),
            ("signature_constants", "saved_model_constants"),
            ("signature_def_utils", "signatures"),
            ("tag_constants", "saved_model_constants"),
            ("utils", "signatures"),
        )
    },
    **{
        f"python.estimator.{module}": Table(
            behind=("estimatorkit.compat.canned",),
            names={
                f"{family}{kind}V2": f"estimatorkit.estimator:{family}{kind}"
                for kind in ("Classifier", "Regressor", "Estimator")
            },
        )
        for module, family in (
            *(("canned.baseline", "Baseline"), ("canned.dnn", "DNN"), ("canned.linear", "Linear")),
            ("canned.dnn_linear_combined", "DNNLinearCombined"),
        )
    },
    "python.eager.context": Table(names={"graph_mode": "contextlib:nullcontext"}),
    "python.estimator.early_stopping": Table(
        names={
            "_StopOnPredicateHook": (
                "estimatorkit.estimator.evaluation.stopping_hooks:StopOnPredicateHook"
            ),
            "read_eval_metrics": (
                "estimatorkit.estimator.evaluation.evaluation_records:read_eval_metrics"
            ),
        }
    ),
    **{
        module: Table(behind=("estimatorkit.compat.testing.fake_summary_writer",))
        for module in (
            "contrib.testing.python.framework.fake_summary_writer",
            "python.estimator.hooks.fake_summary_writer",
        )
    },
    "python.estimator.canned.head": Table(behind=("estimatorkit.compat.heads",)),
    "python.estimator.head.head_utils": Table(
        behind=("estimatorkit.compat.testing.head_test_utils",)
    ),
    "python.estimator.canned.kmeans": Table(
        names=names(
            "estimatorkit.premade.kmeans",
            "KMeansClustering",
            _parse_features_if_necessary="_points_of",
        )
    ),
    "python.estimator.canned.optimizers": Table(behind=("estimatorkit.compat.canned",)),
    **{
        f"python.estimator.{module}": Table(
            names=names(
                "estimatorkit.estimator.keras_estimator",
                *("FormattedKeyError", "model_to_estimator"),
                _create_keras_model_fn="create_keras_model_fn",
            )
        )
        for module in ("keras", "keras_lib")
    },
    "python.saved_model.model_utils.export_output": Table(
        behind=("estimatorkit.estimator.serving.export_outputs",)
    ),
    "python.estimator.run_config": Table(
        names=names(
            "estimatorkit.estimator.run_config", get_default_session_config="default_session_config"
        )
    ),
    "python.estimator.model_fn": Table(
        names={"_TPUEstimatorSpec": "estimatorkit.compat.tpu:TPUEstimatorSpec"}
    ),
    "python.estimator.estimator": Table(
        names={
            "EstimatorV2": "estimatorkit.estimator:Estimator",
            **names(
                "estimatorkit.compat.canned",
                _load_global_step_from_checkpoint_dir="load_global_step_from_checkpoint_dir",
                _get_replica_device_setter="get_replica_device_setter",
                _write_dict_to_summary="write_dict_to_summary",
            ),
        }
    ),
    **dict.fromkeys(
        ("python.feature_column.feature_column_v2", "python.feature_column.feature_column_lib"),
        Table(
            names={
                **_COLUMNS,
                "FeatureTransformationCache": f"{_FEATURE_COLUMN}.features:Features",
                "LinearModel": f"{_FEATURE_COLUMN}.linear_layer:LinearModel",
                "_StateManagerImpl": f"{_FEATURE_COLUMN}.weights:LayerState",
                "_transform_features_v2": f"{_FEATURE_COLUMN}.features:transform_features",
                "make_parse_example_spec_v2": f"{_FEATURE_COLUMN}:make_parse_example_spec",
                "shared_embedding_columns_v2": f"{_FEATURE_COLUMN}:shared_embeddings",
            }
        ),
    ),
    "python.feature_column.feature_column": Table(
        names={
            **{f"_{name}": place for name, place in _COLUMNS.items()},
            "_LazyBuilder": f"{_FEATURE_COLUMN}.features:LazyBuilder",
            "_transform_features": f"{_FEATURE_COLUMN}.features:transform_features",
            **names(
                _FEATURE_COLUMN,
                **{
                    f"_{name}": name
                    for name in (
                        *("bucketized_column", "crossed_column", "embedding_column"),
                        *("indicator_column", "numeric_column", "weighted_categorical_column"),
                        *(
                            f"categorical_column_with_{kind}"
                            for kind in ("hash_bucket", "identity")
                        ),
                        *("categorical_column_with_vocabulary_file",),
                        "categorical_column_with_vocabulary_list",
                    )
                },
            ),
        }
    ),
    "random.experimental": Table(names=_SEEDS),
    "python.framework.random_seed": Table(
        names={
            "get_seed": "estimatorkit.compat.small_functions:get_seed",
            "DEFAULT_GRAPH_SEED": "estimatorkit.ops.math.random:DEFAULT_GRAPH_SEED",
        }
    ),
    "python.ops.random_ops": Table(names=names(_STATELESS, "parameterized_truncated_normal")),
    "python.ops.stateless_random_ops": Table(
        names=_SEEDS
        | {
            f"stateless_{prefix}{draw}": f"{_STATELESS}:stateless_{draw}"
            for draw in ("binomial", "gamma", "normal", "poisson", "uniform")
            for prefix in ("", "random_")
        }
    ),
    "python.ops.nn_ops": Table(
        names={
            **{f"{name}_v2": f"estimatorkit.nn:{name}" for name in _SAME_IN_NN},
            **names("estimatorkit.nn", bias_add_v1="bias_add", conv3d_v1="conv3d"),
            **names(
                _VARIANTS,
                *("crelu_v2", "dropout_v2", "pool_v2"),
                "sparse_softmax_cross_entropy_with_logits_v2",
            ),
        }
    ),
    "python.ops.nn_impl": Table(
        names={
            **{f"{name}_v2": f"estimatorkit.nn:{name}" for name in _SAME_IN_NN},
            **names(
                _VARIANTS,
                *("moments_v2", "nce_loss_v2", "sampled_softmax_loss_v2", "weighted_moments_v2"),
                "sigmoid_cross_entropy_with_logits_v2",
                "weighted_cross_entropy_with_logits_v2",
            ),
            **names("estimatorkit.ops.nn.candidates", _compute_sampled_logits="_sampled_logits"),
        }
    ),
    "python.ops.gen_nn_ops": Table(
        names=names(
            _VARIANTS,
            *("avg_pool3d_grad", "avg_pool_grad", "bias_add_grad", "elu_grad", "leaky_relu_grad"),
            *("max_pool3d_grad", "max_pool_grad", "relu6_grad", "relu_grad", "softplus_grad"),
            "softsign_grad",
            max_pool_grad_v2="max_pool_grad",
        )
        | names("estimatorkit.nn", in_top_kv2="in_top_k", in_top_k_v2="in_top_k")
    ),
    "python.ops.embedding_ops": Table(
        names=names(
            _VARIANTS,
            *("embedding_lookup_sparse_v2", "embedding_lookup_v2"),
            "safe_embedding_lookup_sparse_v2",
        )
    ),
    **{
        f"python.ops.{name}": Table(
            names={
                **names(_VARIANTS, "draw_bounding_boxes_v2"),
                **names(
                    "estimatorkit.image",
                    crop_and_resize_v1="crop_and_resize",
                    non_max_suppression_padded_v1="non_max_suppression_padded",
                    non_max_suppression_padded_v2="non_max_suppression_padded",
                    resize_image_with_pad_v1="resize_image_with_pad",
                    ResizeMethodV1="ResizeMethod",
                ),
            }
        )
        for name in ("image_ops", "image_ops_impl")
    },
    **{
        f"python.ops.{name}": Table(
            names={
                **{
                    f"string_{name}": f"estimatorkit.strings:{name}"
                    for name in ("bytes_split", "format", "length", "lower", "strip", "upper")
                },
                **names(
                    "estimatorkit.strings",
                    reduce_join_v2="reduce_join",
                    static_regex_full_match="regex_full_match",
                    static_regex_replace="regex_replace",
                    string_length_v2="length",
                    string_split_v2="split",
                    string_to_hash_bucket_v1="to_hash_bucket",
                    string_to_number_v1="to_number",
                    strings_split_v1="split",
                    substr_v2="substr",
                ),
            }
        )
        for name in ("gen_string_ops", "ragged.ragged_string_ops", "string_ops")
    },
    "python.ops.confusion_matrix": Table(
        names={"confusion_matrix_v1": "estimatorkit:confusion_matrix"}
    ),
    "python.ops.parsing_ops": Table(
        names={
            "decode_raw_v1": "estimatorkit:decode_raw",
            "decode_csv_v2": "estimatorkit.io:decode_csv",
        }
    ),
    "python.tf2": Table(names=names(_PRIVATE, "enabled")),
    "python.keras.utils.tf_utils": Table(
        names=names("estimatorkit.ops.control.control_flow", "smart_cond")
    ),
    "python.ops.variables": Table(
        names=names(f"{_CORE}.variables", VariableV1="Variable", RefVariable="Variable")
    ),
    "python.ops.resource_variable_ops": Table(
        names={
            "ResourceVariable": f"{_CORE}.variables:Variable",
            **names(_PRIVATE, "is_resource_variable"),
        }
    ),
    # Aliases that TensorFlow 1's layers keep for older programs.
    **{
        f"python.layers.{module}": Table(names=names("estimatorkit.layers", **aliases))
        for module, aliases in {
            "core": {"FullyConnected": "Dense", "fully_connected": "dense"},
            "convolutional": {
                **{f"Convolution{n}D": f"Conv{n}D" for n in (1, 2, 3)},
                **{f"convolution{n}d": f"conv{n}d" for n in (1, 2, 3)},
                "SeparableConvolution2D": "SeparableConv2D",
                "separable_convolution2d": "separable_conv2d",
            },
            "normalization": {
                "BatchNorm": "BatchNormalization",
                "batch_norm": "batch_normalization",
            },
            "pooling": {
                "AvgPool2D": "AveragePooling2D",
                "MaxPool2D": "MaxPooling2D",
                "avg_pool2d": "average_pooling2d",
                "max_pool2d": "max_pooling2d",
            },
        }.items()
    },
    "python.ops.metrics_impl": Table(names=names(_PRIVATE, "metric_variable")),
    "python.ops.rnn": Table(
        names={
            **_TIME,
            **names(
                "estimatorkit.layers.recurrent.rnn_fused",
                _best_effort_input_batch_size="best_effort_input_batch_size",
            ),
        }
    ),
    "python.ops.rnn_cell_impl": Table(
        names={
            **_LINEAR,
            **names(_PRIVATE, _concat="concat_shapes"),
            **names("estimatorkit.layers.recurrent.rnn_cell", LayerRNNCell="RNNCell"),
            **names(
                "estimatorkit.layers.recurrent.rnn_cell", assert_like_rnncell="assert_like_cell"
            ),
        }
    ),
    **{
        module: Table(names=names(_PRIVATE, "fn_args", "has_kwargs", "get_func_name") | own)
        for module, own in (
            ("python.util.function_utils", {}),
            (
                "python.estimator.util",
                names(
                    "estimatorkit.compat.private.input_fn_results",
                    *("parse_input_fn_result", "parse_iterator_result"),
                    _DatasetInitializerHook="DatasetInitializerHook",
                ),
            ),
        )
    },
    "python.util.all_util": Table(names=names(_PRIVATE, "remove_undocumented")),
    **{
        f"python.util.{module}": Table(
            names=names(_PRIVATE, **dict.fromkeys(kinds.split(), "unchanged"))
        )
        for module, kinds in (
            (
                "deprecation",
                "deprecated deprecated_args deprecated_arg_values deprecated_endpoints",
            ),
            ("tf_export", "tf_export keras_export estimator_export"),
        )
    },
    "python.util.tf_inspect": Table(
        behind=("inspect",), names={"getargspec": "inspect:getfullargspec"}
    ),
    **{
        f"contrib.learn.{name}datasets.base": Table(behind=("estimatorkit.compat.learn_datasets",))
        for name in ("", "python.learn.")
    },
    "python.training.monitored_session": Table(
        names={"_HookedSession": "estimatorkit.train.sessions.monitored_session:HookedSession"}
    ),
    "python.client.session": Table(
        names=names(
            *("estimatorkit.runtime.run_conversions", "register_session_run_conversion_functions"),
        )
        | {"BaseSession": "estimatorkit.runtime.session:Session"}
    ),
    "python.framework.indexed_slices": Table(
        names=names(f"{_CORE}.indexed_slices", "IndexedSlicesValue")
    ),
    "python.framework.ops": Table(names=names(f"{_CORE}.indexed_slices", "IndexedSlicesValue")),
    "python.framework.versions": Table(
        names={
            "GRAPH_DEF_VERSION": "estimatorkit.interop.graphdef:FORMAT",
            **names(_PRIVATE, "GRAPH_DEF_VERSION_MIN_CONSUMER", "GRAPH_DEF_VERSION_MIN_PRODUCER"),
        }
    ),
    "python.framework.device_spec": Table(
        names=names(f"{_CORE}.devices", DeviceSpecV1="DeviceSpec", DeviceSpecV2="DeviceSpec")
    ),
    "python.training.evaluation": Table(
        names=names(
            "estimatorkit.compat.contrib.training",
            _StopAfterNEvalsHook="StopAfterNEvalsHook",
            _evaluate_once="evaluate_once",
            _get_or_create_eval_step="get_or_create_eval_step",
        )
    ),
    **{
        f"python.{package}.checkpoint_management": Table(
            names=names(
                "estimatorkit.storage.checkpoint_state",
                update_checkpoint_state_internal="update_checkpoint_state",
            )
        )
        for package in ("training", "checkpoint")
    },
    "python.training.training_util": Table(
        names={
            "_increment_global_step": "estimatorkit.train.global_steps:increment_global_step",
        }
    ),
    "python.util.nest": Table(
        behind=("estimatorkit.compat.private.shallow_structures",),
        names={"is_sequence": f"{_CORE}.nest:is_nested"},
    ),
    **{
        f"core.{folder}.{name}_pb2": Table(behind=(f"tensorboard.compat.proto.{name}_pb2",))
        for folder, kinds in (
            (
                "framework",
                "attr_value cost_graph function graph node_def op_def resource_handle step_stats",
            ),
            ("framework", "summary tensor tensor_shape types variable versions"),
            ("protobuf", "cluster config meta_graph rewriter_config saved_object_graph saver"),
            ("protobuf", "struct trackable_object_graph verifier_config"),
            ("util", "event"),
        )
        for name in kinds.split()
    },
    **{
        f"core.{folder}.error_codes_pb2": Table(behind=(f"{_CORE}.errors",))
        for folder in ("lib.core", "protobuf")
    },
    "core.protobuf.queue_runner_pb2": Table(behind=("estimatorkit.train.queues.queue_runner_def",)),
    "core.protobuf.tensorflow_server_pb2": Table(
        behind=("estimatorkit.distribute.tasks.server_def",)
    ),
    "core.example.example_pb2": Table(behind=("estimatorkit.train",)),
    "core.example.feature_pb2": Table(behind=("estimatorkit.train",)),
}
