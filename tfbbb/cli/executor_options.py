"""Options that say where the tasks of a command run."""

from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.cli.errors import CommandError

if TYPE_CHECKING:
    from tfbbb.training.executor import Executor

Processes = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Processes of this machine that train at the same time, with one thread "
        "each; the results do not depend on their number.",
        show_default="1",
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Ray cluster to train on, in place of processes: HOST:PORT, `auto` for "
        "that of this machine, or `local` to start one.",
    ),
]


def open_executor(processes: int | None, ray_address: str | None) -> "Executor":
    """Returns the executor of the two options.

    Raises:
        CommandError: Both options are given, Ray is not installed, or no cluster
            answers.
    """
    from tfbbb.training.executor import make_executor

    if processes is None and ray_address is None:
        processes = 1
    try:
        return make_executor(processes, ray_address)
    except (ValueError, ImportError, ConnectionError) as error:
        raise CommandError(str(error)) from None
