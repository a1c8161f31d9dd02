from estimatorkit.layers.functional import (
    average_pooling1d as average_pooling1d, average_pooling2d as average_pooling2d,
    average_pooling3d as average_pooling3d, AveragePooling1D as AveragePooling1D,
    AveragePooling2D as AveragePooling2D, AveragePooling3D as AveragePooling3D,
    batch_normalization as batch_normalization, BatchNormalization as BatchNormalization,
    conv1d as conv1d, Conv1D as Conv1D, conv2d as conv2d, Conv2D as Conv2D,
    conv2d_transpose as conv2d_transpose, Conv2DTranspose as Conv2DTranspose, conv3d as conv3d,
    Conv3D as Conv3D, conv3d_transpose as conv3d_transpose, Conv3DTranspose as Conv3DTranspose,
    dense as dense, Dense as Dense, dropout as dropout, Dropout as Dropout, flatten as flatten,
    Flatten as Flatten, Layer as Layer, max_pooling1d as max_pooling1d,
    max_pooling2d as max_pooling2d, max_pooling3d as max_pooling3d, MaxPooling1D as MaxPooling1D,
    MaxPooling2D as MaxPooling2D, MaxPooling3D as MaxPooling3D,
    separable_conv1d as separable_conv1d, separable_conv2d as separable_conv2d,
    SeparableConv1D as SeparableConv1D, SeparableConv2D as SeparableConv2D,
)
from estimatorkit.layers.engine.input_spec import InputSpec as InputSpec
