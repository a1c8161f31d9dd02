"""Optimizers outside the graph: `contrib.opt`'s interfaces to `scipy.optimize.minimize`.

A session computes the loss and its gradient for values that are fed for the variables, which change
once, at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.default_session import get_default_session
from estimatorkit.core.errors import explain
from estimatorkit.core.gradients import gradients
from estimatorkit.core.log import logger
from estimatorkit.core.ops import array, filling, joining
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import trainable_variables

_Evaluate = Callable[[NDArray[Any]], Any]


class ExternalOptimizerInterface:
    """Minimizes a loss by an algorithm outside the graph
    (`tf.contrib.opt.ExternalOptimizerInterface`). Subclasses implement `_minimize`.

    Args:
        loss: a scalar tensor.
        var_list: the variables to update, by default the trainable ones.
        equalities: scalar tensors to be held 0.
        inequalities: scalar tensors to be held at 0 or above.
        var_to_bounds: `(low, high)` by variable: numbers or arrays that broadcast to its shape.
        **optimizer_kwargs: those of the algorithm.
    """

    def __init__(
        self,
        loss: Any,
        var_list: Sequence[Any] | None = None,
        equalities: Sequence[Any] | None = None,
        inequalities: Sequence[Any] | None = None,
        var_to_bounds: Mapping[Any, tuple[Any, Any]] | None = None,
        **optimizer_kwargs: Any,
    ) -> None:
        self._vars = list(trainable_variables() if var_list is None else var_list)
        self._shapes = [tuple(each.shape.as_list()) for each in self._vars]
        ends = list(accumulate((int(np.prod(each)) for each in self._shapes), initial=0))
        self._slices = [slice(*each) for each in pairwise(ends)]
        self._loss = loss
        self._equalities, self._inequalities = list(equalities or ()), list(inequalities or ())
        self._bounds = None if var_to_bounds is None else self._packed_bounds(var_to_bounds)
        self._packed_var = _packed(self._vars)
        self._loss_gradient = self._gradient(loss)
        self._equality_gradients = [self._gradient(each) for each in self._equalities]
        self._inequality_gradients = [self._gradient(each) for each in self._inequalities]
        self._values = [array.placeholder(each.dtype) for each in self._vars]
        self._updates = [
            variable.assign(array.reshape(value, shape))
            for variable, value, shape in zip(self._vars, self._values, self._shapes, strict=True)
        ]
        self.optimizer_kwargs = optimizer_kwargs

    def minimize(
        self,
        session: Any = None,
        feed_dict: Mapping[Any, Any] | None = None,
        fetches: Sequence[Any] | None = None,
        step_callback: Callable[..., Any] | None = None,
        loss_callback: Callable[..., Any] | None = None,
        **run_kwargs: Any,
    ) -> None:
        """Minimizes the loss now, and assigns the variables; no operation, as `Optimizer.minimize`.

        Args:
            session: the session, by default the default one.
            feed_dict: for all runs.
            fetches: what `loss_callback` is given, as positional arguments.
            step_callback: called at each step with the variables' values as one vector.
            loss_callback: called whenever the loss is computed.
            **run_kwargs: those of the run that assigns the variables.
        """
        session = session or get_default_session()
        fed, more = dict(feed_dict or {}), list(fetches or ())

        def evaluate(tensors: list[Any], callback: Any = None) -> _Evaluate:
            def function(x: NDArray[Any]) -> Any:
                parts = zip(self._vars, self._slices, self._shapes, strict=True)
                values = {variable: x[part].reshape(shape) for variable, part, shape in parts}
                found = session.run([*tensors, *more], feed_dict={**values, **fed})
                if callback is not None:
                    callback(*found[len(tensors) :])
                return found[: len(tensors)] if len(tensors) > 1 else found[0]

            return function

        def each(tensors: Sequence[Any]) -> list[_Evaluate]:
            return [evaluate([tensor]) for tensor in tensors]

        result = self._minimize(
            initial_val=session.run(self._packed_var, feed_dict=fed),
            loss_grad_func=evaluate([self._loss, self._loss_gradient], loss_callback),
            equality_funcs=each(self._equalities),
            equality_grad_funcs=each(self._equality_gradients),
            inequality_funcs=each(self._inequalities),
            inequality_grad_funcs=each(self._inequality_gradients),
            packed_bounds=self._bounds,
            step_callback=step_callback or (lambda xk: None),
            optimizer_kwargs=self.optimizer_kwargs,
        )
        values = (result[part] for part in self._slices)
        session.run(
            self._updates, feed_dict=dict(zip(self._values, values, strict=True)), **run_kwargs
        )

    def _minimize(
        self,
        initial_val: NDArray[Any],
        loss_grad_func: _Evaluate,
        equality_funcs: list[_Evaluate],
        equality_grad_funcs: list[_Evaluate],
        inequality_funcs: list[_Evaluate],
        inequality_grad_funcs: list[_Evaluate],
        packed_bounds: Any,
        step_callback: Callable[..., Any],
        optimizer_kwargs: Mapping[str, Any],
    ) -> NDArray[Any]:
        """The best vector of all variables' values, from functions of such vectors."""
        raise NotImplementedError(
            "To use ExternalOptimizerInterface, subclass from it and implement the _minimize() "
            "method."
        )

    def _gradient(self, value: Any) -> Tensor:
        found = gradients(value, self._vars)
        pairs = zip(self._vars, found, strict=True)
        return _packed([filling.zeros_like(v) if g is None else g for v, g in pairs])

    def _packed_bounds(self, given: Mapping[Any, tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        bounds: list[tuple[Any, Any]] = []
        for variable, shape in zip(self._vars, self._shapes, strict=True):
            low, high = next(
                (limits for each, limits in given.items() if each is variable), (-np.inf, np.inf)
            )
            sides = [np.broadcast_to(-np.inf if low is None else low, shape)]
            sides.append(np.broadcast_to(np.inf if high is None else high, shape))
            bounds.extend(zip(*(side.reshape(-1) for side in sides), strict=True))
        return bounds


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """Minimizes a loss by `scipy.optimize.minimize` (`tf.contrib.opt.ScipyOptimizerInterface`).

    The arguments are those of `ExternalOptimizerInterface`; `method` ('L-BFGS-B'), `options`, `tol`
    and others go to SciPy.

    Raises:
        ValueError: in `minimize`: an argument of SciPy's is given that the interface sets itself.
    """

    _DEFAULT_METHOD: ClassVar[str] = "L-BFGS-B"

    def _minimize(
        self,
        initial_val: NDArray[Any],
        loss_grad_func: _Evaluate,
        equality_funcs: list[_Evaluate],
        equality_grad_funcs: list[_Evaluate],
        inequality_funcs: list[_Evaluate],
        inequality_grad_funcs: list[_Evaluate],
        packed_bounds: Any,
        step_callback: Callable[..., Any],
        optimizer_kwargs: Mapping[str, Any],
    ) -> NDArray[Any]:
        import scipy.optimize

        def loss_and_gradient(x: NDArray[Any]) -> tuple[Any, NDArray[np.float64]]:
            loss, gradient = loss_grad_func(x)
            return loss, gradient.astype(np.float64)

        constraints = [
            {"type": kind, "fun": function, "jac": gradient}
            for kind, functions, grads in (
                ("eq", equality_funcs, equality_grad_funcs),
                ("ineq", inequality_funcs, inequality_grad_funcs),
            )
            for function, gradient in zip(functions, grads, strict=True)
        ]
        given = {"method": self._DEFAULT_METHOD, **optimizer_kwargs}
        own = {
            "jac": True,
            "callback": step_callback,
            "constraints": constraints,
            "bounds": packed_bounds,
        }
        for name in own:
            if name == "bounds" and name in given:
                raise ValueError("Bounds must be set using the var_to_bounds argument")
            if name in given:
                raise ValueError(
                    explain(
                        f"Optimizer keyword arg '{name}' is set automatically and cannot be "
                        "injected manually",
                        received=repr(given[name]),
                        hint="leave it out",
                    )
                )
        start = initial_val.astype(np.float64)  # some of SciPy's methods take no other dtype
        result = scipy.optimize.minimize(loss_and_gradient, start, **own, **given)
        logger.info(
            "Optimization terminated with:\n  Message: %s\n  Objective function value: %f\n"
            "  Number of iterations: %s\n  Number of functions evaluations: %s",
            *(result.message, result.fun, result.get("nit"), result.get("nfev")),
        )
        found: NDArray[Any] = result["x"]
        return found


def _packed(tensors: Sequence[Any]) -> Tensor:
    return joining.concat([array.reshape(each, [-1]) for each in tensors], 0)
