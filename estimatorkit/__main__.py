"""The command `estimatorkit`, also `python -m estimatorkit`: experiments, and `migrate`.

`migrate` joins them here, because `experiment` comes before `compat` and does not import it.
"""

from __future__ import annotations

from estimatorkit.compat.migrate_command import migrate
from estimatorkit.experiment.command import cli, main

cli.add_command(migrate)

if __name__ == "__main__":
    main()
