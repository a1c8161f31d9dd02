"""`EinsumDense`: an einsum of the inputs with a kernel."""

from __future__ import annotations

import re
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.configured import ConfiguredLayer, check_floating
from estimatorkit.ops.linalg.products import einsum

_EQUATION = re.compile(r"(\.\.\.)?([a-zA-Z]+)(\.\.\.)?,([a-zA-Z]+)->(\.\.\.)?([a-zA-Z]+)(\.\.\.)?")


class EinsumDense(ConfiguredLayer):
    """activation(einsum(equation, inputs, kernel) + bias) (`tf.keras.layers.EinsumDense`).

    Variables: `kernel` and `bias`, whose dimensions are those of their letters.

    Args:
        equation: 'inputs,kernel->outputs', a letter for each dimension; '...' before or after the
            letters of inputs and outputs represents dimensions that are kept.
        output_shape: the shape of the outputs without the batch: an int, or a list in which None
            means a length taken from the inputs.
        activation: a function or its name; none by default.
        bias_axes: the output letters that the bias has; None for no bias.
        kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
            activity_regularizer, kernel_constraint, bias_constraint: see `Dense`.
        kwargs: as for `Layer`.

    Raises:
        ValueError: the equation is invalid or does not match the inputs, or a length is unknown.
    """

    def __init__(
        self,
        equation: str,
        output_shape: Any,
        activation: Any = None,
        bias_axes: str | None = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.keep_arguments(locals(), ("output_shape",))
        self.equation = equation
        self._partial_output_shape = (
            [output_shape] if isinstance(output_shape, int) else list(output_shape)
        )
        self._given_output_shape = output_shape
        self.bias_axes = bias_axes

    def build(self, input_shape: Any) -> None:
        """Makes the kernel and the bias."""
        check_floating(self)
        kernel, bias = self._weight_shapes(input_shape)
        self.kernel = self.add_configured_weight("kernel", kernel)
        self.bias = None if bias is None else self.add_configured_weight("bias", bias)
        super().build(input_shape)

    def _weight_shapes(self, input_shape: Any) -> tuple[list[int], list[int] | None]:
        found = _EQUATION.fullmatch(self.equation.replace(" ", ""))
        if found is None or input_shape.rank is None:
            raise self._refusal("expected 'ab,bc->ac', '...ab,bc->...ac' or 'ab...,bc->ac...'")
        before, given, after, kernel, out_before, outputs, out_after = found.groups()
        if (before, after) != (out_before, out_after) or (before and after):
            raise self._refusal("expected '...' at the same end of inputs and outputs")
        dims = input_shape.as_list()
        elided = len(dims) - len(given)
        if elided < 0 or (elided and not (before or after)):
            raise self._refusal(f"inputs have shape {input_shape}")
        # The lengths of the outputs: the batch, then the given ones.
        said = self._partial_output_shape
        lengths = [dims[0], *said]
        if before:
            lengths = [*dims[:elided], *said] if elided else said
        elif after:
            lengths += dims[len(given) :]
        if len(lengths) != elided + len(outputs):
            raise self._refusal(f"output_shape={said} has not one number for each letter")
        own = lengths[elided:] if before else lengths[: len(outputs)]
        into = dims[elided:] if before else dims[: len(given)]
        of_inputs, of_outputs = (
            dict(zip(letters, each, strict=True))
            for letters, each in ((given, into), (outputs, own))
        )
        for letter, length in of_inputs.items():
            said_length = of_outputs.get(letter)
            if None not in (length, said_length) and said_length != length:
                raise self._refusal(
                    f"output_shape has {said_length} at {letter}, where inputs have {length}"
                )
        known = {**of_outputs, **{key: each for key, each in of_inputs.items() if each is not None}}
        missing = [letter for letter in kernel if known.get(letter) is None]
        if missing:
            raise self._refusal(f"the length of {missing[0]!r} is not known from inputs or outputs")
        if self.bias_axes is None:
            return [known[letter] for letter in kernel], None
        strange = [letter for letter in self.bias_axes if letter not in outputs]
        if strange:
            raise self._refusal(f"bias dimension {strange[0]!r} is not among the outputs")
        first = min(outputs.index(letter) for letter in self.bias_axes)
        bias = [known[letter] if letter in self.bias_axes else 1 for letter in outputs[first:]]
        return [known[letter] for letter in kernel], bias + [1] * (elided if after else 0)

    def _refusal(self, problem: str) -> ValueError:
        return value_error(
            f"Invalid einsum equation {self.equation!r} for layer {self.name}: {problem}",
            hint="letters of the kernel must be among those of inputs or outputs",
        )

    def call(self, inputs: Tensor) -> Any:
        """The outputs."""
        outputs: Any = einsum(self.equation, inputs, self.kernel)
        if self.bias is not None:
            outputs = outputs + self.bias
        return self.activation(outputs)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "output_shape": self._given_output_shape}


__all__ = ["EinsumDense"]
