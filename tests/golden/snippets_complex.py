"""Gradients of complex numbers, as functions of the module that they use as `tf`.

Each takes the module and two placeholders, `(2,)` complex64 and `(2,)` float32, and gives what is
fetched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Z = [1 + 2j, 3 - 1j]
R = [1.0, -2.0]


def _of(x: str, function: Callable[[Any, Any], Any], seed: list[complex] | None = None) -> Any:
    """The gradient of a function of one of the placeholders."""

    def gradient(tf: Any, z: Any, r: Any) -> Any:
        at = z if x == "z" else r
        y = function(tf, at)
        return tf.gradients(y, at, grad_ys=None if seed is None else tf.constant(seed, y.dtype))[0]

    return gradient


_SEED: list[complex] = [1 + 1j, 2 - 1j]


def _defun(tf: Any, z: Any, r: Any) -> Any:
    @tf.custom_gradient
    def doubled(x: Any) -> Any:
        return 2 * x, lambda dy: dy * (1 + 1j)  # TensorFlow's convention: no conjugate

    return tf.gradients(tf.real(doubled(z) * (1 - 2j)), z)[0]


# Rows that need names of TensorFlow 1.
LEGACY = {"fft"}
GRADIENTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "square": _of("z", lambda tf, z: z * z * (2 - 1j), _SEED),
    "exp": _of("z", lambda tf, z: tf.exp(z), _SEED),
    "reciprocal": _of("z", lambda tf, z: 1 / z, _SEED),
    "conj": _of("z", lambda tf, z: tf.conj(z) * z, _SEED),
    "matmul": _of("z", lambda tf, z: tf.matmul(z[None, :], z[:, None]), [[1j]]),
    "real": _of("z", lambda tf, z: tf.real(z)),
    "imag": _of("z", lambda tf, z: tf.imag(z * z)),
    "angle": _of("z", lambda tf, z: tf.angle(z)),
    "gather": _of("z", lambda tf, z: tf.real(tf.gather(z * z, [0, 0]))),
    "fft": _of("z", lambda tf, z: tf.real(tf.fft(z) * [1 + 1j, 2 - 1j])),
    "while": _of(
        "z",
        lambda tf, z: tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * z), [0, z])[1],
        _SEED,
    ),
    "map_fn": _of("z", lambda tf, z: tf.map_fn(lambda x: x * x, z), _SEED),
    "cond": _of("z", lambda tf, z: tf.cond(tf.real(z[0]) > 0, lambda: z * z, lambda: z), _SEED),
    "complex": _of("r", lambda tf, r: tf.complex(r, r * r), _SEED),
    "cast": _of("r", lambda tf, r: tf.real(tf.cast(r, tf.complex64) * (3 - 2j))),
    "cast back": _of("r", lambda tf, r: tf.cast(tf.complex(r * r, r), tf.float32)),
    "phase": _of("r", lambda tf, r: tf.real(tf.exp(1j * tf.cast(r, tf.complex64)))),
    "custom": _defun,
    "no seed": _of("z", lambda tf, z: z * z),
}
