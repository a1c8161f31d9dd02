"""The `session_run` workload: the cost of one `Session.run` when the graph does next to nothing.

One function for every package with TensorFlow 1's names; the participants pass theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def one_op_call(v1: Any) -> Callable[[], object]:
    """Returns a call that runs `placeholder + constant`, one float fed, the sum fetched.

    Args:
        v1: the namespace with `Graph`, `Session`, `placeholder`, `constant`, `add` and `float32`.

    Raises:
        RuntimeError: the sum is wrong.
    """
    graph = v1.Graph()
    with graph.as_default():
        fed = v1.placeholder(v1.float32, shape=())
        total = v1.add(fed, v1.constant(2.0))
    session = v1.Session(graph=graph)

    def call() -> object:
        return session.run(total, feed_dict={fed: 1.0})

    if float(call()) != 3.0:  # type: ignore[arg-type]
        raise RuntimeError(f"1 + 2 gave {call()!r}")
    return call
