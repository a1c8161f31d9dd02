"""The command `estimatorkit`, also `python -m estimatorkit`: all commands in one.

`migrate` joins those of experiments here, because `experiment` comes before `compat` and does not
import it; so do `compare`, `doctor`, `k8s`, `launch`, `serve` and `tune`, which have their own
files.
"""

from __future__ import annotations

import contextlib

from estimatorkit.distribute.launch.launch_command import launch
from estimatorkit.experiment.command import cli, main
from estimatorkit.experiment.compare_command import compare
from estimatorkit.experiment.doctor_command import doctor
from estimatorkit.experiment.kubernetes_command import k8s
from estimatorkit.experiment.serve_command import serve
from estimatorkit.experiment.tune_command import tune

cli.add_command(compare)
cli.add_command(doctor)
cli.add_command(k8s)
cli.add_command(launch)
cli.add_command(serve)
cli.add_command(tune)

with contextlib.suppress(ModuleNotFoundError):  # the package also works without `compat`
    from estimatorkit.compat.migrate_command import migrate

    cli.add_command(migrate)

if __name__ == "__main__":
    main()
