"""`python -m estimatorkit` is the command `estimatorkit`."""

from __future__ import annotations

from estimatorkit.experiment.command import main

if __name__ == "__main__":
    main()
