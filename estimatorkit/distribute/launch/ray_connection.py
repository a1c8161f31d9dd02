"""`connected_ray`: connects to a Ray cluster, or starts a private local one."""

from __future__ import annotations

import os
from typing import Any

from estimatorkit.core.errors import explain
from estimatorkit.distribute.tasks.token import cluster_token

_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""With 0 Ray's servers bind to 127.0.0.1 on every system; otherwise to all addresses."""

LOCAL = "local"


def connected_ray(address: str = LOCAL, **options: Any) -> Any:
    """Connects this process to Ray, unless it is connected.

    A local cluster is started with token authentication, on 127.0.0.1, without the dashboard.

    Args:
        address: of the cluster, such as ray://head:10001 or auto; 'local' starts one here.
        **options: of `ray.init`.

    Returns:
        The module `ray`.

    Raises:
        ImportError: Ray is not installed.
    """
    if address == LOCAL:
        # Before the import, which reads them.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", cluster_token())
        os.environ.setdefault(_LOOPBACK, "0")
        options["include_dashboard"] = False
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            explain("Ray is not installed", hint="pip install 'estimatorkit[ray]'")
        ) from error
    if not ray.is_initialized():
        ray.init(address=address, **options)
    return ray
