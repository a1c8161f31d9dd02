from estimatorkit.keras.optimizers.built_in import (
    Adadelta as Adadelta, Adagrad as Adagrad, Adam as Adam, Adamax as Adamax, AdamW as AdamW,
    Ftrl as Ftrl, Nadam as Nadam, RMSprop as RMSprop, SGD as SGD,
)
from estimatorkit.keras.optimizers.optimizer import Optimizer as Optimizer
from estimatorkit.keras.optimizers.by_name import (
    deserialize as deserialize, get as get, serialize as serialize,
)
from . import legacy as legacy, schedules as schedules
