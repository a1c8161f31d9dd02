"""`tf.test.Benchmark`: times runs of operations in a session, and prints what it found."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from estimatorkit.runtime.session import Session


def benchmark_config() -> Any:
    """A `ConfigProto` for benchmarks: the default one."""
    from tensorboard.compat.proto.config_pb2 import ConfigProto

    return ConfigProto()


class Benchmark:
    """A class of benchmarks: its methods call `run_op_benchmark` or `report_benchmark`."""

    def report_benchmark(
        self,
        iters: int | None = None,
        cpu_time: float | None = None,
        wall_time: float | None = None,
        throughput: float | None = None,
        extras: Mapping[str, Any] | None = None,
        name: str | None = None,
        metrics: Any = None,
    ) -> None:
        """Prints an entry.

        Args:
            iters: how often it ran.
            cpu_time, wall_time: seconds a run.
            throughput: MB/s.
            extras, metrics: whatever else there is to say.
            name: what was measured; the class's name by default.
        """
        values = {
            **{"iters": iters, "wall_time": wall_time, "cpu_time": cpu_time},
            **{"throughput": throughput, "extras": dict(extras or {}), "metrics": metrics},
        }
        shown = [f"{key}: {value}" for key, value in values.items() if value not in (None, {})]
        print(f"entry {{ name: {name or type(self).__name__}, {', '.join(shown)} }}", flush=True)

    def run_op_benchmark(
        self,
        sess: Session,
        op_or_tensor: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        burn_iters: int = 2,
        min_iters: int = 10,
        store_trace: bool = False,
        store_memory_usage: bool = True,
        name: str | None = None,
        extras: Mapping[str, Any] | None = None,
        mbs: float = 0,
    ) -> dict[str, Any]:
        """Times runs of an operation, and prints the median.

        Args:
            sess: the session.
            op_or_tensor: what is run; nothing is fetched.
            feed_dict: see `Session.run`.
            burn_iters: runs before the first that counts; they compile.
            min_iters: runs that count.
            store_trace, store_memory_usage: accepted for TensorFlow's signature.
            name, extras: see `report_benchmark`.
            mbs: the megabytes that a run works on, for the throughput.

        Returns:
            What was printed: iters, wall_time, name, throughput, extras.
        """
        fetched = getattr(op_or_tensor, "op", op_or_tensor)
        seconds = []
        for count in range(burn_iters + min_iters):
            start = time.perf_counter()
            sess.run(fetched, feed_dict)
            if count >= burn_iters:
                seconds.append(time.perf_counter() - start)
        wall_time = float(np.median(seconds)) if seconds else 0.0
        found: dict[str, Any] = {
            "iters": min_iters,
            "wall_time": wall_time,
            "throughput": mbs / wall_time if wall_time else 0.0,
            "extras": {
                **(extras or {}),
                "wall_time_mean": float(np.mean(seconds)) if seconds else 0.0,
                "wall_time_stdev": float(np.std(seconds)) if seconds else 0.0,
            },
            "name": name or type(self).__name__,
        }
        self.report_benchmark(**found)
        return found
