from estimatorkit.train.optimizers.adam_w import AdamWOptimizer as AdamWOptimizer
from estimatorkit.train.optimizers.optimizers import (
    AdadeltaOptimizer as AdadeltaOptimizer, AdagradDAOptimizer as AdagradDAOptimizer,
    AdagradOptimizer as AdagradOptimizer, AdamOptimizer as AdamOptimizer,
    FtrlOptimizer as FtrlOptimizer, GradientDescentOptimizer as GradientDescentOptimizer,
    LazyAdamOptimizer as LazyAdamOptimizer,
    MomentumOptimizer as MomentumOptimizer, ProximalAdagradOptimizer as ProximalAdagradOptimizer,
    ProximalGradientDescentOptimizer as ProximalGradientDescentOptimizer,
    RMSPropOptimizer as RMSPropOptimizer, RowwiseAdagradOptimizer as RowwiseAdagradOptimizer,
)
from estimatorkit.train.optimizers.optimizer import Optimizer as Optimizer
from estimatorkit.train.optimizers.optax_optimizer import OptaxOptimizer as OptaxOptimizer
from . import experimental as experimental
from estimatorkit.train.global_steps import (
    assert_global_step as assert_global_step, create_global_step as create_global_step,
    get_global_step as get_global_step, get_or_create_global_step as get_or_create_global_step,
    global_step as global_step,
)
from estimatorkit.train.hooks.hooks import (
    LoggingTensorHook as LoggingTensorHook,
    NanLossDuringTrainingError as NanLossDuringTrainingError, NanTensorHook as NanTensorHook,
    SessionRunArgs as SessionRunArgs, SessionRunContext as SessionRunContext,
    SessionRunHook as SessionRunHook, SessionRunValues as SessionRunValues,
    StopAtStepHook as StopAtStepHook,
)
from estimatorkit.train.hooks.checkpoint_hooks import (
    CheckpointSaverHook as CheckpointSaverHook, CheckpointSaverListener as CheckpointSaverListener,
)
from estimatorkit.train.sessions.scaffold import Scaffold as Scaffold
from estimatorkit.distribute.cluster_spec import ClusterSpec as ClusterSpec
from estimatorkit.distribute.device_setter import replica_device_setter as replica_device_setter
from estimatorkit.distribute.tasks.server import Server as Server
from estimatorkit.train.hooks.profiler_hook import ProfilerHook as ProfilerHook
from estimatorkit.train.hooks.session_hooks import (
    FeedFnHook as FeedFnHook, FinalOpsHook as FinalOpsHook,
    GlobalStepWaiterHook as GlobalStepWaiterHook,
)
from estimatorkit.train.hooks.summary_hooks import (
    SecondOrStepTimer as SecondOrStepTimer, StepCounterHook as StepCounterHook,
    SummarySaverHook as SummarySaverHook,
)
from estimatorkit.train.optimizers.schedules import (
    cosine_decay as cosine_decay, cosine_decay_restarts as cosine_decay_restarts,
    coslog_decay as coslog_decay, exponential_decay as exponential_decay,
    flat_cosine_decay as flat_cosine_decay, inverse_time_decay as inverse_time_decay,
    linear_cosine_decay as linear_cosine_decay, natural_exp_decay as natural_exp_decay,
    noisy_linear_cosine_decay as noisy_linear_cosine_decay,
    piecewise_constant as piecewise_constant, polynomial_decay as polynomial_decay,
)
from estimatorkit.train.saving.saver import import_meta_graph as import_meta_graph, Saver as Saver
from estimatorkit.train.saving.object_checkpoint import Checkpoint as Checkpoint
from estimatorkit.train.saving.meta_graph import export_meta_graph as export_meta_graph
from estimatorkit.interop.graph_util import write_graph as write_graph
from estimatorkit.interop.summary_writer import summary_iterator as summary_iterator
from estimatorkit.train.sessions.coordinator import (
    Coordinator as Coordinator, LooperThread as LooperThread,
)
from estimatorkit.train.queues.queue_runner import (
    add_queue_runner as add_queue_runner, QueueRunner as QueueRunner,
    start_queue_runners as start_queue_runners,
)
from estimatorkit.train.queues import queue_runner as queue_runner
from estimatorkit.storage.example_proto import (
    BytesList as BytesList, Example as Example, Feature as Feature, FeatureList as FeatureList,
    FeatureLists as FeatureLists, Features as Features, FloatList as FloatList,
    Int64List as Int64List, SequenceExample as SequenceExample,
)
from estimatorkit.storage.checkpoint import (
    checkpoint_exists as checkpoint_exists, latest_checkpoint as latest_checkpoint,
    list_variables as list_variables, load_variable as load_variable,
    remove_checkpoint as remove_checkpoint,
)
from estimatorkit.storage.checkpoint_state import (
    CheckpointState as CheckpointState,
    generate_checkpoint_state_proto as generate_checkpoint_state_proto,
    get_checkpoint_state as get_checkpoint_state,
    update_checkpoint_state as update_checkpoint_state,
)
from estimatorkit.storage.checkpoint_reader import (
    CheckpointReader as CheckpointReader, checkpoints_iterator as checkpoints_iterator,
    get_checkpoint_mtimes as get_checkpoint_mtimes, load_checkpoint as load_checkpoint,
)
from estimatorkit.train.saving.initializing import (
    init_from_checkpoint as init_from_checkpoint, warm_start as warm_start,
)
from estimatorkit.train.saving.vocabulary_change import VocabInfo as VocabInfo
from estimatorkit.train.optimizers.moving_averages import (
    ExponentialMovingAverage as ExponentialMovingAverage,
)
from tensorboard.compat.proto.saver_pb2 import SaverDef as SaverDef
from estimatorkit.storage.checkpoint_delta import (
    apply_checkpoint_delta as apply_checkpoint_delta,
    write_checkpoint_delta as write_checkpoint_delta,
)
from estimatorkit.compat.names.train import *

piecewise_constant_decay = piecewise_constant
NewCheckpointReader = CheckpointReader
