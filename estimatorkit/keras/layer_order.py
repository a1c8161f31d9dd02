"""The order of a functional model's layers, as Keras has it: those far from the outputs first.

Weights in files without names of their own (`get_weights`, Keras's HDF5) are in this order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from estimatorkit.core.tensor import Tensor
from estimatorkit.keras.network import Network, Step
from estimatorkit.layers.base import Layer
from estimatorkit.layers.call_record import LayerCall, record_of


def layers_by_depth(network: Network) -> list[Layer]:
    """The layers by their distance from the outputs, the farthest first; those of one distance in
    the order in which the outputs lead to them.
    """
    ends = {id(tensor) for tensor in network.input_tensors}
    calls = record_of(network.output_tensors[0].graph).calls

    def step_of(tensor: Any) -> Step:
        call = calls.get(tensor)
        if call is None:
            step: Step = tensor.op
            return step
        return call

    def needs(tensor: Any) -> list[Tensor]:
        if id(tensor) in ends:
            return []
        step = step_of(tensor)
        return step.input_tensors if isinstance(step, LayerCall) else list(step.inputs)

    first_seen: dict[int, int] = {}
    before: dict[int, list[int]] = {}
    steps: dict[int, Step] = {}
    finished: list[int] = []
    for output in [*network.output_tensors, *network.input_tensors]:
        stack: list[tuple[int, Iterator[Tensor]]] = []
        waiting: Iterator[Any] = iter([output])
        while True:
            tensor = next(waiting, None)
            if tensor is None:
                if not stack:
                    break
                done, waiting = stack.pop()
                finished.append(done)
                continue
            step = step_of(tensor)
            if stack:
                before[stack[-1][0]].append(id(step))
            if id(step) in steps:
                continue
            steps[id(step)] = step
            before[id(step)] = []
            if isinstance(step, LayerCall):
                first_seen.setdefault(id(step.layer), len(first_seen))
            stack.append((id(step), waiting))
            waiting = iter(needs(tensor))
    return _sorted(steps, before, finished, first_seen)


def _sorted(
    steps: dict[int, Step],
    before: dict[int, list[int]],
    finished: list[int],
    first_seen: dict[int, int],
) -> list[Layer]:
    depths: dict[int, int] = {}
    of_layers: dict[int, int] = {}
    layers: dict[int, Layer] = {}
    for key in reversed(finished):
        step = steps[key]
        depth = depths.get(key, 0)
        if isinstance(step, LayerCall):
            layers[id(step.layer)] = step.layer
            depth = max(depth, of_layers.get(id(step.layer), 0))
            of_layers[id(step.layer)] = depth
        for needed in before[key]:
            depths[needed] = max(depth + 1, depths.get(needed, 0))
    order = sorted(layers, key=lambda key: (-of_layers[key], first_seen[key]))
    return [layers[key] for key in order]


__all__ = ["layers_by_depth"]
