"""Training: optimizers, hooks, sessions, saving, the global step, and the training loop."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    **names(
        "estimatorkit.train.optimizers.optimizers",
        "AdadeltaOptimizer AdagradDAOptimizer AdagradOptimizer AdamOptimizer FtrlOptimizer",
        "GradientDescentOptimizer MomentumOptimizer ProximalAdagradOptimizer",
        "ProximalGradientDescentOptimizer RMSPropOptimizer",
    ),
    **names("estimatorkit.train.optimizers.optimizer", "Optimizer"),
    **names("estimatorkit.train.optimizers.contrib_optimizers", "LazyAdamOptimizer"),
    **names("estimatorkit.train.optimizers.optax_optimizer", "OptaxOptimizer"),
    "experimental": "estimatorkit.train.experimental",
    **names(
        "estimatorkit.train.global_steps",
        "assert_global_step create_global_step get_global_step get_or_create_global_step",
        "global_step",
    ),
    **names(
        "estimatorkit.train.hooks.hooks",
        "LoggingTensorHook NanLossDuringTrainingError NanTensorHook SessionRunArgs",
        "SessionRunContext SessionRunHook SessionRunValues StopAtStepHook",
    ),
    **names(
        "estimatorkit.train.hooks.checkpoint_hooks", "CheckpointSaverHook CheckpointSaverListener"
    ),
    **names("estimatorkit.train.sessions.monitored_training", "MonitoredTrainingSession"),
    **names(
        "estimatorkit.train.sessions.monitored_session", "MonitoredSession SingularMonitoredSession"
    ),
    **names(
        "estimatorkit.train.sessions.session_creators",
        "ChiefSessionCreator SessionCreator WorkerSessionCreator",
    ),
    **names("estimatorkit.train.sessions.scaffold", "Scaffold"),
    **names("estimatorkit.train.sessions.session_manager", "SessionManager"),
    **names("estimatorkit.train.sessions.supervisor", "Supervisor basic_train_loop"),
    **names("estimatorkit.train.optimizers.sync_replicas_optimizer", "SyncReplicasOptimizer"),
    **names("estimatorkit.distribute.cluster_spec", "ClusterSpec"),
    **names("estimatorkit.distribute.device_setter", "replica_device_setter"),
    **names("estimatorkit.distribute.tasks.server", "Server"),
    **names("estimatorkit.train.hooks.profiler_hook", "ProfilerHook"),
    **names(
        "estimatorkit.train.hooks.session_hooks", "FeedFnHook FinalOpsHook GlobalStepWaiterHook"
    ),
    **names(
        "estimatorkit.train.hooks.summary_hooks",
        "SecondOrStepTimer StepCounterHook SummarySaverHook",
    ),
    **names(
        "estimatorkit.train.optimizers.schedules",
        "cosine_decay cosine_decay_restarts exponential_decay inverse_time_decay",
        "linear_cosine_decay natural_exp_decay noisy_linear_cosine_decay piecewise_constant",
        "polynomial_decay piecewise_constant_decay=piecewise_constant",
    ),
    **names("estimatorkit.train.saving.saver", "Saver"),
    **names("estimatorkit.train.saving.object_checkpoint", "Checkpoint"),
    **names("estimatorkit.train.saving.checkpoint_manager", "CheckpointManager"),
    **names("estimatorkit.train.saving.meta_graph", "export_meta_graph"),
    **names("estimatorkit.train.saving.saver", "import_meta_graph"),
    **names("estimatorkit.interop.graph_util", "write_graph"),
    **names("estimatorkit.interop.summary_writer", "summary_iterator"),
    **names("estimatorkit.train.sessions.coordinator", "Coordinator LooperThread"),
    **names(
        "estimatorkit.train.queues.queue_runner", "QueueRunner add_queue_runner start_queue_runners"
    ),
    "queue_runner": "estimatorkit.train.queues.queue_runner",
    **names(
        "estimatorkit.train.queues.input_producers",
        "input_producer limit_epochs match_filenames_once range_input_producer",
        "slice_input_producer string_input_producer",
    ),
    **names(
        "estimatorkit.train.queues.batching",
        "batch batch_join maybe_batch maybe_batch_join maybe_shuffle_batch",
        "maybe_shuffle_batch_join shuffle_batch shuffle_batch_join",
    ),
    **names(
        "estimatorkit.storage.example_proto",
        "BytesList Example Feature FeatureList FeatureLists Features FloatList Int64List",
        "SequenceExample",
    ),
    **names(
        "estimatorkit.storage.checkpoint",
        "checkpoint_exists latest_checkpoint list_variables load_variable remove_checkpoint",
    ),
    **names(
        "estimatorkit.storage.checkpoint_state",
        "CheckpointState generate_checkpoint_state_proto get_checkpoint_state",
        "update_checkpoint_state",
    ),
    **names(
        "estimatorkit.storage.checkpoint_reader",
        "CheckpointReader checkpoints_iterator get_checkpoint_mtimes load_checkpoint",
        "NewCheckpointReader=CheckpointReader",
    ),
    **names("estimatorkit.train.saving.initializing", "init_from_checkpoint warm_start"),
    **names("estimatorkit.train.saving.vocabulary_change", "VocabInfo"),
    **names("estimatorkit.train.optimizers.moving_averages", "ExponentialMovingAverage"),
    **names("tensorboard.compat.proto.saver_pb2", "SaverDef"),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
