"""Random Keras models of TensorFlow 2.15.1, trained step by step.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_random_models.py [FIRST LAST FILE]

Writes `random_models.json` (what the models of `SEEDS` give, see `snippets_random_models.py`)
beside this file; or the models of other seeds to another file, for a longer comparison by hand.
Seeds whose models TensorFlow refuses are left out.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json
from snippets_random_models import SEEDS, run


def rounded(value: Any) -> Any:
    """Numbers with six digits."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return value if isinstance(value, str) else float(f"{value:.6g}")


def main() -> None:
    """Runs the models and writes the file."""
    given = sys.argv[1:]
    results = {}
    for seed in range(int(given[0]), int(given[1])) if given else SEEDS:
        tf.keras.backend.clear_session()
        try:
            results[str(seed)] = rounded(run(tf, seed))
        except (ArithmeticError, AttributeError, RuntimeError, TypeError, ValueError) as error:
            if not given:
                raise
            print(seed, f"{type(error).__name__}: {str(error).strip().splitlines()[-1]}")
    path = Path(given[2]).absolute() if given else Path("random_models.json")
    write_json(str(path), {"about": {"tensorflow": tf.__version__}, "results": results})


if __name__ == "__main__":
    main()
