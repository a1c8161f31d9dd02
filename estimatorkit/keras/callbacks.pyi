from estimatorkit.keras.callback import (
    BaseLogger as BaseLogger, Callback as Callback, History as History,
    LambdaCallback as LambdaCallback, LearningRateScheduler as LearningRateScheduler,
    TerminateOnNaN as TerminateOnNaN,
)
from estimatorkit.keras.callback_list import CallbackList as CallbackList
from estimatorkit.keras.callback_monitors import (
    BackupAndRestore as BackupAndRestore, EarlyStopping as EarlyStopping,
    ModelCheckpoint as ModelCheckpoint, ReduceLROnPlateau as ReduceLROnPlateau,
)
from estimatorkit.keras.callback_output import (
    CSVLogger as CSVLogger, ProgbarLogger as ProgbarLogger, RemoteMonitor as RemoteMonitor,
)
from estimatorkit.keras.callback_tensorboard import TensorBoard as TensorBoard
