"""Optimizers outside the graph: SciPy's, or any that takes a function of one vector.

Variables are packed into one vector; the session evaluates losses and gradients after assigning the
vector to the variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import builtin_ops
from estimatorkit.core.default_session import get_default_session
from estimatorkit.core.gradients import gradients
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.logger import logger
from estimatorkit.ops.array import array
from estimatorkit.ops.array.filling import zeros_like
from estimatorkit.ops.array.joining import concat


class ExternalOptimizerInterface:
    """Minimizes a loss by an algorithm outside the graph; subclasses implement `_minimize`.

    Source: `tf.contrib.opt.ExternalOptimizerInterface`.

    Args:
        loss: a scalar.
        var_list: the variables, all trainable ones by default.
        equalities: scalars to be constrained to 0.
        inequalities: scalars to be constrained to >= 0.
        var_to_bounds: (lowest, highest) by variable: numbers, or arrays that broadcast to its
            shape.
        optimizer_kwargs: the algorithm's options.
    """

    def __init__(
        self,
        loss: Tensor,
        var_list: Sequence[Variable] | None = None,
        equalities: Sequence[Tensor] | None = None,
        inequalities: Sequence[Tensor] | None = None,
        var_to_bounds: Mapping[Variable, tuple[Any, Any]] | None = None,
        **optimizer_kwargs: Any,
    ) -> None:
        graph = get_default_graph()
        known = (
            graph.get_collection(GraphKeys.TRAINABLE_VARIABLES) if var_list is None else var_list
        )
        self._vars: list[Variable] = list(known)
        self._loss = loss
        self._equalities = list(equalities or ())
        self._inequalities = list(inequalities or ())
        self.optimizer_kwargs = optimizer_kwargs
        shapes: list[Any] = [variable.shape.as_list() for variable in self._vars]
        self._packed_bounds: list[tuple[Any, Any]] | None = None
        if var_to_bounds is not None:
            limits = [var_to_bounds.get(each, (-np.inf, np.inf)) for each in self._vars]
            lowest, highest = (
                np.concatenate(
                    [
                        np.broadcast_to(pair[side], shape).reshape(-1)
                        for pair, shape in zip(limits, shapes, strict=True)
                    ]
                )
                for side in (0, 1)
            )
            self._packed_bounds = list(zip(lowest, highest, strict=True))
        self._placeholders = [builtin_ops.placeholder(variable.dtype) for variable in self._vars]
        self._updates = [
            variable.assign(array.reshape(fed, shape)).op
            for variable, fed, shape in zip(self._vars, self._placeholders, shapes, strict=True)
        ]
        self._ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        self._packed_var = self._pack(self._vars)
        self._gradients = {
            id(tensor): self._pack(
                [
                    zeros_like(variable) if gradient is None else gradient
                    for variable, gradient in zip(
                        self._vars, gradients(tensor, self._vars), strict=True
                    )
                ]
            )
            for tensor in (loss, *self._equalities, *self._inequalities)
        }

    def minimize(
        self,
        session: Any = None,
        feed_dict: Mapping[Any, Any] | None = None,
        fetches: Sequence[Any] | None = None,
        step_callback: Callable[..., Any] | None = None,
        loss_callback: Callable[..., Any] | None = None,
        **run_kwargs: Any,
    ) -> None:
        """Minimizes, and assigns the result to the variables.

        Args:
            session: the default session by default.
            feed_dict: feeds for all evaluations.
            fetches: tensors whose values `loss_callback` receives.
            step_callback: called with the vector after each step of the algorithm.
            loss_callback: called with the values of `fetches` at each evaluation of the loss.
            run_kwargs: for the session's run that assigns the result.
        """
        session = session or get_default_session()

        def function(tensors: Sequence[Any], callback: Any = None) -> Callable[..., list[Any]]:
            def evaluate(x: NDArray[Any]) -> list[Any]:
                self._assign(session, x)
                values = session.run([*tensors, *(fetches or ())], feed_dict)
                if callback is not None:
                    callback(*values[len(tensors) :])
                return list(values[: len(tensors)])

            return evaluate

        def both(constraints: Sequence[Tensor]) -> tuple[list[Any], list[Any]]:
            return (
                [function([each]) for each in constraints],
                [function([self._gradients[id(each)]]) for each in constraints],
            )

        equality_funcs, equality_grad_funcs = both(self._equalities)
        inequality_funcs, inequality_grad_funcs = both(self._inequalities)
        found = self._minimize(
            initial_val=session.run(self._packed_var),
            loss_grad_func=function([self._loss, self._gradients[id(self._loss)]], loss_callback),
            equality_funcs=equality_funcs,
            equality_grad_funcs=equality_grad_funcs,
            inequality_funcs=inequality_funcs,
            inequality_grad_funcs=inequality_grad_funcs,
            packed_bounds=self._packed_bounds,
            step_callback=step_callback or (lambda xk: None),
            optimizer_kwargs=self.optimizer_kwargs,
        )
        self._assign(session, found, **run_kwargs)

    def _minimize(
        self,
        initial_val: Any,
        loss_grad_func: Callable[..., Any],
        equality_funcs: Sequence[Callable[..., Any]],
        equality_grad_funcs: Sequence[Callable[..., Any]],
        inequality_funcs: Sequence[Callable[..., Any]],
        inequality_grad_funcs: Sequence[Callable[..., Any]],
        packed_bounds: Any,
        step_callback: Callable[..., Any],
        optimizer_kwargs: Mapping[str, Any],
    ) -> Any:
        """Returns the vector that minimizes the loss, starting from `initial_val`.

        Of a vector, `loss_grad_func` returns [loss, gradient], and the constraints' functions
        return [value] or [gradient]. `packed_bounds` is a pair for each element, or None.
        `step_callback` is to be called after each step.
        """
        raise NotImplementedError(
            "To use ExternalOptimizerInterface, subclass from it and implement the _minimize() "
            "method."
        )

    def _assign(self, session: Any, x: Any, **run_kwargs: Any) -> None:
        parts = np.split(np.asarray(x), self._ends[:-1])
        session.run(self._updates, dict(zip(self._placeholders, parts, strict=True)), **run_kwargs)

    @classmethod
    def _pack(cls, tensors: Sequence[Any]) -> Tensor | None:
        flat = [array.reshape(each, [-1]) for each in tensors]
        return concat(flat, 0) if flat else None


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """Minimizes by `scipy.optimize.minimize`, with `method` L-BFGS-B by default.

    Source: `tf.contrib.opt.ScipyOptimizerInterface`. The constructor takes the options of
    `minimize`, such as `method="SLSQP"` and `options={"maxiter": 100}`.
    """

    _DEFAULT_METHOD = "L-BFGS-B"

    def _minimize(  # type: ignore[override]
        self,
        initial_val: Any,
        loss_grad_func: Callable[..., Any],
        packed_bounds: Any,
        step_callback: Callable[..., Any],
        optimizer_kwargs: Mapping[str, Any],
        **functions: Sequence[Callable[..., Any]],
    ) -> Any:
        from scipy.optimize import minimize

        # SciPy's compiled algorithms require float64.
        def loss_and_gradient(x: Any) -> tuple[Any, Any]:
            loss, gradient = loss_grad_func(x)
            return float(loss), np.asarray(gradient, np.float64)

        constraints = [
            {
                "type": kind,
                "fun": lambda x, f=value: float(f(x)[0]),
                "jac": lambda x, f=gradient: np.asarray(f(x)[0], np.float64),
            }
            for kind, name in (("eq", "equality"), ("ineq", "inequality"))
            for value, gradient in zip(
                functions[f"{name}_funcs"], functions[f"{name}_grad_funcs"], strict=True
            )
        ]
        own: dict[str, Any] = {
            "jac": True,
            "callback": step_callback,
            "constraints": constraints,
            "bounds": packed_bounds,
        }
        given = {"method": self._DEFAULT_METHOD, **optimizer_kwargs}
        if "bounds" in given:
            raise ValueError("Bounds must be set using the var_to_bounds argument")
        if taken := own.keys() & given.keys():
            raise ValueError(
                f"Optimizer keyword arg '{min(taken)}' is set automatically and cannot be injected "
                "manually"
            )
        result = minimize(loss_and_gradient, np.asarray(initial_val, np.float64), **own, **given)
        lines = [
            "Optimization terminated with:",
            f"  Message: {result.message}",
            f"  Objective function value: {result.fun:f}",
        ]
        for key, words in (("nit", "iterations"), ("nfev", "functions evaluations")):
            if key in result:
                lines.append(f"  Number of {words}: {result[key]}")
        logger.info("%s", "\n".join(lines))
        return result["x"]
