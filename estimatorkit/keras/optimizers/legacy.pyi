from estimatorkit.keras.optimizers import (
    Adadelta as Adadelta, Adagrad as Adagrad, Adam as Adam, Adamax as Adamax, Ftrl as Ftrl,
    Nadam as Nadam, Optimizer as Optimizer, RMSprop as RMSprop, SGD as SGD,
)
