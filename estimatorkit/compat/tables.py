"""The table of TensorFlow 1's modules, and of names that only old programs use.

`_ROWS` lists the modules below `tf`, and `tf` itself. A row starts with module names and, after a
colon, the modules whose names they re-export; lines indented below it add names:

    place: name other=inner         names of the module `place`, which calls `other` `inner`
    name = place                    a module name other -> what to do        a replacement for names
    that do not exist
        where a line goes on, eight spaces begin the next

A leading dot stands for `estimatorkit`. Braces expand to several modules (`{,python.}util`), and
`*` to the value of the last braces. Most private modules (`python.framework.ops`) have all names of
the top level; see `private_modules`.
"""

from __future__ import annotations

from estimatorkit.compat import later
from estimatorkit.compat.modules import Table, tables_of

_ROWS = """
tf: .
    .ops.math.reduce: arg_max=argmax arg_min=argmin
    .ops.math.elementwise: mul=multiply neg=negative sub=subtract to_bfloat16
    .ops.array.joining: pack=stack unpack=unstack concat_v2=concat
    .ops.array.indexing: select=where_v1 where=where_v1 where_v2
    .core.dtypes: float32_ref=float32 resource variant double=float64 half=float16
    .compat.ops.linalg.matrix_functions: matrix_square_root=sqrtm
    .compat.ops.image.patches: extract_image_patches
    .compat.logging: get_logger
    .ops.array.gather_nd: tensor_scatter_add=tensor_scatter_nd_add
        tensor_scatter_sub=tensor_scatter_nd_sub tensor_scatter_update=tensor_scatter_nd_update
    .core.devices: DeviceSpec
    .core.errors: OpError
    .core.gradients: NoGradient=no_gradient NotDifferentiable=no_gradient no_gradient
    .compat.summaries: scalar_summary histogram_summary image_summary audio_summary
    .ops.files.summary: merge_summary=merge merge_all_summaries=merge_all
    .compat.switches: compat_eager_only disable_control_flow_v2 disable_eager_execution
        disable_resource_variables disable_tensor_equality disable_v2_behavior
        disable_v2_tensorshape enable_control_flow_v2 enable_eager_execution
        enable_resource_variables executing_eagerly resource_variables_enabled
    .compat.private.shapes: Dimension TensorShape dimension_at_index dimension_value
    .compat.small_functions: AggregationMethod add_to_collections get_seed identity_n make_template
        to_complex128 to_complex64 to_double
    .ops.debug.shape_matching: broadcast_dynamic_shape broadcast_static_shape
    .compat.ops.variables.session_tensors: delete_session_tensor get_session_handle
        get_session_tensor
    .signal: fft fft2d fft3d ifft ifft2d ifft3d
    .: reverse_v2=reverse
    .compat.private.tensor_protos: make_ndarray make_tensor_proto
    Session2 -> use Session
    enable_v2_behavior -> programs here are graphs with sessions, as in TensorFlow 1
    load_op_library -> write the operation in JAX: estimatorkit.jax_function
{audio,bitwise,data,debugging,function,graph_util,image,initializers,io,layers,linalg,lookup}: .*
{math,python_io,queue,random,saved_model,sets,sparse,strings}: .*
{estimator.experimental,estimator.export,losses,metrics,train.experimental}: .*
{,python.,contrib.,contrib.keras.python.}keras.{backend,callbacks,datasets}: .keras.*
{,python.,contrib.,contrib.keras.python.}keras.{datasets.fashion_mnist,datasets.mnist}: .keras.*
{,python.,contrib.,contrib.keras.python.}keras.{estimator,losses,metrics,mixed_precision}: .keras.*
{,python.,contrib.,contrib.keras.python.}keras.{mixed_precision.experimental,models}: .keras.*
{,python.,contrib.,contrib.keras.python.}keras.{optimizers,optimizers.legacy}: .keras.*
{,python.,contrib.,contrib.keras.python.}keras.{optimizers.schedules,preprocessing}: .keras.*
{,python.,contrib.,contrib.keras.python.}keras.{preprocessing.image}: .keras.*
{,python.,contrib.,contrib.keras.python.}keras.{preprocessing.sequence,preprocessing.text}: .keras.*
{,python.,contrib.,contrib.keras.python.}keras.{utils,wrappers,wrappers.scikit_learn}: .keras.*
{,python.,contrib.,contrib.keras.python.}keras.{activations,constraints,initializers}: .layers.*
{,python.,contrib.,contrib.keras.python.}keras.{regularizers}: .layers.*
signal spectral contrib.signal: .signal
datasets: .data.datasets
estimator: .compat.estimators .estimator
errors core.lib.core.error_codes_pb2 core.protobuf.error_codes_pb2: .core.errors
feature_column contrib.feature_column: .layers.feature_column
nest contrib.framework.nest: .core.nest
nn: .nn .compat.layers.recurrent.rnn
nn.rnn_cell: .compat.layers.recurrent.rnn_cell
train: .train
    .interop.summary_writer: SummaryWriter=FileWriter SummaryWriterCache=FileWriterCache
    tensorboard.compat.proto.cluster_pb2: ClusterDef JobDef
summary: .summary
    .interop.summary_writer: SummaryWriter=FileWriter
manip: .
dtypes: .core.dtypes .
gfile io.gfile: .gfile
app:
    flags = .compat.v1.flags
    .compat.app: run
flags: .compat.flags absl.flags
logging: .compat.logging
compat: .compat.text
    v1 = .compat.v1
compat.v2: .compat.v1
    losses = .compat.v1.keras.losses
    metrics = .compat.v1.keras.metrics
    optimizers = .compat.v1.keras.optimizers
    initializers = .compat.v1.keras.initializers
sysconfig:
    get_include -> there is no native code to compile against
resource_loader: .compat.resources
test: .compat.testing.test_case
version:
    .compat.v1: VERSION GIT_VERSION
examples.tutorials.mnist.mnist: .compat.mnist_model
examples.tutorials.mnist.input_data contrib.learn.{,python.learn.}datasets.mnist:
        .compat.mnist_input_data
{,python.,contrib.,contrib.keras.python.}keras: .keras
    .compat.v1: __version__=KERAS_VERSION
keras.experimental:
    .layers.feature_column: SequenceFeatures
    .compat.keras.engine.premade_models: LinearModel WideDeepModel
    .keras.optimizers.schedules: CosineDecay CosineDecayRestarts
{,python.,contrib.,contrib.keras.python.}keras.layers: .keras.layers
    .compat.layers.recurrent.recurrent_v1: GRU GRUCell LSTM LSTMCell
contrib.opt: .compat.train.optimizers.contrib_optimizers
    .train: LazyAdamOptimizer
    .compat.train.optimizers.moving_average_optimizer: MovingAverageOptimizer
    .compat.train.optimizers.multitask_optimizer: MultitaskOptimizerWrapper
        clip_gradients_by_global_norm
    .compat.train.optimizers.external_optimizer: ExternalOptimizerInterface ScipyOptimizerInterface
    ShampooOptimizer GGTOptimizer -> use train.OptaxOptimizer
contrib.factorization: .compat.contrib.factorization
    GMM -> use scikit-learn's GaussianMixture
    KMeans -> use KMeansClustering, or scikit-learn's KMeans
    WALSMatrixFactorization -> train two embedding tables on the known entries
contrib.mixed_precision: .compat.mixed_precision
python.keras.optimizer_v2.rmsprop:
    .keras.optimizers: RMSProp=RMSprop
python.keras.optimizer_v2.optimizer_v2:
    .keras.optimizers.optimizer: OptimizerV2=Optimizer
distributions: .compat.layers.distributions
contrib.distributions: .compat.layers.distributions .compat.layers.distributions.continuous
        .compat.layers.distributions.divergence
    .compat.contrib.distributions: Independent MultivariateNormalDiag OneHotCategorical
python.ops.distributions
        python.ops.distributions.{bernoulli,beta,categorical,dirichlet,distribution}
        python.ops.distributions.{dirichlet_multinomial,distributions,exponential,gamma}
        python.ops.distributions.{kullback_leibler,laplace,multinomial,normal,student_t,uniform}:
        .compat.layers.distributions .compat.layers.distributions.continuous
        .compat.layers.distributions.divergence
    .compat.layers.distributions.divergence: _registered_kl=registered_kl
distribute: .distribute
    .compat.contrib.distribute: CrossDeviceOps HierarchicalCopyAllReduce NcclAllReduce
        ReductionToOneDevice TPUStrategy
distribute.experimental: .distribute.experimental
    .compat.contrib.distribute: TPUStrategy
contrib.distribute: .compat.contrib.distribute .distribute
    .distribute.replicas.strategies: ParameterServerStrategy
    .distribute.replicas.multi_worker: CollectiveAllReduceStrategy=MultiWorkerMirroredStrategy
contrib.cudnn_rnn{,.python.layers.cudnn_rnn,.python.ops.cudnn_rnn_ops}: .compat.contrib.cudnn_rnn
    .compat.contrib.cudnn_rnn: CUDNN_INPUT_AUTO_MODE CUDNN_INPUT_LINEAR_MODE CUDNN_INPUT_SKIP_MODE
        CUDNN_RNN_BIDIRECTION CUDNN_RNN_UNIDIRECTION
    CudnnLSTMSaveable CudnnGRUSaveable -> a Saver writes and reads the variables of the compatible
        cells
contrib.image{,.python.ops.image_ops}: .compat.contrib.image
    bipartite_match connected_components interpolate_spline -> use SciPy: linear_sum_assignment,
        ndimage.label, interpolate
    dense_image_warp sparse_image_warp -> use gather_nd on the images
    adjust_hsv_in_yiq random_hsv_in_yiq -> use image.adjust_hue, adjust_saturation and their random
        forms
contrib.crf: .compat.contrib.crf
contrib.framework: .compat.contrib.variables .compat.contrib.tensor_util .train .
    nest = .core.nest
    .ops.variables.variable_collections: global_variables local_variables model_variables
    .compat.arg_scope: add_arg_scope arg_scope arg_scope_func_key arg_scoped_arguments
        current_arg_scope has_arg_scope
    .ops.control.control_flow: smart_cond smart_constant_value=constant_bool
contrib.framework.python.ops.audio_ops: .audio .compat.ops.text.audio_features
contrib.layers: .compat.contrib.layers .compat.contrib.layer_functions .compat.contrib.encoders
        .compat.contrib.normalization .compat.contrib.optimize_loss .compat.contrib.columns
    feature_column = .compat.contrib.columns
    .ops.nn.embedding: safe_embedding_lookup_sparse
contrib.data: .data.experimental .compat.contrib.data .data
data.experimental: .data.experimental
    .compat.contrib.data: CheckpointInputPipelineHook make_saveable_from_iterator
    dense_to_ragged_batch -> use padded_batch or dense_to_sparse_batch
    service -> data is divided among workers by Dataset.shard
contrib.lookup: .lookup .
    .lookup: MutableDenseHashTable=DenseHashTable
    .compat.contrib.lookup: index_table_from_tensor index_to_string
        index_to_string_table_from_tensor string_to_index string_to_index_table_from_file
        string_to_index_table_from_tensor
contrib.{,slim.}losses: .compat.contrib.losses .layers.losses
contrib.losses{,.python}.metric_learning contrib.losses.python.metric_learning.metric_loss_ops:
        .compat.layers.losses.metric_learning
    cluster_loss npairs_loss_multilabel -> use triplet_semihard_loss or npairs_loss
contrib.{,slim.}metrics: .compat.contrib.metrics
    .: confusion_matrix
    .sets: set_difference set_intersection set_size set_union
    streaming_concat -> collect what session.run gives
    streaming_curve_points -> use metrics.precision_at_thresholds
    streaming_pearson_correlation -> use scikit-learn on what session.run gives
    streaming_covariance -> use numpy.cov on what session.run gives
    cohen_kappa -> use sklearn.metrics.cohen_kappa_score on predictions
contrib.predictor: .compat.predictor
contrib.estimator: .estimator.experimental
    .estimator.extenders: add_metrics forward_features
    .estimator.evaluation.evaluation_records: read_eval_metrics
    .compat.contrib.export: export_all_saved_models export_saved_model_for_mode
    .estimator.serving.serving_inputs: build_supervised_input_receiver_fn_from_input_fn
    .compat.heads: binary_classification_head logistic_regression_head multi_class_head multi_head
        multi_label_head poisson_regression_head regression_head
    .compat.estimators: BaselineEstimator DNNEstimator DNNLinearCombinedEstimator LinearEstimator
contrib.learn{,.estimators,.experiment,.python.learn}
        contrib.learn.python.learn.{estimators,experiment,metric_spec}
        contrib.learn.python.learn.estimators.{dnn,estimator,model_fn,run_config}:
        .compat.contrib.learn_estimators .compat.contrib.learn_premade .compat.contrib.learn
    monitors -> use hooks: train.SessionRunHook, and train_and_evaluate
contrib.learn.{preprocessing,python.learn.preprocessing,preprocessing.text}:
        .compat.vocabulary_processor
contrib.learn.{,python.learn.}learn_runner:
    .compat.contrib.learn: run
contrib.learn.{,python.learn.}utils{,.saved_model_export_utils,.input_fn_utils}:
    .compat.contrib.learn: make_export_strategy
    .compat.contrib.learn_estimators: InputFnOps
contrib.learn.{io,python.learn.learn_io}{,.numpy_io,.pandas_io}: .data.inputs
contrib.seq2seq: .compat.layers.seq2seq.attention_wrapper .compat.layers.seq2seq.attention
        .compat.layers.seq2seq.monotonic_attention .compat.layers.seq2seq.beam_search
        .compat.layers.seq2seq.beam_search_step .compat.layers.seq2seq.decoder
        .compat.layers.seq2seq.helper
        .compat.layers.seq2seq.inference_helper .compat.layers.seq2seq.losses
    .ops.control.decoded_steps: gather_tree
    sampled_sequence_loss -> use sequence_loss and nn.sampled_softmax_loss
contrib.seq2seq.python.ops.attention_wrapper: .compat.layers.seq2seq.attention_wrapper
        .compat.layers.seq2seq.attention .compat.layers.seq2seq.monotonic_attention
    .compat.layers.seq2seq.attention: _BaseAttentionMechanism=BaseAttentionMechanism
    .compat.layers.seq2seq.attention_wrapper: _compute_attention=compute_attention
contrib.seq2seq.python.ops.basic_decoder: .compat.layers.seq2seq.decoder
contrib.seq2seq.python.ops.beam_search_decoder: .compat.layers.seq2seq.beam_search
        .compat.layers.seq2seq.beam_search_step
    .compat.layers.seq2seq.beam_search_step: _beam_search_step=beam_search_step
        _get_scores=scores_of
        _mask_probs=mask_finished
contrib.seq2seq.python.ops.beam_search_ops:
    .ops.control.decoded_steps: gather_tree
contrib.seq2seq.python.ops.decoder: .compat.layers.seq2seq.decoder
    .compat.layers.recurrent.rnn_fused: _transpose_batch_time=transpose_batch_time
contrib.seq2seq.python.ops.helper: .compat.layers.seq2seq.helper
        .compat.layers.seq2seq.inference_helper
contrib.seq2seq.python.ops.loss: .compat.layers.seq2seq.losses
contrib.legacy_seq2seq{,.python.ops.seq2seq}: .compat.layers.seq2seq.legacy_decoders
        .compat.layers.seq2seq.legacy_attention .compat.layers.seq2seq.legacy_losses
contrib.rnn: .compat.layers.recurrent.rnn_cell .compat.layers.recurrent.rnn
        .compat.layers.recurrent.rnn_cell_variants
        .compat.layers.recurrent.rnn_cell_block .compat.layers.recurrent.rnn_fused
    TimeFreqLSTMCell GridLSTMCell BidirectionalGridLSTMCell GLSTMCell IntersectionRNNCell
        PhasedLSTMCell ConvLSTMCell Conv1DLSTMCell Conv2DLSTMCell Conv3DLSTMCell SRUCell IndRNNCell
        IndyGRUCell IndyLSTMCell CompiledWrapper NTMCell LayerNormLSTMCell -> write its step as a
        subclass of nn.rnn_cell.RNNCell
contrib.rnn.python.ops.{fused_rnn_cell,rnn}: .compat.layers.recurrent.rnn_fused
    .compat.layers.recurrent.rnn_linear: _linear=linear_of _Linear=Linear
        _WEIGHTS_VARIABLE_NAME=KERNEL
        _BIAS_VARIABLE_NAME=BIAS
contrib.rnn.python.ops.gru_ops: .compat.layers.recurrent.rnn_cell_block
    .compat.layers.recurrent.rnn_linear: _linear=linear_of _Linear=Linear
        _WEIGHTS_VARIABLE_NAME=KERNEL
        _BIAS_VARIABLE_NAME=BIAS
contrib.rnn.python.ops.lstm_ops: .compat.layers.recurrent.rnn_cell_block
        .compat.layers.recurrent.rnn_fused
    .compat.layers.recurrent.rnn_linear: _linear=linear_of _Linear=Linear
        _WEIGHTS_VARIABLE_NAME=KERNEL
        _BIAS_VARIABLE_NAME=BIAS
contrib.rnn.python.ops.rnn_cell: .compat.layers.recurrent.rnn_cell_variants
    .compat.layers.recurrent.rnn_linear: _linear=linear_of _Linear=Linear
        _WEIGHTS_VARIABLE_NAME=KERNEL
        _BIAS_VARIABLE_NAME=BIAS
contrib.rnn.python.ops.core_rnn_cell: .compat.layers.recurrent.rnn_cell
    .compat.layers.recurrent.rnn_linear: _linear=linear_of _Linear=Linear
        _WEIGHTS_VARIABLE_NAME=KERNEL
        _BIAS_VARIABLE_NAME=BIAS
contrib.staging:
    .ops.queues.queue_kinds: StagingArea
contrib.summary: .compat.contrib.summary
contrib.tensorboard.plugins.projector: .projector
contrib.training: .compat.contrib.training .compat.contrib.batching
    .compat.hparams: HParams parse_values
    .storage.checkpoint_reader: checkpoints_iterator wait_for_new_checkpoint
    .distribute.device_setter: GreedyLoadBalancingStrategy RandomStrategy byte_size_load_fn
    batch_sequences_with_states SequenceQueueingStateSaver -> cut sequences with Dataset.window, and
        feed back the final state of dynamic_rnn
contrib.training.python.training.{hparam,hparam_pb2}:
    .compat.hparams: HParamDef HParams parse_values
contrib.util:
    .compat.private.tensor_protos: make_tensor_proto make_ndarray
    .core.registry: constant_value=fixed_value
contrib.eager:
    enable_eager_execution -> programs here are graphs with sessions, as in TensorFlow 1
contrib.deprecated: .compat.summaries
    .ops.files.summary: merge_summary=merge merge_all_summaries=merge_all
contrib.slim: .compat.contrib.layers .compat.contrib.layer_functions .compat.contrib.encoders
        .compat.contrib.normalization .compat.contrib.optimize_loss .compat.contrib.variables
    .compat.arg_scope: add_arg_scope arg_scope arg_scope_func_key arg_scoped_arguments
        current_arg_scope has_arg_scope
    .train.global_steps: create_global_step get_global_step get_or_create_global_step
contrib.{layers,slim}.utils contrib.{layers.python.layers,slim.python.slim}.utils:
        .compat.contrib.layer_utils
contrib.slim.{,python.slim.}nets.{alexnet,overfeat,vgg}: .compat.contrib.nets
contrib.slim.{,python.slim.}nets.resnet_utils: .compat.contrib.resnets
contrib.slim.{,python.slim.}nets.resnet_v1: .compat.contrib.resnets
    .compat.contrib.resnets: bottleneck=bottleneck_v1
contrib.slim.{,python.slim.}nets.resnet_v2: .compat.contrib.resnets
    .compat.contrib.resnets: bottleneck=bottleneck_v2
contrib.slim.{,python.slim.data.}prefetch_queue: .compat.contrib.slim_data
contrib.slim.{,python.slim.data.}{data_decoder,tfexample_decoder}: .compat.contrib.slim_decoder
contrib.slim.{,python.slim.data.}{data_provider,dataset,dataset_data_provider}
        contrib.slim.{,python.slim.data.}parallel_reader
        contrib.slim.{,python.slim.}{model_analyzer,queues}: .compat.contrib.slim_reading
contrib.slim.layers: .compat.contrib.layers .compat.contrib.layer_functions .compat.contrib.encoders
        .compat.contrib.normalization .compat.contrib.optimize_loss
    .compat.arg_scope: add_arg_scope arg_scope arg_scope_func_key arg_scoped_arguments
        current_arg_scope has_arg_scope
contrib.slim.learning: .compat.contrib.slim_learning
contrib.slim.evaluation: .compat.contrib.slim_evaluation
contrib.tpu estimator.tpu contrib.tpu.python.tpu.{tpu_config,tpu_estimator,tpu_optimizer}:
        .compat.tpu
tpu:
    .compat.tpu: CrossShardOptimizer
python: .compat.v1
profiler contrib.tfprof.model_analyzer python.profiler.{model_analyzer,option_builder}:
        .compat.profiler
python.layers.utils python.keras.utils.conv_utils: .compat.private.layer_utils
    .ops.control.control_flow: smart_cond constant_value=constant_bool
python.framework.smart_cond:
    .ops.control.control_flow: smart_cond smart_constant_value=constant_bool
python.debug:
    LocalCLIDebugWrapperSession -> add_check_numerics_ops and Print show values as they are
        computed; session.plan(fetches).describe() shows what runs
python.saved_model.loader_impl:
    .train.saving.saved_model_files: parse_saved_model=read_saved_model
        _parse_saved_model=read_saved_model
python.saved_model.{utils_impl,path_helpers}:
    .train.saving.saved_model_files: get_variables_path=variables_path
python.tools.freeze_graph:
    .compat.private.tools: freeze_graph
python.tools.strip_unused_lib:
    .compat.private.tools: strip_unused
python.tools.optimize_for_inference_lib:
    .compat.private.tools: optimize_for_inference
python.tools.inspect_checkpoint:
    .compat.private.tools: print_tensors_in_checkpoint_file
saved_model.builder: .train.saving.saved_model_builder
saved_model.{constants,signature_constants,tag_constants}: .train.saving.saved_model_constants
saved_model.loader: .train.saving.saved_model_loader
saved_model.signature_def_utils saved_model.utils: .train.saving.signatures
python.estimator.canned.baseline: .compat.canned
    .estimator: BaselineClassifierV2=BaselineClassifier BaselineRegressorV2=BaselineRegressor
        BaselineEstimatorV2=BaselineEstimator
python.estimator.canned.dnn: .compat.canned
    .estimator: DNNClassifierV2=DNNClassifier DNNRegressorV2=DNNRegressor
        DNNEstimatorV2=DNNEstimator
python.estimator.canned.linear: .compat.canned
    .estimator: LinearClassifierV2=LinearClassifier LinearRegressorV2=LinearRegressor
        LinearEstimatorV2=LinearEstimator
python.estimator.canned.dnn_linear_combined: .compat.canned
    .estimator: DNNLinearCombinedClassifierV2=DNNLinearCombinedClassifier
        DNNLinearCombinedRegressorV2=DNNLinearCombinedRegressor
        DNNLinearCombinedEstimatorV2=DNNLinearCombinedEstimator
python.eager.context:
    contextlib: graph_mode=nullcontext
python.estimator.early_stopping:
    .estimator.evaluation.stopping_hooks: _StopOnPredicateHook=StopOnPredicateHook
    .estimator.evaluation.evaluation_records: read_eval_metrics
python.estimator.canned.head: .compat.heads
python.estimator.head.head_utils: .compat.testing.head_test_utils
python.estimator.canned.kmeans:
    .premade.kmeans: KMeansClustering _parse_features_if_necessary=_points_of
python.estimator.canned.optimizers: .compat.canned
python.estimator.keras python.estimator.keras_lib:
    .estimator.keras_estimator: FormattedKeyError model_to_estimator
        _create_keras_model_fn=create_keras_model_fn
python.saved_model.model_utils.export_output: .estimator.serving.export_outputs
python.estimator.run_config:
    .estimator.run_config: get_default_session_config=default_session_config
python.estimator.model_fn:
    .compat.tpu: _TPUEstimatorSpec=TPUEstimatorSpec
python.estimator.estimator:
    .estimator: EstimatorV2=Estimator
    .compat.canned: _load_global_step_from_checkpoint_dir=load_global_step_from_checkpoint_dir
        _get_replica_device_setter=get_replica_device_setter
        _write_dict_to_summary=write_dict_to_summary
python.feature_column.{feature_column_v2,feature_column_lib}:
    .layers.feature_column.numeric: BucketizedColumn NumericColumn
    .layers.feature_column.columns: CategoricalColumn DenseColumn FeatureColumn SequenceDenseColumn
    .layers.feature_column.crossed: CrossedColumn
    .layers.feature_column.embedding: EmbeddingColumn SharedEmbeddingColumn
    .layers.feature_column.categorical: HashedCategoricalColumn=HashedColumn
        IdentityCategoricalColumn=IdentityColumn WeightedCategoricalColumn=WeightedColumn
    .layers.feature_column.indicator: IndicatorColumn
    .layers.feature_column.sequence: SequenceCategoricalColumn SequenceNumericColumn
    .layers.feature_column.vocabulary: VocabularyFileCategoricalColumn=VocabularyFileColumn
        VocabularyListCategoricalColumn=VocabularyListColumn
    .layers.feature_column.features: FeatureTransformationCache=Features
        _transform_features_v2=transform_features
    .compat.layers.feature_column.linear_layer: LinearModel
    .layers.feature_column.weights: _StateManagerImpl=LayerState
    .layers.feature_column: make_parse_example_spec_v2=make_parse_example_spec
        shared_embedding_columns_v2=shared_embeddings
python.feature_column.serialization:
    .layers.feature_column.configs: deserialize_feature_column deserialize_feature_columns
        serialize_feature_column serialize_feature_columns
        _column_name_with_class_name=column_name_with_class_name
python.feature_column.feature_column:
    .layers.feature_column.numeric: _BucketizedColumn=BucketizedColumn _NumericColumn=NumericColumn
    .layers.feature_column.columns: _CategoricalColumn=CategoricalColumn _DenseColumn=DenseColumn
        _FeatureColumn=FeatureColumn _SequenceDenseColumn=SequenceDenseColumn
    .layers.feature_column.crossed: _CrossedColumn=CrossedColumn
    .layers.feature_column.embedding: _EmbeddingColumn=EmbeddingColumn
        _SharedEmbeddingColumn=SharedEmbeddingColumn
    .layers.feature_column.categorical: _HashedCategoricalColumn=HashedColumn
        _IdentityCategoricalColumn=IdentityColumn _WeightedCategoricalColumn=WeightedColumn
    .layers.feature_column.indicator: _IndicatorColumn=IndicatorColumn
    .layers.feature_column.sequence: _SequenceCategoricalColumn=SequenceCategoricalColumn
        _SequenceNumericColumn=SequenceNumericColumn
    .layers.feature_column.vocabulary: _VocabularyFileCategoricalColumn=VocabularyFileColumn
        _VocabularyListCategoricalColumn=VocabularyListColumn
    .layers.feature_column.features: _LazyBuilder=LazyBuilder _transform_features=transform_features
    .layers.feature_column: _bucketized_column=bucketized_column _crossed_column=crossed_column
        _embedding_column=embedding_column _indicator_column=indicator_column
        _numeric_column=numeric_column _weighted_categorical_column=weighted_categorical_column
        _categorical_column_with_hash_bucket=categorical_column_with_hash_bucket
        _categorical_column_with_identity=categorical_column_with_identity
        _categorical_column_with_vocabulary_file=categorical_column_with_vocabulary_file
        _categorical_column_with_vocabulary_list=categorical_column_with_vocabulary_list
random.experimental:
    .compat.ops.array.stateless_random: stateless_fold_in stateless_shuffle stateless_split
        fold_in=stateless_fold_in split=stateless_split
python.framework.random_seed:
    .compat.small_functions: get_seed
    .ops.math.random: DEFAULT_GRAPH_SEED
python.ops.random_ops:
    .compat.ops.array.stateless_random: parameterized_truncated_normal
python.ops.stateless_random_ops:
    .compat.ops.array.stateless_random: stateless_fold_in stateless_shuffle stateless_split
        fold_in=stateless_fold_in split=stateless_split stateless_binomial
        stateless_random_binomial=stateless_binomial stateless_gamma
        stateless_random_gamma=stateless_gamma stateless_normal
        stateless_random_normal=stateless_normal stateless_poisson
        stateless_random_poisson=stateless_poisson stateless_uniform
        stateless_random_uniform=stateless_uniform
python.ops.nn_ops:
    .nn: batch_norm_with_global_normalization_v2=batch_norm_with_global_normalization
        conv2d_v2=conv2d conv2d_transpose_v2=conv2d_transpose conv3d_v2=conv3d
        convolution_v2=convolution depthwise_conv2d_v2=depthwise_conv2d
        l2_normalize_v2=l2_normalize
        log_softmax_v2=log_softmax max_pool_with_argmax_v2=max_pool_with_argmax
        separable_conv2d_v2=separable_conv2d softmax_v2=softmax
        sufficient_statistics_v2=sufficient_statistics bias_add_v1=bias_add conv3d_v1=conv3d
    .compat.private.operation_variants: crelu_v2 dropout_v2 pool_v2
        sparse_softmax_cross_entropy_with_logits_v2
python.ops.nn_impl:
    .nn: batch_norm_with_global_normalization_v2=batch_norm_with_global_normalization
        conv2d_v2=conv2d conv2d_transpose_v2=conv2d_transpose conv3d_v2=conv3d
        convolution_v2=convolution depthwise_conv2d_v2=depthwise_conv2d
        l2_normalize_v2=l2_normalize
        log_softmax_v2=log_softmax max_pool_with_argmax_v2=max_pool_with_argmax
        separable_conv2d_v2=separable_conv2d softmax_v2=softmax
        sufficient_statistics_v2=sufficient_statistics
    .compat.private.operation_variants: moments_v2 nce_loss_v2 sampled_softmax_loss_v2
        weighted_moments_v2 sigmoid_cross_entropy_with_logits_v2
        weighted_cross_entropy_with_logits_v2
    .compat.ops.nn.candidates: _compute_sampled_logits=_sampled_logits
python.ops.gen_nn_ops:
    .compat.private.operation_variants: avg_pool3d_grad avg_pool_grad bias_add_grad elu_grad
        leaky_relu_grad max_pool3d_grad max_pool_grad relu6_grad relu_grad softplus_grad
        softsign_grad max_pool_grad_v2=max_pool_grad
    .nn: in_top_kv2=in_top_k in_top_k_v2=in_top_k
python.ops.embedding_ops:
    .compat.private.operation_variants: embedding_lookup_sparse_v2 embedding_lookup_v2
        safe_embedding_lookup_sparse_v2
python.ops.{image_ops,image_ops_impl}:
    .compat.private.operation_variants: draw_bounding_boxes_v2
    .image: crop_and_resize_v1=crop_and_resize
        non_max_suppression_padded_v1=non_max_suppression_padded
        non_max_suppression_padded_v2=non_max_suppression_padded
        resize_image_with_pad_v1=resize_image_with_pad ResizeMethodV1=ResizeMethod
python.ops.{gen_string_ops,ragged.ragged_string_ops,string_ops}:
    .strings: string_bytes_split=bytes_split string_format=format string_length=length
        string_lower=lower string_strip=strip string_upper=upper reduce_join_v2=reduce_join
        static_regex_full_match=regex_full_match static_regex_replace=regex_replace
        string_length_v2=length string_split_v2=split string_to_hash_bucket_v1=to_hash_bucket
        string_to_number_v1=to_number strings_split_v1=split substr_v2=substr
python.ops.confusion_matrix:
    .: confusion_matrix_v1=confusion_matrix
python.ops.parsing_ops:
    .: decode_raw_v1=decode_raw
    .io: decode_csv_v2=decode_csv
python.tf2:
    .compat.private.private_functions: enabled
python.keras.utils.tf_utils:
    .ops.control.control_flow: smart_cond
python.ops.variables:
    .core.variables: VariableV1=Variable RefVariable=Variable
python.ops.resource_variable_ops:
    .core.variables: ResourceVariable=Variable
    .compat.private.private_functions: is_resource_variable
python.layers.core:
    .layers: FullyConnected=Dense fully_connected=dense
python.layers.convolutional:
    .layers: Convolution1D=Conv1D Convolution2D=Conv2D Convolution3D=Conv3D convolution1d=conv1d
        convolution2d=conv2d convolution3d=conv3d SeparableConvolution2D=SeparableConv2D
        separable_convolution2d=separable_conv2d
python.layers.normalization:
    .layers: BatchNorm=BatchNormalization batch_norm=batch_normalization
python.layers.pooling:
    .layers: AvgPool2D=AveragePooling2D MaxPool2D=MaxPooling2D avg_pool2d=average_pooling2d
        max_pool2d=max_pooling2d
python.ops.metrics_impl:
    .compat.private.private_functions: metric_variable
    .layers.metrics.classes: _streaming_confusion_matrix=streaming_confusion_matrix
python.ops.rnn:
    .compat.layers.recurrent.rnn_fused: _transpose_batch_time=transpose_batch_time
        _best_effort_input_batch_size=best_effort_input_batch_size
python.ops.rnn_cell_impl:
    .compat.layers.recurrent.rnn_linear: _linear=linear_of _Linear=Linear
        _WEIGHTS_VARIABLE_NAME=KERNEL
        _BIAS_VARIABLE_NAME=BIAS
    .compat.private.private_functions: _concat=concat_shapes
    .compat.layers.recurrent.rnn_cell: LayerRNNCell=RNNCell assert_like_rnncell=assert_like_cell
python.util.function_utils:
    .compat.private.private_functions: fn_args has_kwargs get_func_name
python.estimator.util:
    .compat.private.private_functions: fn_args has_kwargs get_func_name
    .compat.private.input_fn_results: parse_input_fn_result parse_iterator_result
        _DatasetInitializerHook=DatasetInitializerHook
python.util.all_util:
    .compat.private.private_functions: remove_undocumented
python.util.deprecation:
    .compat.private.private_functions: deprecated=unchanged deprecated_args=unchanged
        deprecated_arg_values=unchanged deprecated_endpoints=unchanged
python.util.tf_export:
    .compat.private.private_functions: tf_export=unchanged keras_export=unchanged
        estimator_export=unchanged
python.util.tf_inspect: inspect
    inspect: getargspec=getfullargspec
contrib.learn.{datasets.base,python.learn.datasets.base}: .compat.learn_datasets
contrib.learn.{datasets,python.learn.datasets}:
    .compat.learn_datasets: DATASETS
contrib.learn.python.learn.estimators.rnn_common:
    .compat.private.private_functions: select_last_activations
python.training.monitored_session:
    .compat.train.sessions.monitored_session: _HookedSession=HookedSession
python.client.session:
    .runtime.prepared_run: register_session_run_conversion_functions
    .runtime.session: BaseSession=Session
python.framework.indexed_slices python.framework.ops:
    .core.indexed_slices: IndexedSlicesValue
python.framework.versions:
    .interop.graphdef: GRAPH_DEF_VERSION=FORMAT
    .compat.private.private_functions: GRAPH_DEF_VERSION_MIN_CONSUMER GRAPH_DEF_VERSION_MIN_PRODUCER
python.framework.device_spec:
    .core.devices: DeviceSpecV1=DeviceSpec DeviceSpecV2=DeviceSpec
python.training.evaluation:
    .compat.contrib.training: _StopAfterNEvalsHook=StopAfterNEvalsHook _evaluate_once=evaluate_once
        _get_or_create_eval_step=get_or_create_eval_step
python.{training.checkpoint_management,checkpoint.checkpoint_management}:
    .storage.checkpoint_state: update_checkpoint_state_internal=update_checkpoint_state
python.training.training_util:
    .train.global_steps: _increment_global_step=increment_global_step
python.util.nest: .compat.private.shallow_structures
    .core.nest: is_sequence=is_nested
core.protobuf.queue_runner_pb2: .train.queues.queue_runner_def
core.protobuf.tensorflow_server_pb2: .distribute.tasks.server_def
core.example.example_pb2 core.example.feature_pb2: .train
core.framework.{attr_value_pb2,cost_graph_pb2,function_pb2,graph_pb2}: tensorboard.compat.proto.*
core.framework.{node_def_pb2,op_def_pb2,resource_handle_pb2}: tensorboard.compat.proto.*
core.framework.{step_stats_pb2,summary_pb2,tensor_pb2,tensor_shape_pb2}: tensorboard.compat.proto.*
core.framework.{types_pb2,variable_pb2,versions_pb2}: tensorboard.compat.proto.*
core.protobuf.{cluster_pb2,config_pb2,meta_graph_pb2}: tensorboard.compat.proto.*
core.protobuf.{rewriter_config_pb2,saved_object_graph_pb2,saver_pb2}: tensorboard.compat.proto.*
core.protobuf.{struct_pb2,trackable_object_graph_pb2}: tensorboard.compat.proto.*
core.protobuf.{verifier_config_pb2}: tensorboard.compat.proto.*
core.util.{event_pb2}: tensorboard.compat.proto.*
"""

MODULES = tables_of(_ROWS)
TOP = MODULES.pop("tf")
# All public modules, by name below `ROOT`: the top level, and those of later releases, too.
PUBLIC = {**{name: Table() for name in later.MODULES}, "": TOP, **MODULES}
