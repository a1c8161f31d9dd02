"""How a pipeline's elements are described and taken: the same for TensorFlow and this package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

try:
    from golden_values import plain
except ModuleNotFoundError:  # imported by a test, not by a script of this folder
    from tests.golden.golden_values import plain

MOST = 40  # runs of a pipeline, some of which may fail


def spec_of(spec: Any) -> Any:
    """Describes a nested structure of specs: `SparseTensor float32 [None, 2]` for a leaf."""
    if isinstance(spec, Mapping):
        return {key: spec_of(spec[key]) for key in sorted(spec)}
    if isinstance(spec, tuple):
        return [spec_of(each) for each in spec]
    kind = type(spec).__name__.removesuffix("Spec")
    if kind == "Dataset":
        return {"Dataset of": spec_of(spec.element_spec)}
    shape = "unknown" if spec.shape.rank is None else spec.shape.as_list()
    return f"{kind} {spec.dtype.name} {shape}"


def elements_of(tf: Any, session: Any, dataset: Any) -> list[Any]:
    """The elements that `session` gets one by one; the class of an error in place of one.

    Args:
        tf: the module.
        session: a session of the default graph.
        dataset: the pipeline.
    """
    iterator = tf.data.make_initializable_iterator(dataset)
    element = iterator.get_next()
    session.run(iterator.initializer)
    found: list[Any] = []
    for _ in range(MOST):
        try:
            found.append(plain(session.run(element)))
        except tf.errors.OutOfRangeError:
            break
        except tf.errors.OpError as error:
            found.append({"error": type(error).__name__})
    return found
