from estimatorkit.compat.layers.convolutional.locally_connected import (
    LocallyConnected1D as LocallyConnected1D, LocallyConnected2D as LocallyConnected2D,
)
