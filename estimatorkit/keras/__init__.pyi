from estimatorkit.layers import (
    activations as activations, constraints as constraints, initializers as initializers,
    regularizers as regularizers,
)
from . import (
    backend as backend, callbacks as callbacks, datasets as datasets, estimator as estimator,
    layers as layers, losses as losses, metrics as metrics, mixed_precision as mixed_precision,
    models as models, optimizers as optimizers, preprocessing as preprocessing, utils as utils,
    wrappers as wrappers,
)
from estimatorkit.keras.engine.model import Model as Model
from estimatorkit.keras.engine.sequential import Sequential as Sequential
from estimatorkit.keras.engine.input_layer import Input as Input
