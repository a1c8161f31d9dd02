"""Keras layers from columns to a dense tensor: `DenseFeatures`, `SequenceFeatures`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.base import Layer
from estimatorkit.layers.feature_column.columns import (
    DenseColumn,
    FeatureColumn,
    SequenceDenseColumn,
    raw_keys,
)
from estimatorkit.layers.feature_column.configs import (
    deserialize_feature_columns,
    serialize_feature_columns,
)
from estimatorkit.layers.feature_column.features import Features, as_tensor
from estimatorkit.layers.feature_column.layers import (
    as_features,
    as_scope,
    check_batches,
    columns_of,
    flat_tensor,
    joined_steps,
    steps_of,
)
from estimatorkit.layers.feature_column.packing import pack
from estimatorkit.layers.feature_column.weights import WeightMaker, variables_of
from estimatorkit.ops.array import joining
from estimatorkit.ops.variables.variable_scope import (
    VariableScope,
    get_variable_scope,
    variable_scope,
)


class _LayerWeights(WeightMaker):
    """Weights of a layer object: made when it is built, the same in all of its calls.

    Args:
        layer: whose they are.
        shared_scope: see `WeightMaker`.
    """

    def __init__(self, layer: FeaturesLayer, shared_scope: VariableScope) -> None:
        super().__init__((), True, shared_scope)
        self._layer = layer

    def make(
        self,
        column: FeatureColumn,
        name: str,
        shape: Sequence[int],
        initializer: Any,
        trainable: bool = True,
    ) -> Any:
        layer = self._layer
        key = (column.scope_name, name)
        if key not in layer._tables:
            trainable = trainable and layer._is_made_trainable
            if layer._is_scoped:
                made = super().make(column, name, shape, initializer, trainable)
                layer._own(made)
            else:
                made = layer.add_weight(
                    name,
                    shape,
                    float32,
                    initializer,
                    trainable=trainable,
                    experimental_autocast=False,
                )
            layer._tables[key] = made
        return layer._tables[key]

    def make_shared(self, column: FeatureColumn, name: str, *rest: Any, **options: Any) -> Any:
        if self._layer._is_scoped:
            return super().make_shared(column, name, *rest, **options)
        with get_default_graph().name_scope(None):
            return self.make(column, name, *rest, **options)

    def shared(self, name: str, make: Callable[[], Any]) -> Any:
        layer = self._layer
        key = ("", name)
        if key not in layer._tables:
            later = layer._names_before[1:]
            layer._tables[key] = super().shared(name, make)
            layer._names_before[:] = later  # even if another layer has created it
            layer._own(layer._tables[key])
        return layer._tables[key]


class FeaturesLayer(Layer):
    """The base class of `DenseFeatures` and `SequenceFeatures`.

    Its variables are created by `build`, whose argument is ignored. Within a variable scope,
    and where there is a partitioner, they are got by `get_variable`, as in TensorFlow 1.
    """

    takes_columns = True  # so strings reach the columns unchanged
    _untracked = Layer._untracked | {"_feature_columns", "_tables", "_maker"}
    _kind: type[FeatureColumn] | tuple[type[FeatureColumn], ...]

    def __init__(
        self,
        feature_columns: Any,
        trainable: bool = True,
        name: str | None = None,
        partitioner: Any = None,
        **kwargs: Any,
    ) -> None:
        columns = columns_of(self._kind, feature_columns)
        super().__init__(trainable, name, **kwargs)
        self._feature_columns: Any = columns
        self._partitioner = partitioner
        self._is_made_trainable = trainable
        self._is_scoped = False
        self._tables: dict[tuple[str, str], Any] = {}
        self._maker = _LayerWeights(self, get_variable_scope())

    def build(self, input_shape: Any = None) -> None:
        """Makes the variables.

        Args:
            input_shape: anything: columns know the shapes of their variables.
        """
        graph = get_default_graph()
        self._is_scoped = (
            self._partitioner is not None or _defaults_of(get_variable_scope()) != _NONE
        )
        # The name scope of a later call would be numbered; that of the variables is not.
        entered = graph.get_name_scope().split("/")
        outer = entered[: len(entered) - 1 - self.name.count("/")]
        scope = variable_scope(self.name, partitioner=self._partitioner, auxiliary_name_scope=False)
        with scope:
            for column in self._feature_columns:
                inner = as_scope(column.scope_name)
                with (
                    variable_scope(inner, auxiliary_name_scope=False),
                    graph.name_scope("/".join([*outer, self.name, inner, ""])),
                ):
                    self._make_variables(column)
        super().build(input_shape)

    def _make_variables(self, column: Any) -> None:
        """Creates a column's variables in its scope."""
        column.make_variables(self._maker)

    def _own(self, made: Any) -> None:
        """Counts what `get_variable` has given, or another layer has made, as the layer's."""
        own = set(map(id, self._weights))
        self._weights += [each for each in variables_of(made) if id(each) not in own]

    def _converted(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The features that are tensors or read by a column, as tensors of their original dtypes.

        Columns cast what they read.
        """
        (features,) = args
        if isinstance(features, Features):
            return args, kwargs
        Features(features)  # raises if it is not a dict
        keys = [set(raw_keys(column)) for column in self._feature_columns]
        read = set().union(*keys) if all(keys) else set(features)  # all, if one does not say
        tensors = {
            key: as_tensor(key, value)
            for key, value in features.items()
            if key in read or (isinstance(key, str) and isinstance(value, (Tensor, SparseTensor)))
        }
        return (tensors,), kwargs

    def _each(self, use: Callable[[Any, WeightMaker], Any]) -> list[Any]:
        """`use(column, weights)` of each column, in its name scope."""
        found = []
        for column in self._feature_columns:
            with get_default_graph().name_scope(as_scope(column.scope_name)):
                found.append(use(column, self._maker))
        return found

    def _total(self) -> int:
        return sum(column.variable_shape.num_elements() or 0 for column in self._feature_columns)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, the columns as `serialize_feature_columns` has them.

        Raises:
            ValueError: a column cannot be described, or there is a partitioner.
        """
        if self._partitioner is not None:
            raise value_error(
                f"layer {self.name!r} has a partitioner, which a config cannot describe",
                hint="use save_weights(), which needs no config",
            )
        config = super().get_config()
        config["feature_columns"] = serialize_feature_columns(self._feature_columns)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Layer:
        """The layer that `get_config` described.

        Raises:
            ValueError: a column has another form.
        """
        columns = deserialize_feature_columns(config["feature_columns"])
        rest = {
            key: value
            for key, value in config.items()
            if key != "feature_columns" and (key, value) != ("partitioner", None)
        }
        return cls(columns, **rest)


def _defaults_of(scope: VariableScope) -> tuple[Any, ...]:
    """The arguments that a scope gives to `get_variable`."""
    told = (scope.name, scope.reuse, scope.partitioner, scope.custom_getter, scope.initializer)
    return (*told, scope.regularizer, scope.constraint)


_NONE = _defaults_of(VariableScope())


def first_of(shape: Any) -> Any:
    """A shape, or the first of a dict of them."""
    return next(iter(shape.values())) if isinstance(shape, Mapping) else shape


class DenseFeatures(FeaturesLayer):
    """Concatenates dense columns to one tensor (`tf.keras.layers.DenseFeatures`).

    A call with features returns float32 `(batch, total number of values)`, in the order of the
    columns' names; all calls share the variables `<name>/<column>/embedding_weights`. As the first
    layer of a `Sequential` it takes dicts of features.

    Args:
        feature_columns: dense columns.
        trainable: whether its variables are trainable.
        name: its name; 'dense_features', then 'dense_features_1', ... by default.
        partitioner: see `get_variable`.
        kwargs: as for `Layer`.

    Raises:
        ValueError: a column is not dense, or two columns have the same name.

    Example:
        ```python
        model = keras.Sequential([keras.layers.DenseFeatures(columns), keras.layers.Dense(1)])
        model.compile("adam", keras.losses.BinaryCrossentropy(from_logits=True), ["accuracy"])
        model.fit(dataset)  # of ({"age": ..., "job": ...}, labels)
        ```
    """

    _kind = DenseColumn
    _parts_of_output: list[Tensor]

    def __call__(
        self,
        features: Any,
        cols_to_output_tensors: dict[Any, Tensor] | None = None,
        training: Any = None,
    ) -> Tensor:
        """The dense tensor.

        Args:
            features: tensors by key.
            cols_to_output_tensors: filled with each column's flat tensor, if given.
            training: accepted for Keras's signature.
        """
        outputs: Tensor = super().__call__(features)
        if cols_to_output_tensors is not None:
            cols_to_output_tensors.update(
                zip(self._feature_columns, self._parts_of_output, strict=True)
            )
        return outputs

    def call(self, features: Any) -> Tensor:
        """The dense tensor of features."""
        source = as_features(features, self._feature_columns)
        pack(source, self._feature_columns)
        outputs = self._each(lambda column, weights: flat_tensor(column, source, weights))
        self._parts_of_output = outputs
        check_batches(outputs, self._feature_columns)
        return joining.concat(outputs, 1) if len(outputs) > 1 else outputs[0]

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """`(batch, total number of values)`, the batch as in `input_shape`."""
        return TensorShape([first_of(input_shape)[0], self._total()])


class SequenceFeatures(FeaturesLayer):
    """A layer that concatenates sequence columns (`tf.keras.experimental.SequenceFeatures`).

    A call with features returns the same as `sequence_input_layer`; all calls share the same
    variables.

    Args:
        feature_columns: columns of sequences.
        trainable: whether its variables are trainable.
        name: its name; 'sequence_features', then 'sequence_features_1', ... by default.
        kwargs: as for `Layer`.

    Raises:
        ValueError: a column is not a sequence column, or two columns have the same name.
    """

    _kind = SequenceDenseColumn

    def __init__(
        self, feature_columns: Any, trainable: bool = True, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(feature_columns, trainable, name, **kwargs)

    def __call__(self, features: Any, training: Any = None) -> tuple[Tensor, Tensor]:
        """The steps and the lengths.

        Args:
            features: tensors by key.
            training: accepted for Keras's signature.
        """
        outputs: tuple[Tensor, Tensor] = super().__call__(features)
        return outputs

    def call(self, features: Any) -> tuple[Tensor, Tensor]:
        """The steps and the lengths of features."""
        source = as_features(features, self._feature_columns)
        steps = self._each(lambda column, weights: steps_of(column, source, weights))
        return joined_steps(steps, self._feature_columns)

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """`(batch, steps, n)`, the first two as in `input_shape`."""
        batch, steps = first_of(input_shape)[:2]
        return TensorShape([batch, steps, self._total()])
