"""`tf.test.Benchmark`: measures operations in a session, and prints the results."""

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
    """Base class of benchmarks: methods call `run_op_benchmark` or `report_benchmark`."""

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
        """Prints a result.

        Args:
            iters: the number of runs.
            cpu_time, wall_time: seconds per run.
            throughput: MB/s.
            extras, metrics: additional values.
            name: the benchmark's name; the class's by default.
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
        """Measures runs of an operation, and prints the median time.

        Args:
            sess: the session.
            op_or_tensor: run without fetching.
            feed_dict: see `Session.run`.
            burn_iters: warm-up runs, which include compilation.
            min_iters: measured runs.
            store_trace, store_memory_usage: accepted for compatibility only.
            name, extras: see `report_benchmark`.
            mbs: megabytes processed per run, for the throughput.

        Returns:
            The printed values: iters, wall_time, name, throughput, extras.
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
