"""`InteractiveSession`: a session for shells and notebooks."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from estimatorkit.core.default_session import default_session
from estimatorkit.core.graph import Graph
from estimatorkit.runtime.session import Session


class InteractiveSession(Session):
    """A session that is the default session until it is closed, for shells and notebooks."""

    _open: ClassVar[int] = 0  # sessions that are not closed

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        if InteractiveSession._open:
            warnings.warn(
                "An interactive session is already active. This can cause out-of-memory errors in "
                "some cases. You must explicitly call `InteractiveSession.close()` to release "
                "resources held by the other session(s).",
                stacklevel=2,
            )
        InteractiveSession._open += 1
        self._default = default_session(self, enforce_nesting=False)
        self._default.__enter__()
        self._graph_context = None if graph is None else graph.as_default()
        if self._graph_context is not None:
            self._graph_context.__enter__()

    def close(self) -> None:
        """Closes the session; it is no longer the default."""
        if not self._closed:
            if self._graph_context is not None:
                self._graph_context.__exit__(None, None, None)
            self._default.__exit__(None, None, None)
            InteractiveSession._open -= 1
        super().close()
