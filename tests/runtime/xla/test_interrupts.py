"""Ctrl-C that comes where Python drops exceptions ends the work nevertheless."""

from __future__ import annotations

import gc
import os
import signal
import threading
from typing import Any

import numpy as np
import pytest

from estimatorkit import keras
from estimatorkit.runtime.xla.interrupts import keeping_interrupts


class Dropping:
    """Ctrl-C comes while an object is deleted."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass


@pytest.fixture(autouse=True)
def _handler() -> Any:
    """Python's own, which tests in the background lack."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    Dropping()
    gc.collect()


def test_dropped_interrupt_is_raised_between_steps_and_at_the_end() -> None:
    came = []

    def steps(checked: bool) -> None:
        with keeping_interrupts() as check:
            check()
            interrupt()
            came.append("dropped")
            if checked:
                check()
            came.append("at the end")

    with pytest.raises(KeyboardInterrupt):
        steps(True)
    with pytest.raises(KeyboardInterrupt):
        steps(False)
    assert came == ["dropped", "dropped", "at the end"]


def test_other_threads_have_no_interrupts() -> None:
    def work() -> None:
        with keeping_interrupts() as check:
            check()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_fit_ends_with_the_epoch_in_which_it_came() -> None:
    begun = []

    class Interrupted(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            begun.append(epoch)
            if epoch == 1:
                interrupt()

    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,))])
    model.compile("sgd", "mse")
    with pytest.raises(KeyboardInterrupt):
        model.fit(np.ones((8, 2)), np.ones(8), epochs=9, verbose=0, callbacks=[Interrupted()])
    assert begun == [0, 1]
