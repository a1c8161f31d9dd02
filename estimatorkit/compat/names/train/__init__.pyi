from estimatorkit.compat.train.sessions.monitored_training import (
    MonitoredTrainingSession as MonitoredTrainingSession,
)
from estimatorkit.compat.train.sessions.monitored_session import (
    MonitoredSession as MonitoredSession, SingularMonitoredSession as SingularMonitoredSession,
)
from estimatorkit.compat.train.sessions.session_creators import (
    ChiefSessionCreator as ChiefSessionCreator, SessionCreator as SessionCreator,
    WorkerSessionCreator as WorkerSessionCreator,
)
from estimatorkit.compat.train.sessions.session_manager import SessionManager as SessionManager
from estimatorkit.compat.train.sessions.supervisor import (
    basic_train_loop as basic_train_loop, Supervisor as Supervisor,
)
from estimatorkit.compat.train.optimizers.sync_replicas_optimizer import (
    SyncReplicasOptimizer as SyncReplicasOptimizer,
)
from estimatorkit.compat.train.saving.checkpoint_manager import (
    CheckpointManager as CheckpointManager,
)
from estimatorkit.compat.train.queues.input_producers import (
    input_producer as input_producer, limit_epochs as limit_epochs,
    match_filenames_once as match_filenames_once, range_input_producer as range_input_producer,
    slice_input_producer as slice_input_producer, string_input_producer as string_input_producer,
)
from estimatorkit.compat.train.queues.batching import (
    batch as batch, batch_join as batch_join, maybe_batch as maybe_batch,
    maybe_batch_join as maybe_batch_join, maybe_shuffle_batch as maybe_shuffle_batch,
    maybe_shuffle_batch_join as maybe_shuffle_batch_join, shuffle_batch as shuffle_batch,
    shuffle_batch_join as shuffle_batch_join,
)
