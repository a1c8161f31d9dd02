"""The command: `python benchmarks/run.py [--quick] [--only NAME] [--write]`; see README.md here."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.driver import main

    sys.exit(main())
