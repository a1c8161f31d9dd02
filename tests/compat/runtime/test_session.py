"""The tests of `tests/runtime/test_session.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

from estimatorkit.compat.ops.variables import session_tensors
from estimatorkit.core import errors
from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.conversion import constant
from estimatorkit.core.dtypes import int32
from estimatorkit.core.graph import Graph
from estimatorkit.ops.math import elementwise
from estimatorkit.runtime.session import Session


def test_session_handles() -> None:
    with Graph().as_default():
        x = placeholder(int32, [])
        kept = session_tensors.get_session_handle(elementwise.add(x, 1))
        given = constant(2)
        with Session() as session:
            handle, value = session.run([kept, x], {x: 4})
            holder, again = session_tensors.get_session_tensor(handle.handle, int32)
            assert (handle.eval(), value) == (5, 4)
            assert session.run(again * 3, {holder: handle.handle}) == 15
            assert session.run(given * 3, {given: handle}) == 15
            following = session_tensors.get_session_handle(again + 1)
            for _ in range(3):
                handle = session.run(following, {holder: handle.handle})
            assert handle.eval() == 8
            handle.delete()
            with pytest.raises(TypeError, match="may have already been deleted"):
                handle.eval()
            with pytest.raises(errors.InvalidArgumentError, match="not in the session store"):
                session.run(again, {holder: handle.handle})
            raw = session.run(kept, {x: 1}).get_raw_handle()
            assert session.run(again, {holder: raw}) == 2
            of_raw, deletion = session_tensors.delete_session_tensor(raw)
            session.run(deletion, {of_raw: raw})
            with pytest.raises(errors.InvalidArgumentError, match="not in the session store"):
                session.run(again, {holder: raw})
        with pytest.raises(TypeError, match="must be of type Tensor"):
            session_tensors.get_session_handle(3)
