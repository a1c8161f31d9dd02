from estimatorkit.layers.classes import *
from estimatorkit.layers.merging import (
    add as add, average as average, concatenate as concatenate, dot as dot, maximum as maximum,
    minimum as minimum, multiply as multiply, subtract as subtract,
)
from estimatorkit.layers.engine.base import Layer as Layer
from estimatorkit.layers.engine.input_spec import InputSpec as InputSpec
from estimatorkit.layers.registry import deserialize as deserialize, serialize as serialize
from estimatorkit.keras.engine.input_layer import Input as Input, InputLayer as InputLayer
