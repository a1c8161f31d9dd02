"""The command `estimatorkit`, also `python -m estimatorkit`: experiments, `launch` and `migrate`.

`migrate` joins them here, because `experiment` comes before `compat` and does not import it, and
`launch`, which is about no experiment.
"""

from __future__ import annotations

from estimatorkit.compat.migrate_command import migrate
from estimatorkit.distribute.launch_command import launch
from estimatorkit.experiment.command import cli, main

cli.add_command(launch)
cli.add_command(migrate)

if __name__ == "__main__":
    main()
