from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.core.tensor import Tensor
from estimatorkit.layers import classes
from estimatorkit.layers.engine.scoped import ScopedLayer

_Size = int | Sequence[int]
_Activation = str | Callable[[Tensor], Any] | None

CLASSES: dict[str, type[ScopedLayer]]
FUNCTIONS: dict[str, Callable[..., Any]]

def dense(
    inputs: Any, units: int, activation: _Activation = None, use_bias: bool = True,
    kernel_initializer: Any = None, bias_initializer: Any = "zeros", kernel_regularizer: Any = None,
    bias_regularizer: Any = None, activity_regularizer: Any = None, kernel_constraint: Any = None,
    bias_constraint: Any = None, trainable: bool = True, name: str | None = None,
    reuse: bool | None = None,
) -> Tensor: ...
def conv1d(
    inputs: Any, filters: int, kernel_size: _Size, strides: _Size = 1, padding: str = "valid",
    data_format: str | None = "channels_last", dilation_rate: _Size = 1,
    activation: _Activation = None, use_bias: bool = True, kernel_initializer: Any = None,
    bias_initializer: Any = "zeros", kernel_regularizer: Any = None, bias_regularizer: Any = None,
    activity_regularizer: Any = None, kernel_constraint: Any = None, bias_constraint: Any = None,
    trainable: bool = True, name: str | None = None, reuse: bool | None = None, *, groups: int = 1,
) -> Tensor: ...
conv2d = conv1d
conv3d = conv1d
def conv2d_transpose(
    inputs: Any, filters: int, kernel_size: _Size, strides: _Size = 1, padding: str = "valid",
    data_format: str | None = "channels_last", activation: _Activation = None,
    use_bias: bool = True, kernel_initializer: Any = None, bias_initializer: Any = "zeros",
    kernel_regularizer: Any = None, bias_regularizer: Any = None, activity_regularizer: Any = None,
    kernel_constraint: Any = None, bias_constraint: Any = None, trainable: bool = True,
    name: str | None = None, reuse: bool | None = None, *, output_padding: _Size | None = None,
    dilation_rate: _Size = 1,
) -> Tensor: ...
conv3d_transpose = conv2d_transpose
def separable_conv1d(
    inputs: Any, filters: int, kernel_size: _Size, strides: _Size = 1, padding: str = "valid",
    data_format: str | None = "channels_last", dilation_rate: _Size = 1, depth_multiplier: int = 1,
    activation: _Activation = None, use_bias: bool = True, depthwise_initializer: Any = None,
    pointwise_initializer: Any = None, bias_initializer: Any = "zeros",
    depthwise_regularizer: Any = None, pointwise_regularizer: Any = None,
    bias_regularizer: Any = None, activity_regularizer: Any = None,
    depthwise_constraint: Any = None, pointwise_constraint: Any = None, bias_constraint: Any = None,
    trainable: bool = True, name: str | None = None, reuse: bool | None = None,
) -> Tensor: ...
separable_conv2d = separable_conv1d
def max_pooling1d(
    inputs: Any, pool_size: _Size, strides: _Size, padding: str = "valid",
    data_format: str | None = "channels_last", name: str | None = None,
) -> Tensor: ...
max_pooling2d = max_pooling1d
max_pooling3d = max_pooling1d
average_pooling1d = max_pooling1d
average_pooling2d = max_pooling1d
average_pooling3d = max_pooling1d
def dropout(
    inputs: Any, rate: float | Tensor = 0.5, noise_shape: Any = None, seed: int | None = None,
    training: bool | Tensor = False, name: str | None = None,
) -> Tensor: ...
def batch_normalization(
    inputs: Any, axis: int | Sequence[int] = -1, momentum: float = 0.99, epsilon: float = 0.001,
    center: bool = True, scale: bool = True, beta_initializer: Any = "zeros",
    gamma_initializer: Any = "ones", moving_mean_initializer: Any = "zeros",
    moving_variance_initializer: Any = "ones", beta_regularizer: Any = None,
    gamma_regularizer: Any = None, beta_constraint: Any = None, gamma_constraint: Any = None,
    training: bool | Tensor = False, trainable: bool = True, name: str | None = None,
    reuse: bool | None = None, renorm: bool = False, renorm_clipping: Any = None,
    renorm_momentum: float = 0.99, fused: bool | None = None, virtual_batch_size: int | None = None,
    adjustment: Any = None, *, synchronized: bool = False,
) -> Tensor: ...
def flatten(
    inputs: Any, name: str | None = None, data_format: str | None = "channels_last",
) -> Tensor: ...

class Layer(ScopedLayer): ...
class Dense(classes.Dense, ScopedLayer): ...
class Conv1D(classes.Conv1D, ScopedLayer): ...
class Conv2D(classes.Conv2D, ScopedLayer): ...
class Conv3D(classes.Conv3D, ScopedLayer): ...
class Conv2DTranspose(classes.Conv2DTranspose, ScopedLayer): ...
class Conv3DTranspose(classes.Conv3DTranspose, ScopedLayer): ...
class SeparableConv1D(classes.SeparableConv1D, ScopedLayer): ...
class SeparableConv2D(classes.SeparableConv2D, ScopedLayer): ...
class MaxPooling1D(classes.MaxPooling1D, ScopedLayer): ...
class MaxPooling2D(classes.MaxPooling2D, ScopedLayer): ...
class MaxPooling3D(classes.MaxPooling3D, ScopedLayer): ...
class AveragePooling1D(classes.AveragePooling1D, ScopedLayer): ...
class AveragePooling2D(classes.AveragePooling2D, ScopedLayer): ...
class AveragePooling3D(classes.AveragePooling3D, ScopedLayer): ...
class Dropout(classes.Dropout, ScopedLayer): ...
class BatchNormalization(classes.BatchNormalization, ScopedLayer): ...
class Flatten(classes.Flatten, ScopedLayer): ...
