"""The base class of probability distributions, as `tf.distributions.Distribution`.

A distribution is a graph object: its parameters are tensors, its methods add operations. Three
shapes describe it: the event shape (one draw), the batch shape (independent, differently
parameterized distributions in one object) and the sample shape (independent draws, given to
`sample`). Results have the shape sample + batch + event, or sample + batch where each event has one
number.

Subclasses implement the methods with a leading underscore. Of a function and its logarithm, of
`cdf` and `survival_function`, and of `stddev` and `variance`, one is enough: the other follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from estimatorkit.compat.layers.distributions import divergence
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, int32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import constant_value, fixed_value
from estimatorkit.core.shapes import TensorShape, as_shape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array
from estimatorkit.ops.array.joining import concat
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.math.reduce import reduce_prod


class ReparameterizationType:
    """How draws depend on the parameters: `FULLY_` or `NOT_REPARAMETERIZED`."""

    def __init__(self, rep_type: str) -> None:
        self._name = rep_type

    def __repr__(self) -> str:
        return f"<Reparameterization Type: {self._name}>"


FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
"""Draws are differentiable functions of the parameters."""
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")
"""Draws have no derivative with respect to the parameters."""


def _absent(name: str) -> Callable[..., Any]:
    """Placeholder for a method that a subclass does not implement."""

    def implementation(self: Distribution, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{name} is not implemented: {type(self).__name__}")

    return implementation


def _first(way: Callable[[], Tensor], other: Callable[[], Tensor]) -> Tensor:
    """The result of the first implemented alternative, else the first one's error."""
    try:
        return way()
    except NotImplementedError as refusal:
        try:
            return other()
        except NotImplementedError:
            raise refusal from None


class Distribution:
    """A probability distribution.

    Args:
        dtype: the dtype of draws.
        reparameterization_type: `FULLY_REPARAMETERIZED` or `NOT_REPARAMETERIZED`.
        validate_args: whether to check parameters and arguments while the graph runs.
        allow_nan_stats: whether undefined statistics are NaN; otherwise they raise.
        parameters: the constructor's arguments by name, for `copy`.
        graph_parents: the tensors that the distribution is made of.
        name: prefix of the operations' names, the class's name by default; a scope's string, ending
            in '/', is used as it is.

    Raises:
        ValueError: one of `graph_parents` is not a tensor.
    """

    def __init__(
        self,
        dtype: DType,
        reparameterization_type: ReparameterizationType,
        validate_args: bool,
        allow_nan_stats: bool,
        parameters: Mapping[str, Any] | None = None,
        graph_parents: Sequence[Any] | None = None,
        name: str | None = None,
    ) -> None:
        for i, parent in enumerate(graph_parents or ()):
            if not isinstance(parent, Tensor):
                raise ValueError(f"Graph parent item {i} is not a Tensor; {parent}.")
        if not name or not name.endswith("/"):
            with get_default_graph().name_scope(name or type(self).__name__) as name:
                pass
        self._dtype = dtype
        self._reparameterization_type = reparameterization_type
        self._validate_args = validate_args
        self._allow_nan_stats = allow_nan_stats
        self._parameters = {
            key: value
            for key, value in (parameters or {}).items()
            if key != "self" and not key.startswith("__")
        }
        self._graph_parents = list(graph_parents or ())
        self._name = name

    # -- what subclasses implement

    _param_shapes: Callable[..., dict[str, Tensor]]
    _batch_shape_tensor: Callable[..., Tensor] = _absent("batch_shape_tensor")
    _event_shape_tensor: Callable[..., Tensor] = _absent("event_shape_tensor")
    _sample_n: Callable[..., Tensor] = _absent("sample_n")
    _log_prob: Callable[..., Tensor] = _absent("log_prob")
    _prob: Callable[..., Tensor] = _absent("prob")
    _log_cdf: Callable[..., Tensor] = _absent("log_cdf")
    _cdf: Callable[..., Tensor] = _absent("cdf")
    _log_survival_function: Callable[..., Tensor] = _absent("log_survival_function")
    _survival_function: Callable[..., Tensor] = _absent("survival_function")
    _quantile: Callable[..., Tensor] = _absent("quantile")
    _entropy: Callable[..., Tensor] = _absent("entropy")
    _mean: Callable[..., Tensor] = _absent("mean")
    _variance: Callable[..., Tensor] = _absent("variance")
    _stddev: Callable[..., Tensor] = _absent("stddev")
    _covariance: Callable[..., Tensor] = _absent("covariance")
    _mode: Callable[..., Tensor] = _absent("mode")

    def _batch_shape(self) -> TensorShape:
        return TensorShape(None)

    def _event_shape(self) -> TensorShape:
        return TensorShape(None)

    # -- properties

    @property
    def name(self) -> str:
        """The prefix of the names of its operations, ending in '/'."""
        return self._name

    @property
    def dtype(self) -> DType:
        """The dtype of draws."""
        return self._dtype

    @property
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return dict(self._parameters)

    @property
    def reparameterization_type(self) -> ReparameterizationType:
        """`FULLY_REPARAMETERIZED` or `NOT_REPARAMETERIZED`."""
        return self._reparameterization_type

    @property
    def allow_nan_stats(self) -> bool:
        """Whether undefined statistics are NaN; otherwise they raise."""
        return self._allow_nan_stats

    @property
    def validate_args(self) -> bool:
        """Whether parameters and arguments are checked while the graph runs."""
        return self._validate_args

    def copy(self, **override_parameters_kwargs: Any) -> Distribution:
        """Returns a distribution of the same class with some arguments replaced."""
        return type(self)(**{**self.parameters, **override_parameters_kwargs})

    @classmethod
    def param_shapes(
        cls, sample_shape: Any, name: str = "DistributionParamShapes"
    ) -> dict[str, Tensor]:
        """Shapes of parameters, int32 vectors by name, for which `sample()` has a given shape."""
        if not hasattr(cls, "_param_shapes"):
            raise NotImplementedError("_param_shapes not implemented")
        with get_default_graph().name_scope(name):
            return cls._param_shapes(sample_shape)

    @classmethod
    def param_static_shapes(cls, sample_shape: Any) -> dict[str, TensorShape]:
        """`param_shapes` as static shapes.

        Raises:
            ValueError: `sample_shape` is not fully known.
        """
        if isinstance(sample_shape, TensorShape):
            if not sample_shape.is_fully_defined():
                raise ValueError("TensorShape sample_shape must be fully defined")
            sample_shape = sample_shape.as_list()
        values = {key: constant_value(each) for key, each in cls.param_shapes(sample_shape).items()}
        if any(value is None for value in values.values()):
            raise ValueError("sample_shape must be a fully-defined TensorShape or list/tuple")
        return {key: TensorShape(value) for key, value in values.items()}

    @property
    def batch_shape(self) -> TensorShape:
        """The static batch shape."""
        return as_shape(self._batch_shape())

    @property
    def event_shape(self) -> TensorShape:
        """The static event shape."""
        return as_shape(self._event_shape())

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """The batch shape, an int32 vector."""
        return self._shape_tensor(self.batch_shape, self._batch_shape_tensor, name)

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Tensor:
        """The event shape, an int32 vector."""
        return self._shape_tensor(self.event_shape, self._event_shape_tensor, name)

    def is_scalar_batch(self, name: str = "is_scalar_batch") -> Tensor:
        """Whether the batch shape is []: a bool tensor."""
        return self._is_scalar(self.batch_shape, self._batch_shape_tensor, name)

    def is_scalar_event(self, name: str = "is_scalar_event") -> Tensor:
        """Whether the event shape is []: a bool tensor."""
        return self._is_scalar(self.event_shape, self._event_shape_tensor, name)

    def __str__(self) -> str:
        shapes = "".join(
            f", {key}={value}"
            for key, value in (("batch_shape", self.batch_shape), ("event_shape", self.event_shape))
            if value.rank is not None
        )
        return (
            f'tfp.distributions.{type(self).__name__}("{self.name}"{shapes}, '
            f"dtype={self.dtype.name})"
        )

    def __repr__(self) -> str:
        return (
            f"<tfp.distributions.{type(self).__name__} '{self.name}' batch_shape="
            f"{self.batch_shape} event_shape={self.event_shape} dtype={self.dtype.name}>"
        )

    # -- draws and functions of values

    def sample(
        self, sample_shape: Any = (), seed: int | None = None, name: str = "sample"
    ) -> Tensor:
        """Draws independent samples.

        Args:
            sample_shape: an int or a vector of ints.
            seed: the random seed.
            name: the name scope.

        Returns:
            `dtype`, of the shape `sample_shape` + batch shape + event shape.

        Raises:
            ValueError: `sample_shape` is neither a scalar nor a vector.
        """
        with self._name_scope(name):
            wanted = convert_to_tensor(sample_shape, int32, name="sample_shape")
            if wanted.shape.rank is not None and wanted.shape.rank > 1:
                raise value_error("Input is neither scalar nor vector.", received=wanted.shape)
            known = fixed_value(wanted)
            if known is not None:
                known = known.reshape(-1)
                wanted = convert_to_tensor(known, int32)
            elif wanted.shape.rank != 1:
                wanted = array.reshape(wanted, [-1])
            count = reduce_prod(wanted) if known is None else int(np.prod(known))
            drawn = self._sample_n(count, seed)
            drawn = array.reshape(drawn, concat([wanted, array.shape(drawn)[1:]], 0))
            parts = (TensorShape(known), self.batch_shape, self.event_shape)
            if all(part.rank is not None for part in parts):
                whole = parts[0].concatenate(parts[1]).concatenate(parts[2])
                drawn.set_shape(drawn.shape.merge_with(whole))
            return drawn

    def log_prob(self, value: Any, name: str = "log_prob") -> Tensor:
        """The logarithm of the probability density or mass at `value`."""
        with self._name_scope(name):
            x = self._value(value)
            return _first(lambda: self._log_prob(x), lambda: elementwise.log(self._prob(x)))

    def prob(self, value: Any, name: str = "prob") -> Tensor:
        """The probability density or mass at `value`."""
        with self._name_scope(name):
            x = self._value(value)
            return _first(lambda: self._prob(x), lambda: elementwise.exp(self._log_prob(x)))

    def log_cdf(self, value: Any, name: str = "log_cdf") -> Tensor:
        """The logarithm of the probability of draws <= `value`."""
        with self._name_scope(name):
            x = self._value(value)
            return _first(lambda: self._log_cdf(x), lambda: elementwise.log(self._cdf(x)))

    def cdf(self, value: Any, name: str = "cdf") -> Tensor:
        """The probability of draws <= `value`."""
        with self._name_scope(name):
            x = self._value(value)
            return _first(lambda: self._cdf(x), lambda: elementwise.exp(self._log_cdf(x)))

    def log_survival_function(self, value: Any, name: str = "log_survival_function") -> Tensor:
        """The logarithm of the probability of draws > `value`."""
        with self._name_scope(name):
            x = self._value(value)
            return _first(
                lambda: self._log_survival_function(x), lambda: elementwise.log1p(-self.cdf(x))
            )

    def survival_function(self, value: Any, name: str = "survival_function") -> Tensor:
        """The probability of draws > `value`."""
        with self._name_scope(name):
            x = self._value(value)
            return _first(lambda: self._survival_function(x), lambda: 1.0 - self.cdf(x))

    def quantile(self, value: Any, name: str = "quantile") -> Tensor:
        """The inverse of `cdf` at the probability `value`."""
        with self._name_scope(name):
            return self._quantile(self._value(value))

    # -- statistics

    def entropy(self, name: str = "entropy") -> Tensor:
        """The Shannon entropy in nats."""
        with self._name_scope(name):
            return self._entropy()

    def mean(self, name: str = "mean") -> Tensor:
        """The mean, of the shape batch + event."""
        with self._name_scope(name):
            return self._mean()

    def variance(self, name: str = "variance") -> Tensor:
        """The variance of each element, of the shape batch + event."""
        with self._name_scope(name):
            return _first(self._variance, lambda: elementwise.square(self._stddev()))

    def stddev(self, name: str = "stddev") -> Tensor:
        """The standard deviation of each element, of the shape batch + event."""
        with self._name_scope(name):
            return _first(self._stddev, lambda: elementwise.sqrt(self._variance()))

    def covariance(self, name: str = "covariance") -> Tensor:
        """The covariances of the elements of an event, of the shape batch + event + event."""
        with self._name_scope(name):
            return self._covariance()

    def mode(self, name: str = "mode") -> Tensor:
        """The most probable value, of the shape batch + event."""
        with self._name_scope(name):
            return self._mode()

    def cross_entropy(self, other: Distribution, name: str = "cross_entropy") -> Tensor:
        """The cross entropy with `other` in nats, in expectation over this distribution."""
        with self._name_scope(name):
            return self.entropy() + self.kl_divergence(other)

    def kl_divergence(self, other: Distribution, name: str = "kl_divergence") -> Tensor:
        """The Kullback-Leibler divergence to `other`; see `distributions.kl_divergence`."""
        with self._name_scope(name):
            return divergence.kl_divergence(self, other, allow_nan_stats=self.allow_nan_stats)

    # -- helpers

    @contextmanager
    def _name_scope(self, name: str | None) -> Iterator[str]:
        graph = get_default_graph()
        with graph.name_scope(self.name), graph.name_scope(name) as scope:
            yield scope

    def _value(self, value: Any) -> Tensor:
        return convert_to_tensor(value, dtype_hint=self.dtype, name="value")

    def _shape_tensor(self, known: TensorShape, made: Callable[[], Tensor], name: str) -> Tensor:
        with self._name_scope(name):
            if known.is_fully_defined():
                return convert_to_tensor(known.as_list(), int32)
            return made()

    def _is_scalar(self, known: TensorShape, made: Callable[[], Tensor], name: str) -> Tensor:
        with self._name_scope(name):
            if known.rank is not None:
                return convert_to_tensor(known.rank == 0)
            return elementwise.equal(array.shape(made())[0], 0)
