"""What a session gives, as JSON can hold it: the same for TensorFlow and for this package."""

from __future__ import annotations

from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Arrays as dtype, shape and values; bytes as Latin-1 text; sparse values as lists.

    Floating numbers are written by `repr`, so that infinities and NaN can be compared.
    """
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in sorted(value.items())}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if value is None or isinstance(value, (str, bool)):
        return value
    array = np.array(value, object) if isinstance(value, bytes) else np.asarray(value)
    flat = array.reshape(-1).tolist()
    return {
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "values": [_element(each) for each in flat],
    }


def _element(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return repr(value) if isinstance(value, (float, complex)) else value
