from estimatorkit.keras.optimizers.built_in import (
    Adadelta as Adadelta, Adagrad as Adagrad, Adam as Adam, Adamax as Adamax, Ftrl as Ftrl,
    Nadam as Nadam, RMSprop as RMSprop, SGD as SGD,
)
from estimatorkit.keras.optimizers.optimizer import Optimizer as Optimizer
